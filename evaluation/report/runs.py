"""``bouncer-eval report``: one page about runs; ``compare``: two runs of one benchmark on their common tasks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np

from bot import __version__
from bot.core.actions import Usage
from bot.core.errors import OperatorError
from bot.core.text import amount
from evaluation.benchmark import Benchmark, Scoring, benchmarks
from evaluation.report.cutoff import Sample, by_figure
from evaluation.report.cutoff import as_json as as_json_figures
from evaluation.report.page import Cell, Report, Section, Table, as_html, as_json, as_markdown
from evaluation.report.papers import papers_section
from evaluation.report.terminal import say, tell
from evaluation.run.folder import RunFacts, RunFolder
from evaluation.run.lines import write_result
from evaluation.statistics import Array, Counts, Resampling, Statistics, bootstrap, paired_difference


def facts_section(runs: Sequence[tuple[str, RunFolder]], notes: Sequence[str] = ()) -> Section:
    """One column a run: model, prompts, version, config, seed, tasks, dates, totals."""
    facts = [run.facts for _, run in runs]
    rows: list[tuple[Cell, ...]] = [
        ("benchmark", *(run_facts.benchmark for run_facts in facts)),
        ("model", *(run_facts.model for run_facts in facts)),
        ("prompts", *(_pairs(run_facts.prompts) for run_facts in facts)),
        ("config", *(_config(run_facts) for run_facts in facts)),
        ("tasks", *(_tasks(run_facts) for run_facts in facts)),
        ("seed", *(run_facts.seed for run_facts in facts)),
        ("version", *(run_facts.version for run_facts in facts)),
        ("started", *(_moment(run_facts, run_facts.started_at) for run_facts in facts)),
        ("finished", *(_moment(run_facts, run_facts.finished_at) for run_facts in facts)),
        ("tasks recorded", *(run_facts.totals.records for run_facts in facts)),
        ("without a usable answer", *(run_facts.totals.failed for run_facts in facts)),
    ]
    table = Table(("", *(name for name, _ in runs)), tuple(rows), prose=True)
    dates = {"started_at", "finished_at"}
    data = {
        "runs": [
            run_facts.model_dump(mode="json", exclude=dates if is_timeless(run_facts) else set())
            for run_facts in facts
        ]
    }
    return Section("Runs", tuple(notes), (table,), data=data)


def cost_section(runs: Sequence[tuple[str, RunFolder]], published: Sequence[tuple[Cell, ...]] = ()) -> Section:
    """Calls, tokens, dollars and seconds, in all and per task; ``published`` rows are quoted below."""
    header = ("run", "tasks", "calls", "input tokens", "cached", "output tokens", "USD", "USD a task", "s a task")
    rows = [
        cost_row(name, run.facts.totals.records, run.facts.totals.usage, run.facts.totals.seconds)
        for name, run in runs
    ]
    note = "Seconds are wall time per task; with several workers tasks overlap. Unknown prices give a dash."
    table = Table(header, (*rows, *published), quoted_from=len(rows) if published else None, note=note)
    return Section("Cost", tables=(table,))


def cost_row(name: str, count: int, usage: Usage, seconds: float) -> tuple[Cell, ...]:
    """Return the row of a cost table: ``count`` tasks, in total and per task."""
    dollars = usage.cost_usd
    dollars_per_task = dollars / count if dollars is not None and count else None
    return (
        name,
        count,
        usage.calls,
        usage.input_tokens,
        usage.cached_tokens,
        usage.output_tokens,
        None if dollars is None else f"{dollars:.2f}",
        None if dollars_per_task is None else f"{dollars_per_task:.5f}",
        f"{seconds / count:.3f}" if count else None,
    )


def _config(facts: RunFacts) -> str:
    """Everything that was set, in one line: what stands alone, then part by part."""
    alone = _pairs({name: value for name, value in facts.config.items() if not isinstance(value, dict)})
    parts = {part: _pairs(keys) for part, keys in facts.config.items() if isinstance(keys, dict)}
    return "; ".join([*filter(None, [alone]), *(f"{part}: {text}" for part, text in parts.items() if text)])


def _pairs(values: dict[str, Any]) -> str | None:
    pairs = [f"{key} {value}" for key, value in values.items() if value not in (None, [], "")]
    return ", ".join(pairs) or None


def _tasks(facts: RunFacts) -> str:
    limit = "" if facts.tasks.limit is None else f", {facts.tasks.limit} of them"
    digest = f" (sha256 {facts.tasks.sha256[:12]})" if facts.tasks.sha256 else ""
    return f"{facts.tasks.source.rpartition('/')[2]}{digest}{limit}"


def is_timeless(facts: RunFacts) -> bool:
    """Return True if all replies were recorded: dates of the replay mean nothing then and are not shown."""
    return all(model.strip().startswith("recorded:") for model in facts.model.split(","))


def _moment(facts: RunFacts, moment: datetime | None) -> str:
    if moment is None:
        return "not complete"
    return "recorded replies" if is_timeless(facts) else f"{moment:%Y-%m-%d %H:%M} UTC"


Runs = Sequence[tuple[str, RunFolder]]


def report_on(
    paths: Sequence[str], out: str | None, tasks: Sequence[str], scoring: Scoring, to_json: bool
) -> None:
    """Write the report to ``out``, or print it. Raises OperatorError."""
    scored_names = {name for name, entry in benchmarks().items() if entry.benchmark}
    parts = [(path, *path.partition("=")) for path in paths]
    files = [(name, file) for _, name, sign, file in parts if sign and name in scored_names]
    answers = {f"{name}={file}" for name, file in files}
    folders = named([RunFolder.read(Path(path)) for path in paths if path not in answers])
    in_page = {name for name, _ in files} | {run.facts.benchmark for _, run in folders}
    page = write(folders, _task_files(tasks, in_page), scoring, files)
    if out is not None:
        store(Path(out), page)
    if to_json:
        click.echo(" ".join(as_json(page).split("\n")).strip())
    elif out is None:
        click.echo(as_markdown(page), nl=False)


def named(folders: Sequence[RunFolder]) -> list[tuple[str, RunFolder]]:
    """A short name for each run: its model's, with the folder's name, else its path, if it would not be unique."""
    models = [folder.facts.model.rpartition("#")[2] for folder in folders]
    places = ([f" ({folder.path.name})" for folder in folders], [f" ({folder.path})" for folder in folders])
    names = models
    for place in places:
        counts = Counter((folder.facts.benchmark, name) for name, folder in zip(names, folders, strict=True))
        names = [
            name if counts[folder.facts.benchmark, name] == 1 else model + suffix
            for name, model, suffix, folder in zip(names, models, place, folders, strict=True)
        ]
    return list(zip(names, folders, strict=True))


@dataclass(frozen=True)
class _OnPage:
    """A score, its benchmark, and the task file that it is on."""

    bench: Benchmark[Any, Any]
    score: Any
    source: str


def write(runs: Runs, tasks: dict[str, str], scoring: Scoring, files: Sequence[tuple[str, str]] = ()) -> Report:
    """Return the report on these runs, and on ``files`` of answers by benchmark. Raises OperatorError.

    Benchmarks that tell their scores together stand together, runs of unknown benchmarks last.
    """
    registry = benchmarks()
    in_page = [run.facts.benchmark for _, run in runs] + [name for name, _ in files]
    benches = {name: registry[name].load() for name in in_page if name in registry and registry[name].benchmark}
    known_runs = [(name, run) for name, run in runs if run.facts.benchmark in benches]
    scores = list(_of_runs(known_runs, benches, tasks, scoring))
    scores += _of_files(files, benches, tasks, scoring, {(entry.bench.name, entry.score.name) for entry in scores})
    sections: list[Section] = []
    for tell_scores in dict.fromkeys(benches[name].sections for name in in_page if name in benches):
        group = [(name, run) for name, run in known_runs if benches[run.facts.benchmark].sections == tell_scores]
        sections += _on_group(
            group, [entry for entry in scores if entry.bench.sections == tell_scores], tasks, scoring
        )
    others = [(name, run) for name, run in runs if run.facts.benchmark not in benches]
    if others:
        sections += [facts_section(others), cost_section(others)]
    version = f"bouncer {__version__}"
    if not all(is_timeless(run.facts) for _, run in runs):
        version += f", {datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
    names = dict.fromkeys([*(name for name, _ in runs), *(entry.score.name for entry in scores)])
    sections = list(_by_other_titles(sections))
    if benches:
        sections.append(papers_section(in_page, sections))
    return Report(f"{', '.join(dict.fromkeys(in_page))}: {', '.join(names)}", tuple(sections), version)


def _on_group(runs: Runs, scores: Sequence[_OnPage], tasks: dict[str, str], scoring: Scoring) -> Iterator[Section]:
    """The sections about the runs and scores of benchmarks that tell their scores together."""
    bench = scores[0].bench
    if runs:
        rescored = [(name, tasks.get(run.facts.benchmark)) for name, run in runs]
        yield facts_section(runs, [f"{name} is scored on {source}." for name, source in rescored if source])
    yield from bench.sections([entry.score for entry in scores], scoring)
    for source in dict.fromkeys(entry.source for entry in scores):
        yield from bench.contamination(
            [entry.score for entry in scores if entry.source == source], source, scoring
        )
    yield cost_section(runs, bench.costs([entry.score for entry in scores]))


def _of_runs(
    runs: Runs, benches: Mapping[str, Benchmark[Any, Any]], tasks: dict[str, str], scoring: Scoring
) -> Iterator[_OnPage]:
    for name, run in runs:
        bench = benches[run.facts.benchmark]
        source = tasks.get(bench.name, run.facts.tasks.source)
        yield _OnPage(bench, bench.score(run, name, source, scoring), source)


def _of_files(
    files: Sequence[tuple[str, str]],
    benches: Mapping[str, Benchmark[Any, Any]],
    tasks: dict[str, str],
    scoring: Scoring,
    used_names: set[tuple[str, str]],
) -> Iterator[_OnPage]:
    """The scores of files of answers; one whose name is used already is named after its file, too."""
    for name, file in files:
        bench = benches[name]
        if bench.score_file is None:
            raise OperatorError(f"{name}={file}: {name} is scored from runs alone")
        if name not in tasks:
            raise OperatorError(f"{name}={file}: --tasks {name}=F is needed")
        for score in bench.score_file(file, tasks[name], scoring):
            is_used = (name, score.name) in used_names
            unique_score = replace(score, name=f"{score.name} ({file})") if is_used else score
            used_names.add((name, unique_score.name))
            yield _OnPage(bench, unique_score, tasks[name])


def _by_other_titles(sections: Sequence[Section]) -> Iterator[Section]:
    """The sections, those numbered whose title stands in the list of contents before."""
    titles: Counter[str] = Counter()
    for section in sections:
        titles[section.title] += 1
        number = titles[section.title]
        yield section if number == 1 else replace(section, title=f"{section.title} ({number})")


def _task_files(arguments: Sequence[str], in_page: set[str]) -> dict[str, str]:
    """Task file by benchmark; a file without a benchmark's name is for all runs."""
    files: dict[str, str] = {}
    for argument in arguments:
        name, separator, file = argument.partition("=")
        if separator and name in benchmarks():
            files[name] = file
        elif len(in_page) == 1:
            files[next(iter(in_page))] = argument
        else:
            raise OperatorError(f"--tasks {argument}: the runs are of several benchmarks, write BENCH=F")
    return files


