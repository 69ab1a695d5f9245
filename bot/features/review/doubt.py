"""The second question: a finding stays only where the input that breaks, the line and the effect can be named."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from pydantic import Field

from bot.core.actions import Usage
from bot.core.errors import ModelError
from bot.core.frozen import Lenient
from bot.features.review.record import Doubt
from bot.features.review.strategies import MAX_DESCRIPTION, MAX_TITLE, Change
from bot.features.shared.finding_code import Code
from bot.features.shared.findings import Finding
from bot.features.shared.labels import Chance
from bot.models.prompts import Prompts
from bot.models.protocol import Model, Prompt, ask_all

#: Questions at a time.
PARALLEL = 4
#: Characters of the reasons that are kept.
WHY = 600


class DoubtReply(Lenient):
    """What the model is to answer; it follows the case before it decides."""

    trace: str = Field(description="the case followed through the code, line by line")
    breaks_when: str = Field(description="the input or state with which it goes wrong; empty if none can be named")
    quote: str = Field(description="the line where it goes wrong, copied without line number; or empty")
    instead: str = Field(description="what the code does then instead of what it should; empty if nothing")
    p_holds: Chance = Field(None, description="chance in percent that a maintainer who checks it agrees")
    holds: bool = Field(description="whether the finding holds: from 50 percent on")


@dataclass
class Doubting:
    """Asks about findings of one change, each once; what that costs adds up in ``usage``."""

    model: Model
    prompts: Prompts
    change: Change
    code: Callable[[Finding], Code]
    line: int = 50
    """The chance from which on a finding holds, percent."""
    usage: Usage = field(default_factory=Usage)
    doubts: dict[str, Doubt] = field(default_factory=dict)

    def ask(self, findings: Sequence[Finding]) -> bool:
        """Put to the question what was not yet; whether there was anything. Raises TransientError."""
        fresh = [each for each in findings if each.fingerprint not in self.doubts]
        if not fresh:
            return False
        shown = [self.code(each) for each in fresh]
        asked = [self._prompt(finding, code) for finding, code in zip(fresh, shown, strict=True)]
        answers = ask_all(self.model, asked, DoubtReply, PARALLEL)
        for finding, code, prompt, answer in zip(fresh, shown, asked, answers, strict=True):
            self.usage += answer.usage or Usage()
            self.doubts[finding.fingerprint] = (
                Doubt(fingerprint=finding.fingerprint, outcome="not asked", why=answer.reason)
                if isinstance(answer, ModelError)
                else judged(finding, answer.value, code, self.line, prompt.hash)
            )
        return True

    def seen(self, finding: Finding) -> Finding:
        """The finding with what the second question says of its chance."""
        doubt = self.doubts.get(finding.fingerprint)
        if doubt is None or doubt.p_holds is None:
            return finding
        return finding.model_copy(update={"confidence": doubt.p_holds})

    def dropped(self, finding: Finding) -> bool:
        """Whether the finding was asked about and did not stand: what could not be asked drops nothing."""
        doubt = self.doubts.get(finding.fingerprint)
        return doubt is not None and doubt.outcome in ("refuted", "not named")

    def _prompt(self, finding: Finding, code: Code) -> Prompt:
        system, user = self.prompts.render(
            "review.doubt",
            title=self.change.title[:MAX_TITLE],
            description=self.change.description[:MAX_DESCRIPTION],
            whole=code.whole,
            code=code.function if code.whole else code.text,
            context=code.context,
            path=finding.path if finding.line is None else f"{finding.path}, line {finding.line}",
            finding=f"{finding.comment}\n\nSeverity: {finding.severity}. The code:\n" + "\n".join(finding.code),
        )
        return Prompt(purpose="review.doubt", system=system, user=user, subject=self.change.subject)


def judged(finding: Finding, reply: DoubtReply, code: Code, line: int, prompt_hash: str) -> Doubt:
    """Whether a finding stands: it was not refuted, all three are named, and the line is one that was shown."""
    named = Doubt(
        fingerprint=finding.fingerprint,
        outcome="stands",
        breaks_when=reply.breaks_when.strip()[:WHY],
        quote=reply.quote.strip()[:WHY],
        instead=reply.instead.strip()[:WHY],
        p_holds=reply.p_holds,
        prompt_hash=prompt_hash,
    )
    if not (reply.holds if reply.p_holds is None else reply.p_holds >= line):
        return named.model_copy(update={"outcome": "refuted", "why": reply.trace.strip()[:WHY]})
    lacking = ""
    if not named.breaks_when:
        lacking = "no input or state was named with which it breaks"
    elif not named.instead:
        lacking = "it was not said what the code does instead"
    elif not code.holds(reply.quote):
        lacking = "the line where it goes wrong is not in the code"
    return named.model_copy(update={"outcome": "not named", "why": lacking}) if lacking else named
