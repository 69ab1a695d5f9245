"""What a model is shown of the repository: layout, the nearest test file, the code that the report names. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import PurePosixPath

from pydantic import Field

from bot.core.frozen import Frozen
from bot.reproduce.checkout import Checkout
from bot.reproduce.inject import choose_host
from bot.reproduce.language import Excerpt, Language
from bot.reproduce.report import Facts

MAX_FOLDERS = 60
MAX_DEFINITIONS = 8
#: Characters of the nearest test file, and of all definitions together.
MAX_HOST = 8_000
MAX_SOURCE = 16_000


class Context(Frozen):
    """The part of a repository that goes into a prompt."""

    layout: str = Field(description="folders with the number of files in them, one a line")
    host: str | None = Field(description="path of the test file most like the report; None without test files")
    host_text: str = Field("", description="its beginning and end")
    definitions: tuple[Excerpt, ...] = ()


def context(facts: Facts, checkout: Checkout, language: Language) -> Context:
    """Choose what to show for a report."""
    host = choose_host(" ".join((*facts.names, facts.text)), checkout.tests)
    sources = {path: text for path, text in checkout.sources.items() if path not in checkout.tests}
    definitions = language.definitions(facts.names, sources, MAX_DEFINITIONS)
    return Context(
        layout=layout(checkout.paths),
        host=host,
        host_text=_ends(checkout.tests[host], MAX_HOST) if host else "",
        definitions=_within(definitions, MAX_SOURCE),
    )


def layout(paths: Sequence[str]) -> str:
    """Folders down to three levels with their numbers of files, the largest where there are too many."""
    counts: Counter[str] = Counter()
    for path in paths:
        folder = PurePosixPath(*PurePosixPath(path).parent.parts[:3])
        counts["./" if str(folder) == "." else f"{folder}/"] += 1
    kept = sorted(
        folder for folder, _ in sorted(counts.items(), key=lambda each: (-each[1], each[0]))[:MAX_FOLDERS]
    )
    return "\n".join(f"{folder} ({counts[folder]} files)" for folder in kept)


def _ends(text: str, limit: int) -> str:
    """The beginning (imports, set-up) and the end (where tests are added) of a long file, whole lines."""
    if len(text) <= limit:
        return text
    head = text[: limit // 2].rpartition("\n")[0]
    tail = text[-limit // 2 :].partition("\n")[2]
    return f"{head}\n\n[... lines left out ...]\n\n{tail}"


def _within(definitions: Sequence[Excerpt], limit: int) -> tuple[Excerpt, ...]:
    kept: list[Excerpt] = []
    for each in definitions:
        limit -= len(each.source)
        if limit < 0:
            break
        kept.append(each)
    return tuple(kept)
