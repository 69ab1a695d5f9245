"""``bouncer triage`` and ``bouncer verify``: the two bouncers on files, or on what stands at an address."""

from __future__ import annotations

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
    read_text,
    repo_option,
    show_card,
    spoken,
    with_options,
)
from bot.cli.remote import decide_at, is_url

if TYPE_CHECKING:
    from bot.core.actions import Decision
    from bot.core.events import PullRequestOpened
    from bot.features.verify.record import OutputVerdict
    from bot.github.offline import Opened

#: Keys of a bouncer's section in bouncer.yml, by their names there.
line_options = with_options(
    click.option("--prompt", type=click.Choice(["paper", "panel", "careful"]), help="Which question is asked."),
    click.option("--bounce-at", metavar="LABEL", help="Bounce at this label or worse."),
    click.option(
        "--bounce-above",
        type=click.IntRange(0, 100),
        help="Bounce at this probability (percent) or above instead.",
    ),
)
fail_on_option = click.option(
    "--fail-on",
    type=click.Choice(["bounce", "abstain"]),
    multiple=True,
    help="Exit with 1 on a bounce, or where no verdict was reached; may be given twice.",
)


@click.command()
@click.argument("file", metavar="FILE|-|URL")
@line_options
@fail_on_option
@model_options
def triage(
    file: str,
    fail_on: tuple[str, ...],
    model: str | None,
    prompts: str | None,
    config: str | None,
    as_json: bool,
    **keys: Any,
) -> int:
    """Say whether the issue in FILE (its first line is the title) is specified well enough to act on.

    URL is an issue on GitHub, read with GITHUB_TOKEN, as the App, or without either where it is public. Nothing is
    written there.
    """
    from bot.github.offline import issue_opened, split_title

    if is_url(file):
        # Somebody asks for this very issue, whoever wrote it and whatever it is.
        keys |= {"authors": "all", "ignore_kinds": ()}
        decision = decide_at("triage", file, Judging(model, prompts, config, {"triage": keys}))
    else:
        opened = issue_opened(*split_title(read_text(file)))
        decision = decide("triage", *opened, Judging(model, prompts, config, {"triage": keys}))
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
    chance = "" if record.p_bounce is None else f" ({record.p_bounce}%)"
    lines = [f"{decision.verdict}{chance}: {'bounced' if record.bounced else 'passes'}", "", record.explanation]
    lines += [f"- {question}" for question in record.questions]
    if record.missing:
        lines.append(f"Missing: {', '.join(record.missing)}")
    return "\n".join([*lines, "", spoken(decision)])


@click.command()
@click.argument("url", required=False)
@click.option("--issue", "issue_file", metavar="FILE", help="Markdown; its first line is the title.")
@click.option("--patch", "patch_file", metavar="FILE", help="A unified diff, e.g. of `git diff`.")
@line_options
@repo_option
@fail_on_option
@model_options
def verify(
    url: str | None,
    issue_file: str | None,
    patch_file: str | None,
    repo: Path | None,
    fail_on: tuple[str, ...],
    model: str | None,
    prompts: str | None,
    config: str | None,
    as_json: bool,
    **keys: Any,
) -> int:
    """Say whether a patch solves an issue: two files, or the pull request at URL and the issues that it closes.

    URL is read with GITHUB_TOKEN, as the App, or without either where it is public. Nothing is written there.
    """
    judging = Judging(model, prompts, config, {"verify": {**keys, "execute": False}})
    if url is not None:
        if issue_file or patch_file or repo or not is_url(url):
            raise click.UsageError("give the URL of a pull request, or --issue and --patch")
        decision = decide_at("verify", url, judging)
    else:
        decision = decide("verify", *_opened(issue_file, patch_file), judging, repo)
    if as_json:
        print_json({**as_object(decision), **_only(decision)})
    else:
        show_card(_output_card(decision))
    return gate(fail_on, decision)


def _opened(issue_file: str | None, patch_file: str | None) -> Opened[PullRequestOpened]:
    """A pull request with that patch, linked to that issue."""
    from bot.core.subjects import Issue
    from bot.github.offline import AUTHOR, pull_request_opened, split_title

    if issue_file is None or patch_file is None:
        raise click.UsageError(f"Missing option '{'--patch' if issue_file else '--issue'}'")
    if issue_file == patch_file == "-":
        raise click.UsageError("--issue and --patch cannot both be standard input")
    title, body = split_title(read_text(issue_file))
    issue = Issue(number=2, title=title, body=body, author=AUTHOR)
    return pull_request_opened(read_diff(patch_file), title=f"Fix: {title}", issues=[issue])


def _only(decision: Decision) -> dict[str, object]:
    """The verdict beside the decision, where there is one issue."""
    verdicts = _verdicts(decision)
    return verdicts[0].model_dump(mode="json", exclude={"issue"}) if len(verdicts) == 1 else {}


def _verdicts(decision: Decision) -> tuple[OutputVerdict, ...]:
    from bot.features.verify.record import VerifyRecord

    return decision.record.verdicts if isinstance(decision.record, VerifyRecord) else ()


def _output_card(decision: Decision) -> str:
    if decision.verdict is None:
        return f"Not judged: {decision.reason}"
    verdicts = _verdicts(decision)
    cards = ["\n".join(_part(each, named=len(verdicts) > 1)) for each in verdicts]
    return "\n\n".join([*cards, spoken(decision)])


def _part(verdict: OutputVerdict, *, named: bool) -> list[str]:
    chance = "" if verdict.p_bounce is None else f" ({verdict.p_bounce}% that it falls short)"
    issue = f"{verdict.issue}: " if named else ""
    lines = [
        f"{issue}{verdict.label}{chance}: {'bounced' if verdict.bounced else 'passes'}",
        "",
        verdict.explanation,
    ]
    lines += [f"- missing: {point}" for point in verdict.missing]
    return lines + [f"- covered: {point}" for point in verdict.covered]


def gate(fail_on: tuple[str, ...], decision: Decision) -> int:
    """The exit code of a command used as a gate: 1 where ``--fail-on`` names what came of it."""
    from bot.features.shared.history import bounced as was_bounced

    bounced = was_bounced(decision)
    kinds = {"bounce"} if bounced else ({"abstain"} if decision.verdict is None else set())
    return 1 if kinds & set(fail_on) else 0
