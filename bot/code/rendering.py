"""The lines of a diff as a model sees them. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from bot.code.diff import DiffLine, FileDiff
from bot.code.file_classes import language
from bot.core.text import show

#: Characters that are shown of one line: longer ones are data or minified.
WIDEST = 400


def render(file: FileDiff, lines: Iterable[str]) -> str:
    """Render a file's header and its lines for the model."""
    name = f"renamed from {show(file.old_path or '')}, " if file.change in ("renamed", "copied") else ""
    facts = ", ".join(fact for fact in (f"{name}{file.change}", language(file.path)) if fact)
    mode = f", mode {file.mode}" if file.mode else ""
    return "\n".join((f"=== {show(file.path)} ({facts}{mode})", *lines))


def render_line(line: DiffLine) -> str:
    """Render a line with its number in the new file (none for a removed line) and its mark."""
    text = show(line.text)
    text = text if len(text) <= WIDEST else f"{text[:WIDEST]}…"
    return f"{'' if line.new is None else line.new:>5} {line.mark} {text}"
