"""CR-Bench's scores as tables and figures: beside the paper's rows, by kind of bug, and the tasks themselves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from bot.core.text import amount
from bot.models.protocol import caveat
from evaluation.benchmark import Scoring
from evaluation.crbench.filters import bugs_hit, filters_section
from evaluation.crbench.judge import Judgement, ReviewComment
from evaluation.crbench.judged import BENCHMARK, Reviewing, Scored, is_papers
from evaluation.crbench.martian import Martian
from evaluation.crbench.metrics import (
    ORDER,
    PAPER,
    PAPER_ROWS,
    Averages,
    Share,
    averages,
    by_kind,
    kinds_of,
)
from evaluation.crbench.task import CLEAN_DAYS, PaperSeverity, ReviewTask
from evaluation.report.figures import Series, bars, radar
from evaluation.report.page import Cell, Figure, Section, Table, percentage
from evaluation.report.runs import cost_row
from evaluation.statistics import Estimate, wilson

#: What a bug can be told apart by.
DIMENSIONS = ("category", "impact", "severity", "paper_severity", "language", "level", "kind")
#: The dimensions of figure 3: severity as the paper tags it.
_FIGURE_3 = ("category", "paper_severity", "impact")
#: Comments that are listed with their judgement, per run.
LISTED = 200

#: Figure -> what it is called, and whether it is a share that is shown in percent.
FIGURES: dict[str, tuple[str, bool]] = {
    "recall": ("recall % (equation 2)", True),
    "recall_per_bug": ("recall per bug %", True),
    "precision": ("precision %", True),
    "f1": ("F1 %", True),
    "f1_per_bug": ("F1 per bug %", True),
    "usefulness": ("usefulness %", True),
    "snr": ("signal-to-noise ratio", False),
    "comments_per_pull": ("comments per pull request", False),
}


def on_scores(runs: Sequence[Scored], scoring: Scoring) -> list[Section]:
    """Figures and the sums behind them, then the bugs by kind."""
    tools = Martian(Path(scoring.martian)).tools() if scoring.martian else []
    parts = [
        filters_section(runs, tools, scoring.most_comments),
        _clean(runs),
        _fates(runs),
        *(_kinds(dimension, runs) for dimension in DIMENSIONS),
    ]
    return [_scores(runs, scoring), *(section for section in parts if section is not None)]


def _clean(runs: Sequence[Scored]) -> Section | None:
    """The comments on pull requests that needed no repair; None if there are none among the tasks."""
    rows: list[tuple[Cell, ...]] = []
    for run in runs:
        if tasks := len(run.clean):
            silent = wilson(run.clean.count(0), tasks).percent()
            rows.append((run.name, tasks, silent, f"{sum(run.clean) / tasks:.2f}"))
    if not rows:
        return None
    header = ("reviewer", "clean pull requests", "without a comment % [95 %]", "comments per clean PR")
    note = f"Merged, and no line of it was repaired within {CLEAN_DAYS} days. Posted comments count."
    data = {"clean": {run.name: _clean_counts(run) for run in runs}}
    return Section("Clean pull requests", tables=(Table(header, tuple(rows), note=note),), data=data)


def _clean_counts(run: Scored) -> dict[str, float | None]:
    tasks, silent, comments = len(run.clean), run.clean.count(0), sum(run.clean)
    shares = {"silent_share": silent, "comments_per_clean_pull": comments}
    return {
        "tasks": tasks,
        "silent": silent,
        "comments": comments,
        **{name: count / tasks if tasks else None for name, count in shares.items()},
    }


def on_report(runs: Sequence[Scored], scoring: Scoring) -> list[Section]:
    first, *rest = on_scores(runs, scoring)
    data = data_section({run.name: averages(run.tasks) for run in runs})
    return [first, data, distribution_section(runs[0].tasks), *rest, *(_comments(run) for run in runs)]


def data_section(rows: Mapping[str, Averages]) -> Section:
    """Table 3: what the tasks are like."""
    published = {f"{name} (paper)": row for name, row in PAPER.items()}
    cells: list[tuple[Cell, ...]] = []
    for name, row in {**rows, **published}.items():
        comments, lines, length = (
            Estimate(mean).text(digits=2) for mean in (row.comments, row.lines_fixed, row.description_length)
        )
        if row.comments is not None and row.comments_known < row.tasks:
            comments += f" (of {row.comments_known})"
        cells.append((name, row.tasks, lines, comments, length))
    header = ("data set", "tasks", "lines fixed", "comments", "description length")
    return Section("Data set", tables=(Table(header, tuple(cells), quoted_from=len(rows)),))


def distribution_section(tasks: Sequence[ReviewTask]) -> Section:
    """Figure 3: the bugs by category, severity and impact."""
    counts = {dimension: kinds_of(tasks, dimension) for dimension in _FIGURE_3}
    rows: list[tuple[Cell, ...]] = []
    figures: list[Figure] = []
    for dimension, of_dimension in counts.items():
        shares = [count / sum(of_dimension.values()) for count in of_dimension.values()]
        for (kind, count), share in zip(of_dimension.items(), shares, strict=True):
            rows.append((_title(dimension), kind, count, percentage(share)))
        if of_dimension:
            names = [kind.replace("_", " ") for kind in of_dimension]
            draw = partial(bars, names, [Series("share", shares)], ylabel="share of bugs", top=1)
            words = ", ".join(f"{kind} {count}" for kind, count in of_dimension.items())
            figures.append(Figure(draw, f"Bugs by {_title(dimension)}, as in the paper's figure 3: {words}"))
    note = (
        "The paper's verified tasks: 79.9 % structural, 93.1 % of medium or high severity; all tasks: 90.2 % "
        "of medium, high or critical severity."
    )
    table = Table(("dimension", "kind", "bugs", "%"), tuple(rows), title="What the bugs are", note=note)
    return Section("Kinds of bugs", tables=(table,), figures=tuple(figures))


def _title(dimension: str) -> str:
    titles = {
        "paper_severity": "severity, critical apart",
        "level": "context that a comment needs",
        "kind": "kind of comment",
    }
    return titles.get(dimension, dimension)


def as_json(result: Scored) -> dict[str, Any]:
    """Everything that was counted and computed, as JSON."""
    metrics, facts = result.metrics, result.run
    return {
        "benchmark": BENCHMARK,
        "name": result.name,
        "model": result.name if facts is None else facts.model,
        "preset": None if facts is None else facts.config.get("preset", "ours"),
        "strategy": None if facts is None else facts.part("review", Reviewing).strategy,
        "judges": list(result.facts.judges),
        "votes": len(result.facts.judges) * result.facts.draws,
        "agreement": result.facts.agreement,
        "judge_usage": result.facts.usage.model_dump(mode="json"),
        "usage": None if facts is None else facts.totals.usage.model_dump(mode="json"),
        **metrics.sums,
        "unanswered": result.unanswered,
        "not_shown": result.not_shown,
        "judge_style": result.facts.style,
        "comments_counted": result.facts.scope,
        "clean": _clean_counts(result),
        **{name: estimate.value for name, estimate in metrics.estimates.items()},
        "intervals": {name: [estimate.low, estimate.high] for name, estimate in metrics.estimates.items()},
        "groups": {
            name: {
                **Counter(judgement.label or "None" for judgement in group),
                "comments": len(group),
                "precision": _hits(group) / len(group),
                "bugs_found": bugs_hit(group),
            }
            for name, group in groups(result.comments).items()
        },
        "by": {
            dimension: {
                share.kind: {
                    "bugs": share.bugs,
                    "recall_per_bug": share.recall.value,
                    "interval": [share.recall.low, share.recall.high],
                }
                for share in by_kind(result.tasks, result.tallies, dimension)
            }
            for dimension in DIMENSIONS
        },
    }


def scores_row(estimates: Mapping[str, Estimate]) -> tuple[str, ...]:
    """The paper's figures by bug, then equation 2, which counts a bug as often as it is hit, and comments."""
    names = ("recall_per_bug", "precision", "f1_per_bug", "usefulness", "snr", "recall", "comments_per_pull")
    scales = (100.0 if FIGURES[name][1] else 1.0 for name in names)
    values = (Estimate(estimates[name].value) for name in names)
    return tuple(value.text(scale, 2) for value, scale in zip(values, scales, strict=True))


