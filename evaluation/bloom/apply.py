"""Apply: the same bugs in a code base whose patched methods have other names (section 3.3).

Four configurations come from two kinds of names and from the texts of the layer Understand: hash names, meaningful
names, meaningful names with the report rephrased, and with it translated. A masked pair is only used while the
developer's test still tells its versions apart: it has to fail on the buggy and to pass on the fixed one.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import Field

from bot.core.frozen import Frozen, Lenient
from bot.models.prompts import Prompts
from bot.models.protocol import Model, Prompt
from bot.reproduction.java.language import Java
from bot.reproduction.language import Excerpt
from bot.reproduction.python.language import Python
from evaluation.bloom import masking_java
from evaluation.bloom.code_base import CannotMask, CodeBase, Kind, check
from evaluation.bloom.masking import hash_name, mask_python, mask_report, meaningful_name, patched_methods
from evaluation.brt.cases import Case
from evaluation.brt.judge import Judge
from evaluation.brt.patching import apply, difference, read_text

Mask = Literal["hash", "meaningful"]

#: Tries until a model's names are given up.
TRIES = 3


class Named(Lenient):
    """A model's new name for a method."""

    reason: str = Field("", description="what the method does")
    name: str = Field(description="one identifier")


class Masked(Frozen):
    """The methods of a case that were renamed, and those that could not be."""

    case: Case
    names: dict[str, str] = Field(description="old name -> new name; never empty")
    unchanged: dict[str, str] = Field(default_factory=dict, description="patched method -> why it keeps its name")
    verified: bool = Field(description="the developer's test was run on the pair; False if the case has none")


@dataclass(frozen=True)
class Namer:
    """Asks a model for meaningful names."""

    model: Model
    prompts: Prompts

    def name(self, method: str, definition: Excerpt | None, used: frozenset[str], subject: str) -> str:
        """A new name. Raises CannotMask if no usable one came in ``TRIES`` tries, ModelError as it comes."""
        if definition is None:
            raise CannotMask("its implementation was not found")
        problem = ""
        for attempt in range(TRIES):
            system, user = self.prompts.render("bloom.rename", method=method, source=definition.source)
            prompt = Prompt(purpose="bloom-rename", system=system, user=user, subject=subject, sample=attempt)
            reply = self.model.complete(prompt, Named)
            try:
                new = meaningful_name(reply.value.name.strip())
            except CannotMask as error:
                problem = str(error)
                continue
            if new not in used and method.lower() not in new.lower():
                return new
            problem = f"{reply.value.name} is taken, or holds the old name"
        raise CannotMask(problem)


@dataclass(frozen=True)
class Pair:
    """The sources of a case's two versions, and its developer's test, by path."""

    base: Mapping[str, str]
    fixed: Mapping[str, str]
    tests: Mapping[str, str]

    @property
    def versions(self) -> tuple[Mapping[str, str], ...]:
        """The buggy version, the fixed one, and the buggy one with the developer's test."""
        return self.base, self.fixed, {**self.base, **self.tests}


def mask_case(
    case: Case, folder: Path, namer: Namer | None = None, verifier: Callable[[], Judge] | None = None
) -> Masked:
    """A copy of a case below ``folder`` with its patched methods renamed in both versions and in the report.

    Names are hashes without ``namer``. A method that cannot be renamed keeps its name, with the reason. Raises
    CannotMask if none could be, or where the judge that ``verifier`` gives finds that the developer's test no
    longer fails before and passes after; ModelError as the model does.
    """
    pair = _pair(case)
    masking: _Python | _JavaMask = _JavaMask(pair)
    if not masking.patched:
        masking = _Python(pair)
    names: dict[str, str] = {}
    unchanged: dict[str, str] = {}
    for method in masking.patched:
        try:
            masking.check(method)
            if namer is None:
                names[method] = hash_name(method)
            else:
                used = frozenset(names.values())
                names[method] = namer.name(method, masking.definition(method), used, case.instance_id)
        except CannotMask as error:
            unchanged[method] = str(error)
    if not names:
        reasons = "; ".join(f"{name}: {why}" for name, why in unchanged.items())
        raise CannotMask(f"nothing was renamed ({reasons or 'no patched method was found'})")
    base_texts, fixed_texts, test_texts = masking.masked(names)
    base = _copy(case.base, folder / "base", base_texts)
    fixed = _copy(case.fixed, folder / "fixed", fixed_texts)
    tests = {path: test_texts.get(path, text) for path, text in pair.tests.items()}
    update = {
        "base": base,
        "fixed": fixed,
        "problem_statement": mask_report(case.problem_statement, names),
        "test_patch": case.test_patch
        and "".join(difference(path, read_text(base, path), text) for path, text in tests.items()),
        "env": {
            key: value.replace(str(case.base), str(base)).replace(str(case.fixed), str(fixed))
            for key, value in case.env.items()
        },
    }
    masked = case.model_copy(update=update)
    if tests and verifier is not None:
        judge = verifier()
        judgement = judge.judge_files(masked, "developer", tests)
        if not judgement.brt:
            before = judge.judge_files(case, "developer", pair.tests)
            when = "once its methods are renamed" if before.brt else "even before anything is renamed"
            raise CannotMask(f"the developer's test does not reproduce the bug {when}: {judgement.reason}")
    return Masked(case=masked, names=names, unchanged=unchanged, verified=bool(tests) and verifier is not None)


