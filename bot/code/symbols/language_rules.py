"""The rules of one language for resolving names. ``languages`` has a file for each language."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from bot.code.symbols.imports import FileNames, Imported


def _no_imports(_text: str, _path: str, _files: FileNames) -> Iterator[tuple[str, Imported]]:
    return iter(())


@dataclass(frozen=True, slots=True)
class LanguageRules:
    """The rules of one language. The defaults are for a language without these features."""

    name: str
    """The family of its grammar."""
    imports: Callable[[str, str, FileNames], Iterator[tuple[str, Imported]]] = _no_imports
    """Yield the local names, with their meaning, of a statement in a file of ``path``."""
    bounds: str = ""
    """A pattern of what stands between a type parameter and the type to which it is bound."""
    signature: Callable[[str, str], tuple[str, ...]] | None = None
    """Return the types of a method from its head and name; None if classes name the interfaces they implement."""
    package_ending: str = ""
    """The ending of the files of a folder, if all of them share their names and the methods of their types."""
    own_module: tuple[str, ...] = ()
    """Expressions that stand for the file's own module."""
    same_class: frozenset[str] = frozenset()
    """Calls that give the value in a wrapper, or one of the same class, which need not define them."""
    delegations: tuple[str, ...] = ()
    """Names by which a constructor calls another one."""
    constructor: str = ""
    """The method that sets the fields of a class, if they are not declared in its body."""
    separates_fields: bool = False
    """True if a class may have a method and a field of one name."""
    splits_types: bool = False
    """True if the methods of a type stand in blocks of their own, under its name."""
    names_members: bool = False
    """True if the members of a class are visible in it by their plain names."""
    class_ending: str = ""
    """The ending of files that are named after their class, in folders that are named after their package."""
    is_flat: bool = False
    """True without modules: what the repository defines once is visible everywhere, and so are enumerators."""
    has_interfaces: bool = True
    """True if a method without a body is implemented by others."""
    functions_are_classes: bool = False
    """True if a function with a capital letter is a class too."""
    has_properties: bool = False
    """True if a decorated function may be read as a field."""
    has_docstrings: bool = False
    """True if a function may begin with a long text."""
    has_several_results: bool = False
    """True if types in parentheses are the results of a function; the first counts."""
