"""``score golden``: how far a judge and the second question can be trusted, on comments that people judged.

Confirmed and rejected comments of AACR-Bench are put to the judge and to ``review.doubt``. The candidates of
Martian's benchmark are put to the judge as well, and its verdicts are compared with those of each published judge.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bot import app, settings
from bot.code.change.diff import parse
from bot.core.errors import BudgetExceeded, OperatorError
from bot.core.text import amount
from bot.features.review.doubt import Doubting
from bot.features.review.strategies import Change
from bot.features.shared.finding_code import around
from bot.features.shared.findings import Category, Finding, Impact, Severity
from bot.models.protocol import Model
from evaluation import statistics
from evaluation.crbench.filters import tools_table
from evaluation.crbench.judge import CLASSES, Panel, ReviewComment, judge_all
from evaluation.crbench.martian import JudgedCandidate, Martian
from evaluation.crbench.task import Known, Remark, ReviewTask, read_tasks
from evaluation.dataset import choose
from evaluation.report.page import Cell, Section, Table, percentage
from evaluation.report.terminal import say, tell
from evaluation.run.model import Account, benchmark_prompts
from evaluation.statistics import wilson


@dataclass(frozen=True)
class Remarked:
    """A comment that people confirmed or rejected, as a reviewer might have made it."""

    task: ReviewTask
    remark: Remark
    confirmed: bool

    @property
    def comment(self) -> ReviewComment:
        remark = self.remark
        return ReviewComment(
            task_id=self.task.instance_id, path=remark.path, line=remark.line, text=remark.description
        )


def remarks(tasks: Sequence[ReviewTask], limit: int | None, seed: int) -> list[Remarked]:
    """The comments of tasks, or a sample of them that grows with ``limit``."""
    every = [
        Remarked(task, remark, isinstance(remark, Known))
        for task in tasks
        for remark in (*task.bugs, *task.rejected)
    ]
    sample = choose((item.comment.key for item in every), limit, seed)
    return [item for item in every if item.comment.key in sample]


def score_golden(
    tasks: str | None,
    martian: str | None,
    judges: tuple[str, ...],
    doubt: str | None,
    *,
    limit: int | None,
    seed: int,
    prompts: str | None,
    cache: str | None,
    max_cost: float | None,
    workers: int,
    as_json: bool,
) -> int:
    """Score judges and the second question, and print the tools of Martian's benchmark; returns the exit code."""
    if tasks is None and martian is None:
        raise OperatorError("give --tasks, --martian, or both")
    environment = settings.load(bouncer_prompts_dir=prompts)
    names = judges or tuple(filter(None, [environment.bouncer_judge_model]))
    account = Account(environment, Path(cache or "judge-cache"), max_cost)
    panel = Panel(tuple(map(account.model, names)), benchmark_prompts(prompts), 1, seed, workers)
    items = remarks(list(read_tasks(tasks, remarked=True)), limit, seed) if tasks else []
    sections: list[Section] = []
    try:
        if items and panel.models:
            sections.append(judge_section(items, panel))
        if items and doubt is not None:
            sections.append(doubt_section(items, account.model(doubt), app.prompts(environment)))
        if martian is not None:
            published = Martian(Path(martian))
            sections.append(Section("Tools of Martian's benchmark", tables=(tools_table(published.tools()),),
                                    data={"tools": [tool.as_json() for tool in published.tools()]}))  # fmt: skip
            if panel.models:
                sections.append(agreement_section(list(published.candidates()), panel, limit, seed))
    except BudgetExceeded as error:
        say(f"stopped: {error}; the same command goes on from here, judged comments are in the cache")
        return 1
    if not sections:
        raise OperatorError(
            "a judge is needed: --judge provider:name, --doubt provider:name, or BOUNCER_JUDGE_MODEL"
        )
    tell(sections, as_json)
    return 0


def judge_section(items: Sequence[Remarked], panel: Panel) -> Section:
    """Every comment judged against the confirmed comments of its pull request, its own words among them."""
    tasks = {item.task.instance_id: item.task for item in items}
    verdicts = judge_all(panel, tasks, [item.comment for item in items])
    by_key = {judgement.key: judgement.label for judgement in verdicts.judgements}
    rows: list[tuple[Cell, ...]] = []
    counts: dict[str, dict[str, int]] = {}
    for name, confirmed in (("confirmed", True), ("rejected", False)):
        labels = [by_key[item.comment.key] for item in items if item.confirmed == confirmed]
        counts[name] = {label: labels.count(label) for label in CLASSES} | {"unjudged": labels.count(None)}
        shares = (wilson(labels.count(label), len(labels)).percent() for label in CLASSES)
        rows.append((name, len(labels), *shares, labels.count(None)))
    table = Table(
        ("comments", "number", "bug hit % [95 %]", "valid % [95 %]", "noise % [95 %]", "unjudged"),
        tuple(rows),
        title="The judge on comments that people judged",
        note="A judge that agrees with people calls confirmed comments hits and rejected ones noise.",
    )
    return Section("The judge", tables=(table,), data={"judge": counts})


