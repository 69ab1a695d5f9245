"""Examples for the prompt: a report and the test that reproduced it. Pure but for ``fetch``.

Closed book: two fixed examples. Open book: the repository's own tests that name an issue, with that issue's text,
most similar to the report by BM25 (layered framework, section 3.4).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from bot.core.frozen import Frozen
from bot.reproduction.language import Language
from bot.reproduction.lexical import most_alike
from bot.reproduction.protocol import Fetch, Report

WANTED = 2
#: Most tests whose issues are requested until two with a readable issue are found.
TRIES = 6
MAX_REPORT = 4_000
MAX_TEST = 3_000

_REFERENCE = re.compile(
    r"(?:\b(?:gh|issues?|tickets?|bug|regression|closes|fixes|bpo|pr)[ _#/:-]*|(?<![\w&])#)0*(\d{1,6})\b",
    re.IGNORECASE,
)


class Example(Frozen):
    """A report and the test that reproduced it."""

    report: str
    test: str


STATIC: tuple[Example, ...] = (
    Example(
        report="""\
split_list drops the last item when the size does not divide the length

`split_list([1, 2, 3, 4, 5], 2)` gives `[[1, 2], [3, 4]]`. I would expect the rest to come as a shorter
list at the end: `[[1, 2], [3, 4], [5]]`. Version 2.3.""",
        test="""\
from listtools import split_list


def test_split_list_keeps_the_rest():
    assert split_list([1, 2, 3, 4, 5], 2) == [[1, 2], [3, 4], [5]]
""",
    ),
    Example(
        report="""\
Reading a config file that has only comments raises IndexError

A file with nothing but comments should be read as an empty configuration, but

```
Traceback (most recent call last):
  File "app.py", line 3, in <module>
    settings = conf.load("app.conf")
  File "conf/reader.py", line 41, in load
    first = lines[0]
IndexError: list index out of range
```""",
        test="""\
import unittest
from pathlib import Path
from tempfile import TemporaryDirectory

import conf


class TestLoad(unittest.TestCase):
    def test_file_with_only_comments_is_empty(self):
        with TemporaryDirectory() as folder:
            path = Path(folder) / "app.conf"
            path.write_text("# nothing here\\n")
            self.assertEqual(conf.load(str(path)), {})
""",
    ),
)

STATIC_JAVA: tuple[Example, ...] = (
    Example(
        report="""\
Lists.partition drops the last items

`Lists.partition(List.of(1, 2, 3), 2)` gives `[[1, 2]]`. I would expect the rest to come as a shorter list
at the end: `[[1, 2], [3]]`. Version 2.3.""",
        test="""\
@Test
public void testPartitionKeepsTheRest() {
    assertEquals("[[1, 2], [3]]", Lists.partition(List.of(1, 2, 3), 2).toString());
}
""",
    ),
    Example(
        report="""\
StringIndexOutOfBoundsException for a line that has only a comment

A configuration of nothing but comments should be read as an empty one, but

```
java.lang.StringIndexOutOfBoundsException: String index out of range: 0
	at org.example.conf.Reader.read(Reader.java:41)
```""",
        test="""\
@Test
public void testCommentsAloneAreAnEmptyConfiguration() throws Exception {
    Reader reader = new Reader(new java.io.StringReader("# nothing here"));
    assertTrue(reader.read().isEmpty());
}
""",
    ),
)


def fixed_examples(language: str) -> tuple[Example, ...]:
    """Return the two fixed examples in the language of the tests."""
    return STATIC_JAVA if language == "java" else STATIC


def find_mentions(
    tests: Mapping[str, str], language: Language, without: int | None = None
) -> dict[str, tuple[int, str]]:
    """Return the issue and the text of every test that names one, by the test's name, except issue ``without``."""
    mentions: dict[str, tuple[int, str]] = {}
    for path in sorted(tests):
        for name, source in language.tests_in(tests[path]) if _REFERENCE.search(tests[path]) else ():
            reference = _REFERENCE.search(source)
            if reference and int(reference[1]) not in (0, without) and len(source) <= MAX_TEST:
                mentions[f"{path}::{name}"] = int(reference[1]), source
    return mentions


def nearest(report: Report, examples: Sequence[Example]) -> tuple[Example, ...]:
    """Return the two examples with the most similar reports, best first."""
    best = most_alike(
        report.text, {str(number): example.report for number, example in enumerate(examples)}, WANTED
    )
    return tuple(examples[int(number)] for number in best)


def from_repository(
    report: Report, tests: Mapping[str, str], language: Language, fetch: Fetch
) -> tuple[Example, ...]:
    """Return two examples of the repository's own, completed with fixed ones.

    At most ``TRIES`` issues are requested, the most similar test first.
    """
    mentions = find_mentions(tests, language, without=report.number)
    usable: list[Example] = []
    for name in most_alike(report.text, {name: source for name, (_, source) in mentions.items()}, TRIES):
        issue, source = mentions[name]
        other = fetch(issue)
        if other is not None and len(other.text) <= MAX_REPORT:
            usable.append(Example(report=other.text, test=source))
    return (*nearest(report, usable), *fixed_examples(language.name))[:WANTED]
