"""The meaning of imported names, and the files of a repository among which imports are looked up."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from itertools import islice
from pathlib import PurePosixPath
from posixpath import normpath
from typing import Any, NamedTuple

import re2


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
