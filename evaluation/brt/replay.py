"""``bouncer-eval replay brt --candidates``: judge given tests, no model asked; one record a candidate."""

from __future__ import annotations

from datetime import UTC, datetime

from bot import __version__
from bot.sandbox.protocol import Limits, Sandbox
from evaluation.brt.cases import Candidate, Case, read_candidates, read_cases
from evaluation.brt.judge import Judge
from evaluation.dataset import fingerprint
from evaluation.run.folder import RunFacts, Tasks
from evaluation.run.runner import Outcome, Task

BENCHMARK = "brt"


def candidate_tasks(cases: str, candidates: str) -> tuple[Task[tuple[Case, Candidate]], ...]:
    """What there is to judge. Raises OperatorError with file and line for what cannot be used."""
    known = read_cases(cases)
    return tuple(Task(each.task, (known[each.instance_id], each)) for each in read_candidates(candidates, known))


def run_facts(cases: str, candidates: str, sandbox: Sandbox, limits: Limits) -> RunFacts:
    """What identifies a run of the judge: both files, and how tests were run."""
    return RunFacts(
        benchmark=BENCHMARK,
        model="given candidates",
        version=__version__,
        config={"cases": fingerprint(cases), "sandbox": sandbox.name, "limits": limits.model_dump(mode="json")},
        tasks=Tasks(source=candidates, sha256=fingerprint(candidates)),
        started_at=datetime.now(UTC),
    )


def judged(judge: Judge, task: tuple[Case, Candidate]) -> Outcome:
    """The judgement as a record's details: applied, base, fixed, flaky, brt, reason."""
    case, candidate = task
    return Outcome(details=judge.judge(case, candidate).model_dump(mode="json"))
