"""``bouncer triage`` and ``bouncer verify``: the two bouncers on files or on a GitHub address."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from bot.cli.files import print_json, read_diff, read_text, show_card
from bot.cli.judging import (
    Judging,
    as_object,
    decide,
    gate,
    judging_options,
    repo_option,
    runner_option,
    spoken,
)
from bot.cli.remote import decide_at, is_url

if TYPE_CHECKING:
    from bot.core.actions import Decision
    from bot.core.events import PullRequestOpened
    from bot.features.verify.record import OutputVerdict
    from bot.github.offline import Opened

fail_on_option = click.option(
    "--fail-on",
    type=click.Choice(["bounce", "abstain"]),
    multiple=True,
    help="Exit with 1 on a bounce, or if no verdict was reached (repeatable).",
)


@click.command()
@click.argument("file", metavar="FILE|-|URL")
@fail_on_option
@judging_options
def triage(file: str, fail_on: tuple[str, ...], judging: Judging, as_json: bool) -> int:
    """Say whether the issue in FILE (its first line is the title) is specified well enough to act on.

    URL is an issue on GitHub, read with GITHUB_TOKEN, as the App, or without either where it is public. Nothing is
    written there.
    """
    from bot.github.offline import issue_opened, split_title

    if is_url(file):
        # The user asks about this issue, so no filter applies.
        judging = judging.over({"triage": {"authors": "all", "ignore_kinds": ()}})
        decision = decide_at("triage", file, judging)
    else:
        event, snapshot = issue_opened(*split_title(read_text(file)))
        decision = decide("triage", event, snapshot, judging)
    if as_json:
        print_json(as_object(decision))
    else:
        show_card(_input_card(decision))
    return gate(fail_on, decision)


def _input_card(decision: Decision) -> str:
    from bot.features.triage.record import TriageRecord

    record = decision.record
    if decision.verdict is None or not isinstance(record, TriageRecord):
        return f"Not judged: {decision.reason}"
    chance = "" if record.p_bounce is None else f" (too vague: {record.p_bounce}% likely)"
    lines = [f"{decision.verdict}: {'bounced' if record.bounced else 'passes'}{chance}", "", record.explanation]
    lines += [f"- {question}" for question in record.questions]
    if record.missing:
        lines.append(f"Missing: {', '.join(record.missing)}")
    return "\n".join([*lines, "", spoken(decision)])


@click.command()
@click.argument("url", required=False)
@click.option("--issue", "issue_file", metavar="FILE", help="Markdown; its first line is the title.")
@click.option(
    "--description",
    "description_file",
    metavar="FILE",
    help="Judged in place of an issue: what the patch is said to do. Markdown; its first line is the title.",
)
@click.option("--patch", "patch_file", metavar="FILE", help="A unified diff, e.g. of `git diff`.")
@repo_option
@runner_option("Run the patch's new tests without and with the rest of it, in a --repo that holds the patch")
@fail_on_option
@judging_options
def verify(
    url: str | None,
    issue_file: str | None,
    description_file: str | None,
    patch_file: str | None,
    repo: Path | None,
    test_command: str | None,
    fail_on: tuple[str, ...],
    judging: Judging,
    as_json: bool,
) -> int:
    """Say whether a patch solves an issue: two files, or the pull request at URL and the issues that it closes.

    With --description the patch is judged by its own words; so is the pull request at URL, if it closes no issue,
    with --set verify.description=true. URL is read with GITHUB_TOKEN, as the App, or without either where it is
    public. Nothing is written there.
    """
    forced = {"execute": False, "tests": test_command is not None}
    judging = judging.forcing({"verify": forced | ({"description": True} if description_file else {})})
    if url is not None:
        if issue_file or description_file or patch_file or repo or test_command or not is_url(url):
            raise click.UsageError("give the URL of a pull request, or --issue and --patch")
        decision = decide_at("verify", url, judging)
    else:
        if test_command and not repo:
            raise click.UsageError("--test-command needs --repo")
        scene = _opened(issue_file, description_file, patch_file)
        decision = decide("verify", *scene, judging, repo, test_command)
    if as_json:
        verdicts = _verdicts(decision)
        # Of exactly one issue the fields stand beside the others.
        fields = verdicts[0].model_dump(mode="json", exclude={"issue"}) if len(verdicts) == 1 else {}
        print_json({**as_object(decision), **fields})
    else:
        show_card(_output_card(decision))
    return gate(fail_on, decision)


def _opened(
    issue_file: str | None, description_file: str | None, patch_file: str | None
) -> Opened[PullRequestOpened]:
    """Return a pull request with that patch, linked to that issue; with a description, linked to none."""
    from bot.core.subjects import Issue
    from bot.features.shared.links import closing_links
    from bot.github.offline import AUTHOR, REPOSITORY, Opened, pull_request_opened, split_title

    if issue_file is not None and description_file is not None:
        raise click.UsageError("give --issue or --description")
    option, file = ("--issue", issue_file) if description_file is None else ("--description", description_file)
    if file is None and patch_file is None:
        raise click.UsageError("give the URL of a pull request, or --issue and --patch")
    if file is None or patch_file is None:
        raise click.UsageError(f"Missing option '{'--patch' if file else '--issue'}'")
    if file == patch_file == "-":
        raise click.UsageError(f"{option} and --patch cannot both be standard input")
    (title, body), patch = split_title(read_text(file)), read_diff(patch_file)
    if description_file is None:
        issue = Issue(number=2, title=title, body=body, author=AUTHOR)
        return pull_request_opened(patch, title=f"Fix: {title}", issues=[issue])
    event, snapshot = pull_request_opened(patch, title=title, body=body)
    # The issues that the text closes cannot be read here.
    links = closing_links(f"{title}\n\n{body}", REPOSITORY.full_name, "https://offline.invalid")
    missing = tuple(f"issues {link.number}" for link in links)
    return Opened(event, snapshot.model_copy(update={"missing": missing}))


def _verdicts(decision: Decision) -> tuple[OutputVerdict, ...]:
    from bot.features.verify.record import VerifyRecord

    return decision.record_of(VerifyRecord).verdicts


def _output_card(decision: Decision) -> str:
    tests = _tests_part(decision)
    if decision.verdict is None:
        return "\n\n".join([f"Not judged: {decision.reason}", *tests])
    verdicts = _verdicts(decision)
    cards = ["\n".join(_part(verdict, with_issue=len(verdicts) > 1)) for verdict in verdicts]
    return "\n\n".join([*cards, *tests, spoken(decision)])


def _tests_part(decision: Decision) -> list[str]:
    """Return what the patch's new tests show, if they were to be run."""
    from bot.features.verify.record import VerifyRecord
    from bot.features.verify.texts import tests_sentence

    tests = decision.record_of(VerifyRecord).new_tests
    if tests is None:
        return []
    lines = [f"Tests: {tests_sentence(tests) or f'not run: {tests.why}'}"]
    lines += [f"- {test.test}: {test.before} without the change, {test.after} with it" for test in tests.tests]
    return ["\n".join(lines)]


def _part(verdict: OutputVerdict, *, with_issue: bool) -> list[str]:
    chance = "" if verdict.p_bounce is None else f" (falls short: {verdict.p_bounce}% likely)"
    issue = f"{verdict.issue}: " if with_issue else ""
    lines = [
        f"{issue}{verdict.label}: {'bounced' if verdict.bounced else 'passes'}{chance}",
        "",
        verdict.explanation,
    ]
    lines += [f"- missing: {point}" for point in verdict.missing]
    lines += [f"- may have broken: {point}" for point in verdict.regressions]
    lines += [f"- not said: {point}" for point in verdict.unsaid]
    return lines + [f"- covered: {point}" for point in verdict.covered]
