"""The life of a job: it decides, pays and publishes once; it is retried, dead, cancelled or superseded."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import func, select, update

from bot.core import events
from bot.core.actions import Task
from bot.core.config_file import load
from bot.core.errors import (
    BudgetExceeded,
    ForgeError,
    NotFound,
    NotInstalled,
    OperatorNeeded,
    Suspended,
    TransientError,
)
from bot.features.services import Services
from bot.github.writer import GitHubWriter
from bot.pipeline.admin import Jobs
from bot.pipeline.inbox import Inbox, stored_event
from bot.pipeline.retention import Retention
from bot.pipeline.runner import Runner
from bot.pipeline.scheduler import LONGEST_ASKED_SECONDS, MAX_TRIES, MAX_TRIES_BUG, OPERATOR_SECONDS, pause
from bot.pipeline.store.overview import Filter, Overview
from bot.pipeline.store.tables import DECISIONS, DELIVERIES, MODEL_CALLS
from tests.bot.pipeline.builders import make_inbox
from tests.bot.pipeline.driven import EXECUTOR, DrivenQueue
from tests.bot.pipeline.publishing.desk import Desk, make_desk
from tests.bot.pipeline.rig import REPLY
from tests.scripted import ScriptedModel

VAGUE = dict(REPLY)
NAME = "octo/demo"


@dataclass
class Bench:
    """A runner whose clock the test moves."""

    desk: Desk
    queue: DrivenQueue
    model: ScriptedModel
    inbox: Inbox
    services: Services
    jobs: Jobs
    now: list[float]
    think: Callable[[], object] = lambda: None
    number: int = 0
    tasks: tuple[Task, ...] = ("triage",)

    def __post_init__(self) -> None:
        self.use(self.desk.writer)

    def fail(self, *errors: Exception) -> None:
        """Have the model fail so, one question after the other, and answer after that."""
        left = list(errors)

        def think() -> None:
            if left:
                raise left.pop(0)

        self.think = think

    def use(self, writer: Any, services: Services | None = None) -> None:
        """Have the runner write through this, and decide with these services."""
        self.use_for(lambda event: (services or self.services, writer))

    def use_for(self, services_for: Callable[[events.Event], Any]) -> None:
        self.runner = Runner(
            self.queue, self.inbox, self.desk.ledger, services_for, self.desk.publisher, paced=False
        )

    def open(self, title: str = "It is broken") -> str:
        """Open an issue; the id of its triage job, queued."""
        number = self.desk.github.open_issue(NAME, title, "Somehow.")
        return self.happens(events.IssueOpened, issue=self.desk.forge.issue(number))

    def open_pull(self) -> str:
        """Open a pull request for a new issue; the id of its verify job, queued."""
        self.open()
        files = {"src/app.py": "x = 1\n"}
        number = self.desk.github.open_pull(NAME, "Repair", "Fixes #1", "alice", files=files, closes=[1])
        self.make_jobs_of("verify")
        return self.happens(events.PullRequestOpened, pull_request=self.desk.forge.pull_request(number))

    def edit(self, number: int, body: str) -> str:
        self.desk.github.edit(NAME, number, body=body)
        return self.happens(events.IssueEdited, issue=self.desk.forge.issue(number))

    def comment(self, body: str, author: str, task: str) -> str:
        """Comment on issue 1; the id of the job of ``task``, queued."""
        self.desk.github.comment(NAME, 1, body, author)
        comment, issue = self.desk.forge.comments(1)[-1], self.desk.forge.issue(1)
        self.make_jobs_of(task)
        return self.happens(events.CommentCreated, sender=comment.author, issue=issue, comment=comment)

    def make_jobs_of(self, *tasks: Task) -> None:
        """Have each event from now on make these jobs; those that the router says if none is named."""
        self.tasks = tasks or ("triage",)
        self.inbox = make_inbox(self.desk.ledger.database, self.queue, *tasks)

    def happens(self, kind: Callable[..., events.Event], **fields: Any) -> str:
        """Deliver an event, by default of the author's; the id of its first job, queued."""
        self.number += 1
        sender = (fields.get("issue") or fields["pull_request"]).author
        values = {"repository": self.desk.services.repository, "sender": sender, "installation": 1, **fields}
        self.inbox.accept(f"d-{self.number}", kind(**values))
        return f"d-{self.number}:{self.tasks[0]}"

    def run(self, job: str) -> Any:
        """Run the present attempt, and the one that publishes; the job afterwards."""
        self.now[0] = max(self.now[0], self.queue.get(job).due)
        before = self.queue.get(job)
        after = self.queue.run(job, self.runner.run)
        if (before.stage, after.stage, after.state) == ("decide", "publish", "queued"):
            return self.queue.run(job, self.runner.run)
        return after


