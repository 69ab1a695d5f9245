"""The figures of test generation from bug reports, each a pure function of recorded outcomes.

Definitions: LIBRO (Kang, Yoon, Yoo: Large Language Models are Few-shot Testers, section V) and the
evaluation scheme of layer Evaluate in the cognitive layered framework (Qureshi, Jiang). Where the prose
leaves room the definition is the one under which LIBRO's recorded rankings give LIBRO's printed figures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evaluation.brt.rankings import Ranking


def acc_at_n(rankings: Sequence[Ranking], n: int) -> int:
    """The number of bugs with a reproducing test among the first ``n`` suggestions."""
    return sum(found_at_n(rankings, n))


def found_at_n(rankings: Sequence[Ranking], n: int) -> tuple[bool, ...]:
    """For each bug, whether a reproducing test is among the first ``n`` suggestions."""
    return tuple(r.first_success_rank is not None and r.first_success_rank <= n for r in rankings)


def wef_at_n(rankings: Sequence[Ranking], n: int) -> int:
    """Wasted effort: how many wrong tests are read, over all bugs, by somebody who reads at most ``n`` of each."""
    return sum(wasted_at_n(rankings, n))


def wasted_at_n(rankings: Sequence[Ranking], n: int) -> tuple[int, ...]:
    """For each bug, the wrong tests read before the first right one, giving up after ``n`` tests.

    A list shorter than ``n`` without a right test costs its whole length. Bugs that no test reproduces
    count too: the reader does not know them beforehand. (The layered framework's prose restricts the
    measure to bugs with a right test among the first ``n``; that gives 70 instead of 201 at n = 1.)
    """
    return tuple(_wasted(ranking, n) for ranking in rankings)


def _wasted(ranking: Ranking, n: int) -> int:
    wrong_before = ranking.num_clusters if ranking.first_success_rank is None else ranking.first_success_rank - 1
    return min(n, wrong_before)


def suggestion_precision(suggested: Sequence[Ranking]) -> float | None:
    """Of the bugs for which something is suggested, the share that a suggested test reproduces; None for none."""
    if not suggested:
        return None
    return sum(r.reproducible for r in suggested) / len(suggested)


def suggestion_recall(suggested: Sequence[Ranking], generated: Sequence[Ranking]) -> float | None:
    """Of the bugs that some generated test reproduces, the share for which one is suggested.

    ``generated`` are the rankings before the agreement threshold left bugs out, ``suggested`` those after.
    None where no generated test reproduces anything.
    """
    reproducible = {r.bug_id for r in generated if r.reproducible}
    if not reproducible:
        return None
    return len(reproducible & {r.bug_id for r in suggested if r.reproducible}) / len(reproducible)


def brt_share(reproduced: Mapping[str, bool]) -> float | None:
    """%BRT as a fraction: bugs with at least one test that fails on the buggy and passes on the fixed version.

    Every bug that was tried belongs into ``reproduced``: one that could not be run is False, never absent.
    None where there is no bug.
    """
    if not reproduced:
        return None
    return sum(reproduced.values()) / len(reproduced)


def baseline_consistency(baseline: Mapping[str, bool], altered: Mapping[str, bool]) -> float | None:
    """Of the bugs reproduced under the baseline, the share that is reproduced under the altered setting too.

    Only bugs tried in both settings are compared. None where the baseline reproduced none of them.
    Source: layered framework, section 3.2, Baseline Consistency Rate.
    """
    held = [altered[bug] for bug, success in baseline.items() if success and bug in altered]
    return sum(held) / len(held) if held else None
