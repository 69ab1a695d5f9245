"""CR-Bench's commands. What they do is imported when they do it."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bot.cli.numbers import Finite
from evaluation.cli import (
    cache_option,
    cost_option,
    cutoff_option,
    json_option,
    limit_option,
    martian_option,
    model_option,
    model_options,
    prompts_option,
    replay_options,
    replicates_option,
    seed_option,
    set_option,
    with_options,
    workers_option,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evaluation.benchmark import Missing
    from evaluation.crbench.judge import Scope

_folder = click.Path(path_type=Path, file_okay=False, exists=True)
_file = click.Path(path_type=Path)
_tasks = click.option("--tasks", required=True, metavar="F", help="What build crbench or build own wrote.")
_judging = with_options(
    click.option(
        "--judge", "judges", multiple=True, metavar="ID", help="provider:name; default: BOUNCER_JUDGE_MODEL."
    ),
    seed_option,
    prompts_option,
    cache_option,
    cost_option,
    workers_option(4),
)
_overwrite = click.option("--overwrite", is_flag=True, help="Start again if --out exists.")
_build = with_options(
    click.option("--offline", is_flag=True, help="Find pull requests in the clone's own history."),
    click.option(
        "--until",
        type=click.Choice(["mapping", "tasks"]),
        default="tasks",
        show_default=True,
        help="mapping stops before the steps that need a model.",
    ),
    click.option(
        "--pull-refs",
        type=click.Choice(["ignore", "verify", "infer"]),
        default="verify",
        show_default=True,
        help="Use of a clone's refs/pull: none; to refute wrong numbers; also to find rebased commits.",
    ),
    click.option(
        "--unmapped",
        type=click.Choice(["ignore", "discard"]),
        default="ignore",
        show_default=True,
        help="Blamed commits without a pull request: ignore them, or discard the instance.",
    ),
    model_option,
    prompts_option,
    cache_option,
    cost_option,
    workers_option(2),
    _overwrite,
    json_option,
)


@click.command("crbench")
@click.option("--instances", required=True, metavar="F", help="Fixes like SWE-bench's; .jsonl(.gz) or hf:NAME.")
@click.option("--repos", type=_folder, required=True, help="Clones.")
@click.option("--out", type=_file, required=True, help="JSON Lines; an existing build is continued.")
@_build
def build(**options: Any) -> int:
    """Find the pull requests that introduced the bugs that INSTANCES fix (CR-Bench, Algorithm 1).

    Clones, bare or not, are folders of --repos named owner+name or owner/name.
    """
    from evaluation.crbench.build import build_from_fixes

    return build_from_fixes(**options)


@click.command("own")
@click.option("--repo", type=_folder, help="A clone.")
@click.option("--since", type=click.DateTime(["%Y-%m-%d"]), metavar="YYYY-MM-DD", help="Use fixes since this day.")
@click.option(
    "--duplicates",
    metavar="OWNER/REPO",
    help="Instead: tasks for replay duplicates, from the index of bouncer index in DATABASE_URL.",
)
@click.option(
    "--name", metavar="OWNER/NAME", help="Name of the repository.  [default: from the clone's origin or folder]"
)
@click.option("--out", type=_file, help="Output.  [default: own-OWNER+NAME.jsonl]")
@click.option(
    "--clean",
    type=click.IntRange(min=0),
    default=20,
    show_default=True,
    help="Add this many pull requests that needed no repair within 180 days.",
)
@_build
def build_own(duplicates: str | None, repo: Path | None, since: datetime | None, **options: Any) -> int:
    """Find the pull requests of your own repository that introduced bugs, as tasks for replay crbench.

    With --duplicates: the issues of your own repository, some of which repeat an earlier one.
    """
    if duplicates is not None:
        from evaluation.duplicates.bench import build_from_index

        return build_from_index(duplicates, options["out"], options["overwrite"], options["as_json"])
    if repo is None or since is None:
        raise click.UsageError("give --repo and --since, or --duplicates")
    from evaluation.crbench.build import build_from_history

    return build_from_history(repo=repo, since=since, **options)


@click.command("golden")
@click.option(
    "--set", "kind", type=click.Choice(["aacr", "martian"]), required=True, help="The source of the comments."
)
@click.option("--source", required=True, metavar="F", help="The data set, .jsonl(.gz) or hf:NAME.")
@click.option("--repos", type=_folder, required=True, help="Clones.")
@click.option("--out", type=_file, required=True, help="JSON Lines; an existing build is continued.")
@click.option("--judge", metavar="ID", help="Store the kind of each comment: defect, hardening or style.")
@_overwrite
@json_option
def build_golden(**options: Any) -> None:
    """Convert golden review comments of AACR-Bench or Martian to tasks for replay and score crbench."""
    from evaluation.crbench.golden import build_golden as run

    run(**options)


@click.command("crbench")
@_tasks
@click.option("--repos", type=_folder, help="Local clones, so that the reviewer can read files.")
@click.option("--strategy", type=click.Choice(["single-shot", "reflexion", "panel"]), help="Review strategy.")
@click.option(
    "--prove/--no-prove",
    default=None,
    help="Draft a test for each finding, run it before and after the change, in the sandbox; needs --repos.",
)
@click.option(
    "--test-command",
    metavar="CMD",
    help="With --prove: runs the tests of a task that does not say how; {tests} becomes what to run.",
)
@click.option(
    "--preset",
    "--prompt",
    type=click.Choice(["ours", "paper"]),
    default="ours",
    show_default=True,
    help="paper: CR-Bench's own reviewer. Its prompts and four fields, the whole change, every comment is judged.",
)
@model_options
@set_option
@replay_options()
@json_option
def replay(
    tasks: str,
    repos: Path | None,
    strategy: str | None,
    prove: bool | None,
    test_command: str | None,
    preset: str,
    config: str | None,
    overrides: Mapping[str, Mapping[str, Any]],
    **options: Any,
) -> int:
    """Open the pull request of every task and record the comments that the reviewer would post."""
    from evaluation.crbench.bench import CRBENCH, opened
    from evaluation.run.replay import ReplayRequest
    from evaluation.run.replay import replay as run

    own_options = {"strategy": strategy, "prove": prove}
    review = {
        **overrides.get("review", {}),
        **{key: value for key, value in own_options.items() if value is not None},
    }
    if preset == "paper":
        keys = (f"{section}.{key}" for section, values in overrides.items() for key in values)
        extra = [f"--set {key}" for key in keys if key not in ("review.strategy", "review.iterations")]
        extra += ["--prove"] if prove is not None else []
        extra += ["--repos"] if repos else []
        extra += ["--strategy panel"] if review.get("strategy") == "panel" else []
        if extra:
            raise click.UsageError(f"--preset paper is the paper's reviewer: leave {extra[0]} out")
    request = ReplayRequest(**options)
    with opened(
        request, config, repos, {**overrides, "review": review}, preset == "paper", test_command
    ) as session:
        return run(CRBENCH, session, tasks, request)


@click.command("crbench")
@_tasks
@click.option("--run", "run_path", metavar="DIR", help="A run of replay crbench.")
@click.option(
    "--predictions", metavar="F", help="Or comments of any reviewer, JSON Lines: instance_id, path, line, comment."
)
@_judging
@click.option("--draws", type=click.IntRange(1, 25), default=1, show_default=True, help="Votes of each judge.")
@click.option(
    "--judge-style",
    type=click.Choice(["ours", "paper"]),
    default="ours",
    show_default=True,
    help="paper: CR-Bench's own judge (listing 6), which is shown no code; for tasks with a single bug.",
)
@click.option(
    "--comments",
    "scope",
    type=click.Choice(["posted", "reported"]),
    help="Comments that would be posted (default), or also suppressed ones; without a judge: those judged before.",
)
@click.option(
    "--missing",
    type=click.Choice(["count", "exclude"]),
    default="count",
    show_default=True,
    help="The bug of a task without an answer counts as not found, or not at all.",
)
@replicates_option
@cutoff_option
@martian_option
@click.option(
    "--filter",
    "most_comments",
    type=Finite(min=0, min_open=True),
    metavar="N",
    help="Print the thresholds that find most bugs with at most N comments per pull request.",
)
@json_option
def score(
    tasks: str,
    run_path: str | None,
    predictions: str | None,
    judges: tuple[str, ...],
    scope: Scope | None,
    missing: Missing,
    seed: int,
    replicates: int,
    cutoff: datetime | None,
    martian: str | None,
    most_comments: float | None,
    as_json: bool,
    **options: Any,
) -> int:
    """Judge review comments against the known bugs; without a judge, print earlier judgements."""
    from bot.core.errors import BudgetExceeded
    from evaluation.benchmark import Scoring
    from evaluation.crbench import sections
    from evaluation.crbench.bench import CRBENCH
    from evaluation.crbench.judged import have_judged, reviewer, scored
    from evaluation.report.terminal import data_of, say, tell

    reviewed = reviewer(run_path, predictions)
    try:
        have_judged(reviewed, tasks, judges, seed=seed, scope=scope, **options)
    except BudgetExceeded as error:
        say(f"stopped: {error}; the same command goes on from here, judged comments are in the cache")
        return 1
    scoring = Scoring(missing, seed, replicates, cutoff, martian, most_comments)
    result = scored(reviewed, tasks, scoring, scope)
    aged = CRBENCH.contamination([result], tasks, scoring)
    parts = sections.on_scores([result], scoring)
    value = {**data_of(parts), **sections.as_json(result), **data_of(aged)} if as_json else None
    tell([*parts, *aged], as_json, value)
    return 0


@click.command("golden")
@click.option("--tasks", metavar="F", help="What build golden wrote: confirmed and rejected comments.")
@martian_option
@_judging
@click.option("--doubt", metavar="ID", help="The model that answers the reviewer's second question.")
@limit_option
@json_option
def score_golden(**options: Any) -> int:
    """Score a judge and the second question on comments that people confirmed or rejected.

    With --martian, show the tools of that benchmark, and the agreement of the judge with its published judges.
    """
    from evaluation.crbench.golden_score import score_golden as run

    return run(**options)
