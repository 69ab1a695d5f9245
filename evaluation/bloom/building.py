"""Known bugs with reworded reports or renamed methods, as cases for ``replay brt``.

The folder is a run: a case is recorded as it is finished, so that a spent budget, a lost connection or Ctrl-C
loses nothing that was paid for, and the same command goes on from there.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import Field

from bot import __version__, app, settings
from bot.cli.files import print_json
from bot.core.errors import BudgetExceeded, ModelError, OperatorError, SandboxError, TransientError
from bot.core.frozen import Lenient
from bot.core.text import amount
from bot.models.prompts import Prompts
from bot.models.protocol import Model, Prompt
from bot.sandbox.protocol import Limits
from bot.settings import Settings
from evaluation.ambiguity.loop import QuestionLoop
from evaluation.bloom import LANGUAGE, Change
from evaluation.bloom.apply import Mask, Namer, mask_case
from evaluation.bloom.code_base import CannotMask
from evaluation.brt.cases import Case, read_cases
from evaluation.brt.drafting import working_sandbox
from evaluation.brt.judge import Judge
from evaluation.dataset import choose, fingerprint, located, read_rows, task_id
from evaluation.report.terminal import say
from evaluation.run.folder import RUN_FILE, RunFacts, RunFolder, Tasks
from evaluation.run.lines import replace_rows
from evaluation.run.model import Account, benchmark_prompts
from evaluation.run.replay import Unasked, run_shown
from evaluation.run.runner import Outcome, Result, Task
from evaluation.run.staging import Heard

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

    def rewrite(self, report: str, variant: Variant, subject: str) -> str:
        """The report in other words, verified. Raises NotHeld, and ModelError where a model fails."""
        name = {"rephrased": "bloom.rephrase", "translated": "bloom.translate"}[variant]
        problem = ""
        for attempt in range(TRIES):
            system, user = self.prompts.render(name, report=report, language=self.language, problem=problem)
            purpose = f"bloom-{variant}"
            prompt = Prompt(
                purpose=purpose, system=system, user=user, subject=subject, temperature=0.7, sample=attempt
            )
            text = self.writer.complete(prompt, Rewritten).value.report.strip()
            problem = lost(report, text)
            if not problem:
                system, user = self.prompts.render("bloom.same", report=report, text=text)
                prompt = Prompt(purpose="bloom-same", system=system, user=user, subject=subject, sample=attempt)
                verified = self.judge.complete(prompt, Verified).value
                if verified.same:
                    return text
                problem = verified.differences or "the meaning changed"
        raise NotHeld(f"{subject}: no {variant} text kept its meaning in {TRIES} tries; the last: {problem}")


def lost(report: str, text: str) -> str:
    """Return a sentence about code of the report that the text lacks; empty if it has all of it."""
    squeezed = " ".join(text.split())
    if squeezed == " ".join(report.split()):
        return "the text was not changed at all"
    for piece in (*(body for _, body in _FENCED.findall(report)), *_INLINE.findall(report)):
        if " ".join(piece.split()) not in squeezed:
            return f"this code must stay as it is: {piece.strip()[:300]}"
    return ""


@dataclass
class Workshop:
    """Everything that the changes need; ``findings`` are later facts about a bug, for the author's answers.

    ``unverified`` keeps masked cases that no developer's test shows to be the same bug still.
    """

    environment: Settings
    writer: Model
    judge: Model
    out: Path
    changes: tuple[Change, ...]
    language: str
    findings: dict[str, str]
    unverified: bool

    @cached_property
    def verifier(self) -> Judge:
        return Judge(working_sandbox(self.environment), Limits(seconds=300, cpu_seconds=300))

    def build(self, case: Case) -> Outcome:
        """One case with all changes; one that a change fails on is listed, never passed on half changed."""
        writer, judge = (Heard(model, case.instance_id) for model in (self.writer, self.judge))
        live_prompts = app.prompts(self.environment)
        loop = QuestionLoop(case.instance_id, self.writer, self.judge, live_prompts, benchmark_prompts())
        about: dict[str, Any] = {}
        current, error = case, None
        try:
            for number, change in enumerate(self.changes, 1):
                place = self.out / f"{number}-{change}" / case.instance_id
                current, about[change] = self._changed(change, current, place, writer, judge, loop)
        except (BudgetExceeded, TransientError):
            raise
        except (ModelError, CannotMask) as refusal:
            error = str(refusal)
        except SandboxError as broken:
            raise OperatorError(f"{case.instance_id}: the developer's test cannot be run: {broken}") from None
        details = {} if error else {"case": current.model_dump(mode="json"), "changes": about}
        usage, lost = writer.usage + judge.usage + loop.usage, writer.lost + judge.lost + loop.lost
        return Outcome(usage=usage, lost=lost, error=error, details=details)

    def _changed(
        self, change: Change, case: Case, place: Path, writer: Model, judge: Model, loop: QuestionLoop
    ) -> tuple[Case, Any]:
        if change == "rephrased" or change == "translated":
            rewriter = Rewriter(writer, judge, benchmark_prompts(), self.language)
            text = rewriter.rewrite(case.problem_statement, change, case.instance_id)
            return case.model_copy(update={"problem_statement": text}), True
        if change == "clarified":
            clarified = loop.clarify(case.problem_statement, self.findings.get(case.instance_id, ""))
            about = clarified.model_dump(mode="json", exclude={"report"})
            return case.model_copy(update={"problem_statement": clarified.report}), about
        namer = Namer(writer, benchmark_prompts()) if change == "meaningful" else None
        masked = mask_case(case, place, namer, lambda: self.verifier)
        if not (masked.verified or self.unverified):
            raise CannotMask("no developer's test shows that it is the same bug still")
        return masked.case, masked.model_dump(mode="json", exclude={"case"})


def build_command(
    cases: str,
    changes: tuple[Change, ...],
    out: Path,
    model: str | None,
    judge: str | None,
    language: str,
    findings: str | None,
    unverified: bool,
    limit: int | None,
    seed: int | None,
    max_cost: float | None,
    as_json: bool,
) -> int:
    """Change reports and method names of known bugs, layer by layer, to see what a model's success rests on."""
    environment = settings.load()
    writer = model or environment.bouncer_model
    out = out.absolute()
    by_id = read_cases(cases)
    selection = choose(by_id, limit, seed)
    tasks = [Task(name, case) for name, case in by_id.items() if name in selection]
    if out.exists() and not (out / RUN_FILE).exists() and any(entry.name != "cache" for entry in out.iterdir()):
        raise OperatorError(f"{out}: not empty, and no earlier call of this command filled it")
    config: dict[str, Any] = {"changes": list(changes), "judge": judge or writer, "language": language}
    config |= {"known": findings and fingerprint(findings), "unverified": unverified}
    facts = RunFacts(
        benchmark="bloom",
        model=writer,
        version=__version__,
        config=config,
        seed=seed,
        tasks=Tasks(source=located(cases), sha256=fingerprint(cases), limit=limit),
        started_at=datetime.now(UTC),
    )
    folder = RunFolder.resume(out, facts, [task.id for task in tasks])
    account = Account(environment, out / "cache", max_cost, scope="this build", spent=folder.spent_usd())
    # A failure that is due to the case comes again from the replies that are kept, and costs nothing.
    folder.retry_failed()
    hints = {
        task_id(row): "\n\n".join(str(row.data[name]) for name in ("hints_text", "patch") if row.data.get(name))
        for row in (read_rows(findings) if findings else ())
    }
    build: Callable[[str], Model] = Unasked if set(changes) == {"hash"} else account.model
    writing = build(writer)
    judging = writing if judge in (None, writer) else build(judge)
    workshop = Workshop(environment, writing, judging, out, changes, language, hints, unverified)
    result = run_shown(tasks, len(tasks), workshop.build, folder, 1)
    return _report(folder, result, len(tasks), as_json)


