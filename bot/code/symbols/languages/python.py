"""The rules of Python."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from bot.code.symbols.imports import STAR, FileNames, Imported
from bot.code.symbols.language_rules import LanguageRules


def _imports(text: str, path: str, files: FileNames) -> Iterator[tuple[str, Imported]]:
    folder = PurePosixPath(path).parent
    match = re.match(r"from\s+(\.*)([\w.]*)\s+import\s+([\s\S]*)", text)
    if match is None:
        for module, local in re.findall(r"([\w.]+)(?:\s+as\s+(\w+))?", text.removeprefix("import")):
            if module == "as":
                continue
            first = module if local else module.split(".")[0]
            places = _module(first, 0, folder, files)
            yield local or first, Imported(places, "", is_module=True)
        return
    dots, module, names = match.groups()
    names = re.sub(r"#.*", "", names)
    places = _module(module, len(dots), folder, files)
    if names.strip() == STAR:
        yield STAR, Imported(places, STAR)
        return
    for name, local in re.findall(r"(\w+)(?:\s+as\s+(\w+))?", names):
        submodule = _module(f"{module}.{name}".strip("."), len(dots), folder, files)
        if submodule:
            yield local or name, Imported(submodule, "", is_module=True)
        yield local or name, Imported(places, name)


def _module(module: str, dots: int, folder: PurePosixPath, files: FileNames) -> tuple[str, ...]:
    if dots:
        roots = [folder, *folder.parents][dots - 1 : dots]
    else:
        roots = list(dict.fromkeys((PurePosixPath("src"), PurePosixPath("lib"), PurePosixPath(), *folder.parents)))
    for root in roots:
        base = root.joinpath(*module.split(".")) if module else root
        matches = files.existing((f"{base}.py", f"{base}/__init__.py", f"{base}.pyi"))
        if matches:
            return matches
    return ()


LANGUAGE = LanguageRules(
    "python",
    imports=_imports,
    has_interfaces=False,
    has_properties=True,
    has_docstrings=True,
    constructor="__init__",
    delegations=("__init__",),
)
