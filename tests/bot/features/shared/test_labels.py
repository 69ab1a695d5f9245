"""The threshold between passing and bouncing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.core.config import TriageConfig
from bot.core.subjects import Actor, Issue
from bot.features.shared.labels import InputLabel, OutputLabel, bounces, severity, tidy_label
from bot.features.triage.handler import question
from bot.models.prompts import Prompts

percent = st.floats(0, 100)


def test_the_paper_s_line_bounces_the_last_two_labels() -> None:
    assert [bounces(label, InputLabel.VAGUE) for label in InputLabel] == [False, False, True, True]
    line = OutputLabel.BROAD_MISSING_KEY_ASPECTS
    assert [bounces(label, line) for label in OutputLabel] == [False, False, True, True]


@given(st.sampled_from(InputLabel), st.sampled_from(InputLabel), percent, percent)
def test_a_probability_decides_where_the_maintainer_drew_its_line(
    label: InputLabel, line: InputLabel, p: float, above: float
) -> None:
    assert bounces(label, line, p, above) == (p >= above)
    assert bounces(label, line, None, above) == (severity(label) >= severity(line))
    assert bounces(label, line, p, None) == (severity(label) >= severity(line))


def test_labels_are_read_as_models_write_them() -> None:
    assert tidy_label(" **Well specified** ") == "WELL_SPECIFIED"
    assert tidy_label("reasonably-specified.") == "REASONABLY_SPECIFIED"
    assert tidy_label(3) == 3


@pytest.mark.parametrize("name", ["paper", "panel", "careful"])
def test_the_paper_s_question_knows_no_kinds_of_issues(name: str) -> None:
    plain = Issue(number=1, title="How do I read a file?", author=Actor(id=1, login="sue"))
    question_issue = plain.model_copy(update={"labels": ("question",)})
    config = TriageConfig.model_validate({"prompt": name})
    same = question(Prompts(), config, plain) == question(Prompts(), config, question_issue)
    assert same == (name == "paper")


@pytest.mark.parametrize("name", ["panel", "careful"])
def test_questions_are_written_in_the_configured_language(name: str) -> None:
    issue = Issue(number=1, title="It breaks", author=Actor(id=1, login="sue"))
    config = TriageConfig.model_validate({"prompt": name, "language": "fr"})
    assert "ISO 639-1 code `fr`" in question(Prompts(), config, issue).system
