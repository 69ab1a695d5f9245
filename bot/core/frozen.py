"""The base of every value that crosses a boundary: an event, a decision, a reply."""

from pydantic import BaseModel, ConfigDict


class Frozen(BaseModel):
    """An immutable value that refuses unknown fields and survives a JSON round trip unchanged.

    Collections are declared as tuples, so that a value cannot be changed after it was made. The JSON parser caches
    keys only: the values of events differ, and would fill its cache of 16,384 texts.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", cache_strings="keys")


class Lenient(Frozen):
    """An immutable value that others write, such as a model's reply: unknown fields are ignored."""

    model_config = ConfigDict(extra="ignore")
