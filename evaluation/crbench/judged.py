"""A panel's judgements of a run, stored in the run's folder, so that a report needs no judge.

``judge.json`` says who judged and how, ``judgements.jsonl`` holds one line a comment in the order of the
records.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field, ValidationError

from bot import settings
from bot.core.actions import Usage
from bot.core.errors import OperatorError
from bot.core.frozen import Frozen, Lenient
from bot.features.shared.findings import Severity
from evaluation.benchmark import Scoring
from evaluation.crbench.judge import (
    PROMPTS,
    Judgement,
    Panel,
    ReviewComment,
    ReviewFields,
    Scope,
    Style,
    agreement,
    comments_in,
    comments_in_file,
    judge_all,
)
from evaluation.crbench.metrics import Metrics, Tally, score, tallies
from evaluation.crbench.task import ReviewTask, read_tasks
from evaluation.dataset import fingerprint
from evaluation.report.terminal import say
from evaluation.run.folder import Familiarity, Record, RunFacts, RunFolder
from evaluation.run.lines import replace_rows, write_file
from evaluation.run.model import Account, benchmark_prompts

BENCHMARK = "crbench"
FACTS_FILE = "judge.json"
JUDGEMENTS_FILE = "judgements.jsonl"


class JudgeFacts(Frozen):
    """``judge.json``: what the figures of a run rest on."""

    judges: tuple[str, ...]
    draws: int
    seed: int
    prompt: str = Field(description="hash of the judge's prompt")
    style: Style = "ours"
    scope: Scope
    tasks: str = Field(description="sha256 of the task file")
    agreement: float | None = Field(description="Fleiss' kappa; None with a single vote a comment")
    usage: Usage


class Reviewing(Lenient):
    """How the reviewer of a run was set, as far as tables say it; None for the paper's."""

    strategy: str | None = None
    min_severity: Severity | None = None
    min_confidence: int = 0
    max_findings: int = 0


@dataclass(frozen=True)
class Reviewed:
    """A reviewer's comments on tasks, and the folder of their judgements."""

    name: str
    folder: Path
    comments_in: Callable[[Scope], list[ReviewComment]]
    run: RunFolder | None = None
    records: Sequence[Record] = ()

    @property
    def facts(self) -> RunFacts | None:
        return None if self.run is None else self.run.facts

    @property
    def scope(self) -> Scope:
        """Which comments are judged unless told otherwise: of the paper's reviewer all, none was held back."""
        return "reported" if self.facts is not None and is_papers(self.facts) else "posted"

    def tasks(self, source: str) -> list[ReviewTask]:
        """The tasks that it was to do: all of the file, or those of the run."""
        every = list(read_tasks(source))
        return every if self.run is None else self.run.due(every, lambda task: task.instance_id)

    def answered(self, tasks: Sequence[ReviewTask]) -> list[ReviewTask]:
        """Those of the tasks that it has a usable answer to; a file of comments speaks of all of them."""
        if self.run is None:
            return [*tasks]
        ids = {record.task_id for record in self.records if not record.failed}
        return [task for task in tasks if task.instance_id in ids]


@dataclass(frozen=True)
class Scored:
    """A judged reviewer, with everything that tables and plots are made of."""

    reviewed: Reviewed
    facts: JudgeFacts
    tasks: Sequence[ReviewTask]
    tallies: Sequence[Tally]
    metrics: Metrics
    unanswered: int
    comments: Sequence[tuple[ReviewComment, Judgement]]
    clean: Sequence[int]
    """For each clean pull request with an answer, how many comments would be posted."""

    @property
    def name(self) -> str:
        return self.reviewed.name

    @property
    def run(self) -> RunFacts | None:
        return self.reviewed.facts

    @property
    def not_shown(self) -> int:
        """Tasks in which the reviewer was not shown a file of the fix."""
        unread = {
            record.task_id: {part.path for part in ReviewFields.of(record).skipped}
            for record in self.reviewed.records
        }
        return sum(not unread.get(task.instance_id, set()).isdisjoint(task.fixed_files) for task in self.tasks)

    @property
    def recognised(self) -> dict[str, Familiarity]:
        pairs = ((record.task_id, record.recognised) for record in self.reviewed.records)
        return {task: familiarity for task, familiarity in pairs if familiarity is not None}


def reviewed_run(run: RunFolder, name: str | None = None) -> Reviewed:
    """A run of ``replay crbench``; it is called by strategy and model, as in the paper."""
    model = name or run.facts.model.rpartition("#")[2]
    strategy = run.facts.part("review", Reviewing).strategy
    records = list(run.records())
    return Reviewed(
        name=", ".join(filter(None, (strategy, model, "paper preset" if is_papers(run.facts) else None))),
        folder=run.path,
        comments_in=lambda scope: list(comments_in(records, scope)),
        run=run,
        records=records,
    )


def is_papers(facts: RunFacts) -> bool:
    """Return True if the reviewer ran as in the paper, with nothing held back."""
    return facts.config.get("preset") == "paper"


def reviewed_file(source: str) -> Reviewed:
    """Another reviewer's comments; a task without any was looked at and found clean."""
    path = Path(source)
    return Reviewed(path.name, path.with_name(f"{path.name}.judged"), lambda scope: list(comments_in_file(source)))


