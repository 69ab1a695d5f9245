"""``bouncer verify``: the output bouncer on an issue and a patch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from bot.cli.files import (
    as_object,
    decide,
    fail_on_option,
    gate,
    model_options,
    print_json,
    read_diff,
    read_text,
    show_card,
    spoken,
)

if TYPE_CHECKING:
    from bot.core.actions import Decision


@click.command()
@click.option(
    "--issue", "issue_file", metavar="FILE", required=True, help="Markdown; its first line is the title."
)
@click.option("--patch", "patch_file", metavar="FILE", required=True, help="A unified diff, e.g. of `git diff`.")
@click.option("--prompt", type=click.Choice(["paper", "panel"]), help="Which question is asked.")
@click.option("--bounce-at", metavar="LABEL", help="The mildest label that bounces.")
@click.option("--bounce-above", type=click.IntRange(0, 100), help="Bounce from this percentage on instead.")
@fail_on_option
@model_options
def command(
    issue_file: str,
    patch_file: str,
    prompt: str | None,
    bounce_at: str | None,
    bounce_above: int | None,
    fail_on: tuple[str, ...],
    model: str | None,
    prompts: str | None,
    config: str | None,
    as_json: bool,
) -> int:
    """Say whether a patch solves an issue."""
    from bot.core.model import Issue
    from bot.forge.offline import AUTHOR, pull_request_opened, split_title

    if issue_file == patch_file == "-":
        raise click.UsageError("--issue and --patch cannot both be standard input")
    title, body = split_title(read_text(issue_file))
    issue = Issue(number=2, title=title, body=body, author=AUTHOR)
    event, snapshot = pull_request_opened(read_diff(patch_file), title=f"Fix: {title}", issues=[issue])
    overrides = {"verify": {"prompt": prompt, "bounce_at": bounce_at, "bounce_above": bounce_above}}
    decision = decide("verify", event, snapshot, model=model, prompts=prompts, config=config, overrides=overrides)
    if as_json:
        print_json({**as_object(decision), **_only(decision)})
    else:
        show_card(_text(decision))
    return gate(fail_on, decision)


def _only(decision: Decision) -> dict[str, object]:
    """The one verdict beside the decision: here there is one issue."""
    verdicts = decision.evidence.get("verdicts", ())
    return {key: value for key, value in verdicts[0].items() if key != "issue"} if verdicts else {}


def _text(decision: Decision) -> str:
    if decision.verdict is None:
        return f"Not judged: {decision.reason}"
    (seen,) = decision.evidence["verdicts"]
    chance = "" if seen["p_bounce"] is None else f" ({seen['p_bounce']:.0f} % that it falls short)"
    lines = [f"{seen['label']}{chance}: {'bounced' if seen['bounced'] else 'passes'}", "", seen["explanation"]]
    lines += [f"- missing: {point}" for point in seen["missing"]]
    lines += [f"- covered: {point}" for point in seen["covered"]]
    return "\n".join([*lines, "", spoken(decision)])
