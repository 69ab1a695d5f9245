"""The rules of JavaScript and TypeScript."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from posixpath import normpath

from bot.code.symbols.imports import DEFAULT, STAR, FileNames, Imported
from bot.code.symbols.language_rules import LanguageRules


def _imports(text: str, path: str, files: FileNames) -> Iterator[tuple[str, Imported]]:
    match = re.search(r"(?:from\s*|require\(\s*)['\"]([^'\"]+)['\"]\s*\)?(?:\.(\w+))?", text)
    if match is None:
        return
    places = _module(match[1], path, files)
    head = text[: match.start()].removeprefix("import").removeprefix("export")
    names = re.search(r"\{([\s\S]*?)\}", head)
    for name, local in re.findall(r"([\w$]+)(?:\s*(?:\bas\b|:)\s*([\w$]+))?", names[1] if names else ""):
        if name != "type":
            yield local or name, Imported(places, name)
    rest = re.sub(r"\{[\s\S]*?\}", "", head)
    if (namespace := re.search(r"\*\s*as\s+([\w$]+)", rest)) is not None:
        yield namespace[1], Imported(places, "", is_module=True)
    elif (plain := re.search(r"^\s*(?:type\s+)?([\w$]+)", rest)) is not None:
        yield plain[1], Imported(places, match[2] or DEFAULT)
        yield plain[1], Imported(places, "", is_module=True)
    elif STAR in rest:
        yield STAR, Imported(places, STAR)


def _module(target: str, path: str, files: FileNames) -> tuple[str, ...]:
    is_relative = target.startswith(".")
    own = normpath((PurePosixPath(path).parent / target).as_posix())
    endings = (".ts", ".tsx", ".js", ".jsx", ".mjs", ".cjs", ".mts", ".cts", ".d.ts")
    for base in [own] if is_relative else files.of_script(target, path):
        bare = re.sub(r"\.[cm]?[jt]sx?$", "", base)
        candidates = [base, *(bare + end for end in endings), *(f"{base}/index{end}" for end in endings)]
        if places := files.existing(candidates)[:1]:
            return places
    return ()


LANGUAGE = LanguageRules(
    "script",
    imports=_imports,
    bounds=r"\s+extends\s+",
    own_module=("exports", "module.exports"),
    functions_are_classes=True,
    delegations=("super",),
)
