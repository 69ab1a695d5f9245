"""What reproduction needs to know of a programming language: to read a draft and to put it into a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from pydantic import Field

from bot.core.errors import BouncerError
from bot.core.frozen import Frozen


class DraftRejected(BouncerError):
    """A draft cannot become a test as it stands. The message tells its author, a model, what to mend."""


class Injected(Frozen):
    """A file with a drafted test in it."""

    content: str = Field(description="the whole file")
    test_id: str = Field(description="the test within the file, as the runner names it: ``TestA::test_b``")
    code: str = Field(description="what was added, for people to read")


class Names(Protocol):
    """Where names come from, for a draft that uses some without importing them."""

    def provider(self, name: str) -> str | None:
        """The import statement that makes ``name`` known; None where the repository knows no one place."""
        ...


class Excerpt(Frozen):
    """A function or class that a report speaks of."""

    name: str = Field(description="dotted, from its module: ``Table.read``")
    path: str
    line: int = Field(ge=1)
    source: str = Field(description="its beginning, where it is long")


class Language(Protocol):
    """One implementation a language; every method is a pure function."""

    @property
    def name(self) -> str:
        """As it is written after a code fence: ``python``."""
        ...

    @property
    def suffixes(self) -> frozenset[str]:
        """Of its source files, with the dot."""
        ...

    def is_test_file(self, path: str) -> bool:
        """Whether the language's test runner would look for tests in a file of that path."""
        ...

    def names(self, sources: Mapping[str, str], tests: Mapping[str, str]) -> Names:
        """What the repository's own files say about where names come from."""
        ...

    def definitions(self, names: Sequence[str], sources: Mapping[str, str], limit: int) -> tuple[Excerpt, ...]:
        """Definitions of names that a report uses, ``limit`` at most, in the report's order."""
        ...

    def tests_in(self, source: str) -> tuple[tuple[str, str], ...]:
        """Name and text of each test in a test file; nothing where the file cannot be read."""
        ...

    def inject(self, draft: str, host: str, test_name: str | None, names: Names) -> Injected:
        """Add the drafted test to an existing test file in that file's own style.

        Nothing that the host holds is changed, moved or shadowed: lines are only added. ``test_name`` renames
        the test; it gets a number where the host has that name already. Raises DraftRejected where the draft
        does not parse or cannot live in this host.
        """
        ...

    def new_file(self, draft: str, test_name: str | None, names: Names, path: str) -> Injected:
        """The drafted test in a file of its own, at ``path``. Raises DraftRejected where it holds none."""
        ...

    def new_path(self, beside: str | None, stem: str, taken: Mapping[str, str]) -> str:
        """A free path for a new test file, in the folder of ``beside`` or where tests usually are."""
        ...

    def syntax(self, draft: str) -> str:
        """Normal form: equal for drafts that differ in layout, comments or the test's own name only."""
        ...

    def length(self, code: str) -> int:
        """Lexical tokens in ``code``, comments left out."""
        ...

    def probe(self, path: str, names: Names) -> tuple[str, str]:
        """A file with one test that does nothing, for every runner of the language, and the test's name in it."""
        ...

    def inverted(self, draft: str) -> str | None:
        """The draft with its last assertion turned round; None where it has none to turn."""
        ...
