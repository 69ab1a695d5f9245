"""Find definitions and uses of names in a repository by its text, without running or installing anything.

A name is searched in its own file, then in the files that this one imports, then among all definitions in the
language. A name with many definitions is not resolved.
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

#: Import statements of a file that are followed for one name.
_IMPORTS = 50
#: Most characters of a repository that are searched, and most files that are parsed.
MAX_SEARCHED, MAX_PARSED = 60_000_000, 150
#: Seconds after which no further file is parsed or searched.
SECONDS = 20.0
#: Most definitions of a name that is resolved, and most uses that are listed; further uses are only counted.
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


class FileDefinition(NamedTuple):
    """A definition and the path of its file."""

    path: str
    definition: Definition


class Use(NamedTuple):
    """A line that uses a name."""

    path: str
    line: int
    text: str


class ParsedFiles:
    """The files of one commit, each parsed once, within limits. ``texts`` override files of the tree."""

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
        """Return a file's text, or None if it is missing or not text."""
        if path not in self._texts:
            self._texts[path] = self._tree.read(path) if path in self._known else None
        return self._texts[path]

    def definitions(self, path: str, before: str | None = None) -> tuple[Definition, ...]:
        """Return all definitions of a file, or of its text ``before`` a change; none after a limit."""
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

    def resolve(self, path: str, names: Sequence[str]) -> dict[str, tuple[FileDefinition, ...]]:
        """Return the definitions by name as it is called (``a.b.c``); a name with none or too many is absent."""
        resolved: dict[str, tuple[FileDefinition, ...]] = {}
        text = self.text(path) or ""
        for name in names:
            last = re.split(r"\W+", name)[-1]
            places = self._definitions_of(last, [path])
            if not places:
                targets = [target for target in _imported(text, path, name) if target in self._known]
                places = self._definitions_of(last, targets)
            if 0 < len(places) <= MAX_PLACES:
                resolved[name] = tuple(places)
        return resolved

    def defined_anywhere(self, names: Collection[str], grammar: Grammar) -> dict[str, tuple[FileDefinition, ...]]:
        """Return the definitions in all files of a language by plain name; a name with too many is absent."""
        places: dict[str, list[str]] = {}
        for path, text in self._holding(names, _WORDS, grammar):
            defined = {match.group(1) for line in text.split("\n") if (match := _DEFINED.match(line[:400]))}
            for name in defined.intersection(names):
                places.setdefault(name, []).append(path)
        results: dict[str, tuple[FileDefinition, ...]] = {}
        for name, paths in places.items():
            if len(paths) <= MAX_PLACES:
                results[name] = tuple(self._definitions_of(name, paths)[:MAX_PLACES])
        return results

    def _definitions_of(self, name: str, paths: Iterable[str]) -> list[FileDefinition]:
        pairs = ((path, definition) for path in paths for definition in self.definitions(path))
        return [FileDefinition(path, definition) for path, definition in pairs if definition.name == name]

    def uses(self, names: Collection[str], grammar: Grammar) -> dict[str, tuple[list[Use], int]]:
        """Return by name the first lines that use it in files of a language, and their total number."""
        results: dict[str, tuple[list[Use], int]] = {}
        for path, text in self._holding(names, "", grammar):
            for number, line in enumerate(text.split("\n"), start=1):
                if len(line) > 2_000:
                    continue
                for name in set(re.findall(r"[A-Za-z_$][\w$]*", line)).intersection(names):
                    uses, count = results.get(name, ([], 0))
                    if count < MAX_USES:
                        uses.append(Use(path, number, line.strip()[:200]))
                    results[name] = uses, count + 1
        return results

    def _holding(self, names: Collection[str], before: str, grammar: Grammar) -> Iterator[tuple[str, str]]:
        """Yield path and text of the files of a language that contain a name after the pattern ``before``."""
        if not names:
            return
        pattern = re2.compile(rf"{before}(?:{'|'.join(sorted(map(re2.escape, names)))})\b")
        remaining = MAX_SEARCHED
        for path in sorted(self._known):
            if grammar_of(path) is not grammar:
                continue
            text = self.text(path)
            if text is None:
                continue
            remaining -= len(text)
            if remaining < 0 or monotonic() > self._until:
                return
            if pattern.search(text):
                yield path, text


def called_names(lines: Iterable[str]) -> tuple[str, ...]:
    """Return the names that lines of code call, qualified and in order: ``re.compile``, ``load``."""
    names: dict[str, None] = {}
    for line in lines:
        if line.lstrip().startswith(("#", "//", "*", "/*")):
            continue
        for match in _CALL.finditer(line[:2_000]):
            if match[2] in _KEYWORDS or _DEFINES.search(line[max(match.start() - 60, 0) : match.start()]):
                continue
            names.setdefault(f"{match[1]}{match[2]}".replace("::", ".").replace("->", "."))
    return tuple(names)


def defined_names(lines: Iterable[str]) -> frozenset[str]:
    """Return the functions, classes and constants that lines of code define."""
    matches = (_DEFINED.match(line[:400]) or _CONSTANT.match(line[:400]) for line in lines)
    return frozenset(match.group(1) for match in matches if match and len(match.group(1)) > 2)


def _imported(text: str, path: str, name: str) -> Iterator[str]:
    """Yield the paths of files that may define a name, by the imports of the file that uses it."""
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
    # re2 takes linear time: the file may be hostile.
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
    """Return the folders of absolute imports: the top, ``src``, ``lib``, and the folders above the file."""
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
