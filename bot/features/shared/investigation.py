"""A bouncer that may look at the code before it judges (BouncerBench, IV.E: the agentic bouncer).

The model takes steps of one JSON object each, so that every provider can do it: list, read or search the files
at a commit, then write down what matters. The notes go into the question that is asked anyway, in its own schema.
It may do nothing else: every answer is text of bounded size, a wrong request is told what is wrong with it.
"""

from __future__ import annotations

import tempfile
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from pydantic import Field

from bot.core.actions import Usage
from bot.core.frozen import Frozen, Lenient
from bot.github.offline import FolderTree
from bot.github.protocol import Forge, SourceTree
from bot.models.prompts import Prompts
from bot.models.protocol import Model, Prompt, Reply, Voice

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


class PlaceLookedAt(Lenient):
    """One look at the repository's code before a verdict."""

    action: str
    target: str
    line: int = 1


class ModelReply(Lenient):
    """What a model answered, and what it looked at before."""

    issue: str = Field("", description="``#12``: the issue that a question about a patch was about")
    prompt_hash: str = ""
    reply: str = Field("", description="as it came, cut to 20,000 characters")
    voices: tuple[Voice, ...] = Field((), description="answers of the single models behind a mean or cascade")
    disagreement: int | None = Field(None, description="largest difference between their chances, percent points")
    tool_calls: int = Field(0, description="looks at the code")
    looks: tuple[PlaceLookedAt, ...] = ()
    notes: str = ""


def model_reply(reply: Reply[Any], prompt_hash: str, notes: Notes, issue: str = "") -> ModelReply:
    """Return what is recorded of a reply and of what the model looked at before."""
    looks = tuple(PlaceLookedAt(action=look.action, target=look.target, line=look.line) for look in notes.looks)
    single = {"voices": reply.voices, "disagreement": reply.disagreement} if reply.voices else {}
    about = {"issue": issue} if issue else {}
    return ModelReply(
        prompt_hash=prompt_hash,
        reply=reply.text[:20_000],
        tool_calls=len(looks),
        looks=looks,
        notes=notes.text,
        **single,
        **about,
    )


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
                files = Files(FolderTree(Path(name)))
            shown = _look(files, step)
            looks += (Look(action=step.action, target=step.target[:500], line=step.line, shown=shown),)
    raise AssertionError("the last step returns")


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


class Files:
    """What is said of the files of a tree."""

    def __init__(self, tree: SourceTree) -> None:
        self._tree = tree

    def list(self, path: str) -> str:
        """Folders and files directly below ``path``; the top where it is empty."""
        folder = _inside(path)
        before = "" if folder == "." else f"{folder}/"
        below = (
            each.removeprefix(before).partition("/") for each in self._tree.paths() if each.startswith(before)
        )
        names = sorted({(name, slash) for name, slash, _ in below})
        if before and not names:
            return f"there is no folder {path!r}"
        return _bounded([name + slash for name, slash in names], ENTRIES) or "the folder is empty"

    def read(self, path: str, start: int = 1) -> str:
        """Numbered lines of a file, from line ``start`` on (the first is 1)."""
        file = _inside(path)
        if file not in self._tree.paths():
            return f"there is no file {path!r}"
        text = self._tree.read(file)
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
        for path in self._tree.paths():
            content = self._tree.read(path)
            if content is None or wanted not in content.lower():
                continue
            lines = enumerate(content.splitlines(), start=1)
            found += [f"{path}:{number}: {line.strip()}" for number, line in lines if wanted in line.lower()]
            if len(found) > MATCHES:
                break
        return _bounded(found, MATCHES) or f"no file holds {text!r}"


def _inside(path: str) -> str:
    """A path as a tree has it."""
    return PurePosixPath(path.strip().lstrip("/")).as_posix()


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
