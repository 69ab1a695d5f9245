"""Cut the operations that we use out of GitHub's OpenAPI description.

    npm pack @octokit/openapi && tar xzf octokit-openapi-*.tgz
    python -m tests.conformance.extract package/generated/api.github.com.json

Writes ``openapi.json`` beside this file: per operation its parameters, the JSON Schema of its body and those of
its answers, without prose. Objects in bodies are closed, so that a misspelt optional field is a violation. In
answers nothing is required: the simulated GitHub leaves much out, but what it says must have the right type.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bot.simgithub.routes import ROUTES

TARGET = Path(__file__).with_name("openapi.json")
KEPT = {
    "type", "properties", "items", "required", "enum", "const", "oneOf", "anyOf", "allOf", "additionalProperties",
    "minItems", "maxItems", "minLength", "maxLength", "minimum", "maximum", "pattern",
}  # fmt: skip

Schema = dict[str, Any]


class Extract:
    """The description being cut, and the shared schemas met on the way."""

    def __init__(self, description: Schema) -> None:
        self._all = description
        self.schemas: dict[str, Schema] = {}

    def operations(self) -> Iterator[tuple[str, Schema]]:
        """Every operation that the simulated GitHub offers; GraphQL is described elsewhere."""
        for route in ROUTES:
            if route.path != "/graphql":
                template = self._template(route.path)
                operation = self._all["paths"][template][route.method.lower()]
                yield f"{route.method} {template}", self._operation(operation)

    def _template(self, path: str) -> str:
        """GitHub's template for a route of ours; the one with the most fixed words where several fit."""
        sample = re.sub(r"<[^>]+>", "1", path)
        fitting = [row for row in self._all["paths"] if re.fullmatch(pattern_of(row), sample)]
        return max(fitting, key=lambda item: len(re.sub(r"\{[^}]+\}", "", item)))

    def _operation(self, operation: Schema) -> Schema:
        parameters = [self._resolved(item) for item in operation.get("parameters", ())]
        body = operation.get("requestBody")
        answers = {
            status: self._schema(item["content"]["application/json"]["schema"], "answer")
            for status, item in ((code, self._resolved(answer)) for code, answer in operation["responses"].items())
            if status < "300" and "application/json" in item.get("content", {})
        }
        return {
            "query": {
                parameter["name"]: self._schema(parameter["schema"], "query")
                for parameter in parameters
                if parameter["in"] == "query"
            },
            "body": self._schema(body["content"]["application/json"]["schema"], "body") if body else None,
            "body_required": bool(body and body.get("required")),
            "answers": answers,
        }

    def _resolved(self, value: Schema) -> Schema:
        if "$ref" not in value:
            return value
        part: Any = self._all
        for key in value["$ref"].removeprefix("#/").split("/"):
            part = part[key]
        resolved: Schema = part
        return resolved

    def _schema(self, schema: Schema, use: str) -> Schema:
        if "$ref" in schema:
            name = f"{use}-{schema['$ref'].rpartition('/')[2]}"
            if name not in self.schemas:
                self.schemas[name] = {}
                self.schemas[name] = self._schema(self._resolved(schema), use)
            return {"$ref": f"#/schemas/{name}"}
        schema_part = {key: self._value(key, value, use) for key, value in schema.items() if key in KEPT}
        if use == "answer":
            schema_part.pop("required", None)
            # With nothing required, several alternatives may fit at once.
            schema_part |= {"anyOf": schema_part.pop("oneOf")} if "oneOf" in schema_part else {}
        if use == "body" and "properties" in schema_part:
            schema_part.setdefault("additionalProperties", False)
        return {"anyOf": [schema_part, {"type": "null"}]} if schema.get("nullable") else schema_part

    def _value(self, key: str, value: Any, use: str) -> Any:
        if key == "properties":
            return {name: self._schema(item, use) for name, item in value.items()}
        if key in ("oneOf", "anyOf", "allOf"):
            return [self._schema(item, use) for item in value]
        if key in ("items", "additionalProperties") and isinstance(value, dict):
            return self._schema(value, use)
        return value


def pattern_of(template: str) -> str:
    """A template's pattern; the last parameter of paths that name files or branches may hold slashes."""
    *parts, last = re.split(r"\{([^}]+)\}", template)
    names, words = parts[1::2], [*parts[0::2], last]
    pattern = re.escape(words[0])
    for name, word in zip(names, words[1:], strict=True):
        pattern += ("(.+)" if name in ("path", "ref", "name") else "([^/]+)") + re.escape(word)
    return pattern


def main(source: str) -> None:
    """Write the extract."""
    description = json.loads(Path(source).read_text(encoding="utf-8"))
    extract = Extract(description)
    version = description["info"]["version"]
    content = {
        "source": f"npm @octokit/openapi {version}, api.github.com; MIT License, see LICENSE",
        "operations": dict(extract.operations()),
        "schemas": dict(sorted(extract.schemas.items())),
    }
    TARGET.write_text(json.dumps(content, indent=1, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
