"""Building the benchmark from annotations, instances and patches, with the count of every step (II.A)."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator

from bot.core.errors import OperatorError
from bot.core.frozen import Frozen
from evaluation.bouncerbench.tasks import VAGUE_FROM, Failing, Maybe, input_task, output_task, repository_of
from evaluation.dataset import read_rows, shaped, task_id, unique
from evaluation.git.clones import Clones
from evaluation.git.repository import GitError
from evaluation.run.lines import write_file

#: Annotations of the hidden tests from which on they cannot serve as the ground truth (II.A.2).
INVALID_TESTS_FROM = 2


class Annotation(Frozen):
    """The annotation of one instance: the most severe of its annotators (Table I)."""

    instance_id: str
    quality: int
    test_validity: int
    other_issues: bool

    @property
    def vague(self) -> bool:
        return self.quality >= VAGUE_FROM

    @property
    def evaluable(self) -> bool:
        """True if the hidden tests can say if a patch is right."""
        return self.test_validity < INVALID_TESTS_FROM and not self.other_issues


class Patch(Frozen):
    """A patch that an agent submitted, with its outcome."""

    instance_id: str
    submission: str
    text: str
    resolved: bool
    pass_fraction: float | None
    failing: Failing | None = None
    applied: bool | None


class _PatchRow(Frozen):
    submission: Annotated[str | None, Maybe] = None
    agent: Annotated[str | None, Maybe] = None
    applied: Annotated[bool | None, Maybe] = None
    patch_successfully_applied: Annotated[bool | None, Maybe] = None


class _InstanceRow(Frozen):
    problem_statement: str
    repo: Annotated[str | None, Maybe] = None
    base_commit: Annotated[str | None, Maybe] = None
    created_at: Annotated[str | None, BeforeValidator(lambda value: value if value is None else str(value))] = None


def read_annotations(source: str) -> dict[str, Annotation]:
    """The most severe annotation of each instance. Raises OperatorError."""
    annotations: dict[str, Annotation] = {}
    for row in read_rows(source):
        task = input_task(row)
        if task.quality is None or task.test_validity is None:
            raise OperatorError(f"{row.where}: underspecified and false_negative are needed")
        before = annotations.get(task.instance_id)
        annotations[task.instance_id] = Annotation(
            instance_id=task.instance_id,
            quality=max(task.quality, before.quality if before else 0),
            test_validity=max(task.test_validity, before.test_validity if before else 0),
            other_issues=bool(task.other_issues) or (before is not None and before.other_issues),
        )
    return annotations


def read_instances(source: str) -> dict[str, dict[str, Any]]:
    """Issue text, repository and base commit by instance id. Raises OperatorError."""

    def entries() -> Iterator[tuple[str, str, tuple[str, dict[str, Any]]]]:
        for row in read_rows(source):
            identity, fields = task_id(row), shaped(row, _InstanceRow)
            facts = fields.model_dump() | {"repo": fields.repo or repository_of(identity)}
            yield identity, row.where, (identity, facts)

    return dict(unique(entries()))


def read_patches(source: str) -> Iterator[Patch]:
    """Submitted patches with a known outcome, in our columns or the authors'. Raises OperatorError."""
    for row in read_rows(source):
        task, more = output_task(row), shaped(row, _PatchRow)
        if task.bounce is None:
            raise OperatorError(f"{row.where}: neither resolved nor a test outcome: the patch cannot be labelled")
        yield Patch(
            instance_id=task.instance_id,
            submission=more.submission or more.agent or "",
            text=task.patch or "",
            resolved=not task.bounce,
            pass_fraction=task.pass_fraction,
            failing=task.failing,
            applied=more.patch_successfully_applied if more.applied is None else more.applied,
        )


#: Whether a patch (its text) applies in a repository (``owner/name``) at a commit; None = cannot be tried.
Fits = Callable[[str, str, str], bool | None]

#: A hunk with a changed line in it, a rename or a binary file: without one of these there is nothing to apply.
_CHANGE = re.compile(r"^@@ .*\n(?:[ \\].*\n|\n)*[+-]|^rename from |^GIT binary patch", re.MULTILINE)


@dataclass
class Built:
    """The three task lists and the count of every step, in order."""

    input: list[dict[str, Any]] = field(default_factory=list)
    output: list[dict[str, Any]] = field(default_factory=list)
    lite: list[dict[str, Any]] = field(default_factory=list)
    steps: dict[str, int] = field(default_factory=dict)