def _preset(run: Scored) -> str:
    """How the reviewer of a run was set."""
    assert run.run is not None
    if is_papers(run.run):
        return "reviewer as in the paper: its prompts, the whole change, everything that it reports counts"
    review = run.run.part("review", Reviewing)
    limit = amount(review.max_findings, "comment")
    return f"our reviewer: severity {review.min_severity} and up, at most {limit}"


def counted_line(run: Scored, missing: str) -> str:
    sums = run.metrics.sums
    bugs, pulls = amount(sums["bugs"], "bug"), amount(sums["tasks"], "pull request")
    comments, hits = amount(sums["comments"], "comment"), amount(sums["hits"], "bug hit")
    parts = [_preset(run)] if run.run is not None else []
    parts += [
        f"{bugs} in {pulls}, {sums['bugs_found']} of them found",
        f"{comments}: {hits}, {sums['valid']} valid, {sums['noise']} noise",
    ]
    if sums["unjudged"]:
        parts.append(f"{sums['unjudged']} that no judge could place (in no class, in every denominator)")
    if run.unanswered:
        fate = "their bugs count as not found" if missing != "exclude" else "left out"
        parts.append(f"{amount(run.unanswered, 'task')} without a usable answer ({fate})")
    if run.not_shown:
        tasks = amount(run.not_shown, "task")
        parts.append(f"in {tasks} the reviewer was not shown a file of the fix (not found either)")
    return "; ".join(parts)


