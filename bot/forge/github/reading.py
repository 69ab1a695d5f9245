"""Reading GitHub's objects: an object that lacks what it is about is GitHub's fault, not a crash of ours."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from pydantic import ValidationError

from bot.errors import TransientError

T = TypeVar("T")


def read(convert: Callable[[], T]) -> T:
    """What ``convert`` makes of an answer. TransientError where the answer is not what GitHub documents."""
    try:
        return convert()
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        kind = type(error).__name__
        detail = f" at {error.errors()[0]['loc']}" if isinstance(error, ValidationError) else f" {error}"
        raise TransientError(f"GitHub's answer is not what it documents: {kind}{detail[:100]}") from None
