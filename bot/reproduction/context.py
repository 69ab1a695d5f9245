"""Read a checkout, and choose the parts for the prompt: layout, nearest tests, code that the report names."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path, PurePosixPath

from pydantic import Field

from bot.code.parsing.definitions import Definition, enclosing
from bot.code.parsing.syntax import definitions
from bot.code.symbols.names import called_names
from bot.core.errors import OperatorError
from bot.core.frozen import Frozen
from bot.reproduction.language import Excerpt, Language
from bot.reproduction.lexical import most_alike
from bot.reproduction.protocol import Harness
from bot.reproduction.report import Facts

#: Limits of a checkout: files of the language, bytes of one file, and of all.
MAX_FILES, MAX_FILE_BYTES, MAX_TOTAL_BYTES = 6_000, 400_000, 60_000_000
_SKIPPED = frozenset(
    {"__pycache__", "node_modules", "site-packages", "build", "dist", "venv", "env", "target", "vendor"}
)
MAX_FOLDERS = 60
MAX_DEFINITIONS = 8
#: Characters of the nearest test file, and of all definitions together.
MAX_HOST = 8_000
MAX_SOURCE = 16_000
#: Tests that use the report's symbols, their characters, and files beside the host that are searched for them.
MAX_TESTS, MAX_USING, MAX_TEST_FILES = 4, 6_000, 5
#: Characters of the host's head if such tests are shown, of all fixtures, and lines of one fixture.
MAX_HEAD, MAX_FIXTURES, MAX_FIXTURE = 2_500, 4_000, 12
#: Lines of a function that contains a string of the report, and most files that may contain it.
MAX_LINES, MAX_HOLDERS = 60, 2

#: Folders that use the code or describe it.
_ASIDE = frozenset({"test", "tests", "testing", "example", "examples", "doc", "docs", "benchmarks", "galleries"})
#: A quoted string or option in a report.
_CONSTANT = re.compile(r"[`'\"](-{0,2}[A-Za-z][\w-]{3,40})[`'\"]")
#: Most packages that are listed, and characters of a version.
MAX_PACKAGES, MAX_WORDS = 150, 100
#: Compatible with every Python that a repository may use.
_SCRIPT = """\
import json, os, platform
try:
    from importlib.metadata import distributions
    names = sorted({name for package in distributions() for name in (package.read_text("top_level.txt") or
                    (package.metadata["Name"] or "").replace("-", "_")).split()})
except Exception:
    names = []
facts = {"python": platform.python_version(), "system": platform.system() + " " + platform.machine()}
print(json.dumps(dict(facts, root=os.geteuid() == 0, packages=names)))
"""
_NAME = re.compile(r"[A-Za-z]\w{0,40}")


@dataclass(frozen=True)
class Checkout:
    """The files of a folder; paths are relative, with ``/``."""

    folder: Path
    sources: Mapping[str, str]
    """Text of the files of the repository's language."""
    tests: Mapping[str, str]
    """Those of them in which the test runner looks for tests."""
    paths: tuple[str, ...]
    """All files, sorted."""


def read_checkout(folder: Path, language: Language) -> Checkout:
    """Read a folder. Links are not followed, hidden and generated folders are skipped.

    Raises OperatorError if ``folder`` is not a folder.
    """
    if not folder.is_dir():
        raise OperatorError(f"{folder}: no such folder")
    sources: dict[str, str] = {}
    paths: list[str] = []
    remaining = MAX_TOTAL_BYTES
    for path in _files(folder):
        name = path.relative_to(folder).as_posix()
        paths.append(name)
        if PurePosixPath(name).suffix not in language.suffixes or len(sources) >= MAX_FILES:
            continue
        if path.stat().st_size <= min(remaining, MAX_FILE_BYTES):
            with suppress(UnicodeDecodeError):
                # Bytes, not text mode: line ends are part of a file's style.
                sources[name] = path.read_bytes().decode("utf-8")
                remaining -= len(sources[name])
    tests = {name: text for name, text in sources.items() if language.is_test_file(name)}
    return Checkout(folder=folder, sources=sources, tests=tests, paths=tuple(sorted(paths)))


def _files(folder: Path) -> Iterator[Path]:
    for parent, folders, files in os.walk(folder, followlinks=False):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in _SKIPPED)
        for name in sorted(files):
            path = Path(parent, name)
            if not name.startswith(".") and path.is_file() and not path.is_symlink():
                yield path


