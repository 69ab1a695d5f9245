"""Ask a model for tests: drafts, repaired drafts, and the choice among the best."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeVar

from pydantic import BaseModel, Field

from bot.core.actions import Usage
from bot.core.errors import ModelError
from bot.core.frozen import Frozen, Lenient
from bot.core.text import without_middle
from bot.models.protocol import Prompt, ask_all
from bot.reproduction.context import Context
from bot.reproduction.examples import Example
from bot.reproduction.protocol import Author, Report
from bot.reproduction.report import framings

T = TypeVar("T", bound=BaseModel)

#: The cause if a draft cannot be used; only the first allows a repair.
Fault = Literal["the test", "the environment", "the interface"]

#: Enough variety for n drafts to differ (LIBRO, section IV.C).
TEMPERATURE = 0.7
MAX_BODY, MAX_CODE = 40_000, 20_000
MAX_THREADS = 8


class Draft(Lenient):
    """The model's reply: a plan first, then the test."""

    plan: str = Field("", description="what goes wrong, what is right, and which call shows the difference")
    code: str = Field(description="the whole code of the test with its imports, without a fence")


class Mended(Lenient):
    """A repaired draft, or the reason why it cannot be repaired."""

    plan: str = Field("", description="what was wrong, in a sentence or two")
    at_fault: Fault = Field(
        "the test",
        description="the environment: no test could work here; the interface: the report does not determine it",
    )
    code: str = Field("", description="the whole code of the test again, without a fence; empty if not the test")


class CodeEdit(Lenient):
    """A replacement in a file."""

    path: str = Field(description="as it is shown above the code, without the line")
    old: str = Field(description="whole lines, copied exactly, that stand once in the file; no line numbers")
    new: str = Field(description="the lines in their place")


class Patch(Lenient):
    """A drafted repair of the bug itself, in the code under test."""

    plan: str = Field("", description="the cause, and what is changed")
    edits: tuple[CodeEdit, ...] = Field(description="the smallest change that repairs it; no tests")


class Pick(Lenient):
    """The model's choice among several tests."""

    reasons: str = Field("", description="what speaks for and against each test")
    choice: int = Field(ge=0, description="number of the chosen test; 0 where every one is wrong")


class Option(Frozen):
    """A test that the model can choose."""

    code: str
    failure: str
    agreeing: int


@dataclass
class Drafting:
    """All questions about one report, with their total ``usage``. ``framed``: drafts see parts of it in turn."""

    author: Author
    report: Report
    context: Context
    examples: Sequence[Example]
    language: str
    framed: bool = False
    usage: Usage = field(default_factory=Usage)
    answered_by: str = ""
    failures: list[ModelError] = field(default_factory=list)

    def drafts(self, samples: int) -> dict[int, str]:
        """Ask for ``samples`` drafts at the same time. Return those that came back, by number.

        Raises the first ModelError if there are none; TransientError at once.
        """
        reports = framings(self.report) if self.framed else (self.report,)
        prompts = [self._prompt("reproduce", "draft", report=report, examples=self.examples) for report in reports]
        questions = {
            number: prompts[number % len(prompts)].model_copy(update={"sample": number})
            for number in range(samples)
        }
        replies = self._ask_all(questions, Draft)
        if not replies and self.failures:
            self.failures[0].usage = self.usage
            raise self.failures[0]
        return {number: reply.code for number, reply in replies.items()}

    def repair(self, broken: dict[int, tuple[str, str]]) -> dict[int, Mended]:
        """Ask for repairs of drafts, given by number as (code, problem)."""
        questions = {
            number: self._prompt("reproduce-repair", "repair", number, code=code[:MAX_CODE], problem=problem)
            for number, (code, problem) in broken.items()
        }
        return self._ask_all(questions, Mended)

    def patches(self, count: int) -> tuple[Patch, ...]:
        """Ask for ``count`` repairs of the bug itself. Return those that came back."""
        questions = {number: self._prompt("reproduce-patch", "patch", number) for number in range(count)}
        return tuple(self._ask_all(questions, Patch).values())

    def pick(self, choices: Sequence[Option], drafts: int) -> int | None:
        """Return the index of the test that the model chooses, or None if it finds all of them wrong.

        If the model fails to answer, the ranking decides: 0.
        """
        prompt = self._prompt("reproduce-pick", "pick", choices=choices, drafted=drafts)
        try:
            reply = self.author.model.complete(prompt.model_copy(update={"temperature": 0.0}), Pick)
        except ModelError as error:
            self._add_failure(error)
            return 0
        self._count(reply.usage, reply.model)
        if reply.value.choice == 0:
            return None
        return reply.value.choice - 1 if reply.value.choice <= len(choices) else 0

    def _prompt(
        self, purpose: str, template: str, number: int = 0, *, report: Report | None = None, **variables: object
    ) -> Prompt:
        report = report or self.report
        system, user = self.author.prompts.render(
            f"reproduce.{template}",
            report=report,
            body=without_middle(report.body, MAX_BODY),
            context=self.context,
            language=self.language,
            **variables,
        )
        return Prompt(
            purpose=purpose,
            system=system,
            user=user,
            subject=self.author.subject,
            temperature=TEMPERATURE,
            sample=number,
        )

    def _ask_all(self, questions: Mapping[int, Prompt], schema: type[T]) -> dict[int, T]:
        """Return answers by number, in the order of the questions. A spent budget ends the asking."""
        replies = ask_all(self.author.model, tuple(questions.values()), schema, MAX_THREADS)
        answers: dict[int, T] = {}
        for number, reply in zip(questions, replies, strict=True):
            if isinstance(reply, ModelError):
                self._add_failure(reply)
            else:
                self._count(reply.usage, reply.model)
                answers[number] = reply.value
        return answers

    def _add_failure(self, error: ModelError) -> None:
        self.failures.append(error)
        self.usage += error.usage or Usage()

    def _count(self, usage: Usage, model: str) -> None:
        self.usage += usage
        self.answered_by = model
