"""A bouncer that may look at the code before it judges (BouncerBench, IV.E: the agentic bouncer).

The model takes steps of one JSON object each, so that every provider can do it: list, read or search the files
at a commit, then write down what matters. The notes go into the question that is asked anyway, in its own schema.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from bot.core.actions import Usage
from bot.core.frozen import Frozen
from bot.forge.protocol import Forge
from bot.models.protocol import Model, Prompt
from bot.models.tools import Files
from bot.prompts import Prompts

#: Looks at the code at most; one more step is for the notes.
MAX_STEPS = 6
#: Characters of notes that are kept.
MAX_NOTES = 6_000


class Step(BaseModel):
    """What the model wants next. The order matters: it says why before it chooses."""

    model_config = ConfigDict(frozen=True, extra="ignore")

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


def investigate(
    model: Model, prompts: Prompts, prompt: Prompt, forge: Forge, ref: str, max_steps: int = MAX_STEPS
) -> Notes:
    """Let the model look at the files at commit ``ref`` before ``prompt`` is put to it.

    The files are fetched at the first look. Raises what the model and the forge raise.
    """
    looks: tuple[Look, ...] = ()
    usage = Usage()
    with tempfile.TemporaryDirectory(prefix="bouncer-look-") as name:
        files: Files | None = None
        for left in range(max_steps, -1, -1):
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
