"""A bouncer that may look at the code before it judges (BouncerBench, IV.E: the agentic bouncer).

The model takes steps of one JSON object each, so that every provider can do it: list, read or search the files
at a commit, then write down what matters. The notes go into the question that is asked anyway, in its own schema.
It may do nothing else: every answer is text of bounded size, a wrong request is told what is wrong with it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from pydantic import Field

from bot.core.actions import Usage
from bot.core.frozen import Frozen, Lenient
from bot.forge.protocol import Forge
from bot.models.protocol import Model, Prompt
from bot.prompts import Prompts

#: Looks at the code at most; one more step is for the notes.
MAX_STEPS = 6
#: Characters of notes that are kept.
MAX_NOTES = 6_000


class Step(Lenient):
    """What the model wants next. The order matters: it says why before it chooses."""

    thought: str = Field(description="what about the code is still unknown and would change the answer")
    action: Literal["list", "read", "search", "done"] = Field(description="done = nothing more to look at")
    target: str = Field("", description="list: a folder; read: a file; search: a literal text; done: empty")
    line: int = Field(1, description="read: the first line to show")
    notes: str = Field("", description="done: what the code says that matters for the question, with paths")


class Look(Frozen):
    """One look at the code, and what it showed."""

    action: Literal["list", "read", "search"]
    target: str
    line: int = 1
    shown: str = Field(description="what the model was shown")


class Notes(Frozen):
    """What came of an investigation; ``looks`` is empty where the model saw no need."""

    text: str = ""
    looks: tuple[Look, ...] = ()
    usage: Usage = Usage()


def investigate(model: Model, prompts: Prompts, prompt: Prompt, forge: Forge, ref: str) -> Notes:
    """Let the model look at the files at commit ``ref`` before ``prompt`` is put to it.

    The files are fetched at the first look. Raises what the model and the forge raise.
    """
    looks: tuple[Look, ...] = ()
    usage = Usage()
    with tempfile.TemporaryDirectory(prefix="bouncer-look-") as name:
        files: Files | None = None
        for left in range(MAX_STEPS, -1, -1):
            reply = model.complete(_question(prompts, prompt, looks, left), Step)
            step, usage = reply.value, usage + reply.usage
            if step.action == "done" or not left:
                return Notes(text=step.notes[:MAX_NOTES], looks=looks, usage=usage)
            if files is None:
                forge.checkout(ref, Path(name))
                files = Files(Path(name))
            shown = _look(files, step)
            looks += (Look(action=step.action, target=step.target[:500], line=step.line, shown=shown),)
    raise AssertionError("the last step returns")


def evidence(notes: Notes) -> dict[str, object]:
    """What a decision keeps: how often the code was looked at, where, and what was made of it."""
    looks = [{"action": look.action, "target": look.target, "line": look.line} for look in notes.looks]
    return {"tool_calls": len(looks), "looks": looks, "notes": notes.text}


def informed(prompts: Prompts, prompt: Prompt, notes: Notes) -> Prompt:
    """The same question with the notes beside it; the question itself where nothing was looked at."""
    if not notes.looks:
        return prompt
    system, user = prompts.render(
        "investigated", system=prompt.system, question=prompt.user, notes=notes.text or "(none were written down)"
    )
    return prompt.model_copy(update={"system": system, "user": user})


def _question(prompts: Prompts, prompt: Prompt, looks: tuple[Look, ...], left: int) -> Prompt:
    system, user = prompts.render("investigate", question=prompt.user, looks=looks, left=left)
    return prompt.model_copy(update={"purpose": f"{prompt.purpose}.look", "system": system, "user": user})


def _look(files: Files, step: Step) -> str:
    if step.action == "list":
        return files.list(step.target)
    if step.action == "read":
        return files.read(step.target, step.line)
    return files.search(step.target)


#: Lines of a file that one reading shows, matches that one search shows, entries that one listing shows.
LINES, MATCHES, ENTRIES = 200, 40, 200
#: Characters of one answer, and of one line in it.
ANSWER, LINE = 8_000, 300
#: Bytes beyond which a file is not opened.
LARGEST = 1_000_000


class Files:
    """The files below ``folder``; links are not followed and nothing outside is reached."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder.resolve()

    def list(self, path: str) -> str:
        """Folders and files directly below ``path``; the top where it is empty."""
        folder = self._inside(path)
        if folder is None or not folder.is_dir():
            return f"there is no folder {path!r}"
        entries = sorted(folder.iterdir(), key=lambda entry: entry.name)
        names = [f"{entry.name}/" if entry.is_dir() else entry.name for entry in entries if not entry.is_symlink()]
        return _bounded(names, ENTRIES) or "the folder is empty"

    def read(self, path: str, start: int = 1) -> str:
        """Numbered lines of a file, from line ``start`` on (the first is 1)."""
        file = self._inside(path)
        if file is None or not file.is_file():
            return f"there is no file {path!r}"
        text = _text(file)
        if text is None:
            return f"{path} is not text, or too large"
        lines = text.splitlines()
        shown = [f"{number}: {line}" for number, line in enumerate(lines, start=1) if number >= start]
        return _bounded(shown, LINES) or f"{path} ends at line {len(lines)}"

    def search(self, text: str) -> str:
        """Lines that hold ``text``, whatever its case, as ``path:line: content``."""
        wanted = text.strip().lower()
        if len(wanted) < 2:
            return "search for two characters at least"
        found: list[str] = []
        for file in self._walk(self._folder):
            content = _text(file)
            if content is None or wanted not in content.lower():
                continue
            path = file.relative_to(self._folder).as_posix()
            lines = enumerate(content.splitlines(), start=1)
            found += [f"{path}:{number}: {line.strip()}" for number, line in lines if wanted in line.lower()]
            if len(found) > MATCHES:
                break
        return _bounded(found, MATCHES) or f"no file holds {text!r}"

    def _inside(self, path: str) -> Path | None:
        """The place that ``path`` names, unless it is a link, leads through one, or lies outside."""
        if "\0" in path or len(path) > 1000 or any(len(part.encode()) > 255 for part in path.split("/")):
            return None
        place = self._folder / path.strip().lstrip("/")
        return place if place.resolve() == place and place.is_relative_to(self._folder) else None

    def _walk(self, folder: Path) -> Iterator[Path]:
        for entry in sorted(folder.iterdir(), key=lambda each: each.name):
            if entry.is_symlink() or entry.name == ".git":
                continue
            if entry.is_dir():
                yield from self._walk(entry)
            elif entry.is_file():
                yield entry


def _text(file: Path) -> str | None:
    if file.stat().st_size > LARGEST:
        return None
    content = file.read_bytes()
    return None if b"\0" in content else content.decode("utf-8", "replace")


def _bounded(lines: list[str], limit: int) -> str:
    """The first lines, with a word on what was left out."""
    kept: list[str] = []
    room = ANSWER
    for line in lines[:limit]:
        short = line if len(line) <= LINE else line[:LINE] + "…"
        room -= len(short) + 1
        if room < 0:
            break
        kept.append(short)
    left = len(lines) - len(kept)
    return "\n".join([*kept, f"({left} more)"] if left else kept)
