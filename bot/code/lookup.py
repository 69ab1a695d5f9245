"""Where the names of a piece of code are defined and used in a repository, by its text. Pure but for reading.

Nothing is executed or installed: a name is looked for in its own file, then where the file's imports point, then
among all definitions of that name in the language. A name that many places define is not resolved.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import PurePosixPath
from posixpath import normpath
from time import monotonic
from typing import NamedTuple

import re2

from bot.code.parser_process import NotParsed
from bot.code.syntax import Definition, Grammar, grammar_of, parsed_definitions
from bot.github.protocol import SourceTree

#: Import statements of one file that are followed for one name.
_IMPORTS = 50
#: Bytes of a repository that are searched, and files that are parsed for it.
MAX_SEARCHED, MAX_PARSED = 60_000_000, 150
#: Seconds after which no further file is parsed or searched; the linear case never comes near.
SECONDS = 20.0
#: Places of one name: more definitions tell nothing, and more uses are only counted.
MAX_PLACES, MAX_USES = 2, 8

_CALL = re.compile(r"(?<![\w.])((?:[A-Za-z_$][\w$]*(?:\.|::|->))*)([A-Za-z_$][\w$]*)!?\s?\(")
_MODIFIERS = (
    r"(?:export|default|pub(?:\([a-z]+\))?|async|public|private|protected|static|final|abstract|unsafe|override)"
    r"\s+"
)
_WORDS = r"(?:def|class|func|fn|function\*?|struct|enum|interface|trait|type|record)\s+(?:\([^()\n]*\)\s*)?"
_DEFINED = re.compile(rf"^\s*(?:{_MODIFIERS})*{_WORDS}([A-Za-z_$][\w$]*)")
_DEFINES = re.compile(rf"\b{_WORDS}$")
_CONSTANT = re.compile(
    r"^(?:export\s+)?(?:const\s+|let\s+|var\s+|static\s+)?([A-Za-z_$][\w$]{2,})\s*(?::[^=]+)?=(?!=)"
)
_KEYWORDS = frozenset({
    "if", "for", "while", "switch", "catch", "return", "and", "or", "not", "in", "is", "elif", "with", "assert",
    "print", "super", "isinstance", "len", "str", "int", "float", "list", "dict", "set", "tuple", "bool",
    "range", "type", "func", "function", "def", "class", "lambda", "await", "yield", "raise", "except", "del",
    "sizeof", "typeof", "Some", "Ok", "Err", "None", "make", "append", "new", "match",
})  # fmt: skip


class Found(NamedTuple):
    """A definition and the file that holds it."""

    path: str
    definition: Definition


class Use(NamedTuple):
    """A line that uses a name."""

    path: str
    line: int
    text: str


class ParsedFiles:
    """The files of one commit, parsed once each, within limits; ``texts`` are files that are known better."""

    def __init__(self, tree: SourceTree, texts: dict[str, str | None]) -> None:
        self._tree = tree
        self._texts = dict(texts)
        self._parsed: dict[tuple[str, bool], tuple[Definition, ...]] = {}
        self._until = monotonic() + SECONDS
        self.too_slow: set[str] = set()
        """Paths of files without definitions because their parser, or all before it, took too long."""
        self.paths = tuple(path for path in tree.paths() if texts.get(path, "") is not None)
        self._known = frozenset(self.paths) | {path for path, text in texts.items() if text is not None}

    def text(self, path: str) -> str | None:
        """A file's text; None where it is none or not there."""
        if path not in self._texts:
            self._texts[path] = self._tree.read(path) if path in self._known else None
        return self._texts[path]

    def definitions(self, path: str, before: str | None = None) -> tuple[Definition, ...]:
        """Return all definitions of a file, or of its text ``before`` a change; none once a limit is reached."""
        key = path, before is not None
        if key not in self._parsed:
            text = self.text(path) if before is None else before
            self._parsed[key] = () if text is None or len(self._parsed) >= MAX_PARSED else self._parse(path, text)
        return self._parsed[key]

    def _parse(self, path: str, text: str) -> tuple[Definition, ...]:
        try:
            if monotonic() <= self._until:
                return parsed_definitions(text, path)
        except NotParsed:
            pass
        self.too_slow.add(path)
        return ()

    def resolve(self, path: str, names: Sequence[str]) -> dict[str, tuple[Found, ...]]:
        """By name as it is called (``a.b.c``), its definitions, one or two; others are absent."""
        found: dict[str, tuple[Found, ...]] = {}
        text = self.text(path) or ""
        for name in names:
            last = re.split(r"\W+", name)[-1]
            here = [Found(path, each) for each in self.definitions(path) if each.name == last]
            if not here:
                targets = [each for each in _imported(text, path, name) if each in self._known]
                here = [Found(each, one) for each in targets for one in self.definitions(each) if one.name == last]
            if 0 < len(here) <= MAX_PLACES:
                found[name] = tuple(here)
        return found

    def defined_anywhere(self, names: Collection[str], grammar: Grammar) -> dict[str, tuple[Found, ...]]:
        """By plain name, its definitions in the files of a language where these are few."""
        places: dict[str, list[str]] = {}
        for path, text in self._holding(names, _WORDS, grammar):
            defined = {match.group(1) for line in text.split("\n") if (match := _DEFINED.match(line[:400]))}
            for name in defined.intersection(names):
                places.setdefault(name, []).append(path)
        found: dict[str, tuple[Found, ...]] = {}
        for name, paths in places.items():
            if len(paths) <= MAX_PLACES:
                there = (Found(path, each) for path in paths for each in self.definitions(path))
                found[name] = tuple(each for each in there if each.definition.name == name)[:MAX_PLACES]
        return found

    def uses(self, names: Collection[str], grammar: Grammar) -> dict[str, tuple[list[Use], int]]:
        """By name, the first lines that use it in files of a language, and how many there are."""
        found: dict[str, tuple[list[Use], int]] = {}
        for path, text in self._holding(names, "", grammar):
            for number, line in enumerate(text.split("\n"), start=1):
                if len(line) > 2_000:
                    continue
                for name in set(re.findall(r"[A-Za-z_$][\w$]*", line)).intersection(names):
                    uses, count = found.get(name, ([], 0))
                    if count < MAX_USES:
                        uses.append(Use(path, number, line.strip()[:200]))
                    found[name] = uses, count + 1
        return found

    def _holding(self, names: Collection[str], before: str, grammar: Grammar) -> Iterator[tuple[str, str]]:
        """The files of a language that hold one of the names behind a pattern."""
        if not names:
            return
        wanted = re2.compile(rf"{before}(?:{'|'.join(sorted(map(re2.escape, names)))})\b")
        left = MAX_SEARCHED
        for path in sorted(self._known):
            if grammar_of(path) is not grammar:
                continue
            text = self.text(path)
            if text is None:
                continue
            left -= len(text)
            if left < 0 or monotonic() > self._until:
                return
            if wanted.search(text):
                yield path, text