@pytest.fixture
def bench(request: pytest.FixtureRequest) -> Iterator[Bench]:
    """On SQLite; on each kind of database in turn where the test uses ``database``."""
    database = request.getfixturevalue("database" if "database" in request.fixturenames else "sqlite")
    now = [1_800_000_000.0]
    database.clock = lambda: now[0]
    with make_desk(database) as desk:
        model = ScriptedModel(lambda prompt: (bench.think(), VAGUE)[1])
        services = replace(desk.services, model=model, history=desk.ledger.decisions)
        queue = DrivenQueue(database)
        inbox = make_inbox(database, queue, "triage")
        jobs = Jobs(database)
        bench = Bench(desk, queue, model, inbox, services, jobs, now)
        yield bench
        jobs.close()
        queue.close()


def test_running_a_job_again_asks_nobody_and_writes_nothing(bench):
    job = bench.open()
    bench.run(job)
    writes = bench.desk.written()
    bench.queue.run(job, bench.runner.run)
    assert (len(bench.model.asked), bench.desk.written()) == (1, writes)


class Killed(BaseException):
    """Stands for kill -9: no handler catches it."""


def test_a_job_that_died_after_it_paid_the_model_does_not_pay_again(bench):
    def die() -> NoReturn:
        raise Killed

    job = bench.open()
    # The clock is read after the model has answered and before anything of the decision is recorded.
    bench.use(bench.desk.writer, replace(bench.services, clock=die))
    with pytest.raises(Killed):
        bench.run(job)
    assert bench.queue.get(job).state == "running"
    bench.use(bench.desk.writer)
    assert bench.run(job).outcome == "posted"
    assert len(bench.model.asked) == 1
    (decision,) = bench.desk.ledger.decisions.of_job(job)
    assert decision.usage.calls == 1


def test_a_github_that_is_away_is_waited_for_and_no_longer_than_it_asks(bench):
    job = bench.open()
    bench.desk.github.fail("too_many", "POST", "/comments$", wait=60)
    after = bench.run(job)
    assert (after.state, after.stage, after.tries) == ("waiting", "publish", 1)
    assert 60 <= after.due - bench.now[0] <= 75
    done = bench.run(job)
    assert (done.state, done.error) == ("done", None)
    assert len(bench.model.asked) == 1
    assert len(bench.desk.github.comments(NAME, 1)) == 1


def failing(bench: Bench, error: Exception) -> Bench:
    def refuse(event: events.Event) -> Any:
        raise error

    away = replace(bench)
    away.use_for(refuse)
    return away


def test_a_job_is_dead_after_a_week_without_github_and_can_be_retried(bench):
    job = bench.open()
    away = failing(bench, TransientError("api.github.com does not answer"))
    for _ in range(MAX_TRIES + 1):
        assert away.run(job).state == "waiting"
    bench.now[0] += OPERATOR_SECONDS + 1
    dead = away.run(job)
    assert dead.state == "dead"
    assert dead.error == "gave up after 7 days: api.github.com does not answer"
    bench.jobs.retry(job)
    assert bench.run(job).state == "done"


def test_a_week_without_a_model_is_an_abstention_and_a_retry_decides_anew(bench):
    job = bench.open()
    bench.fail(*[TransientError("the provider answered 503")] * (MAX_TRIES + 1))
    for _ in range(MAX_TRIES):
        assert bench.run(job).state == "waiting"
    assert bench.desk.ledger.decisions.decisions(f"{NAME}#1") == ()
    bench.now[0] += OPERATOR_SECONDS + 1
    bench.run(job)
    assert bench.queue.get(job).state == "dead"
    (decision,) = bench.desk.ledger.decisions.decisions(f"{NAME}#1")
    assert (decision.abstained, decision.reason) == ("unreachable", "gave up: the provider answered 503")
    assert bench.desk.github.comments(NAME, 1) == []
    bench.jobs.retry(job)
    assert bench.run(job).outcome == "posted"
    assert [item.verdict for item in bench.desk.ledger.decisions.decisions(f"{NAME}#1")] == ["VAGUE"]


