"""One look at each piece of a change (CR-Bench, 6: A_1)."""

from __future__ import annotations

from dataclasses import dataclass

from bot.models.protocol import Model, Prompt, Reply
from bot.prompts import Prompts
from bot.review.findings import ReviewReply
from bot.review.packing import Piece
from bot.review.taxonomy import Category, Impact

#: Characters of a pull request's title and description that a reviewer is shown.
MAX_TITLE = 300
MAX_DESCRIPTION = 6_000

NAME = "review.single-shot"


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
            categories=tuple(Category),
            impacts=tuple(Impact),
            **more,
        )
        return Prompt(purpose="review", system=system, user=user, subject=self.subject)


@dataclass(frozen=True, slots=True)
class Round:
    """One exchange with the model."""

    prompt_hash: str
    reply: Reply[ReviewReply]


def look(model: Model, prompts: Prompts, question: Question) -> tuple[Round, ...]:
    """Ask once. Raises ModelError or TransientError."""
    prompt = question.prompt(prompts, NAME)
    return (Round(prompt.hash, model.complete(prompt, ReviewReply)),)
