"""Look up what an issue names in the code: files, names, options and versions. No model is asked.

Only what is certain is stated: that no file contains a name, not that nothing defines it.
"""

from __future__ import annotations

import builtins
import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from bot.core.text import HTML_COMMENT
from bot.features.shared.labels import MAX_BODY
from bot.features.triage.record import Claim
from bot.github.protocol import MAX_TAGS, SourceTree

#: Claims that are stated, names and files that are searched for, characters of one, and the project's own names.
MAX_CLAIMS, MAX_NAMES, MAX_LENGTH, MAX_ROOTS = 10, 40, 100, 50

#: Folders above the packages, and folders that other projects have as well.
_ABOVE = frozenset({"src", "lib", "main", "java", "kotlin", "python", "packages", "source", "crates"})
_COMMON = frozenset({"test", "tests", "doc", "docs", "example", "examples", "bin", "scripts", "build", "dist"})
#: Files that a build writes.
_GENERATED = frozenset({"version.py", "_version.py", "config.py"})

_URL = re.compile(r"\bhttps?://\S+")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_SPAN = re.compile(r"(?<!`)`([^`\n]{1,200})`(?!`)")
_PATH = re.compile(r"(?<![\w/.\\:-])((?:[\w.-]{1,80}/){1,20}[\w-][\w.-]{0,80}\.\w{1,5})\b")
_INSTALLED = re.compile(r"(?:site|dist)-packages/((?:[\w.-]{1,80}/){1,20}[\w-][\w.-]{0,80}\.\w{1,5})\b")
_QUALIFIED = re.compile(r"(?<![\w./\\@-])([A-Za-z_]\w{0,80}(?:\.[A-Za-z_]\w{0,80}){1,10})(?![\w/-])")
_IMPORT = re.compile(r"^[^\w\n]*import ([\w.]{1,80})(?: as (\w{1,40}))?", re.MULTILINE)
_FROM = re.compile(r"^[^\w\n]*from ([\w.]{1,80}) import ([\w, ]{1,200})", re.MULTILINE)
_DEFINITION = re.compile(
    r"\b(?:def|class|function|fn|func|var|let|const) +(\w{1,80})|(?:^|[(,;]) *(\w{1,80}) *=(?!=)", re.M
)
_IDENTIFIER = re.compile(r"\.?([A-Za-z_]\w{0,80}(?:\.[A-Za-z_]\w{0,80}){0,10})(\([^()]{0,100}\))?")
_HAS_FORM = re.compile(r"[a-z0-9]_[a-z0-9]|[A-Z]_[A-Z]|[a-z][A-Z]|[A-Z]{2}[a-z]")
_OPTION = re.compile(r"(?<![\w-])--([a-z][a-z0-9]+(?:-[a-z0-9]+)*)\b")
_TOOL = re.compile(r"\b(?:pip3?|conda|mamba|git|npm|yarn|docker|apt|apt-get|brew|curl|cargo|go|make|cmake)\b")
_NUMBER = r"v?(\d{1,4}(?:\.\d{1,4}){1,3})(?![\w.+-]{0,20}[A-Za-z+]|\.?\d)"
_VERSION = re.compile(
    rf"(?:^|\b(?:in|with|since|using|on|from|latest|current) )(?:version:? +{_NUMBER}|(?=v){_NUMBER})", re.I | re.M
)


def absent(text: str, name: str, tree: SourceTree, tags: Callable[[], Iterable[str]]) -> tuple[Claim, ...]:
    """Return what a text names and the repository called ``name`` does not have.

    ``tags`` is called if the text names a version. Without tags of that form nothing is said about versions.
    """
    text = _URL.sub(" ", HTML_COMMENT.sub(" ", text[:MAX_BODY]))
    prose = _without_blocks(text)
    roots = _roots(tree.paths())
    aliases = _aliases(text)
    files = [Claim(type="file", text=path) for path in _missing_files(text, tree, roots)]
    searches: dict[Claim, Sequence[str]] = {}
    for identifier, words in _names(text, prose, roots, aliases):
        searches.setdefault(Claim(type="name", text=identifier), words)
    for option in _options(prose):
        searches.setdefault(Claim(type="option", text=f"--{option}"), (option,))
    searches = dict(list(searches.items())[:MAX_NAMES])
    unused = _unused({word for words in searches.values() for word in words}, tree)
    names = [claim for claim, words in searches.items() if unused.intersection(words)]
    numbers = _versions(prose, {name, *list(roots)[:MAX_ROOTS]})
    versions = [Claim(type="version", text=number) for number in _unreleased(numbers, tags)] if numbers else []
    claims = [claim for claim in (*files, *names, *versions) if len(claim.text) <= MAX_LENGTH]
    return tuple(dict.fromkeys(claims))[:MAX_CLAIMS]


def names_code(text: str) -> bool:
    """Return True if a text may name something that can be looked up."""
    patterns = (_INSTALLED, _PATH, _QUALIFIED, _SPAN, _OPTION, re.compile(_NUMBER))
    return any(pattern.search(text[:MAX_BODY]) for pattern in patterns)


