"""``bouncer review``: the reviewer on a diff."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bot.cli.files import print_json, read_diff, show_card, write_text
from bot.cli.judging import Judging, as_object, decide, gate, judging_options, lowest_severity, repo_option
from bot.cli.remote import decide_at, is_url

if TYPE_CHECKING:
    from bot.core.actions import Decision


@click.command()
@click.argument("url", required=False)
@click.option("--diff", "diff_file", metavar="FILE|-", help="A unified diff, e.g. of `git diff`.")
@click.option("--title", default="", help="The pull request's title.")
@click.option("--description", default="", help="The pull request's description.")
@repo_option
@click.option(
    "--fail-on",
    type=click.Choice(["finding", "low", "medium", "high", "abstain"]),
    multiple=True,
    help="Exit with 1 on any finding, on one at least that severe, or if there was no review (repeatable).",
)
@click.option("--sarif", "sarif_file", metavar="FILE", help="Write the findings as SARIF 2.1.0 too.")
@judging_options
def command(
    url: str | None,
    diff_file: str | None,
    title: str,
    description: str,
    repo: Path | None,
    fail_on: tuple[str, ...],
    sarif_file: str | None,
    judging: Judging,
    as_json: bool,
) -> int:
    """Say which defects a diff introduces: a file, or the pull request at URL.

    URL is read with GITHUB_TOKEN, as the App, or without either where it is public. Nothing is written there.
    """
    # The gate can only fail on a severity that the review looks for.
    if lowest := lowest_severity(fail_on):
        judging = judging.over({"review": {"min_severity": lowest}})
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

    usage = "give the URL of a pull request, or --diff"
    if url is not None:
        if diff_file or title or description or repo or not is_url(url):
            raise click.UsageError(usage)
        return decide_at("review", url, judging)
    if diff_file is None:
        raise click.UsageError(usage)
    # An empty diff is not an error.
    diff = read_diff(diff_file, may_be_empty=True)
    return decide("review", *pull_request_opened(diff, title=title, body=description), judging, repo)


def write_sarif(path: str, decision: Decision) -> None:
    """Write a review's findings as SARIF. Raises OperatorError that names the file."""
    from bot import __version__
    from bot.features.review.record import ReviewRecord
    from bot.features.review.sarif import sarif

    record = decision.record_of(ReviewRecord)
    complete = decision.verdict is not None or decision.abstained == "empty"
    log = sarif(record.posted, record.skipped, __version__, complete=complete)
    write_text(path, json.dumps(log, indent=2) + "\n")


def _text(decision: Decision) -> str:
    """Return a line per finding, as compilers print it, then what was left out."""
    from bot.core.text import show
    from bot.features.review.record import ReviewRecord

    if decision.verdict is None:
        return f"Not reviewed: {decision.reason}"
    record, lines = decision.record_of(ReviewRecord), list[str]()
    for finding in record.posted:
        path, line = show(finding.path), finding.start_line or finding.line
        place = path if finding.line is None else f"{path}:{line}"
        removed = " (removed line)" if finding.side == "LEFT" and finding.line else ""
        comment = show(" ".join(finding.comment.split()))
        lines.append(f"{place}{removed}: {finding.severity} ({finding.category}, {finding.impact}): {comment}")
    lines += [f"{show(file.path)}: not reviewed: {file.reason}" for file in record.skipped]
    if not lines:
        lines.append("No defects found.")
    if dropped := [doubt for doubt in record.doubts if doubt.outcome in ("unsure", "refuted", "not named")]:
        lines.append(f"Dropped after a second look: {len(dropped)}.")
    if fallen := sum(finding.reason.startswith("repair_") for finding in record.suppressed):
        lines.append(f"Dropped because their repair does not apply or changes nothing: {fallen}.")
    model = f"{decision.model}, {decision.usage.seconds:.1f} s" if decision.model else "No model was called."
    return "\n".join([*lines, "", model])
