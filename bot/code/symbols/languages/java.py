"""The rules of Java."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bot.code.symbols.imports import PACKAGE, STAR, FileNames, Imported
from bot.code.symbols.language_rules import LanguageRules


def _imports(text: str, path: str, files: FileNames) -> Iterator[tuple[str, Imported]]:
    match = re.match(r"import\s+(static\s+)?([\w.]+)(\.\*)?\s*;", text)
    if match is None:
        return
    is_static, name, star = match.groups()
    parts = name.split(".")
    member = ""
    if is_static and not star:
        *parts, member = parts
    suffix = "/".join(parts)
    if star and not is_static:
        yield PACKAGE, Imported((), suffix)
        return
    places = files.ending_with(f"{suffix}.java")[:2] or files.ending_with(f"{'/'.join(parts[:-1])}.java")[:2]
    yield (STAR if star else member or parts[-1]), Imported(places, STAR if star else member or parts[-1])


LANGUAGE = LanguageRules(
    "java",
    imports=_imports,
    bounds=r"\s+extends\s+",
    same_class=frozenset({"clone()", "orElseThrow()"}),
    separates_fields=True,
    names_members=True,
    class_ending=".java",
    delegations=("super", "this"),
)
