"""``bouncer review``: the reviewer on a diff."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bot.cli.files import (
    Judging,
    as_object,
    decide,
    model_options,
    print_json,
    read_diff,
    repo_option,
    show_card,
    write_text,
)
from bot.cli.remote import decide_at, is_url

if TYPE_CHECKING:
    from bot.core.actions import Decision
    from bot.features.review.record import ReviewRecord


@click.command()
@click.argument("url", required=False)
@click.option("--diff", "diff_file", metavar="FILE|-", help="A unified diff, e.g. of `git diff`.")
@click.option("--title", default="", help="The pull request's title.")
@click.option("--description", default="", help="The pull request's description.")
@click.option("--strategy", type=click.Choice(["single-shot", "reflexion", "panel"]), help="How to review.")
@click.option("--iterations", type=click.IntRange(1, 5), help="Reflexion: rounds of revision.")
@click.option("--looks", type=click.IntRange(2, 12), help="Panel: independent reviews.")
@click.option("--doubt/--no-doubt", default=None, help="Ask about each finding again.")
@click.option(
    "--min-severity", type=click.Choice(["low", "medium", "high"]), help="Weaker findings are held back."
)
@click.option("--min-confidence", type=click.IntRange(0, 100), metavar="P", help="Less likely ones are held back.")
@click.option("--max-findings", type=click.IntRange(1, 25), help="Findings at most.")
@repo_option
@click.option(
    "--fail-on",
    type=click.Choice(["finding", "low", "medium", "high", "abstain"]),
    multiple=True,
    help="Exit with 1 on any finding, on one at least that severe, or where no review came about.",
)
@click.option("--sarif", "sarif_file", metavar="FILE", help="Write the findings as SARIF 2.1.0 too.")
@model_options
def command(
    url: str | None,
    diff_file: str | None,
    title: str,
    description: str,
    repo: Path | None,
    fail_on: tuple[str, ...],
    sarif_file: str | None,
    model: str | None,
    prompts: str | None,
    config: str | None,
    as_json: bool,
    **keys: Any,
) -> int:
    """Say which defects a diff introduces: a file, or the pull request at URL.

    URL is read with GITHUB_TOKEN, as the App, or without either where it is public. Nothing is written there.
    """
    # A severity that the gate asks for must be looked for.
    keys["min_severity"] = keys["min_severity"] or _lowest(fail_on)
    judging = Judging(model, prompts, config, {"review": keys})
    decision = _decision(url, diff_file, title, description, judging, repo)
    if sarif_file:
        write_sarif(sarif_file, decision)
    if as_json:
        value = as_object(decision)
        print_json({**value, "findings": value.get("posted", [])})
    else:
        show_card(_text(decision))
    return gate(fail_on, decision)


def _decision(
    url: str | None, diff_file: str | None, title: str, description: str, judging: Judging, repo: Path | None
) -> Decision:
    from bot.github.offline import pull_request_opened

    if url is not None:
        if diff_file or title or description or repo or not is_url(url):
            raise click.UsageError("give the URL of a pull request, or --diff")
        return decide_at("review", url, judging)
    if diff_file is None:
        raise click.UsageError("Missing option '--diff'")
    # No change at all is no error: there is nothing to say about it.
    diff = read_diff(diff_file, may_be_empty=True)
    return decide("review", *pull_request_opened(diff, title=title, body=description), judging, repo)


def _lowest(fail_on: tuple[str, ...]) -> str | None:
    return next((severity for severity in ("low", "medium", "high") if severity in fail_on), None)


def _record(decision: Decision) -> ReviewRecord:
    """Return what the review recorded; an empty record if there was none."""
    from bot.features.review.record import ReviewRecord

    return decision.record if isinstance(decision.record, ReviewRecord) else ReviewRecord()


def gate(fail_on: tuple[str, ...], decision: Decision) -> int:
    """1 where what came of it is named in ``fail_on``: the worst findings are never beyond the limit."""
    from bot.features.shared.taxonomy import Severity

    if decision.abstained and decision.abstained != "empty":
        return 1 if "abstain" in fail_on else 0
    found = {each.severity.rank for each in _record(decision).posted}
    if found and "finding" in fail_on:
        return 1
    lowest = _lowest(fail_on)
    return 1 if lowest is not None and any(rank >= Severity(lowest).rank for rank in found) else 0


def write_sarif(path: str, decision: Decision) -> None:
    """Write what a review found; raises OperatorError that names the file."""
    from bot import __version__
    from bot.features.review.sarif import sarif

    record = _record(decision)
    complete = decision.verdict is not None or decision.abstained == "empty"
    log = sarif(record.posted, record.skipped, __version__, complete=complete)
    write_text(path, json.dumps(log, indent=2) + "\n")


def _text(decision: Decision) -> str:
    """A line for each finding, as compilers write it; then what was left out."""
    from bot.core.text import show

    if decision.verdict is None:
        return f"Not reviewed: {decision.reason}"
    record, lines = _record(decision), list[str]()
    for each in record.posted:
        place = show(each.path) if each.line is None else f"{show(each.path)}:{each.start_line or each.line}"
        removed = " (removed line)" if each.side == "LEFT" and each.line else ""
        comment = show(" ".join(each.comment.split()))
        lines.append(f"{place}{removed}: {each.severity} ({each.category}, {each.impact}): {comment}")
    lines += [f"{show(each.path)}: not reviewed: {each.reason}" for each in record.skipped]
    if not lines:
        lines.append("No defects found.")
    if dropped := [each for each in record.doubts if each.outcome in ("refuted", "not named")]:
        lines.append(f"Dropped after a second look: {len(dropped)}.")
    asked = f"{decision.model}, {decision.usage.seconds:.1f} s" if decision.model else "No model was asked."
    return "\n".join([*lines, "", asked])
