"""The definitions that a name of another module means: by the imports and exports of files."""

from __future__ import annotations

from collections.abc import Sequence
from posixpath import commonprefix

import re2

from bot.code.parsing.expressions import segments
from bot.code.symbols.declarations import with_bodies
from bot.code.symbols.imports import DEFAULT, PACKAGE, STAR, Imported
from bot.code.symbols.index import CodeIndex, FileDefinition
from bot.code.symbols.languages import rules_of

#: Most imports, bases or members that are followed one after the other.
DEPTH = 4
Places = tuple[FileDefinition, ...]
#: The answer if the definition is outside of the repository: a search elsewhere in it would only find namesakes.
#: None is the answer if nothing tells what is meant.
OUTSIDE: Places = ()
#: What a script exports as its only value.
_DEFAULT_EXPORT = re2.compile(
    r"(?m)^(?:export default (?:async )?(?:function\*? |class )?|module\.exports = (?:function |class )?)"
    r"([A-Za-z_$][\w$]*)"
)


class Modules:
    """Resolves imported names of one repository."""

    def __init__(self, index: CodeIndex) -> None:
        self._index = index
        self._imports: dict[str, dict[str, tuple[Imported, ...]]] = {}

    def imported(self, path: str, name: str) -> Places | None:
        """Return what an import gives a name, which may be OUTSIDE; None without an import of it."""
        names = self._names(path)
        entries = names.get(name, ())
        for imported in entries:
            if not imported.is_module and (places := self.exported(imported)):
                return places
        if entries:
            return OUTSIDE
        for imported in names.get(STAR, ()):
            if places := self.exported(imported._replace(name=name)):
                return places
        return None

    def is_foreign(self, path: str, name: str) -> bool:
        """Return True if the file imports the name, and only from outside of the repository."""
        entries = self._names(path).get(name, ())
        return bool(entries) and not any(imported.paths for imported in entries)

    def exported(self, imported: Imported, depth: int = 0) -> Places:
        """Return the definitions that a module exports under a name, itself or from another module."""
        name = imported.name
        if name == DEFAULT:
            exports = (_DEFAULT_EXPORT.search(self._index.text(path) or "") for path in imported.paths)
            match = next(filter(None, exports), None)
            if match is None:
                return ()
            name = str(match[1])
        # A star imports no members.
        if places := self.top_level(imported.paths, name, with_members=not depth):
            return places
        if depth < DEPTH:
            for path in imported.paths:
                names = self._names(path)
                stars = [star._replace(name=name) for star in names.get(STAR, ())]
                for further in (*names.get(name, ()), *stars):
                    if not further.is_module and (places := self.exported(further, depth + 1)):
                        return places
        return ()

    def _names(self, path: str) -> dict[str, tuple[Imported, ...]]:
        if path not in self._imports:
            names = self._imports[path] = {}
            for statement in self._index.outline(path).imports:
                for local, imported in rules_of(path).imports(statement.text, path, self._index.files):
                    names[local] = (*names.get(local, ()), imported)
        return self._imports[path]

    def top_level(self, paths: Sequence[str], name: str, *, with_members: bool = False) -> Places:
        """Return the top-level definitions of a name in these files."""
        places = self._index.named(name, paths)
        top = [place for place in places if not place.definition.within] or (places if with_members else [])
        keep = with_bodies([place.definition for place in top])
        return tuple(place for place in top if place.definition in keep)[:2]

    def module_files(self, path: str, receiver: str) -> tuple[str, ...]:
        """Return the files of the module that a receiver names."""
        parts = segments(receiver)
        if ".".join(parts) in rules_of(path).own_module:
            return (path,)
        names = self._names(path)
        for name in (".".join(parts), parts[0] if len(parts) == 1 else ""):
            for imported in names.get(name, ()):
                if imported.is_module:
                    return imported.paths
        return ()

    def package_files(self, path: str, name: str) -> tuple[str, ...]:
        """Return the files that may define a name which Go or Java can use without naming it in an import."""
        files, folder, language = self._index.files, path.rpartition("/")[0], rules_of(path)
        if not language.class_ending:
            return files.in_folder(folder, language.package_ending) if language.package_ending else ()
        package = self._index.outline(path).package.removeprefix("package").strip(" ;").replace(".", "/")
        imported = (entry.name for entry in self._names(path).get(PACKAGE, ()))
        for suffix in filter(None, (folder, package, *imported)):
            # Tests have a folder of their own, and modules may have packages of one name.
            matches = files.ending_with(f"{suffix}/{name}{language.class_ending}")
            if matches:
                return (max(matches, key=lambda match: len(commonprefix((match, path)))),)
        return ()
