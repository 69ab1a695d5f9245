"""The index of issues, in both databases."""

from __future__ import annotations

import pytest

from bot.core import events
from bot.core.subjects import Actor, Comment, Issue
from bot.pipeline.store import Database
from bot.pipeline.store.issues import FirstPass, Issues, duplicate_of
from tests.bot.pipeline.builders import make_inbox
from tests.bot.pipeline.driven import DrivenQueue
from tests.builders import REPOSITORY
from tests.pairs import PAIRS

ANN = Actor(id=11, login="ann")
NAME = REPOSITORY.full_name


def issue(number: int, title: str, body: str = "", **values: object) -> Issue:
    return Issue.model_validate({"number": number, "title": title, "body": body, "author": ANN, **values})


def indexed(database: Database, *issues: Issue) -> Issues:
    index = Issues(database)
    index.begin(NAME)
    index.add(NAME, issues, {}, FirstPass(listing="closed", complete=True))
    return index


def happen(
    database: Database,
    kind: type[events.Event],
    about: Issue,
    text: str = "",
    association: str = "MEMBER",
    author: Actor = ANN,
) -> None:
    """Have an event reach the index; ``text`` is that of a comment."""
    values: dict[str, object] = {"sender": author, "repository": REPOSITORY, "issue": about}
    if text:
        values["comment"] = Comment(id=1, body=text, author=author, author_association=association)
    with database.write() as connection:
        Issues(database).update(connection, kind.model_validate(values), 1_000.0)


def test_the_earlier_issue_of_each_planted_pair_is_among_five(database: Database) -> None:
    index = indexed(database, *(issue(number, *pair[:2]) for number, pair in enumerate(PAIRS, 1)))
    for number, (_, _, later) in enumerate(PAIRS, 1):
        candidates = index.similar(NAME, issue(99, later), 5)
        assert candidates is not None
        assert number in [candidate.number for candidate in candidates], later


def test_without_a_complete_index_nothing_is_stored_or_found(database: Database) -> None:
    index = Issues(database)
    happen(database, events.IssueOpened, issue(1, "Slow import"))
    assert (index.similar(NAME, issue(2, "Slow import"), 5), index.count(NAME)) == (None, 0)
    index.begin(NAME)
    happen(database, events.IssueOpened, issue(1, "Slow import"))
    assert (index.similar(NAME, issue(2, "Slow import"), 5), index.count(NAME)) == (None, 1)
    # The first pass read the issue before its delivery.
    index.add(NAME, [issue(1, "Slow")], {}, FirstPass(complete=True))
    assert [row.title for row in index.similar(NAME, issue(2, "Slow import"), 5) or ()] == ["Slow import"]


def test_an_edit_is_searched_and_a_closed_issue_stays(database: Database) -> None:
    index = indexed(database, issue(1, "Slow import"), issue(2, "Colours"))
    edited = issue(1, "Umlauts in names", state="closed")
    happen(database, events.IssueEdited, edited)
    assert index.similar(NAME, issue(9, "Slow import"), 5) == ()
    assert [(row.number, row.state) for row in index.similar(NAME, issue(9, "umlauts"), 5) or ()] == [
        (1, "closed")
    ]
    assert index.similar(NAME, edited, 5) == (), "an issue is not similar to itself"


def test_only_earlier_issues_are_candidates(database: Database) -> None:
    index = indexed(database, issue(3, "Slow import"), issue(5, "Slow import"))
    assert [row.number for row in index.similar(NAME, issue(4, "Slow import"), 5) or ()] == [3]


def test_a_duplicate_of_an_issue_that_nothing_names_is_told_apart(database: Database) -> None:
    index = indexed(database, issue(1, "Slow import"), issue(2, "Slow"), issue(3, "Slower"), issue(4, "Fast"))
    reasons = {2: {"state_reason": "duplicate"}, 3: {"labels": ("Duplicate",)}, 4: {"state_reason": "completed"}}
    for number, values in reasons.items():
        happen(database, events.IssueClosed, issue(number, "Slow", state="closed", **values))
    assert [row.number for row in index.history(NAME) or () if row.unnamed] == [3, 2]
    duplicate = issue(2, "Slow", state="closed", state_reason="duplicate")
    happen(database, events.CommentCreated, duplicate, "Duplicate of #1")
    happen(database, events.IssueClosed, duplicate)
    assert {row.number: (row.root, row.unnamed) for row in index.history(NAME) or ()}[2] == (1, False)


