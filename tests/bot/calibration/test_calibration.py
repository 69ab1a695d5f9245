"""Thresholds and the daily test of a promise, compared with simulations and with scipy."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from bot.calibration import risk
from bot.calibration.findings import Bouncer, PastVerdict, draw_line
from bot.calibration.risk import Judged


def sample_cases(generator: random.Random, count: int, share_bad: float = 0.4) -> list[Judged]:
    """Return cases of a model that ranks moderately well, with repeated probabilities."""
    cases = []
    for number in range(count):
        bad = generator.random() < share_bad
        score = generator.gauss(60 if bad else 35, 20)
        percent = min(100, max(0, 5 * round(score / 5)))
        cases.append(Judged(subject=f"a/b#{number}", p_bounce=percent, good=not bad))
    return cases


def harm_of(line: int, cases: Sequence[Judged]) -> float:
    good = [case for case in cases if case.good]
    return sum(case.p_bounce >= line for case in good) / len(good)


@pytest.mark.parametrize(
    ("successes", "trials", "chance"), [(0, 59, 0.05), (3, 200, 0.05), (90, 100, 0.9), (5, 5, 0.2)]
)
def test_binomial_sums_are_scipys(successes: int, trials: int, chance: float) -> None:
    from scipy import stats  # at the top it would take every collection of tests half a second

    assert risk.binomial_cdf(successes, trials, chance) == pytest.approx(
        stats.binom.cdf(successes, trials, chance)
    )


def test_the_upper_limit_is_clopper_and_pearsons() -> None:
    from scipy import stats

    for harmed, good in ((0, 20), (1, 59), (7, 133), (20, 20)):
        expected = 1.0 if harmed == good else stats.beta.ppf(0.95, harmed + 1, good - harmed)
        assert risk.upper_bound(harmed, good) == pytest.approx(expected, abs=1e-9)


def test_a_promise_of_five_percent_takes_fifty_nine_good_cases() -> None:
    assert risk.cases_needed(0.05) == 59
    calm = [Judged(subject=str(number), p_bounce=10, good=True) for number in range(59)]
    assert risk.promise(calm[:58], 0.05).line is None
    promised = risk.promise(calm, 0.05).line
    assert promised.bounce_above == 11


@pytest.mark.parametrize(("bouncer", "mistakes"), [("triage", (40, 50)), ("verify", (50,))])
def test_without_a_promise_mistakes_are_at_the_bouncers_usual_line(
    bouncer: Bouncer, mistakes: tuple[int, ...]
) -> None:
    facts = {"title": "T", "url": "", "good": True, "why": "", "severity": 1}
    verdicts = [
        PastVerdict(subject=f"a/b#{chance}", number=chance, p_bounce=chance, **facts) for chance in (39, 40, 50)
    ]
    findings = draw_line(bouncer, verdicts, 0.05)
    assert findings.promise.line is None
    assert tuple(sorted(verdict.number for verdict in findings.mistakes())) == mistakes


def test_the_promise_is_broken_for_at_most_one_maintainer_in_twenty() -> None:
    generator = random.Random(7)
    population = sample_cases(generator, 4000)
    rounds, broken, caught = 400, 0, []
    for _ in range(rounds):
        cases = [generator.choice(population) for _ in range(300)]
        line = risk.promise(cases, 0.05).line
        if line is not None:
            broken += harm_of(line.bounce_above, population) > 0.05
            caught.append(line.recall or 0.0)
    assert broken <= rounds * 0.05 + 3 * (rounds * 0.05 * 0.95) ** 0.5
    # A promise that never bounces anything would hold too, and be worth nothing.
    assert len(caught) > 0.9 * rounds
    assert sum(caught) / len(caught) > 0.15


def test_a_promise_about_suggestions_takes_seventy_two_right_ones() -> None:
    right = [(92, True)] * 72
    assert risk.suggestion_promise(right[:71], 0.05).suggest_above is None
    promised = risk.suggestion_promise([*right, (80, False)], 0.05)
    assert (promised.needed, promised.suggest_above, promised.suggestions, promised.wrong) == (72, 90, 72, 0)
    lower = [(75, True)] * 72 + [(60, False)] * 30
    assert risk.suggestion_promise(lower, 0.05).suggest_above == 70
    assert risk.suggestion_promise([], 0.05).suggest_above is None


def test_too_many_wrong_suggestions_are_promised_to_one_in_twenty_at_most() -> None:
    generator, rounds, broken, promised = random.Random(11), 400, 0, 0

    def suggestion() -> tuple[int, bool]:
        percent = generator.choice((60, 70, 80, 90, 95))
        return (percent, generator.random() < 0.5 + percent / 200)

    def wrong_share(above: int) -> float:
        percents = [percent for percent in (60, 70, 80, 90, 95) if percent >= above]
        return sum(0.5 - percent / 200 for percent in percents) / len(percents)

    for _ in range(rounds):
        threshold = risk.suggestion_promise([suggestion() for _ in range(400)], 0.06).suggest_above
        promised += threshold is not None
        broken += threshold is not None and wrong_share(threshold) > 0.06
    assert promised > 0.1 * rounds
    assert broken <= rounds * 0.05 + 3 * (rounds * 0.05 * 0.95) ** 0.5


def test_without_good_cases_there_is_no_promise_and_the_curve_is_empty() -> None:
    assert risk.promise([], 0.05).line is None
    assert risk.promise([Judged(subject="x", p_bounce=99, good=False)], 0.05).line is None
    assert risk.curve([]) == ()
    with pytest.raises(ValueError, match="between 0 and 1"):
        risk.promise([], 5)


def test_the_most_confident_mistakes_come_first() -> None:
    cases = [
        Judged(subject="good-bounced", p_bounce=95, good=True),
        Judged(subject="bad-passed", p_bounce=20, good=False),
        Judged(subject="right", p_bounce=10, good=True),
        Judged(subject="nearly", p_bounce=48, good=False),
    ]
    assert [case.subject for case in risk.instructive(cases, 50)] == ["good-bounced", "bad-passed", "nearly"]
    passed = [Judged(subject=f"p{number}", p_bounce=number, good=False) for number in range(10)]
    bounced = [Judged(subject=f"b{number}", p_bounce=50 + number, good=True) for number in range(10)]
    mistakes = risk.instructive([*passed, *bounced], 50, 4)
    assert [case.subject for case in mistakes] == ["b9", "b8", "p0", "p1"], "both kinds of harm are shown"
    assert len(risk.instructive([*passed, *bounced[:1]], 50, 4)) == 4


def test_no_alarm_while_the_promise_holds_although_checked_daily() -> None:
    generator = random.Random(11)
    alarms = sum(
        risk.watch_promise((generator.random() < 0.05 for _ in range(400)), 0.05).broken for _ in range(300)
    )
    assert alarms <= 300 * 0.05 + 3 * (300 * 0.05 * 0.95) ** 0.5


def test_a_broken_promise_raises_an_alarm() -> None:
    generator = random.Random(12)
    alarms = sum(
        risk.watch_promise((generator.random() < 0.2 for _ in range(150)), 0.05).broken for _ in range(50)
    )
    assert alarms >= 45
    assert risk.watch_promise([], 0.05).evidence == 1
