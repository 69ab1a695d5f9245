"""Apply: the same bugs in a code base whose patched methods have other names (section 3.3).

Four configurations come from two kinds of names and from the texts of the layer Understand: hash names, meaningful
names, meaningful names with the report rephrased, and with it translated.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from bot.core.actions import Usage
from bot.core.frozen import Frozen
from bot.models.protocol import Model, Prompt
from bot.prompts import Prompts
from bot.reproduce.language import Definition
from evaluation.bloom.masking import (
    CannotMask,
    check,
    hash_name,
    mask_java,
    mask_python,
    mask_report,
    meaningful_name,
    patched_methods,
)
from evaluation.brt.cases import Case

Mask = Literal["hash", "meaningful"]

#: Tries until a model's names are given up.
TRIES = 3


class Named(BaseModel):
    """A model's new name for a method."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    reason: str = Field("", description="what the method does")
    name: str = Field(description="one identifier")


class Masked(Frozen):
    """What was renamed in a case, and what could not be."""

    case: Case
    names: dict[str, str] = Field(description="old name -> new name; empty: the case is as it was")
    kept: dict[str, str] = Field(default_factory=dict, description="patched method -> why it keeps its name")


@dataclass
class Namer:
    """Asks a model for meaningful names; ``usage`` adds up what it cost."""

    model: Model
    prompts: Prompts
    usage: Usage = field(default_factory=Usage)

    def name(self, method: str, definition: Definition | None, taken: frozenset[str], subject: str) -> str:
        """A new name. Raises CannotMask where no usable one came in ``TRIES`` tries, ModelError as it comes."""
        problem = "its implementation was not found"
        for attempt in range(TRIES if definition else 0):
            assert definition is not None
            system, user = self.prompts.render("bloom.rename", method=method, source=definition.source)
            prompt = Prompt(purpose="bloom-rename", system=system, user=user, subject=subject, sample=attempt)
            reply = self.model.complete(prompt, Named)
            self.usage += reply.usage
            try:
                new = meaningful_name(reply.value.name.strip())
            except CannotMask as error:
                problem = str(error)
                continue
            if new not in taken and method.lower() not in new.lower():
                return new
            problem = f"{reply.value.name} is taken, or holds the old name"
        raise CannotMask(problem)


def mask_case(case: Case, mask: Mask, folder: Path, namer: Namer | None = None) -> Masked:
    """A copy of a case below ``folder`` with its patched methods renamed in both versions and in the report.

    A method that cannot be renamed keeps its name, with the reason. Raises ValueError where ``meaningful`` is
    asked for without ``namer``, ModelError as the model does.
    """
    before, after = _sources(case.base), _sources(case.fixed)
    names: dict[str, str] = {}
    kept: dict[str, str] = {}
    for method in patched_methods(before, after):
        try:
            check(method, before | after)
            names[method] = _new_name(method, mask, namer, before, frozenset(names.values()), case.instance_id)
        except CannotMask as error:
            kept[method] = str(error)
    base, fixed = (_masked_copy(tree, folder / tree_name, names) for tree_name, tree in _trees(case))
    changed = case.model_copy(
        update={
            "base": base,
            "fixed": fixed,
            "problem_statement": mask_report(case.problem_statement, names),
            "env": {key: _moved(value, case, base, fixed) for key, value in case.env.items()},
        }
    )
    return Masked(case=changed, names=names, kept=kept)


def _trees(case: Case) -> tuple[tuple[str, Path], ...]:
    return ("base", case.base), ("fixed", case.fixed)


def _new_name(
    method: str, mask: Mask, namer: Namer | None, sources: Mapping[str, str], taken: frozenset[str], subject: str
) -> str:
    if mask == "hash":
        return hash_name(method)
    if namer is None:
        raise ValueError("meaningful names come from a model")
    from bot.reproduce.python.definitions import resolve

    definitions = resolve([method], sources, 1)
    return namer.name(method, definitions[0] if definitions else None, taken, subject)


def _sources(folder: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    for path in sorted(folder.rglob("*.py")):
        if path.is_file() and not path.is_symlink():
            try:
                found[path.relative_to(folder).as_posix()] = path.read_bytes().decode("utf-8")
            except UnicodeDecodeError:
                continue
    return found


def _masked_copy(tree: Path, target: Path, names: Mapping[str, str]) -> Path:
    shutil.copytree(tree, target, symlinks=True, ignore=shutil.ignore_patterns(".git", "__pycache__"))
    for suffix, mask in ((".py", mask_python), (".java", mask_java)):
        for path in sorted(target.rglob(f"*{suffix}")):
            if not path.is_file() or path.is_symlink():
                continue
            try:
                text = path.read_bytes().decode("utf-8")
            except UnicodeDecodeError:
                continue
            changed = mask(text, names)
            if changed != text:
                path.write_bytes(changed.encode("utf-8"))
    return target


def _moved(value: str, case: Case, base: Path, fixed: Path) -> str:
    """An environment value that names the old folders, with the new ones."""
    return value.replace(str(case.base), str(base)).replace(str(case.fixed), str(fixed))
