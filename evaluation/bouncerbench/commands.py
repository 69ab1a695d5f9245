"""BouncerBench's commands. What they do is imported when they do it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bot import __version__
from bot.core.errors import OperatorError
from bot.core.text import amount
from evaluation.cli import (
    SEEDS,
    Option,
    cutoff_option,
    json_option,
    missing_option,
    model_options,
    replay_options,
    replicates_option,
    seed_option,
    set_option,
    tasks_option,
    with_options,
)

if TYPE_CHECKING:
    from evaluation.bouncerbench.tasks import Kind

_repos = click.Path(path_type=Path, file_okay=False, exists=True)
_replay = with_options(
    model_options,
    set_option,
    replay_options(),
    json_option,
    click.option(
        "--investigate",
        is_flag=True,
        default=None,
        help="Let the model read the code at the base commit first (the paper's agentic bouncer); needs --repos.",
    ),
    click.option(
        "--repos",
        metavar="DIR",
        type=_repos,
        help="Local clones named owner+name or owner/name: for --investigate, and for the code around a patch.",
    ),
)
_score = with_options(
    click.option("--bounce-at", metavar="LABEL", help="Bounce at this label or worse."),
    click.option("--bounce-above", type=click.IntRange(0, 100), metavar="P", help="Bounce at or above P percent."),
    tasks_option,
    click.option("--run", metavar="DIR", help="A run of replay."),
    click.option("--predictions", metavar="F", help="JSON Lines: instance_id, label or bounce. Or a submission."),
    click.option("--model-name", metavar="NAME", help="The model to score if the file has several."),
    click.option("--against", metavar="RUN|F[#MODEL]", help="Compare with other answers to the same tasks."),
    missing_option,
    seed_option,
    replicates_option,
    cutoff_option,
    json_option,
)


def _replayed(
    kind: Kind,
    *,
    tasks: str,
    config: str | None,
    overrides: Mapping[str, Mapping[str, Any]],
    repos: Path | None,
    **options: Any,
) -> int:
    from evaluation.bouncerbench.bench import BENCHES, opened
    from evaluation.run.replay import ReplayRequest, replay

    shaping = {name: options.pop(name) for name in ("prompt", "investigate")}
    request = ReplayRequest(**options)
    with opened(kind, request, config, repos, shaping, overrides) as session:
        return replay(BENCHES[kind], session, tasks, request)


def _scored(
    kind: Kind,
    *,
    tasks: str,
    run: str | None,
    predictions: str | None,
    model_name: str | None,
    against: str | None,
    bounce_at: str | None,
    bounce_above: int | None,
    as_json: bool,
    **scoring: Any,
) -> None:
    from evaluation.benchmark import Scoring
    from evaluation.bouncerbench import sections
    from evaluation.bouncerbench.answers import answers_of, gather, line_of
    from evaluation.bouncerbench.bench import BENCHES, scored
    from evaluation.bouncerbench.compare import compare, comparison_section
    from evaluation.report.terminal import data_of, short, tell
    from evaluation.run.folder import RunFolder

    bench, line = BENCHES[kind], line_of(kind, bounce_at, bounce_above)
    items = list(bench.read(tasks))
    if items and all(task.bounce is None for task in items):
        raise OperatorError(f"nothing to score: none of the {len(items)} tasks has a known label")
    models = gather(kind, run, predictions, model_name, line)
    if run is not None:
        items = bench.due(RunFolder.read(Path(run)), tasks)
    how, comparison = Scoring(**scoring), None
    if against is not None:
        if len(models) > 1:
            raise OperatorError(f"--against: one model is compared, name it: {', '.join(sorted(models))}")
        (now,) = models.values()
        comparison = compare(items, answers_of(kind, against, line), now, how.resampling)
    scores = {name: scored(kind, short(name), items, answers, how) for name, answers in models.items()}
    aged = bench.contamination(list(scores.values()), tasks, how)
    parts = sections.on_one(kind, list(scores.values()))
    objects = {name: {"model": name, **sections.as_json(score)} for name, score in scores.items()}
    value = next(iter(objects.values())) if len(objects) == 1 else {"models": objects}
    if comparison is not None:
        parts.append(comparison_section(str(against), next(iter(scores.values())), comparison))
        value |= {"against": {"source": against, **comparison.as_json()}}
    tell([*parts, *aged], as_json, {**value, **data_of(aged)})


def _asking(kind: Kind) -> Option[Any]:
    prompts = ["paper", "panel", "careful", *(["rubric"] if kind == "bouncerbench-output" else [])]
    about = "The question that is asked.  [default: paper, unless --config says otherwise]"
    return with_options(tasks_option, click.option("--prompt", type=click.Choice(prompts), help=about), _replay)


def both(
    options: Callable[[Kind], Option[Any]], do: Callable[..., int | None], *about: str
) -> Iterator[click.Command]:
    """The commands of the two benchmarks, which differ in their help and in the questions on offer."""
    kinds: tuple[Kind, ...] = ("bouncerbench-input", "bouncerbench-output")
    for kind, line in zip(kinds, about, strict=True):
        yield click.command(kind, help=line)(options(kind)(partial(do, kind)))


replay_input, replay_output = both(
    _asking,
    _replayed,
    "Open the issue of every input task and record the input bouncer's decision.",
    "Open a pull request for every output task and record the output bouncer's decision.",
)
score_input, score_output = both(
    lambda kind: _score,
    _scored,
    "Score answers to input tasks with the paper's metrics.",
    "Score answers to output tasks with the paper's metrics.",
)


@click.command("bouncerbench-chain")
@tasks_option
@click.option(
    "--annotations", metavar="F", help="Input tasks that say which issues are vague, if --tasks does not."
)
@click.option("--input", "before", required=True, metavar="RUN|F[#MODEL]", help="Answers of the input bouncer.")
@click.option("--output", "after", required=True, metavar="RUN|F[#MODEL]", help="Answers of the output bouncer.")
@json_option
def score_chain(tasks: str, annotations: str | None, before: str, after: str, as_json: bool) -> None:
    """Score both bouncers in sequence: which patches still reach a reviewer (BouncerBench, V and table IV)."""
    from evaluation.bouncerbench.answers import answers_of
    from evaluation.bouncerbench.chain import chain, chain_section, with_annotations
    from evaluation.bouncerbench.tasks import INPUT, OUTPUT, OutputTask, input_tasks, output_tasks
    from evaluation.report.terminal import tell
    from evaluation.run.folder import RunFolder

    items = with_annotations(output_tasks(tasks), () if annotations is None else input_tasks(annotations))
    if Path(after).is_dir():
        items = RunFolder.read(Path(after)).due(items, lambda task: task.instance_id, OutputTask.absent)
    if Path(before).is_dir():
        due = RunFolder.read(Path(before)).due(items, lambda task: task.instance_id, OutputTask.absent)
        items = [task for task in due if task in items]
    result = chain(items, answers_of(INPUT, before), answers_of(OUTPUT, after))
    tell([chain_section(before, after, result)], as_json, result.as_json())


@click.command("bouncerbench")
@click.option(
    "--annotations", required=True, metavar="F", help="underspecified, false_negative, other_major_issues."
)
@click.option(
    "--instances", required=True, metavar="F", help="SWE-bench instances: problem_statement, base_commit."
)
@click.option("--patches", required=True, metavar="F", help="Submitted patches with resolved or tests_status.")
@click.option(
    "--repos",
    metavar="DIR",
    type=_repos,
    help="Local clones, to remove patches that git refuses at the base commit.",
)
@click.option("--submission", metavar="NAME", help="All patches of one submission instead of one per instance.")
@click.option(
    "--seed", type=SEEDS, default=0, show_default=True, help="Seed of the choice of a patch per instance."
)
@click.option(
    "--out", required=True, metavar="DIR", help="input.jsonl.gz, output.jsonl.gz, lite.jsonl.gz, build.json."
)
@json_option
def build(
    annotations: str,
    instances: str,
    patches: str,
    repos: Path | None,
    submission: str | None,
    seed: int,
    out: str,
    as_json: bool,
) -> None:
    """Build input, output and Lite tasks as the paper does (II.A), and print the count of every step."""
    from contextlib import nullcontext

    from bot.cli.files import print_json
    from evaluation.bouncerbench.construct import Applying, read_annotations, read_instances, read_patches, store
    from evaluation.bouncerbench.construct import build as built_of
    from evaluation.dataset import fingerprint
    from evaluation.report.terminal import say

    material = read_annotations(annotations), read_instances(instances), read_patches(patches)
    with nullcontext() if repos is None else Applying(repos) as applying:
        result = built_of(*material, seed, submission, None if applying is None else applying.fits)
        if applying is not None and applying.unchecked:
            say(f"not every patch could be tried; for one: {applying.unchecked}")
    facts: dict[str, Any] = {
        "seed": seed,
        "submission": submission,
        "version": __version__,
        "sources": {source: fingerprint(source) for source in (annotations, instances, patches)},
        "steps": result.steps,
    }
    store(Path(out), result, facts)
    if as_json:
        print_json({"out": out, **facts})
    else:
        width = max(map(len, result.steps))
        click.echo("\n".join(f"{step:<{width}} {count:>7,}" for step, count in result.steps.items()))


@click.command()
@click.option("--input", "before", metavar="RUN|F[#MODEL]", help="Answers of the input bouncer.")
@click.option("--output", "after", metavar="RUN|F[#MODEL]", help="Answers of the output bouncer.")
@click.option("--name", required=True, help="Name on the leaderboard.")
@click.option("--site", required=True, metavar="URL", help="Page about the system.")
@click.option("--icon", default="bouncerbench.svg", show_default=True, help="A file name under static/images.")
@click.option("--oss/--not-oss", default=True, show_default=True, help="Whether the system is open source.")
@click.option(
    "--missing",
    type=click.Choice(["refuse", "accept"]),
    default="refuse",
    show_default=True,
    help="A task without an answer: refuse it, or submit it as a pass.",
)
@click.option("--out", required=True, metavar="DIR", help="Folder of the submission.")
@json_option
def leaderboard_export(
    before: str | None,
    after: str | None,
    name: str,
    site: str,
    icon: str,
    oss: bool,
    missing: str,
    out: str,
    as_json: bool,
) -> None:
    """Write a submission: config.yaml, and data/ with every decision and its trace."""
    from bot.cli.files import print_json
    from evaluation.bouncerbench.answers import answers_of
    from evaluation.bouncerbench.leaderboard import Config, export
    from evaluation.bouncerbench.tasks import INPUT, OUTPUT
    from evaluation.dataset import validated
    from evaluation.report.terminal import say

    if before is None and after is None:
        raise OperatorError("at least one of --input and --output is needed")
    inputs = None if before is None else answers_of(INPUT, before)
    outputs = None if after is None else answers_of(OUTPUT, after)
    about = {"name": name, "oss": oss, "site": site, "icon": Path(icon).name, "entries": {}}
    config = validated(Config.model_validate, about, "config.yaml")
    entries = export(Path(out), config, inputs, outputs, missing == "accept")
    if as_json:
        print_json({"submission": out, "entries": entries})
    else:
        counts = [amount(count, f"{board} entry", f"{board} entries") for board, count in entries.items()]
        say(f"{out}: {', '.join(counts)}")


@click.command()
@click.argument("folder", metavar="DIR")
@click.option("--input-tasks", "inputs", metavar="F", help="Check the entries against these tasks.")
@click.option("--output-tasks", "outputs", metavar="F", help="The same for output entries.")
@json_option
def leaderboard_validate(folder: str, inputs: str | None, outputs: str | None, as_json: bool) -> int:
    """Check a submission; exit code 1 where the leaderboard would refuse it."""
    from bot.cli.files import print_json
    from evaluation.bouncerbench.leaderboard import Board, validate
    from evaluation.bouncerbench.tasks import input_tasks, output_tasks

    tasks: dict[Board, list[str]] = {}
    if inputs is not None:
        tasks["input"] = [task.instance_id for task in input_tasks(inputs)]
    if outputs is not None:
        tasks["output"] = tasks["lite"] = [task.instance_id for task in output_tasks(outputs)]
    checked = validate(Path(folder), tasks)
    if as_json:
        findings = {"entries": checked.entries, "problems": checked.problems, "warnings": checked.warnings}
        print_json({"valid": not checked.problems, **findings})
    else:
        for line in (*checked.problems, *checked.warnings):
            click.echo(line)
        click.echo("not valid" if checked.problems else f"valid: {checked.entries}")
    return 1 if checked.problems else 0