def build(
    annotations: Mapping[str, Annotation],
    instances: Mapping[str, dict[str, Any]],
    patches: Iterable[Patch],
    seed: int,
    submission: str | None = None,
    fits: Fits | None = None,
) -> Built:
    """The task lists. The same material and seed give the same lists, whatever the order of the lines.

    With ``submission`` the output tasks are all of that agent's patches on evaluable instances, correct ones on
    vague issues included (Table IV), instead of one patch an instance. With ``fits`` patches are tried at their
    base commit, unless the outcome is on record.
    """
    result = Built()
    steps = result.steps
    steps["annotated instances"] = len(annotations)
    identities = sorted(annotations.keys() & instances.keys())
    steps["of these with the issue's text (input tasks)"] = len(identities)
    steps["input tasks to bounce"] = sum(annotations[identity].vague for identity in identities)
    result.input = [_input_row(annotations[identity], instances[identity]) for identity in identities]
    evaluable = {identity for identity in identities if annotations[identity].evaluable}
    steps["evaluable instances (valid tests, no other major issue)"] = len(evaluable)
    steps["of these vague"] = sum(annotations[identity].vague for identity in evaluable)
    if submission is not None:
        every = list(patches)
        patches = [patch for patch in every if patch.submission == submission]
        if not patches:
            names = ", ".join(sorted({patch.submission for patch in every}))
            raise OperatorError(f"no patch of submission {submission!r}; there are: {names[:400]}")
    usable = _usable(patches, annotations, steps)
    if fits is not None:
        usable = _fitting(usable, instances, fits, steps)
    if submission is None:
        selection = list(_one_each(sorted(evaluable), annotations, usable, seed, steps))
    else:
        selection = [usable[identity][0] for identity in sorted(evaluable & usable.keys())]
    steps |= {
        "output tasks": len(selection),
        "output tasks to bounce": sum(not patch.resolved for patch in selection),
    }
    by_id = {row["instance_id"]: row for row in result.input}
    result.output = [_output_row(patch, by_id[patch.instance_id]) for patch in selection]
    result.lite = [by_id[row["instance_id"]] | row for row in result.output]
    steps["Lite: tasks in both"] = len(result.lite)
    steps["Lite: issues to bounce"] = sum(row["input_bounce"] for row in result.lite)
    return result


def _usable(
    patches: Iterable[Patch], annotations: Mapping[str, Annotation], steps: dict[str, int]
) -> dict[str, list[Patch]]:
    """Return patches by instance, without those that do not apply and without duplicates."""
    total = unfit = repeated = contradicting = 0
    twins: dict[bytes, list[Patch]] = defaultdict(list)
    usable: dict[str, list[Patch]] = defaultdict(list)
    # Of equal patches the first one stays: one that is on record as applied, if there is one.
    for patch in sorted(
        patches, key=lambda patch: (patch.instance_id, not _applied(patch), patch.submission, patch.text)
    ):
        total += 1
        if applies(patch):
            twins[_digest(patch.instance_id, patch.text.strip())].append(patch)
        else:
            unfit += 1
    for first, *others in twins.values():
        if any(other.resolved != first.resolved for other in others):
            contradicting += 1 + len(others)
            continue
        repeated += len(others)
        if first.instance_id in annotations:
            usable[first.instance_id].append(first)
    remaining = [patch for of_instance in usable.values() for patch in of_instance]
    steps["patches submitted"] = total
    steps["patches that do not apply, removed"] = unfit
    steps["equal patches with contradicting outcomes, removed"] = contradicting
    steps["duplicate patches, removed"] = repeated
    steps["patches for annotated instances"] = len(remaining)
    steps["of these incorrect"] = sum(not patch.resolved for patch in remaining)
    return usable


def _fitting(
    usable: Mapping[str, list[Patch]], instances: Mapping[str, dict[str, Any]], fits: Fits, steps: dict[str, int]
) -> dict[str, list[Patch]]:
    """Patches without those that git refuses at the base commit.

    A patch that passed the tests, or that the harness recorded as applied, did apply: the harness goes on with
    ``patch --fuzz`` if git refuses. These are counted and stay.
    """
    refused = overruled = untried = 0
    fitting: dict[str, list[Patch]] = defaultdict(list)
    for identity, patches in sorted(usable.items()):
        facts = instances.get(identity, {})
        for patch in patches:
            fit = fits(patch.text, facts.get("repo") or repository_of(identity), facts.get("base_commit") or "")
            untried += fit is None
            if fit is False and not _applied(patch):
                refused += 1
                continue
            overruled += fit is False
            fitting[identity].append(patch)
    steps["patches that git refuses at the base commit, removed"] = refused
    steps["patches that git refuses, kept: the harness applied them"] = overruled
    steps["patches whose base commit is not at hand, kept untried"] = untried
    return fitting


