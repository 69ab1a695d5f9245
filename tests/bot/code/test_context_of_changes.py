# ruff: noqa: E501 - lines of code in other languages
"""The code that is shown around a change, and its stated relation to it, by kind of change."""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import unified_diff

from bot.code.context import Surroundings
from bot.code.diff import Sides, parse
from bot.code.packing import pack
from bot.github.offline import RecordedTree

Edits = Mapping[str, tuple[str, str]]


def surroundings(files: Mapping[str, str], edits: Edits) -> Surroundings:
    """Return the surroundings of a change that replaces one text of a file by another."""
    after, diff = dict(files), ""
    for path, (old, new) in edits.items():
        assert old in files[path]
        after[path] = files[path].replace(old, new, 1)
        sides = (text.splitlines(keepends=True) for text in (files[path], after[path]))
        diff += "".join(unified_diff(*sides, f"a/{path}", f"b/{path}"))
    return Surroundings(parse(diff), Sides(RecordedTree({path: text.encode() for path, text in after.items()})))


def shown(files: Mapping[str, str], path: str, old: str, new: str) -> str:
    """Return the text of the context of one edit."""
    return surroundings(files, {path: (old, new)}).within(6_000).text


PADDING = "".join(f"def unrelated{number}(a):\n    return a\n\n\n" for number in range(20))


def test_a_function_whose_last_line_is_removed_has_changed() -> None:
    files = {
        "a/s.py": PADDING
        + "def register(k, v):\n    a = k\n    b = v\n    c = a + b\n    log(c)\n    return c\n\n\ndef other(k):\n    return k\n",
        "a/u.py": "from a.s import other, register\n\n\ndef use():\n    register(1, 2) + 1\n\n\ndef no():\n    other(1)\n",
    }
    text = shown(files, "a/s.py", "    return c\n", "")
    assert "rest of `register`\n def register(k, v):" in text
    assert "`use` calls `register`\n def use():" in text
    assert "other" not in text


def test_a_method_whose_last_line_is_removed_has_changed() -> None:
    store = "class Store:\n    def add(self, k):\n        self.items[k] = 1\n        self.size += 1\n\n    def drop(self, k):\n        del self.items[k]\n"
    files = {
        "a/s.py": PADDING + store,
        "a/u.py": "from a.s import Store\n\n\ndef use(s: Store):\n    s.add(1)\n\n\ndef no(s: Store):\n    s.drop(1)\n",
    }
    text = shown(files, "a/s.py", "        self.size += 1\n", "")
    assert "`use` calls `add`" in text
    assert "`no`" not in text


def test_a_removed_function_does_not_count_to_its_neighbours() -> None:
    moved = "def moved(a):\n    return LIMIT + a\n\n\n"
    files = {
        "a/old.py": f"LIMIT = 3\n\n\ndef helper(a):\n    return a\n\n\n{moved}def later(a):\n    return a\n\n\n{PADDING}",
        "a/u.py": "from a.old import helper, later\n\n\ndef use():\n    helper(1)\n    later(1)\n",
    }
    text = shown(files, "a/old.py", moved, "")
    assert "LIMIT" not in text
    assert "calls" not in text
    text = shown(files, "a/old.py", "    return LIMIT + a\n", "    return a\n")
    assert "`LIMIT`, in removed lines of `moved`" in text


def test_a_part_of_a_file_has_the_context_of_what_it_shows() -> None:
    def source(more: str) -> str:
        body = "".join(f"    x{number} = a + {number}{more}\n" for number in range(12))
        return "".join(
            f"def func{number:02}(a{more and ', c'}):\n{body}    return x1\n\n\n" for number in range(20)
        )

    users = {
        f"a/use{number:02}.py": f"from a.big import func{number:02}\n\n\ndef use{number:02}():\n    return func{number:02}(1)\n"
        for number in range(20)
    }
    around = surroundings({"a/big.py": source(""), **users}, {"a/big.py": (source(""), source(" + c"))})
    pieces = pack(around.diff, 4_000, 3, sides=around.sides).pieces
    assert len(pieces) == 3
    for piece in pieces:
        changed = set(re.findall(r"\+ def (func\d+)", piece.text))
        callers = set(re.findall(r"calls `(func\d+)`", around.within(6_000, piece.files).text))
        assert callers
        assert callers <= changed
    assert "+ def func00(a, c):" in pieces[-1].others
    assert "+     x0" not in pieces[-1].others
    assert "more lines]" in pieces[-1].others


def test_a_part_shows_what_it_uses_of_another_part() -> None:
    files = {
        "a/x.py": "def limit(a):\n    return a + 1\n",
        "a/y.py": "from a.x import limit\n\n\ndef f(a):\n    return 2\n",
    }
    around = surroundings(files, {"a/x.py": ("a + 1", "a + 2"), "a/y.py": ("return 2", "return limit(a)")})
    assert "return a + 2" not in around.within(6_000).text
    assert "`limit`, called by `f`" in around.within(6_000, around.diff.files[1:]).text
