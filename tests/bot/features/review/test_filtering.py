"""What is worth a person's time, and what two findings have in common when they are the same."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.code.diff import parse
from bot.features.review.anchoring import anchor
from bot.features.review.filtering import Policy, select
from bot.features.review.record import Suppressed
from bot.features.shared.findings import Finding, Reported, fingerprint, same_defect
from bot.features.shared.taxonomy import Category, Impact, Severity

CODE = "return total / count"


def finding(
    code: Sequence[str] = (CODE,),
    path: str = "x.py",
    category: Category = Category.CODING,
    impact: Impact = Impact.RELIABILITY,
    severity: Severity = Severity.HIGH,
    line: int | None = 3,
) -> Finding:
    return Finding(
        path=path,
        line=line,
        code=tuple(code),
        fingerprint=fingerprint(path, code, category),
        comment="Divides by zero for an empty list.",
        category=category,
        impact=impact,
        severity=severity,
    )


def why(held: tuple[Suppressed, ...]) -> list[str]:
    return [each.reason for each in held]


def test_the_worst_come_first_and_the_rest_waits() -> None:
    many = [finding([f"value_{n} = load({n})"], severity=Severity.MEDIUM) for n in range(7)]
    worst = finding(["delete_everything()"])
    chosen, held = select([*many, worst], Policy(max_findings=3))
    assert chosen == (worst, *many[:2])
    assert why(held) == ["over_limit"] * 5


def test_each_reason_to_stay_silent() -> None:
    policy = Policy(muted=frozenset({"concurrency"}))
    found = [
        finding(),
        finding(),
        finding(["other_code(here)"], impact=Impact.MAINTAINABILITY),
        finding(["rejected_code(here)"]),
        finding(["posted_code(here)"]),
        finding(["racy_code(here)"], category=Category.CONCURRENCY),
        finding(["minor_code(here)"], severity=Severity.LOW),
    ]
    chosen, held = select(found, policy, posted=[found[4]], dismissed=[found[3]])
    assert chosen == (found[0],)
    assert why(held) == ["duplicate", "out_of_scope", "dismissed", "already_posted", "muted", "below_severity"]


def test_the_line_of_severity_is_the_maintainer_s() -> None:
    low = finding(severity=Severity.LOW)
    assert select([low], Policy(min_severity=Severity.LOW))[0] == (low,)
    assert select([low], Policy())[0] == ()


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
        ((found,), _) = anchor([report], parse(text))
        prints.add(found.fingerprint)
    assert len(prints) == 1


def test_path_code_and_defect_class_tell_findings_apart() -> None:
    base = finding()
    others = [finding(path="y.py"), finding(["return 1 / count"]), finding(category=Category.DATA)]
    assert len({each.fingerprint for each in [base, *others]}) == 4
    assert not any(same_defect(base, other) for other in others)


def test_a_slightly_different_frame_is_still_the_same_finding() -> None:
    assert same_defect(finding(), finding(["count = len(rows)", CODE]))
    assert not same_defect(finding(["}", CODE]), finding(["}", "something_else()"]))


@given(st.lists(st.sampled_from([Severity.LOW, Severity.MEDIUM, Severity.HIGH])), st.integers(0, 6))
def test_nothing_gets_lost_between_posting_and_holding_back(severities: list[Severity], limit: int) -> None:
    found = [finding([f"statement_number_{n}()"], severity=each) for n, each in enumerate(severities)]
    chosen, held = select(found, Policy(max_findings=limit))
    assert len(chosen) <= limit
    assert sorted(
        [*(each.fingerprint for each in chosen), *(each.finding.fingerprint for each in held)]
    ) == sorted(each.fingerprint for each in found)


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
    assert all(each.description for each in [*Category, *Impact])


def test_a_line_that_stands_in_many_places_joins_no_two_defects() -> None:
    assert not same_defect(finding(["return 1", "first_thing()"]), finding(["return 1", "second_thing()"]))
    assert same_defect(finding(["return 12", "first_thing()"]), finding(["return 12", "second_thing()"]))
