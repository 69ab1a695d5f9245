"""Review a packed change: ask about each piece, merge the answers, hold them against the diff."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from bot.actions import Usage
from bot.errors import BudgetExceeded, ModelError
from bot.models.protocol import Model
from bot.prompts import Prompts
from bot.review import reflexion, single_shot
from bot.review.anchoring import anchor
from bot.review.findings import Dropped, Finding, Reported
from bot.review.packing import Packed, Piece, Skipped
from bot.review.single_shot import Question, Round

Strategy = Literal["single-shot", "reflexion"]

#: Findings of one reply that are looked at; a model that reports more is looping.
MAX_REPORTED = 100


@dataclass(frozen=True, slots=True)
class Change:
    """What a change says of itself, and what a model need not say of it again."""

    title: str = ""
    description: str = ""
    repository: str = ""
    subject: str = ""
    known: tuple[str, ...] = ()


@dataclass(slots=True)
class Result:
    """What came of the reading; ``unread`` are the pieces that no usable answer came back for."""

    findings: tuple[Finding, ...] = ()
    dropped: tuple[Dropped, ...] = ()
    unread: tuple[Skipped, ...] = ()
    rounds: list[Round] = field(default_factory=list)

    @property
    def usage(self) -> Usage:
        return sum((each.reply.usage for each in self.rounds), Usage())

    @property
    def model(self) -> str:
        return self.rounds[-1].reply.model if self.rounds else ""


Look = Callable[[Question], tuple[Round, ...]]


def looker(strategy: Strategy, iterations: int, model: Model, prompts: Prompts) -> Look:
    """How one piece is read under a strategy."""
    if strategy == "reflexion":
        return lambda question: reflexion.look(model, prompts, question, iterations)
    return lambda question: single_shot.look(model, prompts, question)


def review(packed: Packed, change: Change, look: Look) -> Result:
    """Read every piece. One that fails is named in ``unread``; where all fail, the first error is raised.

    Raises ModelError, or TransientError as soon as any call does.
    """
    result = Result()
    reported: list[Reported] = []
    failed: list[ModelError] = []
    unread: list[Skipped] = []
    for number, piece in enumerate(packed.pieces, start=1):
        try:
            rounds = look(_question(piece, number, len(packed.pieces), change))
        except ModelError as error:
            failed.append(error)
            unread += _unread(piece, error)
            continue
        result.rounds += rounds
        reported += rounds[-1].reply.value.findings[:MAX_REPORTED]
    if failed and not result.rounds:
        raise failed[0]
    result.findings, result.dropped = anchor(reported, packed.diff)
    result.unread = tuple(unread)
    return result


def _question(piece: Piece, part: int, parts: int, change: Change) -> Question:
    return Question(
        piece, part, parts, change.title, change.description, change.repository, change.subject, change.known
    )


def _unread(piece: Piece, error: ModelError) -> Sequence[Skipped]:
    spent = isinstance(error, BudgetExceeded)
    reason = "the model budget of the day is spent" if spent else f"no usable answer ({error.reason})"
    return [Skipped(path=path, reason=reason) for path in piece.paths]