class _Python:
    """Renaming in the Python files of a pair."""

    def __init__(self, pair: Pair) -> None:
        self.codes = [CodeBase(_of(".py", version)) for version in pair.versions]
        self.patched: Mapping[str, frozenset[Kind]] = patched_methods(
            _of(".py", pair.base), _of(".py", pair.fixed)
        )
        self.kinds: dict[str, frozenset[Kind]] = {}

    def check(self, method: str) -> None:
        """Everything of that name in the repository takes part, or else at least what was patched."""
        try:
            self._check(method, frozenset({"function", "method"}))
        except CannotMask:
            self._check(method, self.patched[method])

    def _check(self, method: str, kinds: frozenset[Kind]) -> None:
        for code in self.codes:
            check(method, kinds, code)
        self.kinds[method] = kinds

    def definition(self, method: str) -> Excerpt | None:
        return next(iter(Python().definitions([method], self.codes[0].sources, 1)), None)

    def masked(self, names: Mapping[str, str]) -> list[dict[str, str]]:
        kinds = {name: (new, self.kinds[name]) for name, new in names.items()}
        return [{path: mask_python(path, kinds, code) for path in code.sources} for code in self.codes]


class _JavaMask:
    """Renaming in the Java files of a pair."""

    def __init__(self, pair: Pair) -> None:
        self.codes = [masking_java.JavaCode(_of(".java", version)) for version in pair.versions]
        self.patched = patched_methods(_of(".java", pair.base), _of(".java", pair.fixed))

    def check(self, method: str) -> None:
        for code in self.codes:
            masking_java.check_java(method, code)

    def definition(self, method: str) -> Excerpt | None:
        return next(iter(Java().definitions([method], self.codes[0].sources, 1)), None)

    def masked(self, names: Mapping[str, str]) -> list[dict[str, str]]:
        return [{path: masking_java.mask_java(path, names, code) for path in code.sources} for code in self.codes]


def _of(suffix: str, sources: Mapping[str, str]) -> dict[str, str]:
    return {path: text for path, text in sources.items() if path.endswith(suffix)}


def _pair(case: Case) -> Pair:
    base, fixed = _sources(case.base), _sources(case.fixed)
    if case.test_patch is not None:
        return Pair(base, fixed, apply(case.test_patch, lambda path: read_text(case.base, path)))
    # Where the checkout without the bug is the fixing commit's, the developer's test came with it.
    tests = {
        path: text
        for path, text in fixed.items()
        if base.get(path) != text and (Java() if path.endswith(".java") else Python()).is_test_file(path)
    }
    return Pair(base, fixed, tests)


def _sources(folder: Path) -> dict[str, str]:
    sources: dict[str, str] = {}
    for path in sorted(folder.rglob("*")):
        if path.suffix in (".py", ".java") and path.is_file() and not path.is_symlink():
            try:
                sources[path.relative_to(folder).as_posix()] = path.read_bytes().decode("utf-8")
            except UnicodeDecodeError:
                continue
    return sources


def _copy(tree: Path, target: Path, texts: Mapping[str, str]) -> Path:
    """A copy of a checkout with the changed texts."""
    if target.exists():
        shutil.rmtree(target)
    shutil.copytree(tree, target, symlinks=True, ignore=shutil.ignore_patterns(".git", "__pycache__"))
    for path, text in texts.items():
        if (target / path).read_bytes() != text.encode("utf-8"):
            (target / path).write_bytes(text.encode("utf-8"))
    return target
