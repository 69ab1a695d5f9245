"""The reviewers: each piece of a packed change is put to a model once, or again with the last findings at hand.

Single-shot and Reflexion are CR-Bench's A_1 and A_2 (section 6; Reflexion: Shinn et al. 2023).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

from bot.core.actions import Usage
from bot.core.config import ReviewConfig
from bot.errors import BudgetExceeded, ModelError
from bot.models.investigation import Notes
from bot.models.protocol import Model, Prompt, Reply
from bot.prompts import Prompts
from bot.review.anchoring import anchor
from bot.review.findings import Dropped, Finding, Reported, ReviewReply
from bot.review.packing import Packed, Piece, Skipped
from bot.review.panel import LENSES, merged
from bot.review.quotes import bare
from bot.review.taxonomy import CATEGORIES, IMPACTS

#: Characters of a pull request's title and description that a reviewer is shown.
MAX_TITLE = 300
MAX_DESCRIPTION = 6_000


class HouseRule(NamedTuple):
    """A text that is shown beside a change, and where it comes from."""

    source: str
    text: str


class LinkedIssue(NamedTuple):
    """An issue that a change says it is about."""

    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Background:
    """What every question about a change carries, equal in all of them; ``partly``: not all files are shown."""

    issues: tuple[LinkedIssue, ...] = ()
    runtimes: tuple[str, ...] = ()
    rules: tuple[HouseRule, ...] = ()
    files: tuple[str, ...] = ()
    partly: bool = False


@dataclass(frozen=True, slots=True)
class Question:
    """A piece of a change and what is said about it; ``known`` are findings that were reported before."""

    piece: Piece
    part: int
    parts: int
    title: str
    description: str
    repository: str = ""
    subject: str = ""
    known: tuple[str, ...] = ()
    background: Background = Background()
    context: str = ""
    notes: str = ""

    def prompt(self, prompts: Prompts, name: str, **more: object) -> Prompt:
        """The prompt ``name`` about this piece."""
        system, user = prompts.render(
            name,
            title=self.title[:MAX_TITLE],
            description=self.description[:MAX_DESCRIPTION],
            repository=self.repository,
            change=self.piece.text,
            part=self.part,
            parts=self.parts,
            known=self.known,
            background=self.background,
            context=self.context,
            notes=self.notes,
            categories=CATEGORIES,
            impacts=IMPACTS,
            **more,
        )
        return Prompt(purpose="review", system=system, user=user, subject=self.subject)


@dataclass(frozen=True, slots=True)
class Round:
    """One exchange with the model."""

    prompt_hash: str
    reply: Reply[ReviewReply]


@dataclass(frozen=True, slots=True)
class LookedAt:
    """All exchanges about one piece, and what each look came to: one list, or one for every look of a panel."""

    rounds: tuple[Round, ...]
    opinions: tuple[tuple[Reported, ...], ...]


def single_shot(model: Model, prompts: Prompts, question: Question) -> tuple[Round, ...]:
    """Ask once. Raises ModelError or TransientError."""
    prompt = question.prompt(prompts, "review.single-shot")
    return (Round(prompt.hash, model.complete(prompt, ReviewReply)),)


def reflexion(model: Model, prompts: Prompts, question: Question, iterations: int) -> tuple[Round, ...]:
    """The first look and at most ``iterations`` further ones; stops when a round changes nothing.

    A later round that yields no usable answer ends the looking, and what was found before it stands.
    Raises ModelError or TransientError for the first look, TransientError for any.
    """
    rounds = [*single_shot(model, prompts, question)]
    for number in range(1, iterations + 1):
        previous = rounds[-1].reply.value.findings
        prompt = question.prompt(
            prompts, "review.reflexion", round=number, previous=previous, previous_json=_as_json(previous)
        )
        try:
            rounds.append(Round(prompt.hash, model.complete(prompt, ReviewReply)))
        except ModelError:
            break
        if _substance(rounds[-1].reply.value.findings) == _substance(previous):
            break
    return tuple(rounds)


def panel(model: Model, prompts: Prompts, question: Question, looks: int) -> LookedAt:
    """``looks`` looks side by side. One that yields nothing usable is left out.

    Raises ModelError where none does, TransientError as soon as one does.
    """

    def look(number: int) -> Round | ModelError:
        draw, lens = divmod(number, len(LENSES))
        prompt = question.prompt(prompts, "review.panel", lens=LENSES[lens])
        if draw:
            # At temperature 0 the same lens would see the same again.
            prompt = prompt.model_copy(update={"sample": draw, "temperature": None})
        try:
            return Round(prompt.hash, model.complete(prompt, ReviewReply))
        except ModelError as error:
            return error

    with ThreadPoolExecutor(looks) as pool:
        asked = [pool.submit(copy_context().run, look, number) for number in range(looks)]
        answers = [each.result() for each in asked]
    rounds = tuple(each for each in answers if isinstance(each, Round))
    if not rounds:
        raise next(each for each in answers if isinstance(each, ModelError))
    opinions = tuple(each.reply.value.findings if isinstance(each, Round) else () for each in answers)
    return LookedAt(rounds, opinions)


def _as_json(findings: tuple[Reported, ...]) -> str:
    return json.dumps([finding.model_dump(mode="json") for finding in findings], ensure_ascii=False, indent=1)


def _substance(findings: tuple[Reported, ...]) -> frozenset[tuple[str, str, str, str]]:
    """What would be posted, whatever the words: a second look that only rephrases has changed nothing."""
    return frozenset((each.path, bare(each.quote), each.category, each.severity) for each in findings)


Strategy = Literal["single-shot", "reflexion", "panel"]

#: Findings of one reply that are looked at; a model that reports more is looping.
MAX_REPORTED = 100


@dataclass(frozen=True, slots=True)
class Change:
    """What a change says of itself and what stands around it; what a model need not say of it again.

    ``contexts`` are the code around each piece of it.
    """

    title: str = ""
    description: str = ""
    repository: str = ""
    subject: str = ""
    known: tuple[str, ...] = ()
    background: Background = Background()
    contexts: tuple[str, ...] = ()


@dataclass(slots=True)
class Result:
    """What came of the reading; ``unread`` are the pieces that no usable answer came back for."""

    findings: tuple[Finding, ...] = ()
    dropped: tuple[Dropped, ...] = ()
    unread: tuple[Skipped, ...] = ()
    rounds: list[Round] = field(default_factory=list)
    looks: int = 1
    notes: tuple[Notes, ...] = ()

    @property
    def usage(self) -> Usage:
        looking = sum((each.usage for each in self.notes), Usage())
        return sum((each.reply.usage for each in self.rounds), looking)

    @property
    def model(self) -> str:
        return self.rounds[-1].reply.model if self.rounds else ""


Look = Callable[[Question], LookedAt]
#: Looks at the repository's code before a question about it is answered.
LookAround = Callable[[Question], Notes]


def looker(config: ReviewConfig, model: Model, prompts: Prompts) -> Look:
    """How one piece is read under a strategy."""
    if config.strategy == "panel":
        return lambda question: panel(model, prompts, question, config.looks)
    if config.strategy == "reflexion":
        return lambda question: _last_word(reflexion(model, prompts, question, config.iterations))
    return lambda question: _last_word(single_shot(model, prompts, question))


def _last_word(rounds: tuple[Round, ...]) -> LookedAt:
    return LookedAt(rounds, (rounds[-1].reply.value.findings,))


def review(packed: Packed, change: Change, look: Look, look_around: LookAround | None = None) -> Result:
    """Read every piece, after a look around where one is wanted.

    A piece that fails is named in ``unread``; where all fail, the first error is raised.

    Raises ModelError, or TransientError as soon as any call does.
    """
    result = Result()
    reported: list[list[Reported]] = []
    failed: list[ModelError] = []
    unread: list[Skipped] = []
    for number, piece in enumerate(packed.pieces, start=1):
        try:
            question = _question(piece, number, len(packed.pieces), change)
            if look_around is not None:
                notes = look_around(question)
                result.notes += (notes,)
                question = replace(question, notes=notes.text if notes.looks else "")
            seen = look(question)
        except ModelError as error:
            failed.append(error)
            unread += _unread(piece, error)
            continue
        result.rounds += seen.rounds
        reported += [[] for _ in range(len(seen.opinions) - len(reported))]
        for one_look, opinion in zip(reported, seen.opinions, strict=True):
            one_look += opinion[:MAX_REPORTED]
    if failed and not result.rounds:
        raise failed[0]
    anchored = [anchor(each, packed.diff) for each in reported]
    result.looks = len(reported)
    result.findings = merged([found for found, _ in anchored])
    result.dropped = tuple(each for _, dropped in anchored for each in dropped)
    result.unread = tuple(unread)
    return result


def _question(piece: Piece, part: int, parts: int, change: Change) -> Question:
    return Question(
        piece,
        part,
        parts,
        change.title,
        change.description,
        change.repository,
        change.subject,
        change.known,
        change.background,
        change.contexts[part - 1] if change.contexts else "",
    )


def _unread(piece: Piece, error: ModelError) -> Sequence[Skipped]:
    spent = isinstance(error, BudgetExceeded)
    reason = "the model budget of the day is spent" if spent else f"no usable answer ({error.reason})"
    return [Skipped(path=path, reason=reason) for path in piece.paths]
