"""The rules of Go."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bot.code.parsing.expressions import closing
from bot.code.symbols.imports import FileNames, Imported
from bot.code.symbols.language_rules import LanguageRules

#: Most characters of the head of a method that are read.
_LONGEST_HEAD = 2_000


def _imports(text: str, path: str, files: FileNames) -> Iterator[tuple[str, Imported]]:
    match = re.match(r"(?:([\w.]+)\s+)?[\"`]([^\"`]+)[\"`]", text)
    if match is None:
        return
    parts = match[2].split("/")
    # The module's own path is a prefix of the import; what follows is the folder.
    for start in range(1, len(parts) + 1):
        folder = "/".join(parts[start:])
        places = files.in_folder(folder, ".go")
        if places and (folder or start >= 3):
            name = parts[-2] if re.fullmatch(r"v\d+", parts[-1]) and len(parts) > 1 else parts[-1]
            yield match[1] or name.removeprefix("go-"), Imported(places, "", is_module=True)
            return


def signature(head: str, name: str) -> tuple[str, ...]:
    """Return the types of a method's parameters and of its results, without their packages."""
    head = re.sub(r"//[^\n]*", "", head[:_LONGEST_HEAD])
    head = head.replace("interface{}", "any").replace("struct{}", "empty")
    start = re.search(rf"\b{re.escape(name)}\s*\(", head)
    if start is None:
        return ()
    end = closing(head, start.end() - 1)
    results = head[end:].partition("{")[0].strip()
    results = results[1:-1] if results.startswith("(") else results
    return (*_types(head[start.end() : end - 1]), "->", *_types(results))


def _types(parameters: str) -> list[str]:
    """Return the types in a list of parameters or results, of which several may share one: ``a, b int``."""
    parts, depth = [""], 0
    for char in parameters:
        depth += (char in "([{") - (char in ")]}")
        if char == "," and not depth:
            parts.append("")
        else:
            parts[-1] += char
    parts = [" ".join(part.split()) for part in parts if part.strip()]
    have_names = any(re.match(r"(?!(?:func|chan|map)\b)\w+ ", part) for part in parts)
    types: list[str] = []
    for part in reversed(parts):
        own = part.partition(" ")[2] if have_names else part
        types.append(re.sub(r"\b\w+\.", "", own) or "".join(types[-1:]))
    return types[::-1]


LANGUAGE = LanguageRules(
    "go",
    imports=_imports,
    bounds=r"\s+",
    signature=signature,
    package_ending=".go",
    has_several_results=True,
)
