"""The second question: a finding is posted only if the model names the breaking input, the line and the effect."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from pydantic import Field
from pydantic.json_schema import SkipJsonSchema

from bot.core.actions import Usage
from bot.core.errors import ModelError
from bot.core.frozen import Lenient
from bot.features.review.filtering import SECOND_QUESTION
from bot.features.review.record import Doubt
from bot.features.review.strategies import Change
from bot.features.shared.finding_code import Code
from bot.features.shared.findings import Finding, Grade, Severity
from bot.features.shared.labels import Chance
from bot.models.protocol import Model, Prompt, Templates, ask_all

#: Questions at a time.
PARALLEL = 4
#: With a threshold above this, percent, the maintainers want certainty: no finding is kept that is unsure.
MAX_UNSURE = 50
#: The least threshold for a finding that depends on code that was not shown: measured on AACR-Bench, of
#: those that were upheld at 50 % one in seven was right (docs/replay.md).
_DEPENDENT = 75
#: Characters of a recorded reason.
MAX_REASON = 600


class DoubtReply(Lenient):
    """The model's reply. It traces the case before it decides. The question explains the fields."""

    trace: str
    breaks_when: str
    quote: str
    instead: str
    p_holds: Chance = None
    verdict: Literal["refuted", "unsure", "upheld"]
    recognised: SkipJsonSchema[Grade | None] = Field(None, description="only asked in evaluation")


@dataclass
class Doubting:
    """Asks once about each finding of a change, and adds up the usage."""

    model: Model
    prompts: Templates
    change: Change
    code: Callable[[Finding], Code]
    threshold: int = 50
    """A finding that depends on no other code is upheld at or above this chance, percent."""
    usage: Usage = field(default_factory=Usage)
    doubts: dict[str, Doubt] = field(default_factory=dict)

    def ask(self, findings: Sequence[Finding]) -> bool:
        """Verify findings that were not verified before. Return True if there were any. Raises TransientError."""
        new = [finding for finding in findings if finding.fingerprint not in self.doubts]
        if not new:
            return False
        codes = [self.code(finding) for finding in new]
        prompts = [self._prompt(finding, code) for finding, code in zip(new, codes, strict=True)]
        answers = ask_all(self.model, prompts, DoubtReply, PARALLEL)
        for finding, code, prompt, answer in zip(new, codes, prompts, answers, strict=True):
            self.usage += answer.usage or Usage()
            self.doubts[finding.fingerprint] = (
                Doubt(fingerprint=finding.fingerprint, outcome="not asked", why=answer.reason)
                if isinstance(answer, ModelError)
                else judge(finding, answer.value, code, self.threshold, prompt.hash)
            )
        return True

    def with_chance(self, finding: Finding) -> Finding:
        """Return the finding with the chance that the second question gave."""
        doubt = self.doubts.get(finding.fingerprint)
        if doubt is None or doubt.p_holds is None:
            return finding
        return finding.model_copy(update={"confidence": doubt.p_holds})

    def drops(self, finding: Finding) -> bool:
        """Return True if the finding did not stand. A question without an answer drops nothing."""
        doubt = self.doubts.get(finding.fingerprint)
        return doubt is not None and doubt.outcome in ("unsure", "refuted", "not named")

    def _prompt(self, finding: Finding, code: Code) -> Prompt:
        place = finding.path if finding.line is None else f"{finding.path}, line {finding.line}"
        place += f"; also {', '.join(finding.places)}" if finding.places else ""
        code_lines = "\n".join(finding.code)
        system, user = self.prompts.render(
            "review.doubt",
            whole=code.whole,
            code=code.function if code.whole else code.text,
            context=code.context,
            finding=f"{place}\n{finding.comment}\n\nSeverity: {finding.severity}. The code:\n{code_lines}",
            depends_on=finding.depends_on,
            **self.change.intention,
        )
        return Prompt(purpose="review.doubt", system=system, user=user, subject=self.change.subject)


def judge(finding: Finding, reply: DoubtReply, code: Code, threshold: int, prompt_hash: str) -> Doubt:
    """Return the outcome: a finding stands if the reply names all three parts and quotes a line that was shown.

    A finding between refuted and upheld stands only if its severity is high.
    """
    doubt = Doubt(
        fingerprint=finding.fingerprint,
        outcome="stands",
        breaks_when=reply.breaks_when.strip()[:MAX_REASON],
        quote=reply.quote.strip()[:MAX_REASON],
        instead=reply.instead.strip()[:MAX_REASON],
        p_holds=reply.p_holds,
        recognised=reply.recognised,
        prompt_hash=prompt_hash,
    )
    band = _band(reply, upheld_from(threshold, depends=bool(finding.depends_on)))
    if band == "refuted" or (band == "unsure" and (finding.severity != Severity.HIGH or threshold > MAX_UNSURE)):
        return doubt.model_copy(update={"outcome": band, "why": reply.trace.strip()[:MAX_REASON]})
    gap = ""
    if not doubt.breaks_when:
        gap = "no input or state was named with which it breaks"
    elif not doubt.instead:
        gap = "it was not said what the code does instead"
    elif not code.holds(reply.quote):
        gap = "the line where it goes wrong is not in the code"
    return doubt.model_copy(update={"outcome": "not named", "why": gap}) if gap else doubt


def upheld_from(threshold: int, *, depends: bool) -> int:
    """Return the chance, percent, at or above which a finding is upheld, by whether it depends on other code."""
    return max(threshold, _DEPENDENT) if depends else threshold


def _band(reply: DoubtReply, threshold: int) -> Literal["refuted", "unsure", "upheld"]:
    """Return the band of the chance; without one, the model's word."""
    if reply.p_holds is None:
        return reply.verdict
    if reply.p_holds < SECOND_QUESTION:
        return "refuted"
    return "upheld" if reply.p_holds >= threshold else "unsure"
