"""Generate references from declarations: bouncer.yml's keys, its JSON Schema, the environment, the commands.

``python -m tests.settings_reference`` updates the pages in docs and ``bot/bouncer.schema.json`` of a checkout.
"""

from __future__ import annotations

import json
import re
from typing import Any

from bot.core.config import RepoConfig
from bot.router import SLASH_COMMANDS
from bot.settings import Settings
from tests.conftest import ROOT

SCHEMA = ROOT / "bot" / "bouncer.schema.json"
#: Pages with generated parts.
PAGES = (ROOT / "docs" / "configure.md", ROOT / "docs" / "got-a-comment.md")


def json_schema() -> dict[str, Any]:
    """Return a JSON Schema (draft 2020-12) for editors; unknown keys are errors."""
    schema = RepoConfig.model_json_schema()
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "title": "Bouncer: .github/bouncer.yml",
    }


def markdown() -> str:
    """Return one table per section: key, allowed values, default, meaning."""
    definitions = json_schema()["$defs"]
    return "\n\n".join(
        _section(name, field.annotation, definitions) for name, field in RepoConfig.model_fields.items()
    )


def _section(name: str, model: object, definitions: dict[str, Any]) -> str:
    assert isinstance(model, type)
    schema = definitions[model.__name__]
    rows = [
        f"| `{name}.{key}` | {_allowed(value)} | `{json.dumps(value.get('default'), ensure_ascii=False)}` | "
        f"{value.get('description', '')} |"
        for key, value in schema["properties"].items()
    ]
    title = (model.__doc__ or "").strip().split("\n")[0]
    return "\n".join(
        [f"#### `{name}`", "", title, "", "| key | allowed | default | meaning |", "|---|---|---|---|", *rows]
    )


def _allowed(value: dict[str, Any]) -> str:
    if "anyOf" in value:
        return " or ".join(_allowed(option) for option in value["anyOf"])
    if "enum" in value:
        return ", ".join(f"`{option}`" for option in value["enum"])
    kind = str(value.get("type", "any"))
    if kind == "array":
        return "list of text"
    low, high = value.get("minimum"), value.get("maximum")
    if low is not None and high is not None:
        return f"{low} to {high}"
    return {"string": "text", "boolean": "`true`, `false`", "null": "nothing"}.get(kind, kind)


def environment() -> str:
    """Return one table: variable, default, meaning. Secrets have no default."""
    rows = [
        f"| `{name.upper()}` | {_plain(field.default)} | {field.description or ''} |"
        for name, field in Settings.model_fields.items()
    ]
    return "\n".join(["| variable | default | meaning |", "|---|---|---|", *rows])


def commands() -> str:
    """Return one table: command, where it works, meaning."""
    rows = []
    for command in SLASH_COMMANDS:
        limit = command.author_limit
        authors = "" if limit is None else f"; its author may use this too, {limit.text}"
        place = (
            "both"
            if command.on_issues == command.on_pull_requests
            else "issues"
            if command.on_issues
            else "pull requests"
        )
        rows.append(f"| `/bouncer {command.word}` | {place} | {command.help}{authors} |")
    return "\n".join(["| command | on | what it does |", "|---|---|---|", *rows])


def filled(text: str) -> str:
    """Return a page with its generated parts, between their marks, renewed."""
    for name, part in (("environment", environment()), ("configuration", markdown()), ("commands", commands())):
        between = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.DOTALL)
        text = between.sub(lambda match, part=part: f"{match[1]}{part}\n{match[2]}", text)
    return text


def schema_text() -> str:
    """Return the text of the schema file."""
    return json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"


def _plain(value: object) -> str:
    return "" if value in (None, "") else f"`{str(value).lower() if isinstance(value, bool) else value}`"


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(filled(page.read_text("utf-8")), "utf-8")
    SCHEMA.write_text(schema_text(), "utf-8")