def judges_line(run: Scored) -> str:
    facts = run.facts
    text = f"judged by {', '.join(facts.judges)}" + (", asked as in the paper" if facts.style == "paper" else "")
    if facts.draws > 1:
        text += f", {facts.draws} draws each"
    if len(facts.judges) * facts.draws > 1:
        kappa = "not defined" if facts.agreement is None else f"{facts.agreement:.3f}"
        text += f"; Fleiss' kappa {kappa}"
    text += f"; {amount(facts.usage.calls, 'question')} to judges"
    if facts.usage.cost_usd is not None:
        text += f", {facts.usage.cost_usd:.4f} USD"
    warnings = dict.fromkeys(warning for judge in facts.judges if (warning := caveat(judge)))
    return "; ".join([text, *warnings])


def _scores(runs: Sequence[Scored], scoring: Scoring) -> Section:
    """Table 4 with ours on top, then every figure with its interval."""
    rows = tuple(
        (title, *(run.metrics.estimates[figure].text(*((100.0, 1) if is_share else (1.0, 2))) for run in runs))
        for figure, (title, is_share) in FIGURES.items()
    )
    every = Table(("value [95 % interval]", *(run.name for run in runs)), rows, title="All figures")
    lines = [f"{run.name}: {counted_line(run, scoring.missing)}; {judges_line(run)}." for run in runs]
    if any(run.metrics.value("snr") is None and run.metrics.sums["comments"] for run in runs):
        lines.append("SNR is not defined: no comment was judged to be noise.")
    return Section("Reviewer", tuple(lines), (_beside_papers(runs), every), data={"runs": [*map(as_json, runs)]})


def _beside_papers(runs: Sequence[Scored]) -> Table:
    header = ("reviewer", "recall %", "precision %", "F1 %", "usefulness %", "SNR", "equation 2 %")
    ours: list[tuple[Cell, ...]] = [(run.name, *scores_row(run.metrics.estimates)) for run in runs]
    published: list[tuple[Cell, ...]] = [
        (
            f"{row.name} (paper)",
            *(f"{100 * share:.2f}" for share in (row.recall, row.precision, row.f1, row.usefulness)),
            f"{row.snr:.2f}",
            "",
            f"{row.comments_per_pull:.2f}",
        )
        for row in PAPER_ROWS
    ]
    return Table(
        (*header, "comments per PR"),
        (*ours, *published),
        title="Reviewers",
        quoted_from=len(ours),
        note="The paper's rows are CR-Bench-verified, 174 tasks, judged by claude-sonnet-4.5; these tasks are "
        "built anew. Its comments per pull request follow from its recall and precision. SNR is not defined "
        "without noise. Recall and F1 are per bug. Equation 2 counts every hit, so it may pass 100 %.",
    )


#: Why a finding fell that would have been posted.
_DROPPED = {
    "doubted": "dropped after the second question",
    "repair_does_not_apply": "dropped: its repair does not apply",
    "repair_changes_nothing": "dropped: its repair changes nothing",
}


def groups(comments: Sequence[tuple[ReviewComment, Judgement]]) -> dict[str, list[Judgement]]:
    """Comments by what is known of them beside their words: how each was judged.

    Proven and not proven are, between them, all that were posted by a reviewer that proves.
    """
    by_group: dict[str, list[Judgement]] = {}
    for comment, judgement in comments:
        names = [f"seen by {looks} looks or more" for looks in range(2, comment.looks + 1)]
        names += [f"seen by {models} models or more" for models in range(2, comment.models + 1)]
        if comment.proof:
            names.append("proven by a test" if comment.proof == "proven" else "not proven")
        if comment.proof in ("not proven", "passes on both"):
            names.append("not proven, but tried")
        if comment.suppressed in _DROPPED:
            names.append(_DROPPED[comment.suppressed])
        for name in names:
            by_group.setdefault(name, []).append(judgement)
    return dict(sorted(by_group.items()))


