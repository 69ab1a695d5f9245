"""``bouncer-eval list``: the benchmarks, and what can be done with each."""

from __future__ import annotations

import click

from evaluation.cli import VERBS
from evaluation.cli.options import json_option, print_json

ABOUT = {
    "bouncerbench": "vague issues and wrong patches (Mathews and Nagappan, BouncerBench)",
    "crbench": "defects that a review should have found (CR-Bench)",
    "brt": "tests that reproduce a reported bug (LIBRO and Bloom's levels)",
    "bloom": "six layers on the same bugs: reports and names changed (Qureshi and Jiang)",
    "own": "reviews of a repository of your own, in CR-Bench's form",
}


@click.command()
@json_option
def command(as_json: bool) -> None:
    """The benchmarks, and what can be done with each."""
    found: dict[str, list[str]] = {}
    for verb in ("build", "replay", "score"):
        for name in VERBS[verb]:
            found.setdefault(name, []).append(verb)
    if as_json:
        print_json({"benchmarks": [{"name": name, "about": _about(name), "verbs": found[name]} for name in found]})
        return
    width = max(map(len, found))
    for name in sorted(found):
        click.echo(f"{name:<{width}}  {', '.join(found[name]):<21}  {_about(name)}")


def _about(name: str) -> str:
    """What a benchmark is about; where only one command knows it, that command's line."""
    lines = [table[name][1] for table in VERBS.values() if name in table]
    return ABOUT.get(name.partition("-")[0], lines[0])
