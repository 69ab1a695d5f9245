"""Reports in other words or in another language (section 3.2).

A model rewrites a report, another (or the same) says whether the meaning held, and it is redone until it does.
What can be checked without a model is checked first: code, names and traces must stay as they were.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from bot.core.errors import ModelError
from bot.core.frozen import Lenient
from bot.models.prompts import Prompts
from bot.models.protocol import Model, Prompt
from evaluation.bloom import LANGUAGE

Variant = Literal["rephrased", "translated"]

#: Tries until a text is given up: the paper says "until the verification passed".
TRIES = 5

_FENCED = re.compile(r"^(```|~~~)[^\n]*\n(.*?)^\1", re.DOTALL | re.MULTILINE)
_INLINE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")


class Rewritten(Lenient):
    """The report, written anew."""

    report: str = Field(description="the whole report, its title on the first line")


class Verified(Lenient):
    """A comparison of two texts."""

    differences: str = Field("", description="what the second text adds, leaves out or says otherwise")
    same: bool = Field(description="whether a developer would understand the very same bug from both")


class NotHeld(ModelError):
    """No rewritten text kept the meaning in ``TRIES`` tries."""


@dataclass(frozen=True)
class Rewriter:
    """Rewrites reports."""

    writer: Model
    judge: Model
    prompts: Prompts
    language: str = LANGUAGE

    def rewrite(self, report: str, variant: Variant, subject: str = "") -> str:
        """The report in other words, verified. Raises NotHeld, and ModelError where a model fails."""
        problem = ""
        for attempt in range(TRIES):
            text = self._written(report, variant, subject, attempt, problem)
            problem = lost(report, text) or self._judged(report, text, subject, attempt)
            if not problem:
                return text
        raise NotHeld(f"{subject}: no {variant} text kept its meaning in {TRIES} tries; the last: {problem}")

    def _written(self, report: str, variant: Variant, subject: str, attempt: int, problem: str) -> str:
        name = {"rephrased": "bloom.rephrase", "translated": "bloom.translate"}[variant]
        system, user = self.prompts.render(name, report=report, language=self.language, problem=problem)
        prompt = Prompt(
            purpose=f"bloom-{variant}", system=system, user=user, subject=subject, temperature=0.7, sample=attempt
        )
        reply = self.writer.complete(prompt, Rewritten)
        return reply.value.report.strip()

    def _judged(self, report: str, text: str, subject: str, attempt: int) -> str:
        system, user = self.prompts.render("bloom.same", report=report, text=text)
        prompt = Prompt(purpose="bloom-same", system=system, user=user, subject=subject, sample=attempt)
        reply = self.judge.complete(prompt, Verified)
        return "" if reply.value.same else reply.value.differences or "the meaning changed"


def lost(report: str, text: str) -> str:
    """Return a sentence about code of the report that the text lacks; empty if it has all of it."""
    if " ".join(text.split()) == " ".join(report.split()):
        return "the text was not changed at all"
    squeezed = " ".join(text.split())
    for piece in (*(body for _, body in _FENCED.findall(report)), *_INLINE.findall(report)):
        if " ".join(piece.split()) not in squeezed:
            return f"this code must stay as it is: {piece.strip()[:300]}"
    return ""
