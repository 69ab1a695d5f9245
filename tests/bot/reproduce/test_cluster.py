"""Tests that fail for one reason are recognised as such, on made-up and on recorded failures."""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.reproduce.outcome import TestOutcome
from bot.reproduce.select import Cluster, FailingTest, cluster, distinct_tests, normalise, signature


def failing(number: int, exception: str, message: str = "", syntax: str = "") -> FailingTest:
    outcome = TestOutcome(status="failed", exception_type=exception, message=message)
    return FailingTest(number=number, outcome=outcome, syntax=syntax or str(number), tokens=10)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("<Table object at 0x7f2a31>", "<Table object at 0x55d0bc9e>"),
        ("com.example.Foo@1b6d3586 is closed", "com.example.Foo@4554617c is closed"),
        ("no such file: '/tmp/pytest-of-root/pytest-3/test_a0/x.csv'", "no such file: '/tmp/abc/x.csv'"),
        ("/home/ci/build/pkg/table.py:12: closed", "/srv/checkout/table.py:98: closed"),
        ("parse error at line 3 column 14", "parse error at line 12 column 1"),
        ("timed out after 1.25s", "timed out after 980 ms"),
        ("job 0b6f2a3e-3c7e-4d53-9a0a-0c55a2a6f001 lost", "job 9f6f2a3e-3c7e-4d53-9a0a-0c55a2a6ffff lost"),
        ("Thread-4 died", "Thread-11 died"),
        ("a\n   b", "a b"),
    ],
)
def test_what_differs_from_run_to_run_does_not_tell_failures_apart(one: str, other: str) -> None:
    assert normalise(one) == normalise(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("assert 3 == 4", "assert 3 == 5"),
        ("KeyError: 'a'", "KeyError: 'b'"),
        ("expected: <true> but was: <false>", "expected: <false> but was: <true>"),
        ("2001-01-01 != 2001-01-02", "2001-01-01 != 2001-01-03"),
        ("missing /srv/data/a.csv", "missing /srv/data/b.csv"),
    ],
)
def test_values_under_test_tell_failures_apart(one: str, other: str) -> None:
    assert normalise(one) != normalise(other)


@given(st.text(max_size=300))
def test_normalising_again_changes_nothing(message: str) -> None:
    assert normalise(normalise(message)) == normalise(message)


def test_the_explanation_below_an_assertion_does_not_split_a_cluster() -> None:
    one = TestOutcome(
        status="failed", exception_type="AssertionError", message="assert 1 == 2\n +  where 1 = f([0])"
    )
    other = TestOutcome(
        status="failed", exception_type="AssertionError", message="assert 1 == 2\n +  where 1 = f((0,))"
    )

    assert signature(one) == signature(other) == "AssertionError: assert 1 == 2"


def test_equal_drafts_count_as_agreement_but_are_shown_once() -> None:
    tests = [failing(0, "ValueError", "x", "same"), failing(1, "ValueError", "x", "same"), failing(2, "KeyError")]

    groups = cluster(tests)

    assert [each.size for each in groups] == [2, 1]
    assert [test.number for test in distinct_tests(groups[0].tests)] == [0]


def recorded(outcomes: dict[str, Any]) -> dict[str, FailingTest]:
    tests = {}
    for number, (name, outcome) in enumerate(outcomes.items()):
        if isinstance(outcome, str) or not outcome["buggy"]["autogen_failed"]:
            continue
        kind = outcome["buggy"]["exception_type"]
        message = outcome["buggy"]["failure_message"].removeprefix(kind).lstrip(": ")
        tests[name] = failing(number, kind, message)
    return tests


def test_the_recorded_ghrb_failures_cluster_as_libro_clustered_them(shared_data: Path) -> None:
    """1,425 recorded outcomes, 272 of them failing tests, of 25 bugs.

    LIBRO's column num_clusters counts the distinct tests (the length of the ranked list), never the clusters
    of failure output: 1 cluster where it says 7, 3 where it says 12, equal only where every distinct test
    fails in its own way. What is comparable is the size of the cluster in which each test lies
    (clus_size_output_fib): it is the same for every test of every bug but google_gson-2134, where 29 outcomes
    carry the very same message and LIBRO counts 28.
    """
    outcomes = json.loads(gzip.decompress((shared_data / "brt" / "libro_example2_n50_GHRB.json.gz").read_bytes()))
    listed = {row["bug_id"]: int(row["num_clusters"]) for row in _rows(shared_data, "libro_ranking_ghrb.csv")}
    sizes = {
        (row["bug_id"], row["test_path"].removesuffix(".txt")): int(row["clus_size_output_fib"])
        for row in _rows(shared_data, "libro_ranking_features_ghrb.csv")
    }
    judged = [o for tests in outcomes.values() for o in tests.values() if not isinstance(o, str)]
    ours: dict[str, tuple[Cluster, ...]] = {}
    differing: dict[str, set[tuple[int, int]]] = {}
    for bug, tests in outcomes.items():
        named = recorded(tests)
        if not named:
            continue
        ours[bug] = cluster(list(named.values()))
        size = {test.number: each.size for each in ours[bug] for test in each.tests}
        for name, test in named.items():
            if (bug, name) in sizes and sizes[bug, name] != size[test.number]:
                differing.setdefault(bug, set()).add((size[test.number], sizes[bug, name]))

    assert len(judged) == 1425
    assert set(ours) == set(listed)
    assert sum(each.size for groups in ours.values() for each in groups) == 272
    assert differing == {"google_gson-2134": {(29, 28)}}
    assert all(len(groups) <= listed[bug] for bug, groups in ours.items())
    assert sum(map(len, ours.values())) == 94
    assert sum(listed.values()) == 215
    assert len(ours["Hakky54_sslcontext-kickstart-167"]) == 1
    assert listed["Hakky54_sslcontext-kickstart-167"] == 7


def _rows(shared_data: Path, name: str) -> list[dict[str, str]]:
    with (shared_data / "brt" / name).open(newline="") as stream:
        return list(csv.DictReader(stream))
