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
@click.option("--prompt", type=click.Choice(["paper", "panel", "careful"]), help="Which question is asked.")
@click.option("--bounce-at", metavar="LABEL", help="Bounce at this label or worse.")
@click.option(
    "--bounce-above", type=click.IntRange(0, 100), help="Bounce at this probability (percent) or above instead."
)
@fail_on_option
@model_options
def command(
    file: str,
    prompt: str | None,
    bounce_at: str | None,
    bounce_above: int | None,
    fail_on: tuple[str, ...],
    model: str | None,
    prompts: str | None,
    config: str | None,
    as_json: bool,
) -> int:
    """Say whether the issue in FILE (its first line is the title) is specified well enough to act on.

    URL is an issue on GitHub, read with GITHUB_TOKEN, as the App, or without either where it is public. Nothing is
    written there.
    """
    from bot.forge.offline import issue_opened, split_title

    overrides: dict[str, dict[str, Any]] = {
        "triage": {"prompt": prompt, "bounce_at": bounce_at, "bounce_above": bounce_above}
    }
    if is_url(file):
        # Somebody asks for this very issue, whoever wrote it and whatever it is.
        overrides["triage"] |= {"authors": "all", "ignore_kinds": ()}
    judging = Judging(model, prompts, config, overrides)
    if is_url(file):
        decision = decide_at("triage", file, judging)
    else:
        event, snapshot = issue_opened(*split_title(read_text(file)))
        decision = decide("triage", event, snapshot, judging)
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
