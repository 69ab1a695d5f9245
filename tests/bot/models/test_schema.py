"""Every reply type becomes an equivalent schema that providers accept."""

from __future__ import annotations

from typing import Any, Literal

import jsonschema
from pydantic import Field

from bot.core.frozen import Frozen
from bot.models.conversation import strict
from tests.bot.models.replies import CLEAR, Verdict


class Finding(Frozen):
    """One of several."""

    description: str = Field("", description="the name of a keyword is a fine name for a field")
    line: int = Field(ge=1)


class Review(Frozen):
    findings: tuple[Finding, ...] = Field((), max_length=9)
    worst: Finding | None = Field(None, description="beside a reference")
    kind: Literal["a", "b"] = "a"


def nodes(schema: Any) -> list[dict[str, Any]]:
    if isinstance(schema, list):
        return [node for item in schema for node in nodes(item)]
    if not isinstance(schema, dict):
        return []
    return [schema] + [node for item in schema.values() for node in nodes(item)]


def test_every_object_is_closed_and_requires_every_field() -> None:
    objects = [node for node in nodes(strict(Review)) if node.get("type") == "object"]
    assert len(objects) == 2
    for node in objects:
        assert node["additionalProperties"] is False
        assert node["required"] == list(node["properties"])


def test_fields_named_like_keywords_stay() -> None:
    assert set(strict(Review)["$defs"]["Finding"]["properties"]) == {"description", "line"}


def test_a_value_of_the_type_fits_its_schema() -> None:
    jsonschema.validate(CLEAR.model_dump(mode="json"), strict(Verdict))
    value = Review(findings=(Finding(line=3),), worst=Finding(line=1))
    jsonschema.validate(value.model_dump(mode="json"), strict(Review))


def test_the_schema_has_no_bounds_that_providers_refuse() -> None:
    text = str(strict(Review)) + str(strict(Verdict))
    for keyword in ("maxItems", "minimum", "maximum", "default", "title"):
        assert f"'{keyword}'" not in text