def _hits(judgements: Sequence[Judgement]) -> int:
    return sum(judgement.label == "BUG_HIT" for judgement in judgements)


def _fates(runs: Sequence[Scored]) -> Section | None:
    """Precision of proven and unproven findings, by agreement of looks, and of what was dropped."""
    rows: list[tuple[Cell, ...]] = []
    for run in runs:
        bugs = run.metrics.sums["bugs"]
        for name, judgements in {"all": [comment for _, comment in run.comments], **groups(run.comments)}.items():
            hits, valid = _hits(judgements), sum(judgement.label == "VALID_SUGGESTION" for judgement in judgements)
            precision = wilson(hits, len(judgements)).percent()
            recall = wilson(bugs_hit(judgements), bugs).percent()
            rows.append((run.name, name, len(judgements), hits, valid, precision, recall))
    if len(rows) == len(runs):
        return None
    header = ("reviewer", "comments", "number", "bug hits", "valid", "precision % [95 %]", "bugs found % [95 %]")
    note = (
        "All comments of a panel are the union of its looks. What was dropped is judged with --comments reported."
    )
    return Section("Looks, doubt and proof", tables=(Table(header, tuple(rows), note=note),))


def _kinds(dimension: str, runs: Sequence[Scored]) -> Section | None:
    """Figure 4: bugs found by one dimension of the taxonomy; None if no bug says what it is."""
    shares = {
        run.name: {share.kind: share for share in by_kind(run.tasks, run.tallies, dimension)} for run in runs
    }
    kinds = list(dict.fromkeys(kind for of_run in shares.values() for kind in of_run))
    if not kinds or (dimension == "paper_severity" and PaperSeverity.CRITICAL not in kinds):
        return None
    kinds = [kind for kind in ORDER.get(dimension, kinds) if kind in kinds]
    rows: list[tuple[Cell, ...]] = []
    for kind in kinds:
        of_kind = [of_run.get(kind) for of_run in shares.values()]
        cells = ((share.bugs, share.recall.percent()) if share else (None, None) for share in of_kind)
        rows.append((kind, *chain.from_iterable(cells)))
    header = (_title(dimension), *(cell for name in shares for cell in (f"{name}: bugs", "found % [95 %]")))
    title = f"Bugs found by {_title(dimension)}"
    table = Table(header, tuple(rows), title=title)
    return Section(title, tables=(table,), figures=(_kinds_figure(dimension, kinds, shares),))


def _kinds_figure(dimension: str, kinds: Sequence[str], shares: Mapping[str, Mapping[str, Share]]) -> Figure:
    series = [
        Series(name, [of_run[kind].recall.value if kind in of_run else None for kind in kinds])
        for name, of_run in shares.items()
    ]
    caption = f"Share of bugs found, by {_title(dimension)}; " + "; ".join(
        f"{name}: " + ", ".join(f"{kind} {share.recall.percent()} %" for kind, share in of_run.items())
        for name, of_run in shares.items()
    )
    names = [kind.replace("_", " ") for kind in kinds]
    if len(kinds) > 2:  # with fewer spokes a radar plot has no inside
        return Figure(partial(radar, names, series), caption)
    return Figure(partial(bars, names, series, ylabel="share found", top=1), caption)


def _comments(run: Scored) -> Section:
    rows = tuple(
        (
            comment.task_id,
            f"{comment.path}:{comment.line}" if comment.line is not None else comment.path,
            comment.text,
            judgement.label or "unjudged",
            next((vote.reason for vote in judgement.votes if vote.label == judgement.label), ""),
        )
        for comment, judgement in run.comments[:LISTED]
    )
    more = len(run.comments) - len(rows)
    note = f"and {more} more" if more > 0 else ""
    table = Table(("task", "place", "comment", "class", "reason"), rows, note=note, folded=True, title="Comments")
    return Section(f"Comments of {run.name}", tables=(table,))


def judge_cost(run: Scored) -> tuple[Cell, ...]:
    """Return the cost of judging, which is not part of the run's cost."""
    usage = run.facts.usage
    return cost_row(f"judging {run.name} (comments)", len(run.comments), usage, usage.seconds)