def test_a_bug_is_tried_three_times_and_stops_nobody_else(bench):
    job = bench.open()
    broken = failing(bench, RuntimeError("a bug"))
    for _ in range(MAX_TRIES_BUG - 1):
        assert broken.run(job).state == "waiting"
    dead = broken.run(job)
    assert (dead.state, dead.error) == ("dead", "gave up after 3 tries: RuntimeError: a bug")
    assert bench.run(bench.open()).state == "done"


@pytest.mark.parametrize(
    ("error", "state", "why"),
    [
        (ForgeError("Resource not accessible by integration", 403), "dead", "refused: Resource not accessible"),
        (NotFound("#1 was deleted", 410), "done", "gone: #1 was deleted"),
        (NotInstalled("the app is not installed on octo/demo", 422), "done", "gone: the app is not installed"),
    ],
)
def test_what_github_refuses_ends_the_job_at_once(bench, error, state, why):
    job = failing(bench, error).run(bench.open())
    assert job.state == state
    assert (job.error or job.outcome).startswith(why)


@pytest.mark.usefixtures("database")
def test_a_job_that_is_cancelled_while_it_thinks_writes_nothing(bench):
    job = bench.open()
    bench.think = lambda: bench.jobs.cancel(job)
    assert bench.run(job).state == "cancelled"
    assert bench.desk.github.comments(NAME, 1) == []


def test_an_event_of_a_repository_that_was_removed_leaves_no_decision(bench):
    bench.desk.github.open_issue(NAME, "It is broken", "Somehow.")
    job = bench.comment("/bouncer accept", "mia", "commands")
    (installation,) = bench.desk.github.world.installations.values()
    installation.repositories.clear()
    for token in bench.desk.github.world.tokens.values():
        token.revoked = True
    assert bench.run(job).outcome.startswith("gone: ")
    assert bench.desk.ledger.decisions.decisions(f"{NAME}#1") == ()


def test_a_job_leaves_nothing_of_a_repository_that_is_removed_meanwhile(bench, database):
    job = bench.open()
    retention = Retention(database, bench.queue)
    bench.think = lambda: retention.uninstalled("octo", (), before=9)
    assert bench.runner.run(bench.queue.get(job), EXECUTOR).startswith("gone: ")
    assert bench.model.asked
    for table in (DELIVERIES, DECISIONS, MODEL_CALLS):
        assert database.scalar(select(func.count()).select_from(table)) == 0, table.name
    assert bench.queue.list() == ()


def test_an_attempt_of_a_forgotten_repository_ends_as_gone(bench):
    name = bench.open()
    job = bench.queue.get(name)
    Retention(bench.queue._database, bench.queue).uninstalled("octo", (), before=9)
    with bench.queue.transaction() as connection:
        bench.queue.enqueue(connection, job)
    assert bench.run(name).outcome.startswith("gone: ")
    assert not bench.model.asked


def test_a_job_of_a_repository_renamed_meanwhile_decides_again(bench, database):
    job = bench.open()
    event = stored_event(bench.jobs.event(bench.queue.get(job)))
    names = {"old": NAME, "new": "octo/shuttle", "repository_id": event.repository.id}
    renamed = events.Renamed(sender=event.sender, installation=event.installation, **names)
    bench.think = lambda: bench.desk.ledger.renames.move(NAME, "octo/shuttle", renamed)
    assert bench.run(job).error == "the repository was renamed meanwhile"
    for table in (DECISIONS, MODEL_CALLS):
        assert database.scalar(select(func.count()).select_from(table)) == 0, table.name
    bench.run(job)
    assert bench.queue.get(job).repository == "octo/shuttle"
    (decision,) = bench.desk.ledger.decisions.decisions("octo/shuttle#1")
    assert decision.subject.repository == "octo/shuttle"


@pytest.mark.usefixtures("database")
def test_one_look_ends_everything_that_the_newest_event_makes_pointless(bench):
    first = bench.open()
    edits = [bench.edit(1, f"It is broken in 4.{count}.") for count in range(5)]
    *between, last = edits
    assert (bench.run(first).state, bench.queue.get(first).outcome) == ("superseded", f"superseded by {last}")
    assert [(bench.queue.get(item).state, bench.queue.get(item).superseded_by) for item in between] == [
        ("superseded", last)
    ] * 4
    assert bench.run(last).outcome == "posted"
    assert len(bench.model.asked) == 1


