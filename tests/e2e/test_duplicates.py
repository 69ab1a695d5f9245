"""A new issue or pull request that repeats an earlier one, on a whole installation."""

from __future__ import annotations

from bot.features.duplicates.record import DuplicatesRecord
from bot.features.triage.record import TriageRecord
from bot.features.verify.record import VerifyRecord
from tests.e2e.site import Site

COMMENT = {".github/bouncer.yml": "duplicates: {mode: comment, suggest_above: 90}\n"}
CLEAR = "With version 4.2, `mean([])` raises an exception."
SUGGESTION = "This may be the same as #{}: both fail in the same call of"


def reads(shop: Site, home: str) -> int:
    return sum(
        request.method == "GET" and request.path.endswith(f"{home}/issues") for request in shop.github.requests
    )


def suggestion(shop: Site, home: str, number: int) -> DuplicatesRecord:
    (decision,) = shop.decided(home, number, "duplicates")
    assert isinstance(decision.record, DuplicatesRecord)
    return decision.record


def test_the_root_is_named_once_and_nothing_else_changes(shop: Site) -> None:
    home = shop.repository("acme/means", COMMENT)
    compared = len(shop.model.about("", "ComparisonReply"))
    root = shop.slowly.open_issue(home, "Mean of nothing", CLEAR)
    assert shop.decided(home, root, "duplicates") == (), "without an index nothing is decided"
    assert len(shop.model.about("", "ComparisonReply")) == compared
    other = shop.github.open_issue(home, "Colours of plots", "With version 4.2, `plot()` draws in grey.")
    first = shop.github.open_issue(home, "Averages fail", CLEAR)
    shop.slowly.comment(home, first, f"Duplicate of #{root}", "mia")
    assert shop.index(home) == "acme/means: 3 issues are indexed\n"
    shop.github.comment(home, other, f"Duplicate of #{root}", "stranger")
    shop.slowly.comment(home, first, f"Duplicate of #{root}", "mia")

    before = reads(shop, home)
    clear = shop.github.open_issue(home, "Averages of empty lists fail", CLEAR)
    vague = shop.github.open_issue(home, "Averages", "`mean([])` fails.")
    grey = shop.slowly.open_issue(home, "Plots", "With version 4.2, plots in grey have no legend.")
    assert reads(shop, home) == before, "the index costs no request once it stands"
    (comment,) = shop.comments_on(home, clear)
    assert comment.startswith(SUGGESTION.format(root))
    assert "@octocat" not in comment
    (bounce,) = shop.comments_on(home, vague)
    assert bounce.startswith("Thanks for the report.")
    assert SUGGESTION.format(root) in bounce
    assert shop.comments_on(home, grey) == []
    assert {suggestion(shop, home, number).root for number in (clear, vague)} == {root}
    assert suggestion(shop, home, grey).root is None
    assert [shop.github.find(home, number).state for number in (clear, vague)] == ["open", "open"]
    assert shop.github.labels(home, clear) == []
    assert len(shop.model.about("", "ComparisonReply")) == compared + 3

    # What the author adds is judged again; the line stays in the comment.
    shop.slowly.comment(home, vague, "It is version 4.2.", "alice")
    (bounce,) = shop.comments_on(home, vague)
    assert bounce.startswith("Thanks, that answers my questions.")
    assert SUGGESTION.format(root) in bounce


def test_an_issue_that_is_deleted_or_transferred_is_not_named(shop: Site) -> None:
    home, other = shop.repository("acme/gone", COMMENT), shop.repository("acme/elsewhere")
    numbers = [shop.github.open_issue(home, "Mean of nothing", CLEAR) for _ in range(2)]
    shop.quiet()
    shop.index(home)
    shop.github.delete(home, numbers[0], by="mia")
    shop.github.transfer(home, numbers[1], other, by="mia")
    late = shop.slowly.open_issue(home, "Mean of nothing fails", CLEAR)
    (decision,) = shop.decided(home, late, "duplicates")
    assert (decision.abstained, shop.comments_on(home, late)) == ("skipped:unique", [])


def test_by_default_it_is_recorded_and_nothing_is_posted(shop: Site) -> None:
    home = shop.repository("acme/quiet")
    unset = shop.repository("acme/unset", {".github/bouncer.yml": "duplicates: {mode: comment}\n"})
    for name in (home, unset):
        root = shop.github.open_issue(name, "Mean of nothing", CLEAR)
        shop.slowly.close(name, root)
        shop.index(name)
        number = shop.slowly.open_issue(name, "Averages fail", CLEAR)
        (decision,) = shop.decided(name, number, "duplicates")
        assert (decision.verdict, decision.actions, len(decision.withheld)) == ("duplicate", (), 1)
        assert decision.reason.startswith("shadow mode")
        assert shop.comments_on(name, number) == []
    assert "until duplicates.suggest_above is set" in decision.reason


