"""The base of every value that crosses a boundary: an event, a decision, a reply."""

from pydantic import BaseModel, ConfigDict


class Frozen(BaseModel):
    """An immutable value that refuses unknown fields and survives a JSON round trip unchanged.

    Collections are declared as tuples, so that a value cannot be changed after it was made.
    """

    # By default pydantic keeps up to 16,384 of the short texts that it parsed, each of which occurs once here.
    model_config = ConfigDict(frozen=True, extra="forbid", cache_strings="keys")


class Lenient(Frozen):
    """An immutable value that others write, such as a model's reply: unknown fields are ignored.

    A model's reply is used without the items of its lists that are invalid even after the repair turn.
    """

    model_config = ConfigDict(extra="ignore")
