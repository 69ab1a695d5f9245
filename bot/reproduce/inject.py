"""From a draft to a file that can be run: choose the host, add the test, or give it a file of its own. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field

from bot.core.frozen import Frozen
from bot.reproduce.language import DraftRejected, Injected, Language, Names, NoNames
from bot.reproduce.lexical import Bm25, words

#: A test file is not made the host where it would grow beyond what a person still reads.
MAX_HOST_CHARACTERS = 400_000


class Candidate(Frozen):
    """A draft in its place, ready to be run."""

    number: int = Field(description="which draft; unique among the drafts of a report")
    draft: str = Field(description="as the model wrote it")
    path: str = Field(description="the test file, relative to the repository")
    content: str = Field(description="the whole test file with the test in it")
    name: str = Field(description="the test within its file: ``TestA::test_b``")
    code: str = Field(description="what was added, for people to read")
    new_file: bool
    syntax: str = Field(description="normal form: equal for tests written alike")
    tokens: int = Field(ge=0, description="length of what was added, lexical tokens")
    inverted: bool = Field(False, description="it passed as drafted, and its last assertion was turned round")


def choose_host(query: str, test_files: Mapping[str, str]) -> str | None:
    """The test file most like ``query`` (draft and report); None where none has a word in common with it.

    Source: LIBRO, section III.C; its lexical similarity is BM25 here, so that frequent words weigh less.
    """
    documents = {path: words(f"{path}\n{text}") for path, text in test_files.items() if _fits(text)}
    return next(iter(Bm25(documents).best(words(query), 1)), None)


def inject(
    number: int,
    draft: str,
    *,
    language: Language,
    test_files: Mapping[str, str],
    host: str | None,
    test_name: str | None = None,
    names: Names | None = None,
) -> Candidate:
    """Put a draft into ``host``, or into a new file beside it where it cannot live there.

    ``test_files``: text by path of all files that hold tests. Raises DraftRejected where the draft itself is at
    fault: it does not parse, holds no test, or uses a name that is nowhere.
    """
    language.check(draft)
    names = names or NoNames()
    path, injected = _placed(draft, language, test_files, host, test_name, names)
    return Candidate(
        number=number,
        draft=draft,
        path=path,
        content=injected.content,
        name=injected.test_id,
        code=injected.code,
        new_file=path not in test_files,
        syntax=language.syntax(draft),
        tokens=language.length(injected.code),
    )


def _placed(
    draft: str,
    language: Language,
    test_files: Mapping[str, str],
    host: str | None,
    test_name: str | None,
    names: Names,
) -> tuple[str, Injected]:
    if host is not None:
        try:
            return host, language.inject(draft, test_files[host], test_name, names)
        except DraftRejected:
            # A file of its own asks less of a draft; where it is refused there too, that reason counts.
            pass
    path = language.new_path(host, test_name or "test_reported_bug", test_files)
    return path, language.new_file(draft, test_name, names, path)


def _fits(text: str) -> bool:
    return 0 < len(text) <= MAX_HOST_CHARACTERS
