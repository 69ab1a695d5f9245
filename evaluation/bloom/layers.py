"""Six layers of test generation, as figures: each a pure function of what runs recorded (sections 3.1 to 3.6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pydantic import Field

from bot.core.frozen import Frozen
from evaluation.brt.metrics import Ranking, RankingScores, RunScores, baseline_consistency, brt_share, found_at_n
from evaluation.statistics import Resampling, paired


class Comparison(Frozen):
    """Two settings, bug by bug."""

    bugs: int = Field(description="bugs that both settings tried; every figure is over these")
    only_one: int = Field(description="bugs that only one of the settings tried; left out, and shown")
    baseline: float | None = Field(description="%BRT of the baseline, 0 to 1")
    altered: float | None = Field(description="%BRT of the changed setting, 0 to 1")
    consistency: float | None = Field(description="baseline consistency rate, 0 to 1")
    lost: int = Field(description="reproduced under the baseline alone")
    gained: int = Field(description="reproduced under the changed setting alone")
    p: float = Field(description="exact two-sided p-value of McNemar's test")

    @property
    def change(self) -> float | None:
        """Relative change of %BRT: -0.6 = it fell by 60 %; None if the baseline is 0 or not defined."""
        if not self.baseline or self.altered is None:
            return None
        return self.altered / self.baseline - 1

    def as_json(self) -> dict[str, Any]:
        return {**self.model_dump(mode="json"), "change": self.change}


def compare(baseline: Mapping[str, bool], altered: Mapping[str, bool]) -> Comparison:
    common = sorted(set(baseline) & set(altered))
    before = {bug: baseline[bug] for bug in common}
    after = {bug: altered[bug] for bug in common}
    pairs = paired(before, after)
    return Comparison(
        bugs=len(common),
        only_one=len(set(baseline) ^ set(altered)),
        baseline=brt_share(before),
        altered=brt_share(after),
        consistency=baseline_consistency(before, after),
        lost=pairs.only_first,
        gained=pairs.only_second,
        p=pairs.p_value,
    )


class Remembered:
    """%BRT of one run, and how far repeated runs agree bug by bug."""

    def __init__(self, runs: Sequence[Mapping[str, bool]], seed: int = 0) -> None:
        """``runs``: for each run whether each bug was reproduced; the first is the one that is reported."""
        first = RunScores(runs[0], 0, Resampling(seed))
        self.bugs, self.share, self.interval = first.instances, first.share, first.interval
        self.repeats = tuple(brt_share(run) for run in runs[1:])
        self.agreement = agreement(runs)

    def as_json(self) -> dict[str, Any]:
        return {
            "bugs": self.bugs,
            "brt": self.share,
            "brt_interval": [self.interval.low, self.interval.high],
            "brt_of_repeats": list(self.repeats),
            "agreement": self.agreement,
        }


def agreement(runs: Sequence[Mapping[str, bool]]) -> float | None:
    """Of the bugs that all runs tried, the share on which all came to the same; None with fewer than two runs."""
    common = set(runs[0]).intersection(*runs[1:]) if len(runs) > 1 else set()
    if not common:
        return None
    return sum(len({run[bug] for run in runs}) == 1 for bug in common) / len(common)


class Evaluated:
    """Figures of both orders, and whether the first suggestion is right more often with the model's word."""

    def __init__(
        self, ranked: Sequence[Ranking], picked: Sequence[Ranking], generated: Sequence[Ranking], seed: int = 0
    ) -> None:
        """``generated``: rankings of everything that failed, before selection; the ground of recall."""
        self.ranked = RankingScores(ranked, generated, Resampling(seed))
        self.picked = RankingScores(picked, generated, Resampling(seed))
        before = dict(zip((r.bug_id for r in ranked), found_at_n(ranked, 1), strict=True))
        after = dict(zip((r.bug_id for r in picked), found_at_n(picked, 1), strict=True))
        # A bug for which the model finds every test wrong is suggested nothing: then nothing right is first.
        nothing = dict.fromkeys([*before, *after], False)
        pairs = paired(nothing | before, nothing | after)
        self.lost, self.gained, self.p = pairs.only_first, pairs.only_second, pairs.p_value

    def as_json(self) -> dict[str, Any]:
        return {
            "ranked": self.ranked.as_json(),
            "picked": self.picked.as_json(),
            "first_suggestion": {"lost": self.lost, "gained": self.gained, "p": self.p},
        }


class Detection(Frozen):
    """How unclear reports are recognised."""

    unclear: int
    clear: int
    unanswered: int = Field(description="reports without a verdict; they count as not flagged")
    rate: float | None = Field(description="ambiguity detection rate: share of unclear reports that were flagged")
    false_alarms: float | None = Field(
        description="share of clear reports that were flagged: the price of the rate"
    )