def reviewer(run: str | None, predictions: str | None) -> Reviewed:
    """The comments to judge: of a run, or of a file. Raises OperatorError."""
    if run is not None and predictions is None:
        return reviewed_run(RunFolder.read(Path(run), BENCHMARK))
    if predictions is None or run is not None:
        raise OperatorError("one of --run and --predictions is needed")
    return reviewed_file(predictions)


def have_judged(
    reviewed: Reviewed,
    source: str,
    judges: tuple[str, ...],
    *,
    draws: int,
    seed: int,
    prompts: str | None,
    cache: str | None,
    max_cost: float | None,
    workers: int,
    scope: Scope | None,
    judge_style: Style,
) -> None:
    """Judge every comment on the tasks of ``source``; without a judge, keep earlier judgements.

    Raises OperatorError without a judge, BudgetExceeded if the budget of judging is spent.
    """
    environment = settings.load()
    names = judges or tuple(filter(None, [environment.bouncer_judge_model]))
    if not names:
        if (reviewed.folder / FACTS_FILE).exists():
            return
        raise OperatorError("a judge is needed: --judge provider:name, or BOUNCER_JUDGE_MODEL")
    if reviewed.facts is not None and reviewed.facts.model in names:
        say(f"warning: {reviewed.facts.model} judges its own comments; a judge should be another model")
    scope = scope or reviewed.scope
    every, comments = reviewed.tasks(source), reviewed.comments_in(scope)
    if comments and {task.instance_id for task in every}.isdisjoint(comment.task_id for comment in comments):
        raise OperatorError(f"none of the {len(comments)} comments is about one of the {len(every)} tasks")
    tasks = {task.instance_id: task for task in every if task.bugs}
    several = next((task.instance_id for task in tasks.values() if len(task.bugs) > 1), None)
    if judge_style == "paper" and several is not None:
        raise OperatorError(f"--judge-style paper asks about a single bug, and {several} has several")
    account = Account(environment, Path(cache or reviewed.folder / "judge-cache"), max_cost)
    panel = Panel(tuple(map(account.model, names)), benchmark_prompts(prompts), draws, seed, workers, judge_style)
    verdicts = judge_all(panel, tasks, comments)
    facts = JudgeFacts(
        judges=tuple(model.id for model in panel.models),
        draws=draws,
        seed=seed,
        prompt=panel.prompts.hash(PROMPTS[judge_style]),
        style=judge_style,
        scope=scope,
        tasks=fingerprint(source),
        agreement=agreement(verdicts.judgements),
        usage=verdicts.usage,
    )
    rows = (judgement.model_dump(mode="json") for judgement in verdicts.judgements)
    replace_rows(reviewed.folder / JUDGEMENTS_FILE, rows)
    write_file(reviewed.folder / FACTS_FILE, facts.model_dump_json(indent=2) + "\n")


def scored(reviewed: Reviewed, source: str, scoring: Scoring, scope: Scope | None = None) -> Scored:
    """Score what was judged before, from the folder alone.

    ``scope``: which comments count, by default those that were judged. ``scoring.missing`` is ``exclude`` to leave
    tasks out that have no usable answer; else their bugs count as not found. Raises OperatorError if nothing
    was judged yet, or on other tasks, or not all that ``scope`` names.
    """
    facts, judgements = _read(reviewed.folder)
    if facts.tasks != fingerprint(source):
        raise OperatorError(f"{reviewed.folder} was judged on other tasks than {source}")
    facts = facts.model_copy(update={"scope": scope or facts.scope})
    every = reviewed.tasks(source)
    with_bugs = [task for task in every if task.bugs]
    with_answers = reviewed.answered(with_bugs)
    tasks = with_answers if scoring.missing == "exclude" else with_bugs
    names = {task.instance_id for task in tasks}
    comments = reviewed.comments_in(facts.scope)
    if any(comment.task_id in names and comment.key not in judgements for comment in comments):
        raise OperatorError(
            f"{reviewed.folder}: not every {facts.scope} comment was judged; score it with --judge"
        )
    of_tasks = tallies(tasks, comments, judgements)
    posted = Counter(comment.task_id for comment in reviewed.comments_in("posted"))
    return Scored(
        reviewed=reviewed,
        facts=facts,
        tasks=tasks,
        tallies=of_tasks,
        metrics=score(of_tasks, scoring.resampling),
        unanswered=len(with_bugs) - len(with_answers),
        comments=[(comment, judgements[comment.key]) for comment in comments if comment.key in judgements],
        clean=[posted[task.instance_id] for task in reviewed.answered(every) if task.clean],
    )


def _read(folder: Path) -> tuple[JudgeFacts, Mapping[str, Judgement]]:
    file = folder / FACTS_FILE
    try:
        facts = JudgeFacts.model_validate_json(file.read_bytes())
        file = folder / JUDGEMENTS_FILE
        judgements = [Judgement.model_validate_json(line) for line in file.read_bytes().splitlines()]
    except FileNotFoundError:
        raise OperatorError(
            f"{folder} was not judged yet: bouncer-eval score crbench --tasks F --run {folder} --judge ID"
        ) from None
    except (OSError, ValidationError) as error:
        first = str(error).partition("\n")[0]
        raise OperatorError(f"{file}: cannot be read ({first}): score it with --judge") from None
    return facts, {judgement.key: judgement for judgement in judgements}
