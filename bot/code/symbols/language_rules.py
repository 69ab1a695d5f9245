"""The rules of one language for resolving names. ``languages`` has a file for each language."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from bot.code.parsing.definitions import Definition
from bot.code.symbols.imports import FileNames, Imported

#: A pattern of the type after the name of a variable and a colon.
COLON = r"\bNAME\??[ \t]*:[ \t]*([^:=,;)\n{][^=,;)\n{]{0,79})"


def _no_imports(_text: str, _path: str, _files: FileNames) -> Iterator[tuple[str, Imported]]:
    return iter(())


def _no_receiver(_lines: Sequence[str], _scope: Sequence[Definition]) -> str:
    return ""


@dataclass(frozen=True, slots=True)
class LanguageRules:
    """The rules of one language. The defaults are for a language without these features.

    In patterns, NAME stands for the name of a variable.
    """

    name: str
    """The family of its grammar."""
    imports: Callable[[str, str, FileNames], Iterator[tuple[str, Imported]]] = _no_imports
    """Yield the local names, with their meaning, of a statement in a file of ``path``."""
    declares: tuple[str, ...] = (r"\b([A-Za-z_]\w*(?:<[^;(){}\n]{0,60}>)?)[\s*]+NAME\s*[;=,)\[:]",)
    """Patterns of declarations of a variable or parameter; their group is the start of its type."""
    variable: str = ""
    """A pattern of what makes a name a variable of a function, if that is not its type before it."""
    outer: str = ""
    """A pattern of a statement in a function by which a name is that of the module."""
    assigns: str = r"(?:^|[^.\w$])NAME[ \t]*(?::[^=\n(]{0,60})?[ \t]*:?=\s*"
    """A pattern of what stands before the value that a variable is set to."""
    contexts: str = ""
    """A pattern of the expression that a statement binds to a name for its block."""
    loops: str = ""
    """A pattern of the expression in whose elements a loop with this variable looks."""
    bounds: str = ""
    """A pattern of what stands between a type parameter and the type to which it is bound."""
    comments: str = r"//[^\n]*|/\*[\s\S]*?(?:\*/|\Z)"
    """A pattern of comments in which declarations must not be looked for."""
    receiver: Callable[[Sequence[str], Sequence[Definition]], str] = _no_receiver
    """Return the name that the outermost method of a scope gives to its receiver."""
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
    """True if the members of a class are visible in it by their plain names, and a file is a class."""
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