def detection(unclear: Mapping[str, bool], flagged: Mapping[str, bool]) -> Detection:
    """``unclear``: the ground truth by report. ``flagged``: whether triage bounced it; missing = no verdict."""
    hits = [flagged.get(report, False) for report, is_unclear in unclear.items() if is_unclear]
    alarms = [flagged.get(report, False) for report, is_unclear in unclear.items() if not is_unclear]
    return Detection(
        unclear=len(hits),
        clear=len(alarms),
        unanswered=sum(report not in flagged for report in unclear),
        rate=sum(hits) / len(hits) if hits else None,
        false_alarms=sum(alarms) / len(alarms) if alarms else None,
    )


class Improvement(Frozen):
    """The effect of clarification, over the reports that were clarified."""

    reports: int
    without: float | None = Field(description="%BRT without the clarification, 0 to 1")
    with_answer: float | None = Field(description="%BRT with it, 0 to 1")

    @property
    def points(self) -> float | None:
        """Reproduction improvement rate: the difference of the two, in shares."""
        return None if self.without is None or self.with_answer is None else self.with_answer - self.without

    def as_json(self) -> dict[str, Any]:
        return {**self.model_dump(mode="json"), "points": self.points}


def improvement(
    without: Mapping[str, bool], with_answer: Mapping[str, bool], clarified: Sequence[str]
) -> Improvement:
    """Compare two runs over the reports that were clarified and that both runs tried."""
    both = [report for report in clarified if report in without and report in with_answer]
    return Improvement(
        reports=len(both),
        without=brt_share({report: without[report] for report in both}),
        with_answer=brt_share({report: with_answer[report] for report in both}),
    )


class Row(NamedTuple):
    """One setting of the paper (Tables 2 to 5); shares from 0 to 1."""

    layer: str
    benchmark: str
    model: str
    setting: str
    brt: float
    consistency: float | None = None
    open_book: float | None = None

    @property
    def title(self) -> str:
        return f"paper, {self.benchmark}, {self.model}: {self.setting}"


def _rows() -> tuple[Row, ...]:
    rows = [Row("Remember", *published) for published in _REMEMBER]
    for layer, settings, table in (
        ("Understand", ("rephrased", "translated"), _UNDERSTAND),
        ("Apply", ("hash", "meaningful", "meaningful, rephrased", "meaningful, translated"), _APPLY),
    ):
        for (benchmark, model), values in table.items():
            rows += [Row(layer, benchmark, model, name, *v) for name, v in zip(settings, values, strict=True)]
    for (benchmark, model), books in _ANALYZE.items():
        for name, (closed, open_book) in zip(
            ("meaningful", "rephrased", "meaningful, rephrased"), books, strict=True
        ):
            rows.append(Row("Analyze", benchmark, model, name, closed, open_book=open_book))
    return tuple(rows)


_D, _G, _S, _O = "Defects4J", "GHRB", "StarCoder", "GPT-4o"
#: Table 2; "LIBRO" is what the original study printed.
_REMEMBER = (
    (_D, _S, "as reported", 0.241), (_D, _S, "as reported, LIBRO", 0.236), (_D, _O, "as reported", 0.365),
    (_D, "Codex", "as reported, LIBRO", 0.315), (_G, _S, "as reported", 0.161),
    (_G, _S, "as reported, LIBRO", 0.290), (_G, _O, "as reported", 0.323),
    (_G, "Codex", "as reported, LIBRO", 0.323),
)  # fmt: skip
#: Tables 3 and 4: %BRT and baseline consistency rate.
_UNDERSTAND = {
    (_D, _S): ((0.211, 0.709), (0.206, 0.684)),
    (_D, _O): ((0.355, 0.838), (0.372, 0.878)),
    (_G, _S): ((0.161, 0.600), (0.226, 0.800)),
    (_G, _O): ((0.323, 0.900), (0.419, 1.000)),
}
_APPLY = {
    (_D, _S): ((0.069, 0.240), (0.107, 0.383), (0.115, 0.372), (0.127, 0.403)),
    (_D, _O): ((0.224, 0.527), (0.217, 0.510), (0.198, 0.473), (0.197, 0.470)),
    (_G, _S): ((0.032, 0.200), (0.097, 0.400), (0.065, 0.400), (0.032, 0.200)),
    (_G, _O): ((0.097, 0.300), (0.129, 0.400), (0.129, 0.300), (0.161, 0.400)),
}
#: Table 5: %BRT closed book and open book.
_ANALYZE = {
    (_D, _S): ((0.107, 0.349), (0.225, 0.653), (0.115, 0.377)),
    (_D, _O): ((0.217, 0.256), (0.363, 0.453), (0.198, 0.256)),
    (_G, _S): ((0.097, 0.258), (0.161, 0.516), (0.065, 0.258)),
    (_G, _O): ((0.129, 0.129), (0.323, 0.323), (0.129, 0.129)),
}
ROWS: tuple[Row, ...] = _rows()
