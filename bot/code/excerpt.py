"""The part of a file that shows what some of its lines are about: the function around them, its class. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from bot.code.syntax import Definition, enclosing

#: Lines of a function that is shown whole; lines of a long one's head, and beside what was changed in it.
WHOLE, HEAD, BESIDE = 60, 8, 10
#: Characters of one line.
WIDEST = 300


@dataclass(frozen=True, slots=True)
class CodeExcerpt:
    """Lines of a file that belong together, by number; a gap in the numbers is a gap in the text."""

    name: str
    first: int
    last: int
    lines: tuple[int, ...]

    def render(self, text: Sequence[str]) -> str:
        """The lines with their numbers, an ellipsis where some are left out."""
        rows: list[str] = []
        before = self.lines[0] - 1 if self.lines else 0
        for number in self.lines:
            if number > before + 1:
                rows.append("      ...")
            line = text[number - 1]
            rows.append(f"{number:>5}   {line if len(line) <= WIDEST else line[:WIDEST] + '…'}")
            before = number
        return "\n".join(rows)


def around(found: tuple[Definition, ...], lines: Collection[int]) -> tuple[CodeExcerpt, ...]:
    """The functions (else classes) around these lines, each once, in order; nothing for the top of a file."""
    changed: dict[Definition, list[int]] = {}
    waiting, open_ = list(reversed(found)), list[Definition]()
    for number in sorted(lines):
        while waiting and waiting[-1].first <= number:
            open_.append(waiting.pop())
        open_ = [each for each in open_ if each.last >= number]
        definition = enclosing(tuple(open_), number, number)
        if definition is not None:
            changed.setdefault(definition, []).append(number)
    return tuple(excerpt(found, definition, numbers) for definition, numbers in changed.items())


def excerpt(found: tuple[Definition, ...], definition: Definition, changed: Collection[int] = ()) -> CodeExcerpt:
    """A definition whole where it is short, else its head and what is near ``changed``; its class's line too."""
    first, last = definition.first, definition.last
    if last - first < WHOLE:
        lines = set(range(first, last + 1))
    else:
        lines = set(range(first, min(max(definition.body, first) + HEAD, last + 1)))
        for number in changed:
            lines.update(range(max(first, number - BESIDE), min(last, number + BESIDE) + 1))
    for each in found:
        if each.kind == "class" and each.first <= first and each.last >= last and each != definition:
            head = each.body if each.body > each.first else each.first + 1
            lines.update(range(each.first, min(head, each.first + 4, first)) or {each.first})
    return CodeExcerpt(definition.qualified, first, last, tuple(sorted(lines)))