def test_work_superseded_before_publishing_is_left_to_the_newer_job(bench):
    first = bench.open()
    bench.desk.github.edit(NAME, 1, body="It breaks.")
    # The first job judges the edited issue, of which no delivery told yet.
    assert bench.queue.run(first, bench.runner.run).stage == "publish"
    second = bench.edit(1, "It breaks.")
    assert bench.run(second).outcome == "posted"
    assert bench.queue.run(first, bench.runner.run).state == "superseded"
    assert len(bench.desk.github.comments(NAME, 1)) == 1


def test_an_unreadable_newer_event_supersedes_no_job(bench, database):
    first = bench.open()
    second = bench.edit(1, "It is broken in 4.2.")
    with database.write() as connection:
        unreadable = update(DELIVERIES).where(DELIVERIES.c.id == second.partition(":")[0])
        connection.execute(unreadable.values(event='{"kind": "of another time"}'))
    assert bench.run(first).outcome == "posted"
    dead = bench.run(second)
    assert (dead.state, dead.error.partition(":")[0]) == ("dead", "the stored event cannot be read")


def test_a_decision_of_another_version_stops_no_later_job_on_its_subject(bench, database):
    bench.run(bench.open())
    database.execute(update(DECISIONS).values(decision='{"kind": "of another time"}'))
    assert bench.run(bench.edit(1, "It is broken in 4.2.")).outcome == "posted"


def test_what_moved_while_it_was_judged_is_judged_again_as_it_stands(bench):
    job = bench.open()
    # An edit of which no delivery ever arrives; the second time it changes nothing.
    bench.think = lambda: bench.desk.github.edit(NAME, 1, body="It is broken in 4.2.")
    assert bench.run(job).state == "waiting"
    assert bench.desk.github.comments(NAME, 1) == []
    assert bench.run(job).outcome == "posted"
    assert len(bench.desk.github.comments(NAME, 1)) == 1


@pytest.mark.parametrize(
    ("task", "author", "body", "answer"),
    [
        ("commands", "mia", "/bouncer accept", "Accepted as is by mia."),
        ("triage", "alice", "It is version 4.2.", "Thanks, that answers my questions."),
    ],
)
def test_a_delayed_bounce_does_not_undo_what_was_decided_later(bench, database, task, author, body, answer):
    desk, clear = bench.desk, {**VAGUE, "p_bounce": 3, "label": "WELL_SPECIFIED"}
    desk.github.grant(NAME, "mia", "triage")
    model = ScriptedModel(lambda prompt: clear if "4.2" in prompt.user else VAGUE)
    bench.use(desk.writer, replace(bench.services, model=model))
    bounce = bench.open()
    desk.github.fail("secondary_limit", "POST", "/comments$", wait=60)
    assert bench.run(bounce).state == "waiting"
    later = bench.comment(body, author, task)
    waits = bench.run(later)
    assert (waits.state, waits.error, waits.due) == ("waiting", "waits for triage", bench.queue.get(bounce).due)
    assert bench.run(bounce).outcome == "posted"
    assert bench.run(later).outcome == "posted"
    (ours,) = desk.github.comments(NAME, 1, by="bouncer[bot]")
    assert ours.startswith(answer)
    assert desk.github.labels(NAME, 1) == []


@pytest.mark.usefixtures("database")
@pytest.mark.parametrize(
    ("task", "author", "body"),
    [
        ("commands", "mia", "/bouncer accept"),
        ("commands", "mia", "/bouncer pause"),
        ("triage", "alice", "It is version 4.2."),
    ],
)
def test_a_retried_bounce_does_not_undo_what_was_decided_since(bench, task, author, body):
    desk, clear = bench.desk, {**VAGUE, "p_bounce": 3, "label": "WELL_SPECIFIED"}
    desk.github.grant(NAME, "mia", "triage")
    model = ScriptedModel(lambda prompt: clear if "4.2" in prompt.user else VAGUE)
    bench.use(desk.writer, replace(bench.services, model=model))
    bounce = bench.open()
    assert bench.queue.run(bounce, bench.runner.run).stage == "publish"
    broken = failing(bench, RuntimeError("a bug"))
    assert [broken.run(bounce).state for _ in range(MAX_TRIES_BUG)][-1] == "dead"
    assert bench.run(bench.comment(body, author, task)).outcome.startswith("posted")
    bench.jobs.retry(bounce)
    bench.run(bounce)
    assert bench.run(bounce).state == "done"
    assert (desk.github.comments(NAME, 1, by="bouncer[bot]"), desk.github.labels(NAME, 1)) == ([], [])


