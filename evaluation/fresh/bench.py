"""One fix after the other is run, each in two trees: what its tests say, and the output tasks that follow."""

from __future__ import annotations

import ast
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any

from pydantic import Field
from unidiff.patch import PatchSet

from bot.core.errors import NotRecorded, OperatorError, SandboxError
from bot.core.frozen import Frozen
from bot.reproduction.execution import SandboxHarness, operator_program
from bot.reproduction.protocol import SetupFailed, TestCommand
from bot.reproduction.setup import Environment, Environments, Recipe
from bot.sandbox.protocol import Limits, Sandbox
from evaluation.bouncerbench.tasks import OutputTask
from evaluation.brt.cases import Candidate, Case
from evaluation.brt.patching import PatchRejected, apply, difference, python_tree, read_text
from evaluation.crbench.mapping import Instance
from evaluation.fresh.history import Fix, Stated
from evaluation.fresh.running import NotProven, Proof, Truth, prove
from evaluation.git.clones import checkout
from evaluation.git.repository import GitRepository
from evaluation.report.terminal import say


class Examined(Frozen):
    """One fix after it was run: a line of ``fixes.jsonl``."""

    instance_id: str
    commit: str
    instance: Instance
    fixed_at: datetime
    stated: Stated
    kept: bool
    reason: str = Field("", description="why it was not kept; its kind comes before the first colon")
    unfinished: bool = Field(False, description="looked at again by the next call")
    case: dict[str, Any] | None = None
    tests: tuple[str, ...] = ()
    outputs: tuple[dict[str, Any], ...] = ()
    seconds: float = 0.0


@dataclass(frozen=True)
class Bench:
    """Runs fixes of one clone, each in two trees below ``out``."""

    out: Path
    clone: GitRepository
    sandbox: Sandbox
    command: tuple[str, ...]
    environment: Callable[[Path], Any]
    env: dict[str, str]
    limits: Limits
    patches: dict[str, list[Candidate]]
    added: dict[str, bytes]
    """Files that every tree gets, by path: what a build would write and the tests need."""
    narrow: bool

    def examine(self, fix: Fix) -> Examined:
        """Run a fix. Raises OperatorError if the sandbox breaks."""
        began = time.monotonic()
        place = self.out / "trees" / fix.instance.instance_id
        shutil.rmtree(place, ignore_errors=True)  # what a kill left of it
        facts = {"commit": fix.commit, "instance": fix.instance, "fixed_at": fix.fixed_at, "stated": fix.stated}
        row = Examined(instance_id=fix.instance.instance_id, kept=False, **facts)
        try:
            changes = self._run(fix, place)
        except (NotProven, NotRecorded, PatchRejected) as refusal:
            changes = {"reason": str(refusal)}
        except SetupFailed as error:
            changes = {"reason": f"no environment: {error}", "unfinished": True}
        except SandboxError as broken:
            raise OperatorError(f"{row.instance_id}: its tests cannot be run: {broken}") from None
        if not changes.get("kept"):
            shutil.rmtree(place, ignore_errors=True)
        return row.model_copy(update={**changes, "seconds": round(time.monotonic() - began, 1)})

    def _run(self, fix: Fix, place: Path) -> dict[str, Any]:
        base, fixed = place / "base", place / "fixed"
        checkout(self.clone, fix.instance.base_commit, base)
        checkout(self.clone, fix.commit, fixed)
        for path, content in self.added.items():
            for tree in (base, fixed):
                (tree / path).parent.mkdir(parents=True, exist_ok=True)
                (tree / path).write_bytes(content)
        files: dict[str, str] = {}
        for path in fix.tests:
            try:
                text = read_text(fixed, path)  # None for a file that the fix took away
                if text is not None:
                    text.encode("utf-8")
                    files[path] = text
            except (PatchRejected, UnicodeEncodeError):
                raise NotProven(f"no test to name: {path} is no text") from None
        with self.environment(base) as environment:
            # The program of the command as a path, so that a case needs nothing else.
            home = environment.env.get("VIRTUAL_ENV")
            program = Path(home, "bin", self.command[0]) if home else None
            name = str(program) if program is not None and program.is_file() else self.command[0]
            case = Case(
                instance_id=fix.instance.instance_id,
                problem_statement=fix.instance.problem_statement,
                base=base,
                fixed=fixed,
                command=(name, *self.command[1:]),
                env={**environment.env, **self.env},
                test_patch="".join(difference(path, read_text(base, path), text) for path, text in files.items()),
            )
            command = TestCommand(argv=case.command)
            harness = SandboxHarness(
                self.sandbox, command, case.env, environment.readable, self.limits, by_operator=True
            )
            proof = prove(case, harness, files, fix.runnable_tests, narrow=self.narrow)
            outputs = tuple(self._outputs(fix, proof))
        plain = case.model_dump(mode="json")
        plain |= {"base": f"trees/{place.name}/base", "fixed": f"trees/{place.name}/fixed"}
        return {"kept": True, "case": plain, "tests": proof.tests, "outputs": outputs}

    def _outputs(self, fix: Fix, proof: Proof) -> Iterator[dict[str, Any]]:
        """The fix, its wrong variants, and the patches that were given."""

        def read(path: str) -> str | None:
            return read_text(proof.case.base, path)

        yield _output(
            fix, "fix", "the fix", fix.instance.patch, Truth(wrong=False, pass_fraction=1.0, failing=None)
        )
        for number, variant in enumerate(variants(fix.instance.patch, read), 1):
            truth = proof.of(variant.texts, only_wrong=True)
            if truth is not None:
                patch = "".join(difference(path, read(path), text) for path, text in variant.texts.items())
                yield _output(fix, f"variant{number}", variant.change, patch, truth)
        for candidate in self.patches.get(fix.instance.instance_id, ()):
            assert candidate.patch is not None, "checked when they were read"
            try:
                truth = proof.of(apply(candidate.patch, read))
            except PatchRejected as error:
                say(f"{candidate.task}: {error}")
                continue
            if truth is not None:
                yield _output(fix, candidate.candidate_id, "a given patch", candidate.patch, truth)


