"""The sentences about an issue that may repeat an earlier one. Pure."""

from __future__ import annotations

from bot.core.markdown import clean_line, code_span

MAX_BOTH = 200

_SENTENCE = "This may be the same as #{root}: both {both}."
#: What follows the sentence in a comment of its own.
ALONE = (
    "\n\nNothing was closed or changed: that is for you and the maintainers to decide. "
    "*I'm a bot using an AI model and may be wrong.*"
)
_EVIDENCE = " The drafted tests of both issues fail in the same way, "


def suggestion(root: int, both: str, host: str) -> str:
    """Return the sentence that names an earlier issue."""
    end = clean_line(both, host=host, limit=MAX_BOTH).removeprefix("both ").rstrip(".")
    return _SENTENCE.format(root=root, both=end)


def with_failure(sentence: str, failure: str, shas: tuple[str, str]) -> str:
    """Return the sentence with the evidence of two tests, in place of earlier evidence.

    ``shas``: the commits on which both tests were run.
    """
    first, second = (sha[:7] for sha in shas)
    place = f"on {first}" if first == second else f"on {first} and on {second}"
    return f"{sentence.partition(_EVIDENCE)[0]}{_EVIDENCE}{place}: {code_span(failure, limit=MAX_BOTH)}."