def files_in(texts: Iterable[str], tree: SourceTree) -> tuple[str, ...]:
    """Return the files of the tree that texts name by their whole path, in order."""
    paths = frozenset(tree.paths())
    words = (word.removeprefix("./").rstrip(".") for text in texts for word in re.findall(r"[\w./+-]+", text))
    return tuple(dict.fromkeys(word for word in words if word in paths))


def _without_blocks(text: str) -> str:
    """Return a text without its fenced code."""
    lines, fence = [], ""
    for line in text.splitlines():
        match = _FENCE.match(line)
        if fence:
            fence = "" if match and match[1].startswith(fence) else fence
        elif match:
            fence = match[1]
        else:
            lines.append(line)
    return "\n".join(lines)


def _roots(paths: Iterable[str]) -> frozenset[str]:
    """Return the top folders of a repository's own code."""
    roots = set()
    for path in paths:
        parts = path.split("/")[:-1]
        while parts and parts[0] in _ABOVE:
            parts = parts[1:]
        if parts and parts[0] not in _COMMON and not parts[0].startswith("."):
            roots.add(parts[0])
    return frozenset(roots)


def _aliases(text: str) -> dict[str, str]:
    """Return the top package of each name that the issue's own code imports."""
    aliases = {}
    for module, alias in _IMPORT.findall(text):
        aliases[alias or module.partition(".")[0]] = module.partition(".")[0]
    for module, names in _FROM.findall(text):
        for name in names.split(","):
            aliases[name.rpartition(" as ")[2].strip()] = module.partition(".")[0]
    return aliases


def _missing_files(text: str, tree: SourceTree, roots: frozenset[str]) -> Iterator[str]:
    paths = tree.paths()
    suffixes = {path.rpartition(".")[2] for path in paths}
    for path in list(dict.fromkeys((*_INSTALLED.findall(text), *_PATH.findall(text))))[:MAX_NAMES]:
        if path.partition("/")[0] not in roots or path.rpartition(".")[2] not in suffixes:
            continue
        if path.rpartition("/")[2] in _GENERATED or ".." in path:
            continue
        if not any(f"/{file}".endswith(f"/{path}") for file in paths):
            yield path


def _names(
    text: str, prose: str, roots: frozenset[str], aliases: dict[str, str]
) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield each name of the project's code, with the words that have to occur somewhere."""
    for name in _QUALIFIED.findall(text):
        first, *rest = name.split(".")
        if aliases.get(first, first) in roots and not _is_file(name):
            yield name, rest
    own = {word for match in _DEFINITION.findall(text) for word in match}
    for span in _SPAN.findall(prose):
        match = _IDENTIFIER.fullmatch(span)
        if match is None or _is_file(match[1]):
            continue
        first, last = match[1].partition(".")[0], match[1].rpartition(".")[2]
        package = aliases.get(first, "")
        if (package and package not in roots) or last in own or hasattr(builtins, last):
            continue
        if match[2] or _HAS_FORM.search(last):
            yield match[1], (last,)


def _is_file(name: str) -> bool:
    return name.rpartition(".")[2] in ("py", "md", "rst", "txt", "org", "com", "io", "cfg", "toml", "js", "json")


def _options(prose: str) -> Iterator[str]:
    """Yield the options in a text that are not those of another tool on the same line."""
    for line in prose.splitlines():
        for match in _OPTION.finditer(line[:2_000]):
            if not _TOOL.search(line[: match.start()]):
                yield match[1]


def _unused(words: set[str], tree: SourceTree) -> set[str]:
    """Return the words that occur in no file and in no path, in any of the spellings of an option."""
    spellings: dict[str, set[str]] = {}
    for word in words:
        first, *rest = word.split("-")
        camel_case = first + "".join(part.capitalize() for part in rest)
        spellings[word] = {word, word.replace("-", "_"), camel_case}
    for path in tree.paths():
        if not spellings:
            break
        content = f"{path}\n{tree.read(path) or ''}"
        spellings = {
            word: forms for word, forms in spellings.items() if not any(form in content for form in forms)
        }
    return set(spellings)


def _versions(prose: str, names: Iterable[str]) -> tuple[str, ...]:
    """Return the project's versions that a text names."""
    either = "|".join(sorted(map(re.escape, names), key=len, reverse=True))
    own_version = re.compile(rf"(?<![\w./-])(?:{either})(?: version)?[ :=]{{0,3}}{_NUMBER}", re.I)
    numbers = (number for match in _VERSION.findall(prose) for number in match if number)
    return tuple(dict.fromkeys((*numbers, *own_version.findall(prose))))


def _unreleased(numbers: Sequence[str], tags: Callable[[], Iterable[str]]) -> Iterator[str]:
    names = tuple(tags())
    releases = {_parts(match[0]) for name in names if (match := re.search(r"\d{1,9}(?:[._]\d{1,9})+", name))}
    if not releases or len(names) >= MAX_TAGS:
        return
    for number in numbers:
        parts = _parts(number)
        if not any(release[: len(parts)] == parts for release in releases):
            yield number


def _parts(number: str) -> tuple[int, ...]:
    """Return the numbers of a version without zeros at the end: 2022.3.0 was released as v2022.03.0."""
    parts = [int(part) for part in re.split(r"[._]", number)]
    while parts and not parts[-1]:
        parts.pop()
    return tuple(parts)
