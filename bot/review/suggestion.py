"""A suggested replacement, made to fit the lines that it replaces, or left out."""

from __future__ import annotations

from collections.abc import Sequence

from bot.review.findings import Reported
from bot.review.quotes import without_margin
from bot.review.shown import show, squeeze

# More than this is no longer a suggestion to be taken with one click.
_LONGEST = 40


def fit(reported: Reported, lines: Sequence[str]) -> str | None:
    """The suggestion in the indentation of ``lines``; None where it is missing, of no effect, long or hides text.

    Models drop the indentation of what they quote. The shift that separates the quote from the real code is
    given back to every line of the suggestion.
    """
    # Blank means none: taking lines away is too much to do on a model's empty string.
    if reported.suggestion is None or not reported.suggestion.strip():
        return None
    new = reported.suggestion.replace("\r\n", "\n").strip("\n").split("\n")
    if len(new) > _LONGEST or any(show(line) != line for line in new):
        return None
    shift = "" if _indented_like(new, lines) else _shift(reported.quote, lines)
    shifted = [f"{shift}{line}" if line.strip() else line for line in new]
    return None if [line.rstrip() for line in shifted] == [line.rstrip() for line in lines] else "\n".join(shifted)


def _indented_like(new: Sequence[str], lines: Sequence[str]) -> bool:
    """Whether a suggestion has its indentation already, although the quote may have lost it."""
    return _indent(_first(new)).startswith(_indent(_first(lines)))


def _shift(quote: str, lines: Sequence[str]) -> str:
    """The white space that the first line has and its quote has not."""
    real, quoted = _first(lines), _first(quote.split("\n"))
    if squeeze(quoted) != squeeze(real):
        quoted = without_margin(quoted)
    given, indent = _indent(quoted), _indent(real)
    return indent.removesuffix(given) if indent.endswith(given) else ""


def _first(lines: Sequence[str]) -> str:
    """The first line that is not blank."""
    return next((line for line in lines if line.strip()), "")


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" \t"))]
