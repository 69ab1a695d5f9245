"""Let a model look at the code before it answers (BouncerBench, IV.E: the agentic bouncer).

The model takes steps of one JSON object each, which every provider supports: list, read or search the files at a
commit, then write notes. The notes are added to the question, which keeps its schema. Each step is answered with
text of limited size; a wrong step with an explanation.
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Literal

from pydantic import Field

from bot.core.actions import Usage
from bot.core.errors import ForgeError
from bot.core.frozen import Frozen, Lenient
from bot.features.shared.labels import PlaceLookedAt
from bot.github.protocol import FolderTree, Forge, SourceTree
from bot.models.protocol import Model, Prompt, Templates, usage_added

#: Looks at the code at most; one more step is for the notes.
MAX_STEPS = 6
#: Characters of notes.
MAX_NOTES = 6_000


class Step(Lenient):
    """The model's next step. The reason comes before the choice."""

    thought: str = Field(description="what about the code is still unknown and would change the answer")
    action: Literal["list", "read", "search", "done"] = Field(description="done = nothing more to look at")
    target: str = Field("", description="list: a folder; read: a file; search: a literal text; done: empty")
    line: int = Field(1, description="read: the first line to show")
    notes: str = Field("", description="done: what the code says that matters for the question, with paths")


class Look(PlaceLookedAt):
    """A look at the code, with the text that the model was shown."""

    action: Literal["list", "read", "search"]
    text: str = Field(description="the text that the model was shown")


class Notes(Frozen):
    """The result of an investigation; ``looks`` is empty if the model needed none."""

    text: str = ""
    looks: tuple[Look, ...] = ()
    usage: Usage = Usage()


class CommitCode:
    """The files at a commit, fetched into an empty folder when they are first read."""

    def __init__(self, forge: Forge, ref: str, folder: str) -> None:
        self._forge, self._ref, self._folder = forge, ref, Path(folder)

    @cached_property
    def tree(self) -> SourceTree:
        """The files. Raises the errors of the forge."""
        self._forge.checkout(self._ref, self._folder)
        return FolderTree(self._folder)


def investigate(model: Model, prompts: Templates, prompt: Prompt, forge: Forge, ref: str) -> Notes:
    """Let the model look at the files at commit ``ref`` before it is asked ``prompt``.

    The files are fetched at the first look. Raises the errors of the model.
    """
    with TemporaryDirectory(prefix="bouncer-look-") as folder:
        return look_around(model, prompts, prompt, CommitCode(forge, ref, folder))


def look_around(model: Model, prompts: Templates, prompt: Prompt, code: CommitCode) -> Notes:
    """Let the model look at the code before it is asked ``prompt``. Raises the errors of the model.

    If the code cannot be read, there are no looks, and the question is asked without them.
    """
    looks: tuple[Look, ...] = ()
    usage = Usage()
    while True:
        left = MAX_STEPS - len(looks)
        system, user = prompts.render("investigate", question=prompt.user, looks=looks, left=left)
        purpose = f"{prompt.purpose}.look"
        question = prompt.model_copy(update={"purpose": purpose, "system": system, "user": user})
        with usage_added(usage):
            reply = model.complete(question, Step)
        step, usage = reply.value, usage + reply.usage
        if step.action == "done" or not left:
            return Notes(text=step.notes[:MAX_NOTES], looks=looks, usage=usage)
        try:
            files = Files(code.tree)
        except ForgeError:
            return Notes(usage=usage)
        if step.action == "list":
            text = files.list(step.target)
        elif step.action == "read":
            text = files.read(step.target, step.line)
        else:
            text = files.search(step.target)
        looks += (Look(action=step.action, target=step.target[:500], line=step.line, text=text),)


def informed(prompts: Templates, prompt: Prompt, notes: Notes) -> Prompt:
    """Return the question with the notes; unchanged if nothing was looked at."""
    if not notes.looks:
        return prompt
    system, user = prompts.render(
        "investigated", system=prompt.system, question=prompt.user, notes=notes.text or "(none were written down)"
    )
    return prompt.model_copy(update={"system": system, "user": user})


#: Lines of a file that one reading shows, matches that one search shows, entries that one listing shows.
LINES, MATCHES, ENTRIES = 200, 40, 200
#: Characters of one answer, and of one line in it.
ANSWER, LINE = 8_000, 300


class Files:
    """Answers about the files of a tree, as text."""

    def __init__(self, tree: SourceTree) -> None:
        self._tree = tree

    def list(self, path: str) -> str:
        """Return the folders and files directly below ``path``; an empty path is the top."""
        folder = _inside(path)
        before = "" if folder == "." else f"{folder}/"
        below = (
            file.removeprefix(before).partition("/") for file in self._tree.paths() if file.startswith(before)
        )
        names = sorted({(name, slash) for name, slash, _ in below})
        if before and not names:
            return f"there is no folder {path!r}"
        return _limited([name + slash for name, slash in names], ENTRIES) or "the folder is empty"

    def read(self, path: str, start: int = 1) -> str:
        """Return the numbered lines of a file from line ``start`` (the first is 1)."""
        file = _inside(path)
        if file not in self._tree.paths():
            return f"there is no file {path!r}"
        text = self._tree.read(file)
        if text is None:
            return f"{path} is not text, or too large"
        lines = text.splitlines()
        numbered = [f"{number}: {line}" for number, line in enumerate(lines, start=1) if number >= start]
        return _limited(numbered, LINES) or f"{path} ends at line {len(lines)}"

    def search(self, text: str) -> str:
        """Return the lines that contain ``text`` in any case, as ``path:line: content``."""
        pattern = text.strip().lower()
        if len(pattern) < 2:
            return "search for two characters at least"
        matches: list[str] = []
        for path in self._tree.paths():
            content = self._tree.read(path)
            if content is None or pattern not in content.lower():
                continue
            lines = enumerate(content.splitlines(), start=1)
            matches += [f"{path}:{number}: {line.strip()}" for number, line in lines if pattern in line.lower()]
            if len(matches) > MATCHES:
                break
        return _limited(matches, MATCHES) or f"no file holds {text!r}"


def _inside(path: str) -> str:
    """Return a path in the form of the tree's paths."""
    return PurePosixPath(path.strip().lstrip("/")).as_posix()


def _limited(lines: list[str], limit: int) -> str:
    """Return the first lines, and the number of lines that were left out."""
    first_lines: list[str] = []
    room = ANSWER
    for line in lines[:limit]:
        short = line if len(line) <= LINE else line[:LINE] + "…"
        room -= len(short) + 1
        if room < 0:
            break
        first_lines.append(short)
    if hidden := len(lines) - len(first_lines):
        first_lines.append(f"({hidden} more)")
    return "\n".join(first_lines)
