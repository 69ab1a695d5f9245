"""``bouncer triage``: the input bouncer on a Markdown file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from bot.cli.files import (
    Judging,
    as_object,
    decide,
    fail_on_option,
    gate,
    line_options,
    model_options,
    print_json,
    read_text,
    show_card,
    spoken,
)
from bot.cli.remote import decide_at, is_url

if TYPE_CHECKING:
    from bot.core.actions import Decision


@click.command()
@click.argument("file", metavar="FILE|-|URL")
@line_options
@fail_on_option
@model_options
def command(
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
    from bot.forge.offline import issue_opened, split_title

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
        show_card(_text(decision))
    return gate(fail_on, decision)


def _text(decision: Decision) -> str:
    if decision.verdict is None:
        return f"Not judged: {decision.reason}"
    seen = decision.evidence
    chance = "" if seen["p_bounce"] is None else f" ({seen['p_bounce']:.0f}%)"
    lines = [f"{decision.verdict}{chance}: {'bounced' if seen['bounced'] else 'passes'}", "", seen["explanation"]]
    lines += [f"- {question}" for question in seen["questions"]]
    if seen["missing"]:
        lines.append(f"Missing: {', '.join(seen['missing'])}")
    return "\n".join([*lines, "", spoken(decision)])
