"""The interface of a programming language for reproduction: read a draft and put it into a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain, count
from typing import Protocol

from pydantic import Field

from bot.core.errors import BouncerError
from bot.core.frozen import Frozen
from bot.reproduction.protocol import Injected


class DraftRejected(BouncerError):
    """A draft cannot become a test. The message tells its author, a model, what to repair."""


def first_free(start: str, end: str, separator: str, is_taken: Callable[[str], object]) -> str:
    """Return ``start`` and ``end`` joined, with the lowest number from 2 between them if that name is taken."""
    numbered = (f"{start}{separator}{number}{end}" for number in count(2))
    return next(name for name in chain([start + end], numbered) if not is_taken(name))


class Names(Protocol):
    """Import statements for names that a draft uses without importing them."""

    def provider(self, name: str) -> str | None:
        """Return the import statement for ``name``, or None if the repository has no single source for it."""
        ...


class Excerpt(Frozen):
    """A function or class that a report names."""

    name: str = Field(description="dotted, from its module: ``Table.read``")
    path: str
    line: int = Field(ge=1)
    source: str = Field(description="its head, if it is long")


class Language(Protocol):
    """One implementation per language; every method is a pure function."""

    @property
    def name(self) -> str:
        """The name after a code fence: ``python``."""
        ...

    @property
    def suffixes(self) -> frozenset[str]:
        """Suffixes of source files, with the dot."""
        ...

    def is_test_file(self, path: str) -> bool:
        """Return True if the test runner would look for tests in a file of that path."""
        ...

    def names(self, sources: Mapping[str, str], tests: Mapping[str, str]) -> Names:
        """Collect the import statements of names from the repository's own files."""
        ...

    def definitions(self, names: Sequence[str], sources: Mapping[str, str], limit: int) -> tuple[Excerpt, ...]:
        """Return at most ``limit`` definitions of names that a report uses, in the report's order."""
        ...

    def tests_in(self, source: str) -> tuple[tuple[str, str], ...]:
        """Return name and text of each test in a test file; none if the file cannot be parsed."""
        ...

    def inject(self, draft: str, host: str, test_name: str | None, names: Names) -> Injected:
        """Add the drafted test to an existing test file.

        Lines are only added: nothing in the host is changed, moved or shadowed. ``test_name`` renames the test;
        it gets a number if the host already has that name. Raises DraftRejected if the draft does not parse, or
        one of its names means something else in this host.
        """
        ...

    def new_file(self, draft: str, test_name: str | None, names: Names, path: str) -> Injected:
        """Put the drafted test into a new file at ``path``. Raises DraftRejected if there is no test."""
        ...

    def new_path(self, beside: str | None, stem: str, existing: Mapping[str, str]) -> str:
        """Return a free path for a new test file, in the folder of ``beside`` or the usual one for tests."""
        ...

    def syntax(self, draft: str) -> str:
        """Return a normal form: equal for drafts that differ only in layout, comments or the test's name."""
        ...

    def length(self, code: str) -> int:
        """Return the number of lexical tokens in ``code`` without comments."""
        ...

    def probe(self, path: str, names: Names) -> tuple[str, str]:
        """Return a file with one test that does nothing, for every runner of the language, and the test's name."""
        ...

    def invert(self, draft: str) -> str | None:
        """Return the draft with its last assertion inverted, or None if it has none."""
        ...
