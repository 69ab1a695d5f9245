"""A checkout as drafting reads it, and what a model is shown of it: layout, nearest tests, code that is named."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path, PurePosixPath

from pydantic import Field

from bot.code.lookup import called_names
from bot.code.syntax import Definition, definitions, enclosing
from bot.core.errors import OperatorError
from bot.core.frozen import Frozen
from bot.reproduction.execution import Harness
from bot.reproduction.language import Excerpt, Language
from bot.reproduction.lexical import most_alike
from bot.reproduction.report import Facts

#: Of a checkout: files of the language, bytes of one, and of all together.
MAX_FILES, MAX_FILE_BYTES, MAX_TOTAL_BYTES = 6_000, 400_000, 60_000_000
_SKIPPED = frozenset(
    {"__pycache__", "node_modules", "site-packages", "build", "dist", "venv", "env", "target", "vendor"}
)
MAX_FOLDERS = 60
MAX_DEFINITIONS = 8
#: Characters of the nearest test file, and of all definitions together.
MAX_HOST = 8_000
MAX_SOURCE = 16_000
#: Tests that use the report's symbols, their characters, and files beside the host that are looked at for them.
MAX_TESTS, MAX_USING, MAX_TEST_FILES = 4, 6_000, 5
#: Characters of the host's beginning where such tests are shown, of all fixtures, and lines of one fixture.
MAX_HEAD, MAX_FIXTURES, MAX_FIXTURE = 2_500, 4_000, 12
#: Lines of a function that holds a string of the report, and files that may hold it: more tell nothing.
MAX_LINES, MAX_HOLDERS = 60, 2

#: Folders that show the code in use, or speak of it.
_ASIDE = frozenset({"test", "tests", "testing", "example", "examples", "doc", "docs", "benchmarks", "galleries"})
#: A string or an option as a report writes it.
_CONSTANT = re.compile(r"[`'\"](-{0,2}[A-Za-z][\w-]{3,40})[`'\"]")
#: Packages that are named, and characters of a version.
MAX_PACKAGES, MAX_WORDS = 150, 100
#: Written for every Python that still runs anywhere.
_SCRIPT = """\
import json, os, platform
try:
    from importlib.metadata import distributions
    names = sorted({name for each in distributions() for name in (each.read_text("top_level.txt") or
                    (each.metadata["Name"] or "").replace("-", "_")).split()})
except Exception:
    names = []
facts = {"python": platform.python_version(), "system": platform.system() + " " + platform.machine()}
print(json.dumps(dict(facts, root=os.geteuid() == 0, packages=names)))
"""
_NAME = re.compile(r"[A-Za-z]\w{0,40}")


@dataclass(frozen=True)
class Checkout:
    """What was read of a folder; paths are relative, with ``/``."""

    folder: Path
    sources: Mapping[str, str]
    """Text of the files of the repository's language."""
    tests: Mapping[str, str]
    """Those of them in which its test runner looks for tests."""
    paths: tuple[str, ...]
    """All files, sorted."""


def read_checkout(folder: Path, language: Language) -> Checkout:
    """Read a folder. Links are not followed, hidden and generated folders are skipped.

    Raises OperatorError where ``folder`` is no folder.
    """
    if not folder.is_dir():
        raise OperatorError(f"{folder}: no such folder")
    sources: dict[str, str] = {}
    paths: list[str] = []
    left = MAX_TOTAL_BYTES
    for path in _files(folder):
        name = path.relative_to(folder).as_posix()
        paths.append(name)
        if PurePosixPath(name).suffix not in language.suffixes or len(sources) >= MAX_FILES:
            continue
        text = _text(path, min(left, MAX_FILE_BYTES))
        if text is not None:
            sources[name] = text
            left -= len(text)
    tests = {name: text for name, text in sources.items() if language.is_test_file(name)}
    return Checkout(folder=folder, sources=sources, tests=tests, paths=tuple(sorted(paths)))


def _files(folder: Path) -> Iterator[Path]:
    for parent, folders, files in os.walk(folder, followlinks=False):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in _SKIPPED)
        for name in sorted(files):
            path = Path(parent, name)
            if not name.startswith(".") and path.is_file() and not path.is_symlink():
                yield path


def _text(path: Path, limit: int) -> str | None:
    if path.stat().st_size > limit:
        return None
    try:
        # Bytes, not text mode: line ends are part of a file's style and are kept.
        return path.read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        return None


