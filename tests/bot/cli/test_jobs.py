"""``bouncer jobs``: the operator's view of what runs, what died, and what to do about it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from bot.core.actions import Decision
from bot.core.subjects import Subject
from bot.pipeline.admin import Jobs
from bot.pipeline.queue import Queue
from bot.pipeline.store import Ledger
from tests.bot.cli.github_commands import Ran
from tests.bot.pipeline.builders import make_inbox, opened, removed
from tests.bot.pipeline.driven import bury

Run = Callable[..., Any]


@pytest.fixture
def jobs(database) -> Iterator[Jobs]:
    """d-1 is dead, d-2 is queued."""
    queue = Queue(database)
    inbox = make_inbox(database, queue, "triage")
    inbox.accept("d-1", opened(1))
    bury(database, "gave up after 13 tries: api.github.com does not answer", "d-1:triage")
    inbox.accept("d-2", opened(2))
    queue.close()
    jobs = Jobs(database)
    yield jobs
    jobs.close()


@pytest.fixture
def run(database_url: str, bouncer: Callable[..., Ran]) -> Run:
    def act(*arguments: str) -> Any:
        code, out, error = bouncer("jobs", *arguments, "--database-url", database_url)
        return code, json.loads(out) if "--json" in arguments and out else out, error

    return act


def test_list_shows_the_newest_first_and_dead_letters_with_their_reason(jobs, run):
    code, out, error = run("list")
    assert (code, error) == (0, "1 dead, 1 queued\n")
    first, second = out.splitlines()
    assert first.startswith("d-2:triage  queued")
    assert second.endswith("acme/rocket#1  gave up after 13 tries: api.github.com does not answer")


def test_list_as_json_is_one_object_and_nothing_else(jobs, run):
    code, out, error = run("list", "--state", "dead", "--json")
    assert (code, error) == (0, "")
    assert out["counts"] == {"dead": 1, "queued": 1}
    assert [(job["id"], job["state"], job["attempt"]) for job in out["jobs"]] == [("d-1:triage", "dead", 0)]


def test_show_says_everything_about_a_job(jobs, run):
    _, out, _ = run("show", "d-1:triage")
    assert "state:           dead" in out
    assert "awaits_operator: False" in out
    _, out, _ = run("show", "d-1:triage", "--json")
    assert (out["job"]["kind"], out["decisions"]) == ("issue_opened", [])


def test_retry_starts_a_dead_letter_anew(jobs, run):
    code, out, _ = run("retry", "d-1:triage", "--json")
    assert (code, out["jobs"][0]["state"], out["jobs"][0]["attempt"]) == (0, "queued", 1)
    code, _, error = run("retry", "d-1:triage")
    assert (code, error) == (2, "bouncer: job d-1:triage cannot be retried: it is queued\n")


def test_cancel_stops_what_has_not_ended(jobs, run):
    code, out, _ = run("cancel", "d-2:triage")
    assert code == 0
    assert out.startswith("d-2:triage  cancelled")
    assert jobs.get("d-2:triage").state == "cancelled"
    assert run("cancel", "d-2:triage")[0] == 2


def test_wrong_usage_gets_one_line(jobs, run, bouncer):
    assert run("show", "nope")[::2] == (
        2,
        "bouncer: no job 'nope': ids are <delivery>:<task>, see 'bouncer jobs list'\n",
    )
    assert bouncer("jobs", "list", "--database-url", "sqlite:////no/such.db")[::2] == (
        2,
        "bouncer: DATABASE_URL: /no/such.db does not exist; if the server reads its settings from a file, name it "
        "with --env-file\n",
    )


def test_deliveries_that_wait_for_a_worker_are_counted(database, run):
    queue = Queue(database)
    inbox = make_inbox(database, queue)
    for delivery in ("d-1", "d-2"):
        inbox.accept(delivery, removed("acme/old"))
    assert run("list") == (0, "", "no jobs, 2 recorded deliveries that no worker has taken up yet\n")
    assert run("list", "--json")[1] == {"jobs": [], "counts": {}, "untaken_deliveries": 2}
    database.clock = lambda: time.time() + 100
    later = Jobs(database)
    assert 100 <= later.oldest_age() < 200
    inbox.take_up(lambda account, repositories, before: None)
    queue.close()
    assert later.untaken() == 0


def abstain(database, job: str, word: str, reason: str = "openai refused the key (401)") -> None:
    subject = Subject(repository="acme/rocket", number=1, revision="text:1")
    decision = Decision(kind="triage", subject=subject, abstained=word, reason=reason)
    ledger = Ledger(database)
    ledger.decisions.record(job, (decision,), "c0ffee")
    ledger.decisions.settle(job, 0, "nothing")


@pytest.mark.parametrize(
    ("word", "reason"),
    [("model:unavailable", "x"), ("model", "the model gave no usable answer (unavailable)")],
)
def test_what_ended_without_a_verdict_is_decided_again(jobs, run, database, word, reason):
    bury(database, "x", "no such job")
    assert jobs.get("d-2:triage").state == "done"
    abstain(database, "d-2:triage", word, reason)
    abstain(database, "d-0:triage", word, reason)
    abstain(database, "d-1:triage", "model:refused")
    code, out, error = run("retry", "--abstained", "model:unavailable", "--since", "2d")
    assert (code, error) == (0, "1 job queued again, 1 skipped (open, or deleted)\n")
    assert out.startswith("d-2:triage  queued")
    assert Ledger(database).decisions.of_job("d-2:triage") == ()
    assert jobs.get("d-1:triage").state == "dead"
    again = run("retry", "--abstained", "model:unavailable")
    assert again == (0, "", "0 jobs queued again, 1 skipped (open, or deleted)\n")


def test_everything_since_a_day_is_judged_again_with_cost_and_limit(jobs, run, database):
    bury(database, "x", "no such job")
    abstain(database, "d-2:triage", "model:invalid")
    abstain(database, "d-0:triage", "skipped:bot")
    code, out, error = run("rejudge", "--since", "1d")
    assert (code, out) == (2, "")
    assert "1 job without a verdict since " in error
    assert "cost unknown" in error
    assert "cannot ask for confirmation" in error
    today = datetime.now(UTC).strftime("%A")
    assert run("rejudge", "--since", today, "--limit", "5", "--yes")[:2] == (0, "1 job queued\n")
    assert jobs.get("d-2:triage").state == "queued"


def test_old_abstentions_stay_and_wrong_usage_is_told(jobs, run, database):
    bury(database, "x", "no such job")
    abstain(database, "d-2:triage", "model:unavailable")
    time.sleep(1.1)
    assert run("retry", "--abstained", "model:unavailable", "--since", "1s")[1] == ""
    since = ("--abstained", "model", "--since")
    for wrong in ((), ("d-2:triage", "--abstained", "model"), (*since, "soon"), (*since, "999999d")):
        assert run("retry", *wrong)[0] == 2


def test_a_waiting_job_can_be_run_now(jobs, run, database):
    queue = Queue(database)
    waiting = jobs.get("d-2:triage")
    later = waiting.model_copy(update={"id": "d-3:triage", "delivery": "d-3", "due": time.time() + 3600})
    with queue.transaction() as connection:
        queue.enqueue(connection, later, 3600)
    queue.close()
    assert jobs.get("d-3:triage").state == "waiting"
    code, out, _ = run("retry", "d-3:triage")
    assert (code, out.split()[1]) == (0, "queued")