def called(lines: Iterable[str]) -> tuple[str, ...]:
    """The names that lines of code call, with what stands before them, in order: ``re.compile``, ``load``."""
    names: dict[str, None] = {}
    for line in lines:
        if line.lstrip().startswith(("#", "//", "*", "/*")):
            continue
        for match in _CALL.finditer(line[:2_000]):
            if match[2] in _KEYWORDS or _DEFINES.search(line[max(match.start() - 60, 0) : match.start()]):
                continue
            names.setdefault(f"{match[1]}{match[2]}".replace("::", ".").replace("->", "."))
    return tuple(names)


def named(lines: Iterable[str]) -> frozenset[str]:
    """The functions, classes and constants that lines of code define."""
    found = (_DEFINED.match(line[:400]) or _CONSTANT.match(line[:400]) for line in lines)
    return frozenset(match.group(1) for match in found if match and len(match.group(1)) > 2)


def _imported(text: str, path: str, name: str) -> Iterator[str]:
    """Paths of the files that may define a name, by the imports of the file that uses it."""
    first, *_ = re.split(r"\W+", name)
    folder = PurePosixPath(path).parent
    suffix = PurePosixPath(path).suffix
    if suffix in (".py", ".pyi"):
        for module in _python(text, folder, first):
            yield f"{module}.py"
            yield f"{module}/__init__.py"
    elif suffix in (".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".mts", ".cts"):
        yield from _script(text, folder, first)


def _python(text: str, folder: PurePosixPath, first: str) -> Iterator[PurePosixPath]:
    word = re.escape(first)
    # In linear time: the file may be hostile.
    pattern = rf"(?m)^[ \t]*from[ \t]+(\.*)([\w.]*)[ \t]+import[ \t]+(?:\([^)]*?\b{word}\b|[^(\n]*?\b{word}\b)"
    for dots, module in re2.findall(pattern, text)[:_IMPORTS]:
        above = [folder, *folder.parents][len(dots) - 1 :][:1] if dots else _roots(folder)
        for root in above:
            base = root.joinpath(*module.split(".")) if module else root
            yield from (base, base / first)
    for module, other in re2.findall(r"(?m)^[ \t]*import[ \t]+([\w.]+)(?:[ \t]+as[ \t]+(\w+))?", text)[:_IMPORTS]:
        if first == (other or module.split(".")[0]):
            yield from (root.joinpath(*module.split(".")) for root in _roots(folder))


def _roots(folder: PurePosixPath) -> Sequence[PurePosixPath]:
    """Where absolute imports may start: the top, ``src``, ``lib``, or a folder above the file."""
    return tuple(dict.fromkeys((PurePosixPath(), PurePosixPath("src"), PurePosixPath("lib"), *folder.parents)))


def _script(text: str, folder: PurePosixPath, first: str) -> Iterator[str]:
    word = re.escape(first)
    pattern = (
        rf"(?:import[^;\n]{{0,300}}?\b{word}\b[^;'\"]{{0,300}}?from|\b{word}\b[^;\n=]{{0,100}}=[ \t]*require\()"
        r"[ \t]*['\"](\.[^'\"\n]*)['\"]"
    )
    for target in re2.findall(pattern, text)[:_IMPORTS]:
        base = normpath((folder / target).as_posix())
        bare = re.sub(r"\.[cm]?[jt]sx?$", "", base)
        for ending in (".ts", ".tsx", ".js", ".jsx", ".mjs", ".cjs", ".mts", "/index.ts", "/index.js"):
            yield bare + ending