def _output(fix: Fix, name: str, description: str, patch: str, truth: Truth) -> dict[str, Any]:
    """A row of an output task. No id ends in the issue's number, which would tell the fix from the others."""
    task = OutputTask(
        instance_id=f"{fix.instance.instance_id}.{name}",
        repo=fix.instance.repo,
        problem_statement=fix.instance.problem_statement,
        patch=patch,
        base_commit=fix.instance.base_commit,
        bounce=truth.wrong,
        pass_fraction=truth.pass_fraction,
        failing=truth.failing,
    )
    plain = task.model_dump(mode="json", exclude={"bounce", "pass_fraction", "quality"})
    return {**plain, "output_bounce": truth.wrong, "pass_frac": truth.pass_fraction, "made": description}


def environments(
    out: Path, sandbox: Sandbox, folder: Path | None, commands: tuple[str, ...]
) -> Callable[[Path], Any]:
    """Return the factory of environments: an existing folder, or commands, run once for equal dependencies."""
    factory = Environments(out / "environments")

    @contextmanager
    def prepared(tree: Path) -> Iterator[Environment]:
        if folder is not None:
            home = folder.absolute()
            path = {"PATH": f"{home}/bin:{sandbox.path}", "VIRTUAL_ENV": str(home)}
            yield Environment(path, operator_program((f"{home}/bin/python",), tree).readable)
            return
        with factory.prepared(sandbox, tree, Recipe(repository=0, commands=commands)) as environment:
            yield environment

    return prepared


#: Variants of a kind that are tried for one fix.
MOST = 3


@dataclass(frozen=True)
class Variant:
    """The texts of the files that it changes, by path."""

    change: str
    texts: Mapping[str, str]


def variants(patch: str, read: Callable[[str], str | None]) -> Iterator[Variant]:
    """Versions of a fix that look like it and may be wrong: one hunk left out, or one condition turned.

    Whether a variant is wrong, only the tests can tell. ``read`` gives a file's text before the fix. A fix that
    does not apply has none.
    """
    try:
        whole = apply(patch, read)
    except PatchRejected:
        return
    for kind in (_without_a_hunk(patch, read), _with_a_condition_turned(patch, whole)):
        yield from islice((variant for variant in kind if variant.texts != whole), MOST)


def _without_a_hunk(patch: str, read: Callable[[str], str | None]) -> Iterator[Variant]:
    places = [(at, number) for at, file in enumerate(PatchSet(patch)) for number in range(len(file))]
    if len(places) < 2:
        return
    for at, number in places:
        rest = PatchSet(patch)
        file = rest[at]
        line = file[number].source_start
        del file[number]
        if not file:
            del rest[at]
        try:
            texts = apply(str(rest), read)
        except PatchRejected:
            continue
        yield Variant(f"without the hunk at {file.path}:{line}", texts)


def _with_a_condition_turned(patch: str, whole: Mapping[str, str]) -> Iterator[Variant]:
    for file in PatchSet(patch):
        text = whole.get(file.path)
        if text is None or not file.path.endswith(".py"):
            continue
        added = {line.target_line_no or 0 for hunk in file for line in hunk if line.is_added}
        for line, turned in _turned(text, added):
            yield Variant(f"with the condition at {file.path}:{line} turned", {**whole, file.path: turned})


def _turned(text: str, lines: set[int]) -> Iterator[tuple[int, str]]:
    """The text with one condition on one of ``lines`` turned into its opposite, and the line."""
    tree = python_tree(text)
    if tree is None or "\r" in text or "\f" in text:  # lines are counted otherwise behind these
        return
    data = text.encode("utf-8")
    starts = [0]
    for line in data.split(b"\n"):
        starts.append(starts[-1] + len(line) + 1)
    tests = [node.test for node in ast.walk(tree) if isinstance(node, ast.If | ast.While | ast.IfExp)]
    for test in sorted(tests, key=lambda node: (node.lineno, node.col_offset)):
        if test.lineno not in lines or test.end_lineno is None or test.end_col_offset is None:
            continue
        first = starts[test.lineno - 1] + test.col_offset
        last = starts[test.end_lineno - 1] + test.end_col_offset
        negated = data[:first] + b"(not (" + data[first:last] + b"))" + data[last:]
        yield test.lineno, negated.decode("utf-8")