class Context(Frozen):
    """The part of a repository that goes into a prompt."""

    layout: str = Field(description="folders with the number of files in them, one per line")
    host: str | None = Field(description="path of the test file most like the report; None without test files")
    host_text: str = Field("", description="its head; also its end if none of its tests is shown")
    definitions: tuple[Excerpt, ...] = ()
    tests: tuple[Excerpt, ...] = Field(
        (), description="existing tests that use what the report names, and that ``host_text`` does not show"
    )
    fixtures: tuple[Excerpt, ...] = Field((), description="pytest's, available to a test in the host")
    command: str = Field("", description="how the test is run, with {tests} as its placeholder")
    machine: str = Field("", description="the environment in which it is run")


def context(facts: Facts, checkout: Checkout, language: Language) -> Context:
    """Choose what to show for a report."""
    # The project's own code: no tests, examples or documentation.
    sources = {
        path: text
        for path, text in checkout.sources.items()
        if path not in checkout.tests and not _ASIDE.intersection(PurePosixPath(path).parts[:-1])
    }
    excerpts = list(_without_one_liners(language.definitions(facts.names, sources, MAX_DEFINITIONS)))
    if len(excerpts) < MAX_DEFINITIONS:
        excerpts += _functions_with_constants(facts.text, sources, MAX_DEFINITIONS - len(excerpts))
    if len(excerpts) < MAX_DEFINITIONS:
        calls = called_names(line for excerpt in excerpts for line in excerpt.source.split("\n"))
        excerpts += _without_one_liners(language.definitions(calls, sources, MAX_DEFINITIONS))
    distinct: dict[tuple[str, int], Excerpt] = {}
    for excerpt in excerpts:
        distinct.setdefault((excerpt.path, excerpt.line), excerpt)
    relevant = list(distinct.values())[:MAX_DEFINITIONS]
    host = _test_of([excerpt.path for excerpt in relevant], checkout) or choose_host(
        " ".join((*facts.names, facts.text)), checkout.tests
    )
    names = (*(excerpt.name for excerpt in relevant), *facts.names)
    symbols = {name.rpartition(".")[2] for name in names}
    tests = _tests_using(symbols, host, checkout, language) if host else ()
    host_text = _beginning(checkout.tests[host], tests) if host else ""
    return Context(
        layout=layout(checkout.paths),
        host=host,
        host_text=host_text,
        definitions=_within(relevant, MAX_SOURCE),
        tests=tuple(test for test in tests if test.path != host or test.source not in host_text),
        fixtures=_fixtures(host, checkout) if host else (),
    )


def _tests_using(
    symbols: Collection[str], host: str, checkout: Checkout, language: Language
) -> tuple[Excerpt, ...]:
    """Return the tests that use most of these symbols, preferring those of the host."""
    if not symbols:
        return ()
    pattern = re.compile(rf"\b(?:{'|'.join(map(re.escape, sorted(symbols)))})\b")
    matches: list[tuple[int, Excerpt]] = []
    others = (path for path, text in checkout.tests.items() if path != host and pattern.search(text))
    for path in (host, *islice(others, MAX_TEST_FILES)):
        for name, text in language.tests_in(checkout.tests[path]):
            count = len(set(pattern.findall(text)))
            if count:
                line = checkout.tests[path].partition(text)[0].count("\n") + 1
                matches.append((count + (path == host), Excerpt(name=name, path=path, line=line, source=text)))
    best = [excerpt for _, excerpt in sorted(matches, key=lambda pair: -pair[0])[:MAX_TESTS]]
    return _within(best, MAX_USING)


