"""The reference and the JSON Schema of ``.github/bouncer.yml``, made from the typed configuration itself.

``python -m bot.config_reference`` prints the Markdown, with ``--schema`` the JSON Schema.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

from bot.config import RepoConfig
from bot.frozen import Frozen


def json_schema() -> dict[str, Any]:
    """JSON Schema (draft 2020-12) for editors; unknown keys are errors."""
    schema = RepoConfig.model_json_schema()
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "title": "Bouncer: .github/bouncer.yml",
    }


def markdown() -> str:
    """One table a section: key, allowed values, default, meaning."""
    definitions = json_schema()["$defs"]
    return "\n\n".join(_section(name, model, definitions) for name, model in _sections())


def _sections() -> Iterator[tuple[str, type[Frozen]]]:
    for name, field in RepoConfig.model_fields.items():
        assert isinstance(field.annotation, type)
        yield name, field.annotation


def _section(name: str, model: type[Frozen], definitions: dict[str, Any]) -> str:
    schema = definitions[model.__name__]
    rows = [
        f"| `{name}.{key}` | {_allowed(value)} | `{_default(value)}` | {value.get('description', '')} |"
        for key, value in schema["properties"].items()
    ]
    title = (model.__doc__ or "").strip().split("\n")[0]
    return "\n".join(
        [f"#### `{name}`", "", title, "", "| key | allowed | default | meaning |", "|---|---|---|---|", *rows]
    )


def _allowed(value: dict[str, Any]) -> str:
    if "anyOf" in value:
        return " or ".join(_allowed(each) for each in value["anyOf"])
    if "enum" in value:
        return ", ".join(f"`{each}`" for each in value["enum"])
    kind = str(value.get("type", "any"))
    if kind == "array":
        return "list of text"
    low, high = value.get("minimum"), value.get("maximum")
    if low is not None and high is not None:
        return f"{low} to {high}"
    return {"string": "text", "boolean": "`true`, `false`", "null": "nothing"}.get(kind, kind)


def _default(value: dict[str, Any]) -> str:
    return json.dumps(value.get("default"), ensure_ascii=False)


if __name__ == "__main__":
    print(json.dumps(json_schema(), indent=2) if "--schema" in sys.argv[1:] else markdown())