def store(file: Path, report: Report) -> None:
    forms = {".html": as_html, ".htm": as_html, ".md": as_markdown, ".json": as_json}
    if file.suffix not in forms:
        raise OperatorError(f"--out {file}: must end in {', '.join(forms)}")
    write_result(file, forms[file.suffix](report))
    say(f"written: {file}")


def score_command(
    name: str,
    run: Path,
    tasks: str | None,
    scoring: Scoring,
    as_json: bool,
    adjust: Callable[[Any], Any] = lambda score: score,
) -> None:
    """Score a run of a benchmark that is scored from runs alone. Raises OperatorError."""
    bench = benchmarks()[name].load()
    folder = RunFolder.read(run, name)
    score = adjust(bench.score(folder, run.name, tasks or folder.facts.tasks.source, scoring))
    tell(bench.sections([score], scoring), as_json)


def compare_command(old: str, new: str, tasks: str | None, scoring: Scoring, to_json: bool) -> None:
    """Print every figure of two runs of one benchmark, and the difference. Raises OperatorError."""
    runs = named([RunFolder.read(Path(path)) for path in (old, new)])
    kinds = {run.facts.benchmark for _, run in runs}
    entry = benchmarks().get(next(iter(kinds)))
    if len(kinds) > 1 or entry is None or not entry.benchmark:
        raise OperatorError(f"{old} and {new} are runs of {' and '.join(sorted(kinds))}: nothing to compare")
    bench = entry.load()
    source = tasks or runs[0][1].facts.tasks.source
    samples = [bench.sample(bench.score(run, name, source, scoring)) for name, run in runs]
    sections = [_comparison(samples, [run.facts.prompts for _, run in runs], scoring.resampling)]
    tell(sections, to_json)


