"""Blame and mapping on thousands of commits whose truth is known, because the history is written by a plan."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest

from evaluation.crbench.build import histories, map_instances
from evaluation.crbench.mapping import Instance, MappingOptions
from evaluation.git.repository import find_clone
from tests.evaluation.crbench.repositories import Scratch

FILES, LINES = 20, 60
STEPS = 1500


@dataclass
class Plan:
    """A stream for ``git fast-import``, and the last author of every line of every file."""

    random: random.Random
    stream: list[str] = field(default_factory=list)
    files: list[list[str]] = field(
        default_factory=lambda: [[f"{f}.{n} = 0" for n in range(LINES)] for f in range(FILES)]
    )
    owner: dict[tuple[int, int], int | None] = field(default_factory=dict)
    mark: int = 0
    number: int = 0

    def commit(self, subject: str, parents: list[int], edits: list[tuple[int, int]], by: str = "ada@x") -> int:
        self.mark += 1
        when = f"{1_600_000_000 + self.mark} +0000"
        self.stream += ["commit refs/heads/main", f"mark :{self.mark}", f"author A <a@x> {when}"]
        self.stream += [f"committer C <{by}> {when}", f"data {len(subject)}", subject]
        self.stream += [f"{'from' if place == 0 else 'merge'} :{parent}" for place, parent in enumerate(parents)]
        for file, line in edits:
            self.files[file][line] = f"{file}.{line} = {self.mark}"
        # A merge is given the whole tree: fast-import starts from its first parent's.
        for file in range(FILES) if len(parents) != 1 else {file for file, _ in edits}:
            text = "\n".join(self.files[file]) + "\n"
            self.stream += [f"M 644 inline src/f{file}.py", f"data {len(text)}", text]
        self.stream.append("")
        return self.mark

    def places(self, count: int) -> list[tuple[int, int]]:
        file = self.random.randrange(FILES)
        return [(file, line) for line in self.random.sample(range(LINES), count)]

    def own(self, edits: list[tuple[int, int]], number: int | None) -> None:
        self.owner |= dict.fromkeys(edits, number)

    def next(self) -> int:
        self.number += 1
        return self.number

    def step(self, tip: int) -> int:
        """One change of the trunk: pushed, squashed, merged, or merged with a pull request inside it."""
        kind = self.random.choice(("push", "squash", "merge", "merge", "nested", "plain merge"))
        edits = self.places(3)
        if kind == "push":
            self.own(edits, None)
            return self.commit("Change things for #99999", [tip], edits)
        number = self.next()
        if kind == "squash":
            self.own(edits, number)
            return self.commit(f"Change things (#{number})", [tip], edits)
        if kind == "plain merge":
            self.own(edits, None)
            side = self.commit("Work", [tip], edits)
            return self.commit("Merge branch 'x'", [tip, side], [])
        self.own(edits, number)
        side = self.commit("Work on (#99999)", [tip], edits)
        if kind == "nested":
            inner, more = self.next(), self.places(2)
            self.own(more, inner)
            part = self.commit("A part", [side], more)
            side = self.commit(f"Merge pull request #{inner} from y/part", [side, part], [])
        return self.commit(f"Merge pull request #{number} from y/x", [tip, side], [])


@pytest.fixture
def planned(tmp_path: Path) -> tuple[Scratch, Plan]:
    scratch = Scratch(tmp_path / "repos" / "ada+long")
    plan = Plan(random.Random(7))
    tip = plan.commit("Begin", [], [])
    for _ in range(STEPS):
        tip = plan.step(tip)
    scratch.feed("fast-import", "--quiet", text="\n".join(plan.stream) + "\n")
    scratch.git("reset", "-q", "--hard")
    return scratch, plan


def test_fifty_fixes_in_thousands_of_commits_are_exact_and_quick(
    tmp_path: Path, planned: tuple[Scratch, Plan]
) -> None:
    scratch, plan = planned
    assert plan.mark > 2_500
    fixes, expected = [], []
    for place in range(50):
        file = plan.random.randrange(FILES)
        selection = sorted(plan.random.sample(range(LINES), plan.random.randint(1, 4)))
        fixed = ["fixed" if line in selection else text for line, text in enumerate(plan.files[file])]
        patch = scratch.fix(f"src/f{file}.py", *fixed)
        fixes.append(
            Instance(instance_id=f"fix-{place}", repo="ada/long", base_commit=scratch.head(), patch=patch)
        )
        owners = {plan.owner.get((file, line)) for line in selection}
        expected.append(tuple(sorted(number for number in owners if number is not None)))

    started = time.perf_counter()
    with histories(partial(find_clone, tmp_path / "repos"), fixes) as clones:
        result = [mapped.prs for mapped in map_instances(fixes, clones, MappingOptions())]
    seconds = time.perf_counter() - started

    assert result == expected
    assert sum(len(numbers) == 1 for numbers in expected) > 10
    assert seconds < 60