def _report(folder: RunFolder, result: Result, total: int, as_json: bool) -> int:
    """Write what is there as cases, and say what is missing; 1 if the build is not complete."""
    records = list(folder.records())
    cases = [
        {**record.details["case"], "changes": record.details["changes"]} for record in records if not record.failed
    ]
    failed = [{"instance_id": record.task_id, "why": record.error} for record in records if record.failed]
    replace_rows(folder.path / "cases.jsonl", cases)
    replace_rows(folder.path / "failed.jsonl", failed)
    unverified = sum(
        not mask["verified"] for case in cases for name, mask in case["changes"].items() if name in get_args(Mask)
    )
    lost = sum(str(failure["why"]).startswith("transient:") for failure in failed)
    summary = {
        "cases": str(folder.path / "cases.jsonl"),
        "built": len(cases),
        "failed": len(failed),
        "missing": total - len(records),
        "unverified": unverified,
        "stopped": result.stopped,
    }
    if as_json:
        print_json(summary)
    say(f"{amount(len(cases), 'case')} in {summary['cases']}; {len(failed)} could not be changed (failed.jsonl)")
    if unverified:
        count = amount(unverified, "masked case holds", "masked cases hold")
        say(f"{count} no developer's test: nothing shows that they are the same bug still")
    if result.stopped or lost:
        why = result.stopped or f"{amount(lost, 'case')} failed for a passing reason"
        say(f"stopped: {why}; the same command goes on from here")
    return 1 if result.stopped or lost or not cases else 0