@pytest.mark.parametrize(("change", "word"), [("close", "skipped:closed"), ("lock", "skipped:locked")])
def test_an_issue_closed_or_locked_while_it_is_judged_is_left_alone(bench, change, word):
    job = bench.open()
    bench.think = lambda: getattr(bench.desk.github, change)(NAME, 1, by="octo")
    assert bench.run(job).state == "waiting"
    assert bench.run(job).outcome == "nothing"
    (decision,) = bench.desk.ledger.decisions.decisions(f"{NAME}#1", "triage")
    assert decision.abstained == word
    assert (bench.desk.github.comments(NAME, 1), bench.desk.github.labels(NAME, 1)) == ([], [])


def test_reproduction_waits_for_triage_that_is_tried_again(bench):
    bench.make_jobs_of("triage", "reproduce")
    triage = bench.open()
    reproduce = triage.replace("triage", "reproduce")
    bench.fail(TransientError("the provider answered 503"))
    assert bench.run(triage).state == "waiting"
    waits = bench.queue.run(reproduce, bench.runner.run)
    assert (waits.state, waits.error, waits.due) == ("waiting", "waits for triage", bench.queue.get(triage).due)
    assert bench.run(triage).state == "done"
    assert bench.run(reproduce).outcome == "nothing to do"


@pytest.mark.usefixtures("database")
def test_what_waits_for_triage_is_brought_forward_with_it(bench):
    bench.make_jobs_of("triage", "reproduce")
    triage = bench.open()
    reproduce = triage.replace("triage", "reproduce")
    bench.fail(OperatorNeeded("the provider answered 401"))
    assert bench.run(triage).state == "waiting"
    assert bench.queue.run(reproduce, bench.runner.run).error == "waits for triage"
    assert bench.queue.bring_forward() == 2


def test_a_job_of_a_suspended_installation_waits_longer_than_a_week(bench):
    def suspended(event: events.Event) -> NoReturn:
        raise Suspended("GitHub answered 403: This installation has been suspended")

    job = bench.open()
    bench.use_for(suspended)
    for _ in range(2 * MAX_TRIES):
        bench.now[0] += 86_400
        assert (bench.run(job).state, bench.queue.get(job).tries) == ("waiting", 0)
    assert "has been suspended" in bench.queue.get(job).error
    assert bench.desk.ledger.decisions.decisions(f"{NAME}#1") == ()
    bench.use(bench.desk.writer)
    bench.run(job)
    assert bench.run(job).outcome == "posted"


def test_a_job_superseded_while_it_decides_writes_and_asks_nothing(bench):
    job = bench.open()
    newer: list[str] = []

    def think() -> None:
        if not newer:
            newer.append(bench.edit(1, "It is broken in 4.2."))

    bench.think = think
    assert bench.run(job).state == "superseded"
    assert bench.desk.github.comments(NAME, 1) == []
    assert bench.desk.ledger.decisions.decisions(f"{NAME}#1") == ()
    assert bench.run(newer[0]).outcome == "posted"
    assert "Which version is this?" in bench.desk.github.comments(NAME, 1)[0]


def test_a_late_delivery_does_not_lose_the_judgement_that_it_superseded(bench):
    number = bench.desk.github.open_issue(NAME, "It is broken", "Somehow.")
    first = bench.desk.forge.issue(number)
    edit = bench.edit(number, "It is broken in 4.2.")
    # The delivery of the opening failed, and is redelivered only now, behind that of the edit.
    late = bench.happens(events.IssueOpened, issue=first)
    assert bench.run(edit).superseded_by == late
    assert bench.run(late).outcome == "posted", "it judges what is there, not what was"
    assert len(bench.desk.github.comments(NAME, number)) == 1


