"""The code around a change as a question shows it: excerpts within a budget, no line twice."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from bot.core.text import estimate, show

#: Characters that are shown of one line.
WIDEST = 160


@dataclass(frozen=True, slots=True)
class CodeExcerpt:
    """Lines of a file, and their relation to the change."""

    path: str
    lines: tuple[int, ...]
    relation: str
    more: tuple[int, ...] = ()
    """Lines that are shown beside them if there is room after all other excerpts."""


class ContextPage:
    """The excerpts that fit into a budget, by file. No line is shown twice, nor one that is visible elsewhere."""

    def __init__(
        self, source: Callable[[str], list[str]], budget: int, visible: Mapping[str, Collection[int]]
    ) -> None:
        self._source, self._budget = source, budget
        self._shown = {path: set(lines) for path, lines in visible.items()}
        #: By file and relation: the lines that are shown, and their text.
        self._excerpts: dict[str, dict[str, tuple[list[int], str]]] = {}
        self.tokens = self.left_out = 0

    def add_all(self, excerpts: Iterable[CodeExcerpt]) -> bool:
        """Add the lines of excerpts that are not shown yet. Return True if all lines of one of them are shown."""
        all_excerpts = list(excerpts)
        results = [self._add(excerpt, excerpt.lines) for excerpt in all_excerpts]
        self.left_out += results.count(False)
        for excerpt in all_excerpts:
            self._add(excerpt, excerpt.more)
        return any(results)

    @property
    def parts(self) -> int:
        """The number of excerpts."""
        return sum(map(len, self._excerpts.values()))

    @property
    def text(self) -> str:
        """The excerpts: the files in the order in which they came, each in the order of its lines."""
        files = (
            [_head(path), *(text for _, text in sorted(parts.values()))] for path, parts in self._excerpts.items()
        )
        return "\n\n".join(map("\n".join, files))

    def _add(self, excerpt: CodeExcerpt, numbers: Sequence[int]) -> bool:
        visible = self._shown.setdefault(excerpt.path, set())
        source = self._source(excerpt.path)
        lines = [number for number in numbers if number not in visible and number <= len(source)]
        fresh = _without_lone_brackets([number for number in lines if source[number - 1].strip()], source)
        if not fresh:
            return bool(numbers)
        parts = self._excerpts.get(excerpt.path, {})
        before, old_text = parts.get(excerpt.relation, ([], ""))
        lines = sorted([*before, *fresh])
        text = _excerpt(excerpt.relation, source, lines)
        cost = estimate(text) + 1 - (estimate(old_text) + 1 if before else 0)
        if not parts:
            cost += estimate(_head(excerpt.path)) + 2
        if self.tokens + cost > self._budget:
            return False
        visible.update(fresh)
        self._excerpts.setdefault(excerpt.path, {})[excerpt.relation] = lines, text
        self.tokens += cost
        return True


def _without_lone_brackets(lines: Sequence[int], source: Sequence[str]) -> list[int]:
    """Leave out the lines of brackets that do not follow on another line."""
    results: list[int] = []
    for number in lines:
        is_bracket = not source[number - 1].strip(" \t{}()[];,")
        if not is_bracket or (results and not any(map(str.strip, source[results[-1] : number - 1]))):
            results.append(number)
    return results


def _head(path: str) -> str:
    return f"--- {show(path)}"


def _excerpt(relation: str, source: Sequence[str], lines: Sequence[int]) -> str:
    """Render lines of a file below the number of the first, without common indentation and blank lines.

    A gap shows the number of the next line. A space keeps code from looking like a head.
    """
    code = [show(source[number - 1].expandtabs(4)) for number in lines]
    margin = min(len(line) - len(line.lstrip()) for line in code)
    rows = [f"@ {lines[0]} {relation}"]
    before = lines[0] - 1
    for number, line in zip(lines, code, strict=True):
        if any(source[skipped].strip() for skipped in range(before, number - 1)):
            rows.append(f"... {number}")
        text = line[margin : margin + WIDEST].rstrip()
        rows.append(f" {text}{'…' if len(line) > margin + WIDEST else ''}")
        before = number
    return "\n".join(rows)
