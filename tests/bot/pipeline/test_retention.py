"""Old jobs are forgotten, in our tables and the queue's; what could still be redelivered or retried is not."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import func, select

from bot.core import events
from bot.core.actions import Decision, Usage
from bot.core.subjects import Subject
from bot.models.budget import Limit, Spent
from bot.models.protocol import Prompt
from bot.pipeline.admin import Jobs
from bot.pipeline.inbox import Inbox
from bot.pipeline.job import KEEP_SECONDS, GaveUp, Job
from bot.pipeline.retention import DAY, KEEP_DAYS, KEEP_DEAD_SECONDS, Retention
from bot.pipeline.store import Database, Ledger
from bot.pipeline.store.tables import DELIVERIES
from tests.bot.pipeline.builders import ANA, opened, removed
from tests.bot.pipeline.conftest import Clock
from tests.bot.pipeline.driven import DrivenQueue
from tests.builders import event, issue


def closed(number: int) -> events.IssueClosed:
    return event(events.IssueClosed, issue(number=number, state="closed"))


@pytest.fixture
def sweep(database: Database, queue: DrivenQueue, clock: Clock):
    return Retention(database, queue).sweep


@pytest.fixture
def dispatch(database: Database, queue: DrivenQueue, clock: Clock):
    """Deliver events, by id, and make their jobs."""
    retention = Retention(database, queue)
    tasks = lambda event: ("triage",) if isinstance(event, events.RepositoryEvent) else ()  # noqa: E731
    inbox = Inbox(database, queue, tasks=tasks)

    def dispatch(**delivered: events.Event) -> None:
        for name, item in delivered.items():
            inbox.accept(f"d-{name}", item)
        inbox.take_up(retention.uninstalled)

    return dispatch


@pytest.fixture
def jobs(dispatch, queue: DrivenQueue) -> DrivenQueue:
    """d-done, d-dead and d-open, and a ping, all of the same moment."""
    dispatch(done=opened(1), dead=opened(2), open=opened(3), ping=events.Pinged(sender=opened().sender))

    def die(job: Job, executor: str) -> str:
        raise GaveUp("gave up")

    queue.run("d-done:triage", lambda job, executor: "posted")
    queue.run("d-dead:triage", die)
    return queue


def installation(action: str, number: int = 1) -> events.InstallationChanged:
    return events.InstallationChanged(sender=ANA, action=action, account="acme", installation=number)


def remembered(database: Database) -> set[str]:
    return set(database.scalars(select(DELIVERIES.c.id)))


def test_nothing_goes_while_github_may_redeliver(jobs, sweep, clock, database):
    clock.now += KEEP_SECONDS - 600
    assert KEEP_SECONDS > 3 * DAY
    assert sweep() == 0
    assert len(remembered(database)) == 4


def test_what_ended_goes_and_what_has_not_stays(jobs, sweep, clock, database):
    clock.now += KEEP_SECONDS + 600
    assert sweep() == 3
    assert remembered(database) == {"d-dead", "d-open"}
    assert set(jobs.states()) == {"d-dead:triage", "d-open:triage"}
    assert sweep() == 0


def test_a_dead_letter_waits_a_month_for_somebody(jobs, sweep, clock, database):
    clock.now += KEEP_DEAD_SECONDS + 600
    sweep()
    assert remembered(database) == {"d-open"}


def decided(ledger: Ledger, number: int) -> None:
    decision = Decision(kind="triage", subject=Subject(repository="acme/rocket", number=number, revision="text:1"))
    ledger.decisions.record(f"d:{number}", [decision], "")
    prompt = Prompt(purpose="triage", system="s", user="u", subject=f"acme/rocket#{number}")
    ledger.calls.record(f"d:{number}", prompt, "R", "m", Usage(calls=1), reply="{}")


def test_old_replies_and_decisions_on_closed_subjects_are_deleted(dispatch, sweep, clock, ledger: Ledger):
    for number in (1, 2, 3):
        decided(ledger, number)
    dispatch(closed=closed(2), again=closed(3), reopened=event(events.IssueReopened, issue(number=3)))
    clock.now += KEEP_DAYS * DAY - 1
    sweep()
    assert len(ledger.decisions.decisions("acme/rocket#2")) == 1
    assert ledger.calls.reply("d:1", Prompt(purpose="triage", system="s", user="u").hash, "R") is not None
    clock.now += 2
    sweep()
    assert [len(ledger.decisions.decisions(f"acme/rocket#{n}")) for n in (1, 2, 3)] == [1, 0, 1]
    assert ledger.calls.reply("d:1", Prompt(purpose="triage", system="s", user="u").hash, "R") is None


def test_what_is_decided_after_the_closing_stays_for_its_own_half_year(dispatch, sweep, clock, ledger: Ledger):
    dispatch(closed=closed(2))
    clock.now += KEEP_DAYS * DAY + 1
    decided(ledger, 2)
    sweep()
    assert len(ledger.decisions.decisions("acme/rocket#2")) == 1


def test_an_operator_may_keep_everything(dispatch, database, queue, clock, ledger: Ledger):
    decided(ledger, 2)
    dispatch(closed=closed(2))
    clock.now += 10 * KEEP_DAYS * DAY
    Retention(database, queue, keep_days=0).sweep()
    assert len(ledger.decisions.decisions("acme/rocket#2")) == 1


def test_an_uninstallation_deletes_the_rows_of_its_account_only(dispatch, jobs, clock, database, ledger: Ledger):
    decided(ledger, 1)
    other = Decision(kind="triage", subject=Subject(repository="acmeister/x", number=1, revision="text:1"))
    ledger.decisions.record("other", [other], "")
    dispatch(gone=installation("deleted"))
    assert jobs.list() == ()
    assert remembered(database) == {"d-ping", "d-gone"}
    assert ledger.decisions.decisions("acme/rocket#1") == ()
    assert ledger.decisions.decisions("acmeister/x#1") == (other,)


def test_a_late_uninstallation_deletes_nothing_of_a_new_installation(dispatch, jobs, clock, ledger: Ledger):
    decided(ledger, 1)
    dispatch(new=installation("created", 2))
    dispatch(gone=installation("deleted"))
    assert len(jobs.list()) == 3
    assert len(ledger.decisions.decisions("acme/rocket#1")) == 1
    assert [row.id for row in ledger.installations.all()] == [2]


def test_what_arrives_after_a_removal_is_kept_if_it_is_taken_up_late(dispatch, jobs, clock, database, ledger):
    decided(ledger, 1)
    dispatch(off=removed("acme/rocket"), on=removed(added=("acme/rocket",), added_ids=(1,)), new=opened(4))
    assert set(jobs.states()) == {"d-new:triage"}
    assert remembered(database) == {"d-ping", "d-off", "d-on", "d-new"}
    assert ledger.decisions.decisions("acme/rocket#1") == ()


def test_a_repository_that_is_removed_and_added_has_spent_what_it_spent(dispatch, clock, sweep, ledger: Ledger):
    today = datetime.fromtimestamp(clock(), UTC).date()
    scope = "repository:acme/rocket"
    for day in (today, today - timedelta(days=1)):
        ledger.budgets.reserve(day, (Limit(scope=scope),), Spent(calls=5))
    dispatch(off=removed("acme/rocket"), gone=installation("deleted"))
    assert ledger.budgets.spent(today, scope) == Spent(calls=5)
    assert ledger.budgets.spent(today - timedelta(days=1), scope) == Spent()
    clock.now += 9 * DAY
    sweep()
    assert ledger.budgets.spent(today, scope) == Spent()


def test_the_number_of_deliveries_ever_does_not_start_again(jobs, sweep, clock, database):
    before = database.scalar(select(func.max(DELIVERIES.c.seq)))
    clock.now += 100 * DAY
    Jobs(database).cancel("d-open:triage")
    sweep()
    Inbox(database, jobs).accept("d-new", opened())
    assert database.scalar(select(func.max(DELIVERIES.c.seq))) > before
