"""Wrong versions of a fix that look like it: one hunk left out, or one condition turned. Pure.

Whether a variant is wrong is not decided here: only the tests can tell.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from unidiff.patch import PatchSet

from evaluation.brt.patching import PatchRejected, apply, python_tree

#: Variants of a kind that are tried for one fix.
MOST = 3


@dataclass(frozen=True)
class Variant:
    """The texts of the files that it changes, by path."""

    made: str
    texts: Mapping[str, str]


def variants(patch: str, read: Callable[[str], str | None]) -> Iterator[Variant]:
    """Variants of the fix ``patch``; ``read`` gives a file's text before it. None of a fix that does not apply."""
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