@pytest.mark.usefixtures("database")
def test_a_spent_budget_is_a_visible_skip_today_and_a_decision_tomorrow(bench):
    bench.fail(BudgetExceeded("the budget of the day is spent"))
    job = bench.open()
    today = bench.run(job)
    assert (today.state, today.error) == ("waiting", "skipped: the budget of the day is spent")
    assert today.due // 86_400 == bench.now[0] // 86_400 + 1
    (skip,) = bench.desk.ledger.decisions.of_job(job)
    assert (skip.abstained, bench.desk.github.comments(NAME, 1)) == ("skipped:budget", [])

    tomorrow = bench.run(job)
    assert (tomorrow.state, tomorrow.outcome) == ("done", "posted")
    assert len(bench.desk.github.comments(NAME, 1)) == 1
    lines = Overview(bench.desk.ledger.database).decisions(Filter(repository=NAME))
    assert [item.abstained or item.verdict for item in lines] == ["VAGUE", "skipped:budget"]


def test_failures_before_the_budget_is_spent_do_not_cost_the_day(bench):
    bench.fail(*[TransientError("overloaded")] * 4, BudgetExceeded("spent"))
    job = bench.open()
    for _ in range(4):
        assert bench.run(job).error == "overloaded"
    assert bench.run(job).state == "waiting", "until tomorrow"
    assert bench.run(job).outcome == "posted"


@pytest.mark.usefixtures("database")
def test_a_check_for_a_spent_budget_is_decided_anew_tomorrow(bench):
    job = bench.open_pull()
    bench.fail(BudgetExceeded("spent"))
    assert bench.run(job).error == "skipped: the budget of the day is spent"
    bench.run(job)
    (decision,) = bench.desk.ledger.decisions.of_job(job)
    assert decision.abstained == "model:invalid", "it was asked, and its reply is one for triage"


def test_a_check_that_is_published_after_midnight_costs_no_second_day(bench):
    midnight = bench.now[0] - bench.now[0] % 86_400 + 86_400
    bench.now[0] = midnight - 5
    bench.fail(BudgetExceeded("spent"))
    job = bench.open_pull()
    assert bench.queue.run(job, bench.runner.run).stage == "publish"
    bench.now[0] = midnight + 5
    waiting = bench.queue.run(job, bench.runner.run)
    assert waiting.error == "skipped: the budget of the day is spent"
    assert midnight <= waiting.due <= midnight + 600, "there is a new budget already"


def test_a_budget_that_stays_spent_is_not_waited_for_for_ever(bench):
    bench.fail(*[BudgetExceeded("spent")] * 9)
    job = bench.open()
    for _ in range(3):
        assert bench.run(job).state == "waiting"
    assert bench.run(job).state == "done"


def test_a_reminder_waits_while_the_operator_pauses_the_repository(bench):
    bench.run(bench.open())
    bench.make_jobs_of("closing")
    job = bench.happens(events.IssueUnanswered, issue=bench.desk.forge.issue(1), since=0.0, days=7)
    bench.desk.ledger.installations.pause(NAME, "an operator")
    for _ in range(2):
        waiting = bench.run(job)
        assert (waiting.state, waiting.error) == ("waiting", "paused by the operator")
        assert waiting.due == bench.now[0] + 86_400
    bench.desk.ledger.installations.resume(NAME)
    assert bench.run(job).state == "done"


class Hurried:
    """A writer during whose comments the issue is edited."""

    def __init__(self, writer: Any, then: Callable[[], object]) -> None:
        self._writer, self._then = writer, then

    def __getattr__(self, name: str) -> Any:
        return getattr(self._writer, name)

    def create_comment(self, number: int, body: str) -> int:
        comment_id = self._writer.create_comment(number, body)
        self._then()
        return comment_id


CLEAR = {**REPLY, "open_points": [], "missing": [], "p_bounce": 2, "label": "WELL_SPECIFIED"}


def test_a_partly_posted_bounce_is_cleared_by_the_next_verdict(bench):
    job = bench.open()
    edited: list[str] = []
    hurried = Hurried(bench.desk.writer, lambda: edited.append(bench.edit(1, "read() fails in 4.2: see the log.")))
    bench.use(hurried)
    bench.run(job)
    (standing,) = bench.desk.ledger.decisions.decisions(f"{NAME}#1", "triage")
    assert [action.type for action in standing.actions] == ["upsert_comment"]
    bench.services = replace(bench.services, model=ScriptedModel(lambda prompt: CLEAR))
    assert bench.run(edited[0]).outcome == "posted"
    (body,) = bench.desk.github.comments(NAME, 1)
    assert body.startswith("Thanks, that answers my questions. (I'm a bot")