def summary(shop: Site, home: str, number: int) -> str:
    shop.quiet()
    (check,) = [check for check in shop.checks(home, shop.head(home, number)) if check.name == "bouncer / verify"]
    # The publisher keeps a check from linking what it names.
    return str(check.output["summary"]).replace("\u200b", "")


def change(extra: str = "", lines: int = 6) -> dict[str, str]:
    return {"src/new.py": "".join(f"VALUE_{number} = {number}\n" for number in range(lines)) + extra}


def test_earlier_pull_requests_like_a_new_one_are_named_in_its_check(shop: Site) -> None:
    home = shop.repository("acme/pulls", COMMENT)
    issue = shop.github.open_issue(home, "Values", CLEAR)
    first = shop.github.open_pull(home, "Add values", files=change(), closes=[issue])
    assert "earlier open" not in summary(shop, home, first)
    other = shop.github.open_pull(home, "Other way", files={"src/other.py": "A = 1\n"}, closes=[issue])
    assert summary(shop, home, other).startswith(f"An earlier open pull request, #{first}, is also for #{issue}.")
    # What is said about a paused one hides nothing of it.
    shop.github.comment(home, first, "/bouncer pause", "mia")
    shop.slowly.edit(home, first, title="Add more values")
    assert shop.decided(home, first, "verify")[-1].abstained == "skipped:paused"
    # Six of its ten lines are the same, and it links no issue.
    extra = "".join(f"OTHER_{number} = 0\n" for number in range(3))
    copy = shop.github.open_pull(home, "Copy", author="bob", files=change(extra, lines=7))
    copied = summary(shop, home, copy)
    assert copied.startswith(
        f"An earlier open pull request, #{first}, makes 60 % of this one's changes.\n\nNothing was judged"
    )
    few = shop.github.open_pull(home, "Few", files=change(extra.replace("OTHER", "FEW"), lines=4))
    assert "earlier open" not in summary(shop, home, few), "four of seven lines are too few"

    shop.github.close(home, first)
    late = shop.github.open_pull(home, "Late", files=change(), closes=[issue])
    text = summary(shop, home, late)
    assert text.startswith(
        f"An earlier open pull request, #{other}, is also for #{issue}. "
        f"An earlier open pull request, #{copy}, makes 100 % of this one's changes."
    )
    assert f"#{first}" not in text
    assert shop.comments_on(home, late) == []


def test_in_shadow_mode_similar_pull_requests_are_only_recorded(shop: Site) -> None:
    home = shop.repository("acme/shadow")
    first = shop.slowly.open_pull(home, "Add values", files=change())
    second = shop.github.open_pull(home, "Add values", files=change())
    assert f"#{first}" not in summary(shop, home, second)
    (decision,) = shop.decided(home, second, "verify")
    assert isinstance(decision.record, VerifyRecord)
    assert decision.record.content
    assert [(twin.number, twin.share) for twin in decision.record.content.twins] == [(first, 100)]


def test_the_model_is_shown_what_maintainers_asked_on_closed_issues(shop: Site) -> None:
    triage = {".github/bouncer.yml": "triage: {examples: 3}\nduplicates: {mode: 'off'}\n"}
    home, plain = shop.repository("acme/asked", triage), shop.repository("acme/plain")
    for name in (home, plain):
        early, late, still_open = (shop.github.open_issue(name, f"Mean {word}", CLEAR) for word in ("a", "b", "c"))
        for number in (early, still_open):
            shop.github.comment(name, number, f"Which list did you pass to #{number}?", "mia")
        shop.github.comment(name, early, "Why is nobody working on this?", "stranger")
        shop.slowly.close(name, early)
        shop.index(name)
        shop.github.comment(name, late, "Do you use `numpy` for it?", "mia")
        shop.slowly.close(name, late)
    before = len(shop.github.requests)
    number = shop.github.open_issue(home, "Averages of no list fail", CLEAR)
    shop.slowly.open_issue(plain, "Averages without a list fail", CLEAR)
    assert not [request for request in list(shop.github.requests)[before:] if request.path.endswith("/comments")]
    (question,) = shop.model.about("Averages of no list fail", "InputReply")
    assert f"Which list did you pass to #{early}?" in question.text
    assert "Do you use `numpy` for it?" in question.text
    assert f"#{still_open}?" not in question.text
    assert "nobody working" not in question.text
    (decision,) = shop.decided(home, number, "triage")
    assert isinstance(decision.record, TriageRecord)
    assert decision.record.prompt_hash
    (question,) = shop.model.about("Averages without a list fail", "InputReply")
    assert "maintainers of this project asked" not in question.text
