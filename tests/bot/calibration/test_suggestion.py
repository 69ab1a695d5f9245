"""A first bouncer.yml out of the fates of a repository's subjects."""

from __future__ import annotations

from bot.calibration.findings import suggest
from bot.core.config_file import load
from bot.core.subjects import KnownFate


def fate(number: int, p_bounce: int, good: bool = True) -> KnownFate:
    return KnownFate(
        subject=f"acme/rocket#{number}",
        bouncer="triage",
        p_bounce=p_bounce,
        bounced=p_bounce >= 50,
        good=good,
        why="a merged pull request closed it",
    )


def test_too_few_outcomes_mean_shadow_mode() -> None:
    suggestion = suggest({"triage": [fate(1, 5)], "verify": []})
    config, problems = load(suggestion.config)
    assert problems == ()
    assert (config.triage.mode, config.verify.mode) == ("shadow", "shadow")
    assert "the outcome of 1 actionable issues is known, and a promise takes at least 59" in suggestion.explanation


def test_enough_outcomes_give_a_threshold_with_its_promise() -> None:
    fates = [fate(number, number % 40) for number in range(1, 101)] + [fate(200, 95, good=False)]
    suggestion = suggest({"triage": fates}, "https://bouncer.example.org/bouncer.schema.json")
    config, problems = load(suggestion.config)
    assert problems == ()
    assert config.triage.harm == 5
    assert config.triage.bounce_above is not None
    assert 35 <= config.triage.bounce_above <= 95
    assert suggestion.config.startswith("# yaml-language-server: $schema=https://bouncer.example.org/")
    assert f"bounces at or above {config.triage.bounce_above} %" in suggestion.explanation
