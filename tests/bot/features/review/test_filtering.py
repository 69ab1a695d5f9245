"""The choice of findings to post, and equal findings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.code.change.diff import parse
from bot.core.config import ReviewConfig
from bot.features.review.anchoring import anchor
from bot.features.review.filtering import Situation, select
from bot.features.review.record import Suppressed
from bot.features.review.strategies import merge_causes
from bot.features.shared.findings import (
    Category,
    Finding,
    Impact,
    Proof,
    ProofOutcome,
    Reported,
    Severity,
    fingerprint,
    same_defect,
)
from tests.builders import placed_finding

CODE = "return total / count"


def finding(
    code: Sequence[str] = (CODE,), path: str = "x.py", category: Category = Category.CODING, **values: Any
) -> Finding:
    fields = {"path": path, "code": tuple(code), "category": category, **values}
    return placed_finding(fingerprint=fingerprint(path, code, category), **fields)


def why(suppressed: tuple[Suppressed, ...]) -> list[str]:
    return [item.reason for item in suppressed]


def test_the_worst_come_first_and_the_rest_waits() -> None:
    many = [finding([f"value_{n} = load({n})"], severity=Severity.MEDIUM) for n in range(7)]
    worst = finding(["delete_everything()"])
    selected, suppressed = select([*many, worst], ReviewConfig(max_findings=3))
    assert selected == (worst, *many[:2])
    assert why(suppressed) == ["over_limit"] * 5


def test_each_reason_to_stay_silent() -> None:
    findings = [
        finding(),
        finding(),
        finding(["other_code(here)"], impact=Impact.MAINTAINABILITY),
        finding(["rejected_code(here)"]),
        finding(["posted_code(here)"]),
        finding(["racy_code(here)"], category=Category.CONCURRENCY),
        finding(["minor_code(here)"], severity=Severity.LOW),
    ]
    situation = Situation([findings[4]], dismissed=[findings[3]], muted=frozenset({"concurrency"}))
    selected, suppressed = select(findings, ReviewConfig(), situation)
    assert selected == (findings[0],)
    assert select(findings[6:], ReviewConfig(min_severity="low"))[0] == (findings[6],)
    assert why(suppressed) == [
        "duplicate",
        "out_of_scope",
        "dismissed",
        "already_posted",
        "muted",
        "below_severity",
    ]


@pytest.mark.parametrize("outcome", get_args(ProofOutcome))
def test_a_late_review_posts_a_slighter_finding_only_if_it_is_proven(outcome: ProofOutcome) -> None:
    slight, grave = finding(["slight(here)"], severity=Severity.MEDIUM), finding()
    proving = Situation(late=True, proves=True)
    assert select([slight, grave], ReviewConfig(), proving)[0] == (grave, slight), (
        "it is chosen first, to be proven"
    )
    with_proof = slight.model_copy(update={"proof": Proof(outcome=outcome)})
    selected, suppressed = select([with_proof, grave], ReviewConfig(), proving)
    assert set(selected) == ({grave, with_proof} if outcome == "proven" else {grave})
    assert why(suppressed) == ([] if outcome == "proven" else ["late"])
    assert select([slight, grave], ReviewConfig(), Situation(late=True))[0] == (grave,), (
        "without proofs it stays silent"
    )


def test_a_finding_is_the_same_when_lines_shift_and_words_change() -> None:
    before = "--- a/x.py\n+++ b/x.py\n@@ -1,2 +1,3 @@\n a\n+return total / count\n b\n"
    after = "--- a/x.py\n+++ b/x.py\n@@ -90,2 +95,3 @@\n c\n+      return  total / count\n d\n"
    prints = set()
    for number, text in enumerate((before, after)):
        report = Reported(
            path="x.py",
            quote=CODE,
            comment=f"Words {number}.",
            category=Category.CODING,
            impact=Impact.RELIABILITY,
            severity=Severity.HIGH,
        )
        ((match,), _) = anchor([report], parse(text))
        prints.add(match.fingerprint)
    assert len(prints) == 1


def test_path_code_and_defect_class_tell_findings_apart() -> None:
    base = finding()
    others = [finding(path="y.py"), finding(["return 1 / count"]), finding(category=Category.DATA)]
    assert len({other.fingerprint for other in [base, *others]}) == 4
    assert not any(same_defect(base, other) for other in others)


#: A short line at two places, below other lines.
REPEATED = "--- a/x.py\n+++ b/x.py\n@@ -1,2 +1,4 @@\n {0}\n+    return None\n save()\n+    return None\n end()\n"


def on_short_lines(diff: str, *lines: int) -> list[Finding]:
    fields = {"path": "x.py", "quote": "return None", "comment": "It is lost."}
    kinds = {"category": Category.CODING, "impact": Impact.RELIABILITY, "severity": Severity.HIGH}
    findings, _ = anchor([Reported(**fields, **kinds, line=line) for line in lines], parse(diff))
    return list(findings)


def test_the_lines_around_a_short_line_tell_it_from_its_twin() -> None:
    first, second = on_short_lines(REPEATED.format("load()"), 2, 4)
    assert not same_defect(first, second)
    assert merge_causes([first, second]) == (first, second)
    moved = REPEATED.format("load()").replace("+1,4", "+71,4")
    assert [other.fingerprint for other in on_short_lines(moved, 72, 74)] == [
        first.fingerprint,
        second.fingerprint,
    ]


def test_a_finding_of_an_older_version_is_the_same_at_each_of_its_lines() -> None:
    for new in on_short_lines(REPEATED.format("load()"), 2, 4):
        old = new.model_copy(update={"fingerprint": fingerprint("x.py", ("return None",), Category.CODING)})
        assert old.fingerprint == "8262ba79c58c0bda" != new.fingerprint
        assert same_defect(old, new)
        assert same_defect(new, old)
        from_comment = old.model_copy(update={"category": Category.DATA, "code": ()})
        assert select([new], ReviewConfig(), Situation(posted=[from_comment]))[0] == ()


def test_copies_of_a_block_are_one_finding_with_two_places() -> None:
    block = "+a()\n+b()\n+c()\n+return None\n"
    copies = f"--- a/x.py\n+++ b/x.py\n@@ -0,0 +1,12 @@\n{block * 3}"
    (merged,) = merge_causes(on_short_lines(copies, 4, 8))
    assert merged.places == ("x.py:8",)


def test_equal_lines_of_one_review_are_two_findings() -> None:
    first = finding(["cache[key] = value"], symbol="cache", line=10)
    second = finding(["cache[key] = value"], symbol="cache", line=20, category=Category.CONCURRENCY)
    assert select([first, second], ReviewConfig())[0] == (first, second)


def test_a_slightly_different_frame_is_still_the_same_finding() -> None:
    assert same_defect(finding(), finding(["count = len(rows)", CODE]))
    assert same_defect(finding(["result = 12", "first_thing()"]), finding(["result = 12", "second_thing()"]))
    for common in ("}", "total = 2", "return None", "return self  # 12"):
        assert not same_defect(finding([common, CODE]), finding([common, "something_else()"]))


@given(st.lists(st.sampled_from([Severity.LOW, Severity.MEDIUM, Severity.HIGH])), st.integers(1, 6))
def test_nothing_gets_lost_between_posting_and_holding_back(severities: list[Severity], limit: int) -> None:
    findings = [finding([f"statement_number_{n}()"], severity=severity) for n, severity in enumerate(severities)]
    selected, suppressed = select(findings, ReviewConfig(max_findings=limit))
    assert len(selected) <= limit
    assert sorted(
        [*(item.fingerprint for item in selected), *(item.finding.fingerprint for item in suppressed)]
    ) == sorted(item.fingerprint for item in findings)


@pytest.mark.parametrize(
    ("kind", "spelling", "meaning"),
    [
        (Category, "Interface, Integration, and System Bugs", "iis"),
        (Category, "Requirements, Features and Functionality (RFF)", "rff"),
        (Category, "Memory-related Bugs", "memory"),
        (Category, "Concurrent Bugs", "concurrency"),
        (Category, "Coding", "coding"),
        (Impact, "Functional Suitability", "functional_suitability"),
        (Impact, "performance", "performance_efficiency"),
        (Severity, "HIGH", "high"),
        (Severity, "Critical", "high"),
    ],
)
def test_models_may_spell_the_taxonomy_their_way(kind: type, spelling: str, meaning: str) -> None:
    assert kind(spelling).value == meaning


@pytest.mark.parametrize("kind", [Category, Impact, Severity])
def test_a_word_that_is_none_is_refused(kind: type) -> None:
    with pytest.raises(ValueError, match="banana"):
        kind("banana")


def test_the_taxonomy_is_the_paper_s() -> None:
    assert [len(Category), len(Impact), len(Severity)] == [8, 8, 3]
    assert all(word.description for word in [*Category, *Impact])