def _comparison(samples: Sequence[Sample], hashes: Sequence[Mapping[str, str]], how: Resampling) -> Section:
    places = [{task: place for place, task in enumerate(sample.tasks)} for sample in samples]
    common = [task for task in places[0] if task in places[1]]
    if not common:
        raise OperatorError("the two runs have no task in common")
    indices = [np.array([of_run[task] for task in common], dtype=np.int64) for of_run in places]

    def on(which: int, draws: Counts) -> dict[str, Array]:
        return samples[which].figures(indices[which][draws])

    before, after = partial(on, 0), partial(on, 1)
    statistics: dict[str, Statistics] = {
        "old": before,
        "new": after,
        "difference": paired_difference(before, after),
    }
    every = by_figure({group: bootstrap(values, len(common), how) for group, values in statistics.items()})
    figures = {figure: estimates for figure, estimates in every.items() if "difference" in estimates}
    rows = tuple(
        (figure, *(value.text() for value in estimates.values())) for figure, estimates in figures.items()
    )
    changed = {
        name: [of_run.get(name) for of_run in hashes]
        for name in sorted({*hashes[0], *hashes[1]})
        if hashes[0].get(name) != hashes[1].get(name)
    }
    prompts = "; ".join(
        f"{name}: {old or 'not asked'} to {new or 'not asked'}" for name, (old, new) in changed.items()
    )
    note = f"{amount(len(common), 'task')} that both had. Prompts that differ: {prompts or 'none'}."
    table = Table(("figure [95 % interval]", "old", "new", "new - old, paired"), rows)
    data = {"tasks": len(common), "prompts": changed, "figures": as_json_figures(figures)}
    return Section("Old against new", (note,), (table,), data=data)