class Context(Frozen):
    """The part of a repository that goes into a prompt."""

    layout: str = Field(description="folders with the number of files in them, one a line")
    host: str | None = Field(description="path of the test file most like the report; None without test files")
    host_text: str = Field("", description="its beginning; its end too where none of its tests is shown")
    definitions: tuple[Excerpt, ...] = ()
    tests: tuple[Excerpt, ...] = Field((), description="existing tests that use what the report speaks of")
    fixtures: tuple[Excerpt, ...] = Field((), description="pytest's, that a test in the host can ask for")
    command: str = Field("", description="how the test is run, with {tests} where it is named")
    machine: str = Field("", description="where it is run")


def context(facts: Facts, checkout: Checkout, language: Language) -> Context:
    """Choose what to show for a report."""
    sources = {path: text for path, text in checkout.sources.items() if _is_code(path, checkout)}
    found = list(_telling(language.definitions(facts.names, sources, MAX_DEFINITIONS)))
    if len(found) < MAX_DEFINITIONS:
        found += _holding_constants(facts.text, sources, MAX_DEFINITIONS - len(found))
    if len(found) < MAX_DEFINITIONS:
        calls = called_names(line for each in found for line in each.source.split("\n"))
        found += _telling(language.definitions(calls, sources, MAX_DEFINITIONS))
    unique = {(each.path, each.line): each for each in reversed(found)}
    shown = [each for each in dict.fromkeys(found) if unique[each.path, each.line] is each][:MAX_DEFINITIONS]
    host = _test_of([each.path for each in shown], checkout) or choose_host(
        " ".join((*facts.names, facts.text)), checkout.tests
    )
    used = {each.name.rpartition(".")[2] for each in shown} | {name.rpartition(".")[2] for name in facts.names}
    tests = _using(used, host, checkout, language) if host else ()
    return Context(
        layout=layout(checkout.paths),
        host=host,
        host_text=_beginning(checkout.tests[host], tests) if host else "",
        definitions=_within(shown, MAX_SOURCE),
        tests=tests,
        fixtures=_fixtures(host, checkout) if host else (),
    )


def _using(used: Collection[str], host: str, checkout: Checkout, language: Language) -> tuple[Excerpt, ...]:
    """The tests that name most of these symbols, those of the host first."""
    if not used:
        return ()
    wanted = re.compile(rf"\b(?:{'|'.join(map(re.escape, sorted(used)))})\b")
    found: list[tuple[int, Excerpt]] = []
    others = (path for path, text in checkout.tests.items() if path != host and wanted.search(text))
    for path in (host, *islice(others, MAX_TEST_FILES)):
        for name, text in language.tests_in(checkout.tests[path]):
            known = len(set(wanted.findall(text)))
            if known:
                line = checkout.tests[path].partition(text)[0].count("\n") + 1
                found.append((known + (path == host), Excerpt(name=name, path=path, line=line, source=text)))
    best = [each for _, each in sorted(found, key=lambda pair: -pair[0])[:MAX_TESTS]]
    return _within(best, MAX_USING)


def _beginning(text: str, tests: Sequence[Excerpt]) -> str:
    """The host's imports and set-up, and its end where no test of it is shown for its style."""
    if not tests or len(text) <= MAX_HEAD:
        return _ends(text, MAX_HOST)
    return f"{text[:MAX_HEAD].rpartition(chr(10))[0]}\n\n[... lines left out ...]"


def _fixtures(host: str, checkout: Checkout) -> tuple[Excerpt, ...]:
    """Fixtures of the host, and of the conftest files in its folder and above."""
    above = [str(folder / "conftest.py") for folder in PurePosixPath(host).parents]
    found: list[Excerpt] = []
    for path in (host, *above):
        text = checkout.sources.get(path) or checkout.tests.get(path) or ""
        lines = text.split("\n")
        for each in definitions(text, path) if "fixture" in text else ():
            if any("fixture" in line for line in lines[each.first - 1 : each.body - 1]):
                found.append(_excerpt(each, path, lines, MAX_FIXTURE))
    return _within(found, MAX_FIXTURES)


def _is_code(path: str, checkout: Checkout) -> bool:
    """Whether a file is the project's own code, and no test, example or page."""
    return path not in checkout.tests and not _ASIDE.intersection(PurePosixPath(path).parts[:-1])


