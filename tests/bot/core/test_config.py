"""``.github/bouncer.yml`` as maintainers write it, right and wrong."""

import pytest

from bot.core.config import RepoConfig
from bot.core.config_file import load


def problem_lines(text: str | bytes) -> list[str]:
    return [str(problem) for problem in load(text)[1]]


def test_an_empty_file_is_the_default() -> None:
    assert load("") == (RepoConfig(), ())
    assert load("# nothing yet\n") == (RepoConfig(), ())


def test_a_list_and_a_boolean_are_asked_for_in_plain_words() -> None:
    _, problems = load("review:\n  ignore: docs\nverify:\n  gate: maybe\n")
    assert "must be a list, such as [\"docs/\"], not 'docs'" in str(problems[0])
    assert "must be true or false, not 'maybe'" in str(problems[1])


def test_off_is_a_word_not_a_truth_value() -> None:
    config, problems = load("triage:\n  mode: off\nreview:\n  mode: off\n")
    assert problems == ()
    assert (config.triage.mode, config.review.mode) == ("off", "off")


def test_mistakes_are_named_and_the_other_keys_count() -> None:
    config, problems = load("triage:\n  mode: loud\n  label: unclear\nreviews: {}\nreview:\n  max_findings: 900\n")
    assert config.triage.label == "unclear"
    assert (config.triage.mode, config.review.mode, config.verify.mode) == ("shadow", "shadow", "check")
    assert [(problem.key, problem.line) for problem in problems] == [
        ("triage.mode", 2),
        ("reviews", 4),
        ("review.max_findings", 6),
    ]
    assert "'comment', 'label', 'shadow' or 'off', not 'loud'" in str(problems[0])
    assert f"did you mean review?; known here: {', '.join(sorted(RepoConfig.model_fields))}; " in str(problems[1])
    assert "less than or equal to 25" in str(problems[2])


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a: [", "line 1: not YAML"),
        ("- x", "must be a mapping"),
        (b"\xff", "not UTF-8"),
        ("triage:\n  mode: off\n  mode: off", "stands twice"),
        ("a" * 70_000, "larger than"),
        ("\x00", "not YAML"),
        ("review:\n  ignore: '*.md'", "review.ignore"),
        ("triage:\n  label: ''", "triage.label"),
        ("review: {max_calls: 1e99}", "review.max_calls"),
    ],
)
def test_a_file_that_cannot_be_read_is_reported(text: str | bytes, line: str) -> None:
    assert any(line in problem for problem in problem_lines(text))


@pytest.mark.parametrize(
    ("text", "shadowed"),
    [
        ("triage:\n  mode: shadwo\n", {"triage"}),
        ("triage:\n  mode: [shadow]\n  label: unclear\n", {"triage"}),
        ("triage: shadow\n", {"triage"}),
        ("verify:\n  moed: shadow\n", {"verify"}),
        ("reviews:\n  mode: shadow\n", {"review"}),
        ("mode: shadow\n", {"triage", "verify", "review"}),
        ("triage:\n  mode: shadow\n bad indent", {"triage", "verify", "review"}),
        (b"\xff", {"triage", "verify", "review"}),
        ("a" * 70_000, {"triage", "verify", "review"}),
        ("triage:\n  mode: shadow\ntriage:\n  mode: comment\n", {"triage", "verify", "review"}),
        ("review:\n  max_findings: 900\n", set()),
        ("pulls: 3\n", set()),
        ("triage:\n  mode: 'off'\n  lable: x\n", set()),
    ],
)
def test_a_mistake_that_may_mean_silence_gives_shadow_mode(text: str | bytes, shadowed: set[str]) -> None:
    config, problems = load(text)
    sections = {"triage": config.triage, "verify": config.verify, "review": config.review}
    assert {name for name, section in sections.items() if section.mode == "shadow"} == shadowed
    assert {name for problem in problems for name in problem.shadowed} & sections.keys() == shadowed
    assert all(("shadow mode for" in str(problem)) == bool(problem.shadowed) for problem in problems)
    everywhere = load("triage: {mode: comment}\nverify: {mode: check}\nreview: {mode: comment}\n")[0]
    laid_over = config.over(everywhere)
    assert {name for name in sections if getattr(laid_over, name).mode == "shadow"} == shadowed


def test_labels_that_may_be_set_are_those_that_the_file_names() -> None:
    config, _ = load("triage: {label: unclear, accepted_label: ready}")
    assert config.labels == {"unclear", "ready", "reproduced", "maybe-fixed"}


def test_one_wrong_entry_drops_a_list_of_mappings_and_is_named() -> None:
    entry = "    - {paths: ['src/**'], text: Look.}\n"
    config, problems = load("review:\n  instructions:\n" + entry + entry)
    assert ([instruction.text for instruction in config.review.instructions], problems) == (["Look.", "Look."], ())
    config, (problem,) = load(
        "review:\n  max_findings: 3\n  instructions:\n" + entry + "    - {path: x, text: Look.}\n"
    )
    assert (problem.key, problem.line) == ("review.instructions.1.path", 5)
    assert (config.review.instructions, config.review.max_findings) == ((), 3)
