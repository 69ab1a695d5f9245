"""The rules of Rust."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from bot.code.symbols.imports import STAR, FileNames, Imported
from bot.code.symbols.language_rules import LanguageRules


def _imports(text: str, path: str, files: FileNames) -> Iterator[tuple[str, Imported]]:
    body = re.sub(r"^(?:pub(?:\([^)]*\))?\s+)?use\s+|;\s*$", "", text.strip())
    for segments, local in _leaves(body, (), 0):
        *module, name = segments
        if name == "self":
            if module:
                yield local or module[-1], Imported(_module(module, path, files), "", is_module=True)
            continue
        places = _module(module, path, files)
        if name == STAR:
            yield STAR, Imported(places, STAR)
            continue
        submodule = _module(segments, path, files)
        if submodule and submodule != places:
            yield local or name, Imported(submodule, "", is_module=True)
        yield local or name, Imported(places, name)


def _leaves(text: str, before: tuple[str, ...], depth: int) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the paths in a tree of ``use``, with their aliases."""
    if depth > 10:
        return
    part, level = "", 0
    for char in f"{text},":
        if char == "," and not level:
            head, brace, inner = part.strip().partition("{")
            segments = (*before, *(segment.strip() for segment in head.split("::") if segment.strip()))
            if brace:
                yield from _leaves(inner.rpartition("}")[0], segments, depth + 1)
            elif segments:
                name, _, alias = segments[-1].partition(" as ")
                yield (*segments[:-1], name.strip()), alias.strip()
            part = ""
            continue
        level += (char == "{") - (char == "}")
        part += char


def _module(segments: Sequence[str], path: str, files: FileNames) -> tuple[str, ...]:
    """Return the file of a module, or of the module that holds it; none for another crate."""
    here = PurePosixPath(path)
    folder = here.parent if here.name in ("mod.rs", "lib.rs", "main.rs") else here.parent / here.stem
    if not segments:
        return ()
    first, *rest = segments
    if first == "crate":
        root = next((parent for parent in here.parents if parent.name == "src"), here.parent)
    elif first == "super":
        root = folder.parent
        while rest[:1] == ["super"]:
            root, rest = root.parent, rest[1:]
    elif first == "self":
        root = folder
    else:
        root, rest = folder, list(segments)
        inside = _file(root, rest, files)
        return inside if inside else _of_crate(segments, files)
    return _file(root, rest, files)


def _file(root: PurePosixPath, segments: Sequence[str], files: FileNames) -> tuple[str, ...]:
    if not segments:
        own = files.existing([f"{root}/{name}.rs" for name in ("lib", "main", "mod")])
        return own or files.existing([f"{root}.rs"])
    base = root.joinpath(*segments)
    return files.existing((f"{base}.rs", f"{base}/mod.rs"))[:1]


def _of_crate(segments: Sequence[str], files: FileNames) -> tuple[str, ...]:
    """Return the file of a module of a crate in the repository."""
    root = files.crates.get(segments[0])
    return () if root is None else _file(PurePosixPath(root), segments[1:], files)


LANGUAGE = LanguageRules(
    "rust",
    imports=_imports,
    bounds=r"\s*:\s*",
    same_class=frozenset({
        "unwrap()", "expect()", "clone()", "borrow()", "borrow_mut()", "lock()", "read()", "write()", "as_ref()",
        "as_mut()", "default()", "from()",
    }),
    separates_fields=True,
    splits_types=True,
)  # fmt: skip
