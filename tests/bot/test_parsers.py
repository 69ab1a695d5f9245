"""Whatever strangers write: a reader raises what it documents and nothing else, and takes no time over it."""

from __future__ import annotations

import contextlib
import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bot.core import config_file
from tests.parsers.parser import COMMON, Parser
from tests.parsers.registry import PARSERS

#: What Python's own compiler of patterns says of an odd glob; re2 does the matching.
pytestmark = pytest.mark.filterwarnings("ignore:Possible .* at position:FutureWarning")
READERS = pytest.mark.parametrize("parser", PARSERS, ids=lambda parser: parser.name)


def _read(parser: Parser, text: str) -> None:
    with contextlib.suppress(*parser.raises):
        parser.read(text)


@READERS
def test_random_words_of_its_own_are_read_or_refused(parser: Parser) -> None:
    dice = random.Random(parser.name)
    for _ in range(60):
        _read(parser, parser.random(dice))


@READERS
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_any_text_is_read_or_refused(parser: Parser, data: st.DataObject) -> None:
    words = st.sampled_from((*parser.words, *(unit for growing in parser.hard for unit in growing), *COMMON))
    _read(parser, data.draw(st.lists(words | st.text(max_size=4), max_size=20).map("".join)))


@READERS
@pytest.mark.timeout(60)
def test_hard_texts_are_read_or_refused(parser: Parser) -> None:
    for _, text in parser.texts(1_000):
        _read(parser, text)


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("triage:\n  mode: !!bool x\n", 2, "tag:yaml.org,2002:bool: tags are not used here"),
        ("triage:\n  mode: !!python/object/apply:os.system [id]\n", 2, "tags are not used here"),
        ("a: &a [x]\nb: *a\n", 1, "anchors and aliases are not used here"),
        ('triage:\n  "\\ud800": x\n', 2, "half a character"),
        ('reproduce:\n  command: "a\\0 {tests}"\n', 2, "a NUL character"),
        ("\n" + "[" * 30_000, 2, "nested too deeply"),
        ("review:\n  ignore: ['" + "*a" * 200 + "']\n", 2, "at most 300 characters"),
    ],
)
def test_a_trick_in_the_configuration_is_a_problem_with_its_line(text: str, line: int, message: str) -> None:
    _, (problem, *_) = config_file.load(text)
    assert problem.line == line
    assert message in problem.message
