"""The base of every value that crosses a boundary: an event, a decision, a reply."""

from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, ValidationError


class Frozen(BaseModel):
    """An immutable value that refuses unknown fields and survives a JSON round trip unchanged.

    Collections are declared as tuples, so that a value cannot be changed after it was made.
    """

    # By default pydantic keeps up to 16,384 of the short texts that it parsed, each of which occurs once here.
    model_config = ConfigDict(frozen=True, extra="forbid", cache_strings="keys")


class Lenient(Frozen):
    """An immutable value that others write, such as a model's reply: unknown fields are ignored."""

    model_config = ConfigDict(extra="ignore")

    #: Lists of a model's reply that are used without the items that are invalid even after the repair turn.
    incomplete_lists: ClassVar[tuple[str, ...]] = ()


_PLAIN_WORDS = {
    "tuple_type": 'must be a list, such as ["docs/"]',
    "dict_type": "must be a mapping of keys",
    "model_type": "must be a mapping of keys",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "int_parsing": "must be a whole number",
    "int_type": "must be a whole number",
    "float_parsing": "must be a number",
    "string_type": "must be text",
}


def in_plain_words(fault: Any) -> str:
    """Return the message of one of pydantic's faults in the words of people who write files and variables."""
    message = str(fault["msg"]).removeprefix("Value error, ").replace("Input should be", "must be")
    return _PLAIN_WORDS.get(fault["type"], message)


def first_fault(error: ValidationError, whole: str = "it") -> tuple[str, str]:
    """Return the place of the first fault (``whole`` if it has none) and the message.

    The value is not shown: it may be long, hostile or secret.
    """
    fault = error.errors(include_url=False, include_input=False)[0]
    return ".".join(map(str, fault["loc"])) or whole, in_plain_words(fault)
