"""A reply type as the JSON Schema that providers accept: a subset, in which every field is required.

What a model reads of it are names and the descriptions of fields; docstrings are for those who read the code.

Bounds that are left out here are still checked when the answer is read.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

#: Keywords that OpenAI's strict mode and Anthropic's structured output both take.
_KEPT = frozenset(
    {"type", "properties", "items", "enum", "const", "anyOf", "$ref", "$defs", "description", "required"}
)
_BOUNDS = frozenset({"minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems"})
_NAMED = frozenset({"properties", "$defs"})


def strict(schema: type[BaseModel]) -> dict[str, Any]:
    """JSON Schema of ``schema`` with closed objects, every field required, and no keyword outside the subset."""
    return _object(schema.model_json_schema(), _KEPT)


def bounded(schema: type[BaseModel], max_length: int, max_items: int) -> dict[str, Any]:
    """For grammars: bounds are kept, and free text and lists without one are given one.

    A small model that loops is then cut off and still ends validly.
    """
    found = _bounded(_object(schema.model_json_schema(), _KEPT | _BOUNDS), max_length, max_items)
    assert isinstance(found, dict)
    return found


def _object(node: dict[str, Any], kept: frozenset[str]) -> dict[str, Any]:
    found = _closed(node, kept)
    assert isinstance(found, dict)
    found.pop("description", None)
    return found


def _closed(node: Any, kept: frozenset[str]) -> Any:
    if isinstance(node, list):
        return [_closed(each, kept) for each in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        # Nothing may stand beside a reference, except what it refers to.
        kept = frozenset({"$ref", "$defs"})
    found = {
        key: {name: _closed(each, kept) for name, each in value.items()} if key in _NAMED else _closed(value, kept)
        for key, value in node.items()
        if key in kept
    }
    for each in found.get("$defs", {}).values():
        each.pop("description", None)
    if found.get("type") == "object":
        found["required"] = list(found.setdefault("properties", {}))
        found["additionalProperties"] = False
    return found


def _bounded(node: Any, max_length: int, max_items: int) -> Any:
    if isinstance(node, list):
        return [_bounded(each, max_length, max_items) for each in node]
    if not isinstance(node, dict):
        return node
    found = {key: _bounded(value, max_length, max_items) for key, value in node.items()}
    if found.get("type") == "string" and not {"enum", "const"} & found.keys():
        found["maxLength"] = min(max_length, found.get("maxLength", max_length))
    if found.get("type") == "array":
        found["maxItems"] = min(max_items, found.get("maxItems", max_items))
    return found
