"""The files and names that the imports of a file stand for, for each language."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice
from pathlib import PurePosixPath
from posixpath import normpath
from typing import Any, NamedTuple

import re2

from bot.code.parsing.syntax import Import


class Imported(NamedTuple):
    """The meaning of a local name: a name in one of the files, or these files themselves as a module."""

    paths: tuple[str, ...]
    name: str
    is_module: bool = False


#: Stands for all names of a module.
STAR = "*"
#: Stands for the classes of a package in Java, whose folder is its name.
PACKAGE = "package"
#: Stands for the only name that a script exports.
DEFAULT = "default"
#: Most files that configure the imports of scripts, most of them in one folder, and their length.
_MAX_CONFIGURATIONS, _MAX_IN_FOLDER, _LONGEST = 200, 8, 50_000
_CONFIGURATION = re.compile(r"[jt]sconfig(?:\.[\w.-]+)?\.json")
_CRATE = re2.compile(r"(?m)^\[(?:package|lib)\]\s*(?:[^\[\n][^\n]*\n+)*?name\s*=\s*\"([\w-]+)\"")
#: Strings, and what JSON does not have: comments and a last comma.
_NO_JSON = re2.compile(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*(?:[\s\S]*?\*/|[\s\S]*)')
_LAST_COMMA = re2.compile(r'("(?:\\.|[^"\\])*")|,\s*([}\]])')


class FileNames:
    """The paths of a repository, also by folder and by name. ``read`` returns the text of a path."""

    def __init__(self, paths: Iterable[str], read: Callable[[str], str | None] = lambda _path: None) -> None:
        self.paths = frozenset(paths)
        self._read = read
        self._configurations: dict[str, list[tuple[str, str]]] = {}
        self._by_folder: dict[str, list[str]] = {}
        self._by_name: dict[str, list[str]] = {}
        for path in sorted(self.paths):
            folder, _, name = path.rpartition("/")
            self._by_folder.setdefault(folder, []).append(path)
            self._by_name.setdefault(name, []).append(path)

    def in_folder(self, folder: str, ending: str) -> tuple[str, ...]:
        """Return the files of a folder with an ending, without Go's tests."""
        files = self._by_folder.get(folder, ())
        return tuple(path for path in files if path.endswith(ending) and not path.endswith("_test.go"))

    def ending_with(self, suffix: str) -> tuple[str, ...]:
        """Return the files whose path ends with these whole segments."""
        same_name = self._by_name.get(suffix.rpartition("/")[2], ())
        return tuple(path for path in same_name if f"/{path}".endswith(f"/{suffix}"))

    def existing(self, candidates: Iterable[str]) -> tuple[str, ...]:
        """Return the candidates that exist, once each."""
        return tuple(dict.fromkeys(candidate for candidate in candidates if candidate in self.paths))

    def of_script(self, target: str, path: str) -> Iterator[str]:
        """Yield what an absolute import of a script may stand for, by a tsconfig or a package of the repository.

        These are paths without endings. The nearest tsconfig counts that maps imports to paths.
        """
        folder = PurePosixPath(path).parent
        mappings = (self._paths_in(parent.as_posix()) for parent in (folder, *folder.parents))
        for pattern, place in next(filter(None, mappings), []):
            before, star, behind = pattern.partition("*")
            if target == pattern or (star and target.startswith(before) and target.endswith(behind)):
                yield normpath(place.replace("*", target[len(before) : len(target) - len(behind)], 1))
        names = target.split("/")
        count = 2 if target.startswith("@") else 1
        for root in self._packages.get("/".join(names[:count]), ()):
            yield normpath("/".join([root, *names[count:]]))

    def _paths_in(self, folder: str) -> list[tuple[str, str]]:
        """Return the patterns of imports in a folder's configurations of TypeScript, and their paths."""
        if folder not in self._configurations:
            self._configurations[folder] = pairs = []
            files = self._by_folder.get("" if folder == "." else folder, ())
            matches = (path for path in files if _CONFIGURATION.fullmatch(path.rpartition("/")[2]))
            for path in islice(matches, _MAX_IN_FOLDER if len(self._configurations) < _MAX_CONFIGURATIONS else 0):
                options = _entries(_entries(self._json(path)).get("compilerOptions"))
                base = f"{folder}/{options.get('baseUrl', '.')}"
                for pattern, places in _entries(options.get("paths")).items():
                    texts = (
                        [place for place in places if isinstance(place, str)] if isinstance(places, list) else []
                    )
                    pairs += [(pattern, f"{base}/{place}") for place in texts]
                if "baseUrl" in options:
                    pairs.append(("*", f"{base}/*"))
            del pairs[_MAX_CONFIGURATIONS:]
        return self._configurations[folder]

    @cached_property
    def _packages(self) -> dict[str, tuple[str, ...]]:
        """The folders of the sources of the repository's packages, by name."""
        packages: dict[str, tuple[str, ...]] = {}
        files = (path for path in self._by_name.get("package.json", ()) if "node_modules/" not in path)
        for path in islice(sorted(files, key=lambda path: path.count("/")), _MAX_CONFIGURATIONS):
            content, folder = _entries(self._json(path)), PurePosixPath(path).parent
            if isinstance(name := content.get("name"), str):
                roots = (f"{folder}/src", str(folder), f"{folder}/{content.get('main', 'lib')}")
                packages.setdefault(name, roots)
        return packages

    @cached_property
    def crates(self) -> dict[str, str]:
        """The folders of the sources of the repository's crates, by name."""
        crates: dict[str, str] = {}
        for path in sorted(self._by_name.get("Cargo.toml", ()), key=lambda path: path.count("/"))[
            :_MAX_CONFIGURATIONS
        ]:
            for match in _CRATE.finditer((self._read(path) or "")[:_LONGEST]):
                crates.setdefault(match[1].replace("-", "_"), (PurePosixPath(path).parent / "src").as_posix())
        return crates

    def _json(self, path: str) -> Any:
        text = self._read(path) or ""
        try:
            without_comments = _NO_JSON.sub(r"\1", text) if len(text) <= _LONGEST else ""
            return json.loads(_LAST_COMMA.sub(r"\1\2", without_comments))
        except (ValueError, RecursionError):
            return None