def _beginning(text: str, tests: Sequence[Excerpt]) -> str:
    """Return whole lines of the host: imports and set-up, and its end if none of its tests is shown."""
    if tests and len(text) > MAX_HEAD:
        return f"{text[:MAX_HEAD].rpartition(chr(10))[0]}\n\n[... lines left out ...]"
    if len(text) <= MAX_HOST:
        return text
    head = text[: MAX_HOST // 2].rpartition("\n")[0]
    tail = text[-MAX_HOST // 2 :].partition("\n")[2]
    return f"{head}\n\n[... lines left out ...]\n\n{tail}"


def _fixtures(host: str, checkout: Checkout) -> tuple[Excerpt, ...]:
    """Return fixtures of the host, and of the conftest files in its folder and above."""
    above = [str(folder / "conftest.py") for folder in PurePosixPath(host).parents]
    excerpts: list[Excerpt] = []
    for path in (host, *above):
        text = checkout.sources.get(path) or checkout.tests.get(path) or ""
        lines = text.split("\n")
        for definition in definitions(text, path) if "fixture" in text else ():
            if any("fixture" in line for line in lines[definition.first - 1 : definition.body - 1]):
                excerpts.append(_excerpt(definition, path, lines, MAX_FIXTURE))
    return _within(excerpts, MAX_FIXTURES)


def _without_one_liners(excerpts: Sequence[Excerpt]) -> Iterator[Excerpt]:
    """Drop excerpts of one line: aliases and stubs."""
    return (excerpt for excerpt in excerpts if "\n" in excerpt.source.strip())


def _functions_with_constants(text: str, sources: Mapping[str, str], room: int) -> list[Excerpt]:
    """Return the functions that contain a string of the report, such as an option's name."""
    excerpts: list[Excerpt] = []
    for word in dict.fromkeys(_CONSTANT.findall(text)):
        quoted = re.compile(rf"\"{word}\"|'{word}'")
        holders = [path for path, source in sources.items() if quoted.search(source)]
        for path in holders if len(holders) <= MAX_HOLDERS else ():
            lines = sources[path].split("\n")
            number = next(number for number, line in enumerate(lines, start=1) if quoted.search(line))
            function = enclosing(definitions(sources[path], path), number, number)
            if function is not None and len(excerpts) < room:
                excerpts.append(_excerpt(function, path, lines, MAX_LINES))
    return excerpts


def _test_of(paths: Sequence[str], checkout: Checkout) -> str | None:
    """Return the test file that is named after one of these files, the nearest of several, or None."""
    for path in paths:
        file = PurePosixPath(path)
        names = {f"test_{file.name}", f"{file.stem}_test{file.suffix}", f"{file.stem}Test{file.suffix}"}
        tests = [test for test in checkout.tests if PurePosixPath(test).name in names]
        if tests:
            return max(tests, key=lambda test: (len(set(PurePosixPath(test).parts) & set(file.parts)), test))
    return None


def layout(paths: Sequence[str]) -> str:
    """List folders down to three levels with their numbers of files; only the largest if there are too many."""
    counts: Counter[str] = Counter()
    for path in paths:
        folder = PurePosixPath(*PurePosixPath(path).parent.parts[:3])
        counts["./" if str(folder) == "." else f"{folder}/"] += 1
    largest = sorted(
        folder for folder, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:MAX_FOLDERS]
    )
    return "\n".join(f"{folder} ({counts[folder]} files)" for folder in largest)


def _excerpt(definition: Definition, path: str, lines: Sequence[str], most: int) -> Excerpt:
    source = "\n".join(lines[definition.first - 1 : min(definition.last, definition.first + most)])
    return Excerpt(name=definition.qualified, path=path, line=definition.first, source=source)


def _within(definitions: Sequence[Excerpt], limit: int) -> tuple[Excerpt, ...]:
    excerpts: list[Excerpt] = []
    for excerpt in definitions:
        limit -= len(excerpt.source)
        if limit < 0:
            break
        excerpts.append(excerpt)
    return tuple(excerpts)


def choose_host(query: str, test_files: Mapping[str, str]) -> str | None:
    """Return the test file most similar to ``query`` (draft and report), or None without a common word.

    Source: LIBRO, section III.C; BM25 replaces its lexical similarity, so that frequent words weigh less.
    """
    texts = {path: f"{path}\n{text}" for path, text in test_files.items() if text}
    return next(iter(most_alike(query, texts, 1)), None)


class _Facts(Frozen):
    python: str
    system: str
    root: bool
    packages: tuple[str, ...]


def machine(harness: Harness, folder: Path) -> str:
    """Describe the interpreter that runs the tests in two sentences; empty if it does not answer.

    Raises SandboxError if the sandbox itself fails.
    """
    if harness.command.runs_java:
        return ""
    program = PurePosixPath(harness.command.argv[0])
    python = program if program.name.startswith("python") else program.with_name("python3")
    reply = harness.output((str(python), "-c", _SCRIPT), folder).strip().rpartition("\n")[2]
    try:
        facts = _Facts.model_validate_json(reply)
    except ValueError:
        return ""
    names = [name for name in facts.packages if _NAME.fullmatch(name)][:MAX_PACKAGES]
    rights = "as root" if facts.root else "not as root"
    return (
        f"Python {facts.python[:MAX_WORDS]} on {facts.system[:MAX_WORDS]}, {rights}, without a network. Besides "
        f"the standard library and the repository's own, these can be imported: {', '.join(names) or 'none'}."
    )
