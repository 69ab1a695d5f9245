"""Stored data follow a repository when GitHub reports a rename or transfer, and never because of an id."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from sqlalchemy import select

from bot.core import events
from bot.core.actions import Decision
from bot.core.errors import MalformedDelivery
from bot.core.subjects import KnownFate, Subject
from bot.features.feedback.record import FeedbackRecord, Signal
from bot.github.webhook import parse
from bot.models.budget import Limit, Spent
from bot.models.protocol import Prompt
from bot.pipeline.admin import Jobs
from bot.pipeline.inbox import Inbox
from bot.pipeline.retention import Retention
from bot.pipeline.store import Database, Ledger, Posting
from bot.pipeline.store.issues import FirstPass
from bot.pipeline.store.tables import ABOUT_REPOSITORIES, FATES, RENAMES, SIGNALS
from tests.bot.pipeline.builders import ANA, ROCKET, opened, removed
from tests.bot.pipeline.conftest import Clock
from tests.bot.pipeline.driven import DrivenQueue
from tests.builders import issue

OLD, NEW = "acme/rocket", "acme/shuttle"
SHUTTLE = ROCKET.model_copy(update={"name": "shuttle"})
#: Another repository with the old name.
OTHER = ROCKET.model_copy(update={"id": 99})
LIMITS = (Limit(scope=f"repository:{OLD}"),)

Deliver = Callable[..., None]


@pytest.fixture
def deliver(database: Database, queue: DrivenQueue, clock: Clock) -> Deliver:
    """Deliver events, by id, and let a worker take up what is left for it."""
    tasks = lambda event: ("triage",) if isinstance(event, events.IssueOpened) else ()  # noqa: E731
    inbox, retention = Inbox(database, queue, tasks=tasks), Retention(database, queue)

    def deliver(**delivered: events.Event) -> None:
        for name, event in delivered.items():
            inbox.accept(f"d-{name}", event)
        inbox.take_up(retention.uninstalled)

    return deliver


def remember(ledger: Ledger, repository: str, job: str) -> None:
    """Record a decision and a post about issue 1."""
    subject = Subject(repository=repository, number=1, revision="text:1")
    signal = Signal(key=f"{repository}#1:f1", category="logic", outcome="dismissed", source="resolved", by="ana")
    fate = KnownFate(subject=f"{repository}#1", bouncer="triage", good=True, why="merged", bounced=False)
    feedback = FeedbackRecord(signals=(signal,), fates=(fate,))
    decision = Decision(kind="feedback", subject=subject, verdict="dismissed", record=feedback, reason=f'"{OLD}"')
    ledger.decisions.record(job, [decision], "")
    key = f"comment:{repository}#1:triage"
    row = {"type": "comment", "task": "triage", "number": 1, "job": "j", "github_id": 5, "content_hash": "h"}
    ledger.postings.put(Posting(key=key, repository=repository, **row))


@pytest.fixture
def past(deliver: Deliver, ledger: Ledger, clock: Clock) -> Ledger:
    """Everything that can be stored about a repository."""
    deliver(first=opened(1))
    remember(ledger, OLD, "d-first:triage")
    prompt = Prompt(purpose="triage", system="s", user="u", subject=f"{OLD}#1")
    (decision,) = ledger.decisions.of_job("d-first:triage")
    ledger.calls.record("d-first:triage", prompt, "R", "m", decision.usage, reply="{}")
    ledger.issues.begin(OLD)
    ledger.issues.add(OLD, [issue(number=1)], {}, FirstPass(complete=True))
    ledger.installations.pause(OLD, "operator")
    ledger.budgets.settle(ledger.budgets.reserve(day(clock), LIMITS, Spent(calls=6)), Spent(calls=4))
    return ledger


def day(clock: Clock) -> datetime:
    return datetime.fromtimestamp(clock(), UTC).date()


def stored(database: Database) -> set[str]:
    """The names under which anything is stored."""
    return {name for table in ABOUT_REPOSITORIES for name in database.scalars(select(table.c.repository))} - {""}


def renamed(
    old: str = OLD, new: str = NEW, installation: int = 1, repository_id: int | None = 1
) -> events.Renamed:
    return events.Renamed(sender=ANA, installation=installation, old=old, new=new, repository_id=repository_id)


def test_jobs_that_came_before_the_report_of_a_rename_run_again(deliver: Deliver, queue: DrivenQueue) -> None:
    deliver(first=opened(1), second=opened(2), third=opened(3))
    queue.run("d-first:triage", lambda job, executor: "gone: GitHub answered 422")
    queue.run("d-second:triage", lambda job, executor: "posted")
    deliver(name=renamed())
    states = {job.id: (job.state, job.attempt, job.repository) for job in queue.list()}
    assert states == {
        "d-first:triage": ("queued", 1, NEW),
        "d-second:triage": ("done", 0, NEW),
        "d-third:triage": ("queued", 0, NEW),
    }


@pytest.mark.parametrize(
    ("event", "new"),
    [
        (renamed(), NEW),
        (renamed("acme", "apex", repository_id=None), "apex/rocket"),
        (renamed(OLD, "globex/rocket", 2), "globex/rocket"),
    ],
    ids=["repository", "account", "transfer"],
)
def test_all_data_follow_a_repository_to_its_new_name(
    past: Ledger,
    database: Database,
    deliver: Deliver,
    queue: DrivenQueue,
    clock: Clock,
    event: events.Renamed,
    new: str,
) -> None:
    deliver(renamed=event)
    assert stored(database) == {new}
    (decision,) = past.decisions.decisions(f"{new}#1", "feedback")
    assert decision.subject.key == f"{new}#1"
    assert isinstance(decision.record, FeedbackRecord)
    assert decision.record.signals[0].key == f"{new}#1:f1"
    assert decision.record.fates[0].subject == f"{new}#1"
    assert decision.reason == f'"{OLD}"'
    assert past.postings.find(f"comment:{new}#1:triage") is not None
    assert database.scalars(select(SIGNALS.c.key)) == [f"{new}#1:f1"]
    assert database.scalars(select(FATES.c.subject)) == [f"{new}#1"]
    assert past.issues.similar(new, issue(number=9), 3) is not None
    assert past.installations.paused(new)
    assert not past.installations.paused(OLD)
    assert past.budgets.spent(day(clock), f"repository:{new}") == Spent(calls=4)
    assert {job.repository for job in queue.list()} == {new}
    # A worker that runs the waiting job reads its event with the new name.
    first = past.renames.present(opened(1))
    assert (first.subject.repository, first.installation) == (new, event.installation)
    assert Jobs(database).recheck(new, 1, "operator", pull=False)
    assert stored(database) == {new}


def test_repositories_with_equal_ids_stay_separate(
    ledger: Ledger, database: Database, deliver: Deliver, queue: DrivenQueue
) -> None:
    deliver(a=opened(1), b=opened(1, SHUTTLE), c=opened(2), d=opened(2, SHUTTLE))
    for name, job in ((OLD, "d-a:triage"), (NEW, "d-b:triage")):
        remember(ledger, name, job)
    names = {f"d-{letter}:triage": (OLD, NEW)[letter in "bd"] for letter in "abcd"}
    assert {job.id: job.repository for job in queue.list()} == names
    for name in (OLD, NEW):
        assert len(ledger.decisions.decisions(f"{name}#1")) == 1
        assert ledger.postings.find(f"comment:{name}#1:triage") is not None
    deliver(off=removed(OLD))
    assert stored(database) == {NEW}
    assert {job.repository for job in queue.list()} == {NEW}
    deliver(e=opened(3), f=opened(3, SHUTTLE))
    assert stored(database) == {OLD, NEW}
    assert database.rows(select(RENAMES)) == []


def test_an_equal_id_does_not_hide_a_new_repository(past: Ledger, database: Database, deliver: Deliver) -> None:
    deliver(renamed=renamed(), added=removed(added=(OLD,), added_ids=(ROCKET.id,)))
    deliver(new=opened(1))
    assert stored(database) == {OLD, NEW}
    assert past.decisions.decisions(f"{OLD}#1") == ()


def test_a_delivery_under_a_former_name_counts_under_the_present_one(
    past: Ledger, database: Database, deliver: Deliver, queue: DrivenQueue
) -> None:
    deliver(renamed=renamed(), again=renamed(NEW, "acme/glider"))
    deliver(late=opened(3), later=opened(4, SHUTTLE))
    assert stored(database) == {"acme/glider"}
    assert {job.repository for job in queue.list()} == {"acme/glider"}
    deliver(back=renamed("acme/glider", OLD))
    assert stored(database) == {OLD}
    assert len(past.decisions.decisions(f"{OLD}#1", "feedback")) == 1
    deliver(late_again=opened(5, SHUTTLE), present=opened(6))
    assert stored(database) == {OLD}


@pytest.mark.parametrize(
    ("event", "new", "other"),
    [
        (renamed(), NEW, opened(1, OTHER)),
        (
            renamed("acme", "apex", repository_id=None),
            "apex/rocket",
            opened(1, OTHER).model_copy(update={"installation": 9}),
        ),
    ],
    ids=["repository", "account"],
)
def test_a_new_repository_of_a_former_name_gets_nothing_of_the_old_one(
    past: Ledger, database: Database, deliver: Deliver, event: events.Renamed, new: str, other: events.IssueOpened
) -> None:
    deliver(renamed=event)
    deliver(other=other)
    assert stored(database) == {OLD, new}
    assert past.decisions.decisions(f"{OLD}#1") == ()
    deliver(off=removed(OLD))
    assert stored(database) == {new}
    assert len(past.decisions.decisions(f"{new}#1", "feedback")) == 1


def test_what_arrived_under_the_new_name_first_is_kept(
    past: Ledger, database: Database, deliver: Deliver, queue: DrivenQueue
) -> None:
    deliver(early=opened(1, SHUTTLE))
    remember(past, NEW, "d-early:triage")
    deliver(renamed=renamed())
    assert stored(database) == {NEW}
    assert len(past.decisions.decisions(f"{NEW}#1", "feedback")) == 2
    assert database.scalars(select(SIGNALS.c.key)) == [f"{NEW}#1:f1"]
    assert {job.id for job in queue.list()} == {"d-first:triage", "d-early:triage"}


def test_a_removed_repository_is_forgotten_with_its_former_name(
    past: Ledger, database: Database, deliver: Deliver, queue: DrivenQueue
) -> None:
    deliver(renamed=renamed(), off=removed(NEW))
    assert stored(database) == set()
    assert queue.list() == ()
    assert database.rows(select(RENAMES)) == []


def test_a_transfer_to_an_owner_without_the_app_is_a_removal(
    past: Ledger, database: Database, deliver: Deliver
) -> None:
    deliver(moved=renamed(OLD, "globex/rocket"), off=removed(OLD))
    assert stored(database) == set()


def test_a_removal_by_the_former_owner_keeps_what_was_transferred(
    past: Ledger, database: Database, deliver: Deliver
) -> None:
    deliver(moved=renamed(OLD, "globex/rocket", 2), off=removed(OLD))
    assert stored(database) == {"globex/rocket"}


def test_a_renamed_account_moves_nothing_of_a_later_one_of_its_login(
    past: Ledger, database: Database, deliver: Deliver
) -> None:
    deliver(other=opened(2).model_copy(update={"installation": 9}))
    deliver(renamed=renamed("acme", "apex", repository_id=None))
    assert stored(database) == {OLD}


SENDER = {"sender": {"id": 1, "login": "ana"}, "installation": {"id": 5}}
PLACE = {**SENDER, "repository": {"id": 7, "full_name": OLD}}


@pytest.mark.parametrize(
    ("action", "changes", "old"),
    [
        ("renamed", {"repository": {"name": {"from": "probe"}}}, "acme/probe"),
        ("transferred", {"owner": {"from": {"user": {"login": "ana"}}}}, "ana/rocket"),
        ("transferred", {"owner": {"from": {"organization": {"login": "globex"}}}}, "globex/rocket"),
        ("edited", {"default_branch": {"from": "master"}}, None),
        ("created", None, None),
    ],
)
def test_a_rename_is_read_from_the_changes(action: str, changes: object, old: str | None) -> None:
    event = parse("repository", {"action": action, **PLACE, "changes": changes})
    expected = old and renamed(old, OLD, 5, 7)
    assert event == (expected or None)


def test_a_deleted_repository_is_read_as_removed() -> None:
    event = parse("repository", {"action": "deleted", **PLACE})
    assert event == removed(OLD).model_copy(update={"installation": 5})


@pytest.mark.parametrize(
    ("changes", "is_renamed"), [({"login": {"from": "acme"}}, True), ({"slug": {"from": "acme"}}, False)]
)
def test_the_rename_of_an_account_is_read(changes: object, is_renamed: bool) -> None:
    payload = {"action": "renamed", **SENDER, "account": {"login": "apex"}, "changes": changes}
    event = parse("installation_target", payload)
    assert event == (renamed("acme", "apex", 5, None) if is_renamed else None)


def test_a_rename_without_a_former_name_is_malformed() -> None:
    with pytest.raises(MalformedDelivery):
        parse("repository", {"action": "renamed", **PLACE})
