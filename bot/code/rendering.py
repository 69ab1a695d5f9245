"""The lines of a diff as a model sees them. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from bot.code.diff import DiffLine, FileDiff
from bot.core.text import show

#: Characters that are shown of one line: longer ones are data or minified.
WIDEST = 400


def render(file: FileDiff, lines: Iterable[str]) -> str:
    """Render a file's header and its lines for the model. A header names all that changed but lines."""
    facts: list[str] = [] if file.change == "modified" else [file.change]
    if file.change in ("renamed", "copied"):
        facts = [f"{file.change} from {show(file.old_path or '')}"]
    if file.mode:
        facts.append(f"mode {file.mode}")
    return "\n".join((f"=== {show(file.path)}" + (f" ({', '.join(facts)})" if facts else ""), *lines))


def render_line(line: DiffLine) -> str:
    """Render a line with its number in the new file (none for a removed line) and its mark."""
    text = show(line.text)
    text = text if len(text) <= WIDEST else f"{text[:WIDEST]}…"
    return f"{'' if line.new is None else line.new:>5} {line.mark} {text}"
