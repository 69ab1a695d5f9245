"""A report on judged runs of CR-Bench, beside the paper's rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from evaluation.crbench import paper
from evaluation.crbench.dataset import PAPER, averages
from evaluation.crbench.judged import Scored, reviewed_run, scored
from evaluation.crbench.metrics import Share, by_kind
from evaluation.crbench.printing import FIGURES, counted_line, interval, judges_line, scores_row
from evaluation.report.facts import cost_section, facts_section
from evaluation.report.figures import Series, bars, radar
from evaluation.report.page import Cell, Figure, Section, Table
from evaluation.run.folder import RunFolder

DIMENSIONS = ("category", "impact", "severity")
#: Comments that are listed with their judgement, per run.
LISTED = 200


def sections(
    runs: Sequence[tuple[str, RunFolder]], tasks: Mapping[str, str], missing: str, seed: int
) -> list[Section]:
    """Everything there is to say about these runs.

    Raises OperatorError where a run was not judged yet, or was judged on other tasks.
    """
    judged = [
        scored(reviewed_run(run, name), tasks.get(run.facts.benchmark, run.facts.tasks.source), missing, seed)
        for name, run in runs
    ]
    notes = [f"{run.name}: {counted_line(run, missing)}; {judges_line(run)}." for run in judged]
    found = [facts_section(runs, notes), _scores(judged), _data_set(judged)]
    found += [_kinds(dimension, judged) for dimension in DIMENSIONS]
    found += [_comments(run) for run in judged]
    return [*found, cost_section(runs, [_judge_cost(run) for run in judged])]


def _scores(runs: Sequence[Scored]) -> Section:
    """Table 4 with ours on top, then every figure with its interval."""
    header = ("", "recall %", "precision %", "F1 %", "usefulness %", "SNR", "recall per bug %", "comments per PR")
    ours: list[tuple[Cell, ...]] = [(run.name, *scores_row(run.metrics.estimates)) for run in runs]
    published: list[tuple[Cell, ...]] = [
        (
            f"{row.name} (paper)",
            *(f"{100 * share:.2f}" for share in (row.recall, row.precision, row.f1, row.usefulness)),
            f"{row.snr:.2f}",
            None,
            f"{row.comments_per_pull:.2f}",
        )
        for row in paper.ROWS
    ]
    beside = Table(
        header,
        (*ours, *published),
        title="Reviewers",
        quoted_from=len(ours),
        note=f"The paper's rows are {paper.DATA_SET}, judged by {paper.JUDGE}; these tasks are built anew. Its "
        "comments per pull request follow from its recall and precision. SNR is not defined without noise.",
    )
    rows = tuple(
        (title, *(interval(run.metrics.estimates[figure], *_scale(is_share)) for run in runs))
        for figure, (title, is_share) in FIGURES.items()
    )
    every = Table(("value [95 % interval]", *(run.name for run in runs)), rows, title="All figures")
    data = {
        "runs": [
            {
                "name": run.name,
                **vars(run.metrics.counted),
                **{name: each.value for name, each in run.metrics.estimates.items()},
            }
            for run in runs
        ]
    }
    return Section("Reviewer", tables=(beside, every), data=data)


def _data_set(runs: Sequence[Scored]) -> Section:
    """Table 3: what the tasks are like."""
    rows = {run.name: averages(run.tasks) for run in runs}
    table = Table(
        ("", "tasks", "lines fixed", "comments", "description length"),
        tuple(
            (name, row.tasks, _mean(row.lines_fixed), _mean(row.comments), _mean(row.description_length))
            for name, row in {**rows, **{f"{name} (paper)": row for name, row in PAPER.items()}}.items()
        ),
        quoted_from=len(rows),
    )
    return Section("Data set", tables=(table,))


def _kinds(dimension: str, runs: Sequence[Scored]) -> Section:
    """Figure 4: bugs found by one dimension of the taxonomy."""
    shares = {run.name: {each.kind: each for each in by_kind(run.tasks, run.counted, dimension)} for run in runs}
    kinds = list(dict.fromkeys(kind for of_run in shares.values() for kind in of_run))
    rows = tuple((kind, *_found(kind, shares)) for kind in kinds)
    header = (dimension, *(cell for run in runs for cell in (f"{run.name}: bugs", "found % [95 %]")))
    series = [
        Series(name, [of_run[kind].found.value if kind in of_run else None for kind in kinds])
        for name, of_run in shares.items()
    ]
    caption = f"Share of bugs found, by {dimension}; " + "; ".join(
        f"{name}: " + ", ".join(f"{kind} {interval(each.found)} %" for kind, each in of_run.items())
        for name, of_run in shares.items()
    )
    names = [kind.replace("_", " ") for kind in kinds]
    # A radar plot has an inside from three spokes on.
    picture = radar(names, series) if len(kinds) > 2 else bars(names, series, ylabel="share found", top=1)
    figures = (Figure(picture, caption),) if kinds else ()
    return Section(f"Bugs found by {dimension}", tables=(Table(header, rows),), figures=figures)


def _found(kind: str, shares: Mapping[str, Mapping[str, Share]]) -> Iterator[Cell]:
    for of_run in shares.values():
        share = of_run.get(kind)
        yield None if share is None else share.bugs
        yield None if share is None else interval(share.found)


def _comments(run: Scored) -> Section:
    """What was said, and what the judges made of it."""
    rows = tuple(
        (
            said.task_id,
            f"{said.path}:{said.line}" if said.line is not None else said.path,
            said.text,
            judged.label or "unjudged",
            next((vote.reason for vote in judged.votes if vote.label == judged.label), ""),
        )
        for said, judged in run.comments[:LISTED]
    )
    more = len(run.comments) - len(rows)
    note = f"and {more} more" if more > 0 else ""
    table = Table(("task", "place", "comment", "class", "reason"), rows, note=note, folded=True, title="Comments")
    return Section(f"Comments of {run.name}", tables=(table,))


def _judge_cost(run: Scored) -> tuple[Cell, ...]:
    usage, count = run.facts.usage, len(run.comments)
    dollars = usage.cost_usd
    each = dollars / count if dollars is not None and count else None
    return (
        f"judging {run.name} (comments)",
        count,
        usage.calls,
        usage.input_tokens,
        usage.output_tokens,
        None if dollars is None else f"{dollars:.2f}",
        None if each is None else f"{each:.5f}",
        f"{usage.seconds / count:.3f}" if count else None,
    )


def _scale(is_share: bool) -> tuple[float, int]:
    return (100.0, 1) if is_share else (1.0, 2)


def _mean(value: float | None) -> str | None:
    return None if value is None else f"{value:.2f}"
