"""A reply type as the JSON Schema that providers accept: a subset, in which every field is required.

Bounds that are left out here are still checked when the answer is read.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

#: Keywords that OpenAI's strict mode and Anthropic's structured output both take.
_KEPT = frozenset(
    {"type", "properties", "items", "enum", "const", "anyOf", "$ref", "$defs", "description", "required"}
)
_NAMED = frozenset({"properties", "$defs"})


def strict(schema: type[BaseModel]) -> dict[str, Any]:
    """JSON Schema of ``schema`` with closed objects, every field required, and no keyword outside the subset."""
    found = _closed(schema.model_json_schema())
    assert isinstance(found, dict)
    return found


def bounded(schema: type[BaseModel], max_length: int, max_items: int) -> dict[str, Any]:
    """``strict`` with a cap on free text and lists: a small model that loops is cut off and still ends validly."""
    found = _bounded(strict(schema), max_length, max_items)
    assert isinstance(found, dict)
    return found


def _closed(node: Any) -> Any:
    if isinstance(node, list):
        return [_closed(each) for each in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        # Nothing may stand beside a reference.
        return {"$ref": node["$ref"], **({"$defs": _closed_each(node["$defs"])} if "$defs" in node else {})}
    found = {
        key: _closed_each(value) if key in _NAMED else _closed(value)
        for key, value in node.items()
        if key in _KEPT
    }
    if found.get("type") == "object":
        found["required"] = list(found.setdefault("properties", {}))
        found["additionalProperties"] = False
    return found


def _closed_each(nodes: dict[str, Any]) -> dict[str, Any]:
    return {name: _closed(node) for name, node in nodes.items()}


def _bounded(node: Any, max_length: int, max_items: int) -> Any:
    if isinstance(node, list):
        return [_bounded(each, max_length, max_items) for each in node]
    if not isinstance(node, dict):
        return node
    found = {key: _bounded(value, max_length, max_items) for key, value in node.items()}
    if found.get("type") == "string" and "enum" not in found and "const" not in found:
        found["maxLength"] = max_length
    if found.get("type") == "array":
        found["maxItems"] = max_items
    return found