def doubt_section(items: Sequence[Remarked], model: Model, prompts: Any) -> Section:
    """The share of confirmed and rejected comments that the second question drops, and the AUC of its chance."""
    answers = [(item, *_doubted(item, model, prompts)) for item in items]
    rows: list[tuple[Cell, ...]] = []
    counts: dict[str, Any] = {}
    for name, confirmed in (("confirmed", True), ("rejected", False)):
        outcomes = [dropped for item, dropped, _ in answers if item.confirmed == confirmed and dropped is not None]
        total = sum(item.confirmed == confirmed for item in items)
        rows.append((name, total, wilson(sum(outcomes), len(outcomes)).percent(), total - len(outcomes)))
        counts[name] = {"asked": len(outcomes), "dropped": sum(outcomes), "unanswered": total - len(outcomes)}
    chances = [(chance, item.confirmed) for item, _, chance in answers if chance is not None]
    ranks = np.zeros((101, 2), dtype=np.int64)
    for chance, is_confirmed in chances:
        ranks[chance, int(is_confirmed)] += 1
    counts["auc"] = statistics.defined(float(statistics.auc(ranks)))
    table = Table(
        ("comments", "number", "dropped % [95 %]", "no answer"), tuple(rows), title="The second question"
    )
    auc = "not defined" if counts["auc"] is None else f"{counts['auc']:.3f}"
    words = f"AUC of its chance, confirmed against rejected: {auc} over {amount(len(chances), 'comment')}."
    return Section("The second question", (words,), (table,), data={"doubt": counts})


def _doubted(item: Remarked, model: Model, prompts: Any) -> tuple[bool | None, int | None]:
    """True if the second question drops the comment, None if there was no answer; and its chance, percent."""
    task, remark = item.task, item.remark
    assert task.pull is not None, "read_tasks gives complete tasks only"
    diff = parse(task.pull.diff)
    finding = Finding(
        path=remark.path,
        line=remark.line,
        code=(),
        fingerprint=item.comment.key,
        comment=remark.description,
        category=Category.STRUCTURAL,
        impact=Impact.FUNCTIONAL_SUITABILITY,
        severity=Severity.MEDIUM,
    )
    change = Change(
        title=task.pull.title,
        description=task.pull.body,
        repository=task.repo,
        subject=f"{task.instance_id}/{item.comment.key}",
    )
    doubting = Doubting(model, prompts, change, lambda finding: around(finding, diff, None))
    doubting.ask([finding])
    doubt = doubting.doubts[finding.fingerprint]
    return (None if doubt.outcome == "not asked" else doubting.drops(finding)), doubt.p_holds


def agreement_section(
    candidates: Sequence[JudgedCandidate], panel: Panel, limit: int | None, seed: int
) -> Section:
    """Our judge beside each published judge on the candidates that this one judged: matched or not."""
    pairs = [(candidate, *_as_comment(candidate)) for candidate in candidates]
    sample = choose(dict.fromkeys(comment.key for _, _, comment in pairs), limit, seed)
    pairs = [pair for pair in pairs if pair[2].key in sample]
    tasks = {task.instance_id: task for _, task, _ in pairs}
    verdicts = judge_all(panel, tasks, [comment for _, _, comment in pairs])
    labels = {judgement.key: judgement for judgement in verdicts.judgements}
    rows: list[tuple[Cell, ...]] = []
    data: dict[str, Any] = {}
    for judge in dict.fromkeys(candidate.judge for candidate, _, _ in pairs):
        both = [
            (candidate.matched, labels[comment.key].label == "BUG_HIT")
            for candidate, _, comment in pairs
            if candidate.judge == judge and labels[comment.key].label is not None
        ]
        table = np.zeros((2, 2), dtype=np.int64)
        for theirs, ours in both:
            table[int(theirs), int(ours)] += 1
        raw, kappa = statistics.raw_agreement(table), statistics.cohen_kappa(table)
        data[judge] = {"candidates": len(both), "agreement": statistics.defined(float(raw)),
                       "kappa": statistics.defined(float(kappa))}  # fmt: skip
        kappa_text = "–" if data[judge]["kappa"] is None else f"{float(kappa):.3f}"
        rows.append((judge, len(both), percentage(data[judge]["agreement"]), kappa_text))
    note = "On the candidates that the published judge extracted: each matches a golden comment, or none."
    header = ("published judge", "candidates", "agreement %", "Cohen's kappa")
    table_of_judges = Table(header, tuple(rows), title="Our judge and the published ones", note=note)
    return Section("Agreement of judges", tables=(table_of_judges,), data={"agreement": data})


def _as_comment(candidate: JudgedCandidate) -> tuple[ReviewTask, ReviewComment]:
    """A candidate as a comment on a task that has the golden comments and no change."""
    parts = candidate.url.rstrip("/").split("/")
    repo, number = "/".join(parts[-4:-2]), int(parts[-1])
    task = ReviewTask(
        instance_id=f"{repo.replace('/', '__')}-{number}",
        repo=repo,
        prs=(number,),
        kept=True,
        base_commit="",
        bugs=tuple(Known(description=text) for text in candidate.golden),
    )
    return task, ReviewComment(task_id=task.instance_id, path="", line=None, text=candidate.text)