def _telling(found: Sequence[Excerpt]) -> Iterator[Excerpt]:
    """Without hits of one line: an alias or a stub says nothing."""
    return (each for each in found if "\n" in each.source.strip())


def _holding_constants(text: str, sources: Mapping[str, str], room: int) -> list[Excerpt]:
    """The functions that hold a string of the report, such as an option's name."""
    found: list[Excerpt] = []
    for word in dict.fromkeys(_CONSTANT.findall(text)):
        holders = [path for path, source in sources.items() if f'"{word}"' in source or f"'{word}'" in source]
        for path in holders if len(holders) <= MAX_HOLDERS else ():
            lines = sources[path].split("\n")
            at = next(n for n, line in enumerate(lines, 1) if f'"{word}"' in line or f"'{word}'" in line)
            around = enclosing(definitions(sources[path], path), at, at)
            if around is not None and len(found) < room:
                found.append(_excerpt(around, path, lines, MAX_LINES))
    return found


def _test_of(paths: Sequence[str], checkout: Checkout) -> str | None:
    """The test file that is named after a file of the code, the nearest of several; None where none is."""
    for path in paths:
        place = PurePosixPath(path)
        names = {f"test_{place.name}", f"{place.stem}_test{place.suffix}", f"{place.stem}Test{place.suffix}"}
        found = [each for each in checkout.tests if PurePosixPath(each).name in names]
        if found:
            return max(found, key=lambda each: (len(set(PurePosixPath(each).parts) & set(place.parts)), each))
    return None


def layout(paths: Sequence[str]) -> str:
    """Folders down to three levels with their numbers of files, the largest where there are too many."""
    counts: Counter[str] = Counter()
    for path in paths:
        folder = PurePosixPath(*PurePosixPath(path).parent.parts[:3])
        counts["./" if str(folder) == "." else f"{folder}/"] += 1
    kept = sorted(
        folder for folder, _ in sorted(counts.items(), key=lambda each: (-each[1], each[0]))[:MAX_FOLDERS]
    )
    return "\n".join(f"{folder} ({counts[folder]} files)" for folder in kept)


def _ends(text: str, limit: int) -> str:
    """The beginning (imports, set-up) and the end (where tests are added) of a long file, whole lines."""
    if len(text) <= limit:
        return text
    head = text[: limit // 2].rpartition("\n")[0]
    tail = text[-limit // 2 :].partition("\n")[2]
    return f"{head}\n\n[... lines left out ...]\n\n{tail}"


def _excerpt(each: Definition, path: str, lines: Sequence[str], most: int) -> Excerpt:
    source = "\n".join(lines[each.first - 1 : min(each.last, each.first + most)])
    return Excerpt(name=each.qualified, path=path, line=each.first, source=source)


def _within(definitions: Sequence[Excerpt], limit: int) -> tuple[Excerpt, ...]:
    kept: list[Excerpt] = []
    for each in definitions:
        limit -= len(each.source)
        if limit < 0:
            break
        kept.append(each)
    return tuple(kept)


def choose_host(query: str, test_files: Mapping[str, str]) -> str | None:
    """The test file most like ``query`` (draft and report); None where none has a word in common with it.

    Source: LIBRO, section III.C; its lexical similarity is BM25 here, so that frequent words weigh less.
    """
    texts = {path: f"{path}\n{text}" for path, text in test_files.items() if text}
    return next(iter(most_alike(query, texts, 1)), None)


class _Facts(Frozen):
    python: str
    system: str
    root: bool
    packages: tuple[str, ...]


def machine(harness: Harness, folder: Path) -> str:
    """What the interpreter that runs the tests says of itself, in two sentences; empty where none answers.

    Raises SandboxError where the sandbox itself breaks.
    """
    if harness.command.runs_java:
        return ""
    program = PurePosixPath(harness.command.argv[0])
    python = program if program.name.startswith("python") else program.with_name("python3")
    said = harness.execute((str(python), "-c", _SCRIPT), folder).output.strip().rpartition("\n")[2]
    try:
        facts = _Facts.model_validate_json(said)
    except ValueError:
        return ""
    names = [name for name in facts.packages if _NAME.fullmatch(name)][:MAX_PACKAGES]
    who = "as root" if facts.root else "not as root"
    return (
        f"Python {facts.python[:MAX_WORDS]} on {facts.system[:MAX_WORDS]}, {who}, without a network. Besides the "
        f"standard library and the repository's own, these can be imported: {', '.join(names) or 'none'}."
    )