@pytest.mark.usefixtures("database")
def test_a_bounce_cancelled_after_its_comment_is_remembered(bench):
    job = bench.open()
    hurried = Hurried(bench.desk.writer, lambda: bench.desk.github.fail("too_many", "POST", "/labels$", wait=60))
    bench.use(hurried)
    assert bench.run(job).state == "waiting"
    bench.edit(1, "read() fails in 4.2.")
    bench.run(job)
    (standing,) = bench.desk.ledger.decisions.decisions(f"{NAME}#1", "triage")
    assert [action.type for action in standing.actions] == ["upsert_comment"]


def test_a_label_left_as_the_issue_moved_is_removed_by_the_next_verdict(bench):
    assert bench.run(bench.open()).outcome == "posted"
    bench.services = replace(bench.services, model=ScriptedModel(lambda prompt: CLEAR))
    later: list[str] = []

    class Late(Hurried):
        def edit_comment(self, comment_id: int, body: str) -> None:
            self._writer.edit_comment(comment_id, body)
            self._then()

    late = Late(bench.desk.writer, lambda: later.append(bench.edit(1, "read() fails in 4.2, on Linux.")))
    bench.use(late)
    bench.run(bench.edit(1, "read() fails in 4.2."))
    bench.use(bench.desk.writer)
    assert bench.desk.forge.issue(1).labels
    assert bench.run(later[0]).outcome == "posted"
    assert bench.desk.forge.issue(1).labels == ()


class DiesAfterEachWrite:
    """GitHub has it, and nothing of it is recorded; the second time it lives."""

    def __init__(self, writer: GitHubWriter) -> None:
        self._writer = writer
        self.deaths: set[object] = set()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def write(*arguments: Any) -> Any:
            answer = getattr(self._writer, name)(*arguments)
            if (name, arguments) not in self.deaths:
                self.deaths.add((name, arguments))
                raise Killed
            return answer

        return write


def test_an_unanswered_issue_is_warned_and_closed_once_after_any_crash(bench):
    config = load("triage: {close_after_days: 14}")[0]
    services, dying = replace(bench.services, config=config), DiesAfterEachWrite(bench.desk.writer)
    bench.make_jobs_of()
    bench.use(dying, services)
    job, began = bench.open(), bench.now[0]
    for _ in ("bounced", "warned", "closed"):
        for _ in range(9):
            try:
                assert bench.run(job).outcome == "posted"
                break
            except Killed:
                assert bench.queue.get(job).state == "running"
        job = f"{job}:again:closing"
    assert len(dying.deaths) >= 5
    posts = [path.rpartition("/")[2] for method, path in bench.desk.written() if method == "POST"]
    assert posts == ["comments", "labels", "comments"]
    assert bench.desk.written().count(("PATCH", "/repos/octo/demo/issues/1")) == 1
    assert len(bench.desk.github.comments(NAME, 1)) == 2
    assert bench.now[0] - began == 14 * 86_400
    assert bench.desk.forge.issue(1).state_reason == "not_planned"
    assert job not in bench.queue.states(), "nothing is left to come"


@pytest.mark.parametrize(
    ("tries", "retry_after", "seconds"),
    [
        (1, None, 2),
        (2, None, 4),
        (9, None, 512),
        (10, None, 900),
        (40, None, 900),
        (1, 60.0, 60),
        (12, 60.0, 900),
    ],
)
def test_pauses_double_up_to_a_quarter_of_an_hour(tries, retry_after, seconds):
    assert pause(tries, retry_after, 0.0) == seconds


def test_an_unreachable_github_is_tried_for_about_an_hour():
    assert 45 * 60 < sum(pause(tries, None, 0.0) for tries in range(1, MAX_TRIES)) < 75 * 60


@given(st.integers(1, 100), st.none() | st.floats(0, 1e9), st.floats(0, 1, exclude_max=True))
def test_a_pause_is_never_shorter_than_asked_nor_without_end(tries, retry_after, jitter):
    wait = pause(tries, retry_after, jitter)
    assert min(retry_after or 0.0, LONGEST_ASKED_SECONDS) <= wait <= LONGEST_ASKED_SECONDS + 15