def _applied(patch: Patch) -> bool:
    """Return True if the outcome says that it did apply."""
    return patch.resolved or bool(patch.applied)


def applies(patch: Patch) -> bool:
    """Return True if a patch can apply: as the harness recorded, as its outcome implies, else by its form."""
    if patch.applied is not None:
        return patch.applied
    return patch.resolved or _CHANGE.search(patch.text) is not None


def _one_each(
    evaluable: list[str],
    annotations: Mapping[str, Annotation],
    usable: Mapping[str, list[Patch]],
    seed: int,
    steps: dict[str, int],
) -> Iterator[Patch]:
    """One patch an instance, drawn evenly; for a vague issue among the incorrect ones only (II.A.2)."""
    without = only_correct = 0
    for identity in evaluable:
        options = usable.get(identity, [])
        if not options:
            without += 1
            continue
        if annotations[identity].vague:
            options = [patch for patch in options if not patch.resolved]
        if options:
            # An even draw that depends on nothing but the seed and the patches themselves.
            yield min(options, key=lambda patch: _digest(seed, patch.instance_id, patch.text))
        else:
            only_correct += 1
    steps["evaluable instances without any patch, removed"] = without
    steps["vague instances with correct patches only, removed"] = only_correct


def _digest(*parts: object) -> bytes:
    return hashlib.sha256("\0".join(map(str, parts)).encode("utf-8", "replace")).digest()


def _input_row(annotation: Annotation, instance: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "instance_id": annotation.instance_id,
        **instance,
        "input_quality": annotation.quality,
        "input_bounce": annotation.vague,
        "false_negative": annotation.test_validity,
        "other_major_issues": annotation.other_issues,
    }


def _output_row(patch: Patch, issue: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "instance_id": patch.instance_id,
        "repo": issue["repo"],
        "base_commit": issue["base_commit"],
        "problem_statement": issue["problem_statement"],
        "input_quality": issue["input_quality"],
        "submission": patch.submission,
        "patch": patch.text,
        "resolved": patch.resolved,
        "output_bounce": not patch.resolved,
        "output_quality": patch.pass_fraction,
        "failing": patch.failing,
    }


class Applying(Clones):
    """Tries patches in an index of its own, read from a clone; use as a context manager.

    Patches of one instance should come one after the other: the index is made anew for each base commit.
    """

    def __init__(self, repos: Path) -> None:
        super().__init__(repos)
        self.unchecked = ""
        self._folder = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="bouncer-index-"))
        self._read: tuple[str, str] | None = None

    def fits(self, patch: str, full_name: str, base_commit: str) -> bool | None:
        """Return True if it applies exactly; None if no clone holds the commit: ``unchecked`` is the last reason.

        Raises GitError if the clone is damaged.
        """
        try:
            clone = self.at(full_name, base_commit)
        except OperatorError as error:
            self.unchecked = str(error)
            return None
        index = Path(self._folder) / "index"
        if self._read != (full_name, base_commit):
            self._read = None
            clone.run("read-tree", base_commit, index=index)
            self._read = (full_name, base_commit)
        # Files that end without a newline are whole to the benchmark's harness and corrupt to git.
        content = (patch if patch.endswith("\n") else f"{patch}\n").encode("utf-8", "surrogatepass")
        try:
            clone.run("apply", "--check", "--cached", "--whitespace=nowarn", "-", stdin=content, index=index)
        except GitError:
            return False
        return True


def store(folder: Path, result: Built, facts: dict[str, Any]) -> None:
    """Write the task files and ``build.json``. Raises OperatorError."""
    for name, rows in (("input", result.input), ("output", result.output), ("lite", result.lite)):
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        # Without a time stamp, so that the same rows are the same bytes.
        write_file(folder / f"{name}.jsonl.gz", gzip.compress(lines.encode("ascii"), mtime=0))
    write_file(folder / "build.json", json.dumps(facts, indent=1) + "\n")