def test_chains_end_at_the_root_and_circles_end(database: Database) -> None:
    index = indexed(database, *(issue(number, "Slow import") for number in (1, 2, 3)))
    for number, target in ((2, 1), (3, 2)):
        happen(database, events.CommentCreated, issue(number, "Slow import"), f"Duplicate of #{target}")
    rows = index.similar(NAME, issue(9, "Slow import"), 5) or ()
    assert {row.number: row.root for row in rows} == {1: 1, 2: 1, 3: 1}
    happen(database, events.CommentCreated, issue(1, "Slow import"), "Duplicate of #3", "OWNER")
    assert len(index.similar(NAME, issue(9, "Slow import"), 5) or ()) == 3
    happen(database, events.IssueReopened, issue(2, "Slow import"))
    rows = index.similar(NAME, issue(9, "Slow import"), 5) or ()
    assert {row.number: row.root for row in rows} == {1: 2, 2: 2, 3: 2}


def test_a_removed_issue_leaves_the_index_and_is_no_root(database: Database) -> None:
    index = indexed(database, *(issue(number, "Slow import") for number in (1, 2)))
    happen(database, events.CommentCreated, issue(2, "Slow import"), "Duplicate of #1")
    happen(database, events.IssueRemoved, issue(1, "Slow import"))
    rows = index.similar(NAME, issue(9, "Slow import"), 5) or ()
    assert [(row.number, row.root) for row in rows] == [(2, 2)]


def test_a_late_delivery_brings_no_removed_issue_back(database: Database) -> None:
    index, queue = indexed(database, issue(1, "Slow import")), DrivenQueue(database)
    inbox = make_inbox(database, queue)
    inbox.accept("d-2", events.IssueRemoved(sender=ANN, repository=REPOSITORY, issue=issue(1, "Slow import")))
    inbox.accept("d-1", events.IssueEdited(sender=ANN, repository=REPOSITORY, issue=issue(1, "Slow")))
    queue.close()
    assert index.count(NAME) == 0


@pytest.mark.parametrize(
    "title", ['"', "' OR 1=1 --", "NEAR(a, b) AND NOT *", "a:b | c & !d <-> (", "\N{SNOWMAN}", "", "x" * 70_000]
)
def test_hostile_titles_are_searched_as_words(database: Database, title: str) -> None:
    index = indexed(database, issue(1, "Slow import"), issue(2, title, title))
    assert 1 not in [row.number for row in index.similar(NAME, issue(9, title, title), 5) or ()]
    happen(database, events.IssueEdited, issue(2, "plain"))
    assert [row.number for row in index.similar(NAME, issue(9, "import"), 5) or ()] == [1]


@pytest.mark.parametrize(
    ("body", "association", "number"),
    [
        ("Duplicate of #12", "MEMBER", 12),
        (f"This is a duplicate of https://github.com/{NAME}/issues/12.", "OWNER", 12),
        ("Duplicate of #12", "CONTRIBUTOR", None),
        ("Duplicate of https://github.com/other/repo/issues/12", "MEMBER", None),
        ("Not the same as #12", "MEMBER", None),
    ],
)
def test_only_members_say_which_issue_is_repeated(body: str, association: str, number: int | None) -> None:
    comment = Comment(id=1, body=body, author=ANN, author_association=association)
    assert duplicate_of(NAME, comment) == number


def test_questions_of_members_are_stored_and_nothing_else(database: Database) -> None:
    index = indexed(database, issue(1, "Slow import"), issue(2, "Colours"))
    bot = Actor(id=9, login="helper[bot]", is_bot=True)
    for text, association, author in (
        ("> Is it slow for you?\n\nThanks. Which version is it? See https://x.example/?a=b\n`a ?`", "MEMBER", ANN),
        ("Which version is it?\nDo you import it twice?", "MEMBER", ANN),
        ("Why does nobody answer me here?", "NONE", ANN),
        ("Which plugin do you use?", "MEMBER", bot),
    ):
        happen(database, events.CommentCreated, issue(1, "Slow import"), text, association, author)
    (row,) = index.similar(NAME, issue(9, "Slow import"), 1) or ()
    assert row.questions.splitlines() == ["Which version is it?", "Do you import it twice?"]
    pages = [
        (2, Comment(id=number, body=f"Which colours, number {number}?", author=ANN, author_association="MEMBER"))
        for number in range(9)
    ]
    index.add_questions(NAME, pages, FirstPass(listing="comments", complete=True))
    (row,) = index.similar(NAME, issue(9, "Colours"), 1) or ()
    assert row.questions.splitlines() == [f"Which colours, number {number}?" for number in range(4, 9)]