def _entries(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def imported_names(
    imports: Sequence[Import], path: str, language: str, files: FileNames
) -> dict[str, tuple[Imported, ...]]:
    """Return the imported names of a file by their local name; only files among ``files`` count."""
    reader = _READERS.get(language)
    results: dict[str, tuple[Imported, ...]] = {}
    if reader is None:
        return results
    for statement in imports:
        for local, imported in reader(statement.text, path, files):
            results[local] = (*results.get(local, ()), imported)
    return results


def _python(text: str, path: str, files: FileNames) -> Iterator[tuple[str, Imported]]:
    folder = PurePosixPath(path).parent
    match = re.match(r"from\s+(\.*)([\w.]*)\s+import\s+([\s\S]*)", text)
    if match is None:
        for module, local in re.findall(r"([\w.]+)(?:\s+as\s+(\w+))?", text.removeprefix("import")):
            if module == "as":
                continue
            first = module if local else module.split(".")[0]
            places = _python_module(first, 0, folder, files)
            yield local or first, Imported(places, "", is_module=True)
        return
    dots, module, names = match.groups()
    names = re.sub(r"#.*", "", names)
    places = _python_module(module, len(dots), folder, files)
    if names.strip() == STAR:
        yield STAR, Imported(places, STAR)
        return
    for name, local in re.findall(r"(\w+)(?:\s+as\s+(\w+))?", names):
        submodule = _python_module(f"{module}.{name}".strip("."), len(dots), folder, files)
        if submodule:
            yield local or name, Imported(submodule, "", is_module=True)
        yield local or name, Imported(places, name)


def _python_module(module: str, dots: int, folder: PurePosixPath, files: FileNames) -> tuple[str, ...]:
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


def _script(text: str, path: str, files: FileNames) -> Iterator[tuple[str, Imported]]:
    match = re.search(r"(?:from\s*|require\(\s*)['\"]([^'\"]+)['\"]\s*\)?(?:\.(\w+))?", text)
    if match is None:
        return
    places = _script_module(match[1], path, files)
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


def _script_module(target: str, path: str, files: FileNames) -> tuple[str, ...]:
    is_relative = target.startswith(".")
    own = normpath((PurePosixPath(path).parent / target).as_posix())
    endings = (".ts", ".tsx", ".js", ".jsx", ".mjs", ".cjs", ".mts", ".cts", ".d.ts")
    for base in [own] if is_relative else files.of_script(target, path):
        bare = re.sub(r"\.[cm]?[jt]sx?$", "", base)
        candidates = [base, *(bare + end for end in endings), *(f"{base}/index{end}" for end in endings)]
        if places := files.existing(candidates)[:1]:
            return places
    return ()


def _go(text: str, path: str, files: FileNames) -> Iterator[tuple[str, Imported]]:
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


def _java(text: str, path: str, files: FileNames) -> Iterator[tuple[str, Imported]]:
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


def _rust(text: str, path: str, files: FileNames) -> Iterator[tuple[str, Imported]]:
    body = re.sub(r"^(?:pub(?:\([^)]*\))?\s+)?use\s+|;\s*$", "", text.strip())
    for segments, local in _rust_leaves(body, (), 0):
        *module, name = segments
        if name == "self":
            if module:
                yield local or module[-1], Imported(_rust_module(module, path, files), "", is_module=True)
            continue
        places = _rust_module(module, path, files)
        if name == STAR:
            yield STAR, Imported(places, STAR)
            continue
        submodule = _rust_module(segments, path, files)
        if submodule and submodule != places:
            yield local or name, Imported(submodule, "", is_module=True)
        yield local or name, Imported(places, name)


def _rust_leaves(text: str, before: tuple[str, ...], depth: int) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the paths in a tree of ``use``, with their aliases."""
    if depth > 10:
        return
    part, level = "", 0
    for char in f"{text},":
        if char == "," and not level:
            head, brace, inner = part.strip().partition("{")
            segments = (*before, *(segment.strip() for segment in head.split("::") if segment.strip()))
            if brace:
                yield from _rust_leaves(inner.rpartition("}")[0], segments, depth + 1)
            elif segments:
                name, _, alias = segments[-1].partition(" as ")
                yield (*segments[:-1], name.strip()), alias.strip()
            part = ""
            continue
        level += (char == "{") - (char == "}")
        part += char


def _rust_module(segments: Sequence[str], path: str, files: FileNames) -> tuple[str, ...]:
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
        inside = _rust_file(root, rest, files)
        return inside if inside else _rust_crate(segments, files)
    return _rust_file(root, rest, files)


def _rust_file(root: PurePosixPath, segments: Sequence[str], files: FileNames) -> tuple[str, ...]:
    if not segments:
        own = files.existing([f"{root}/{name}.rs" for name in ("lib", "main", "mod")])
        return own or files.existing([f"{root}.rs"])
    base = root.joinpath(*segments)
    return files.existing((f"{base}.rs", f"{base}/mod.rs"))[:1]


def _rust_crate(segments: Sequence[str], files: FileNames) -> tuple[str, ...]:
    """Return the file of a module of a crate in the repository."""
    root = files.crates.get(segments[0])
    return () if root is None else _rust_file(PurePosixPath(root), segments[1:], files)


_READERS: dict[str, Callable[[str, str, FileNames], Iterator[tuple[str, Imported]]]] = {
    "python": _python,
    "script": _script,
    "go": _go,
    "java": _java,
    "rust": _rust,
}
