"""Operation: graceful ends, outages, a spent budget, the kill switch, a suspended app."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

from tests.bot.pipeline.rig import wait
from tests.e2e.site import APP, BROKEN, Site, site, stopped


def bounced(shop: Site, home: str, number: int) -> bool:
    return [body.split("\n")[0] for body in shop.comments_on(home, number)] == [
        "Thanks for the report. To work on this, a maintainer will probably need:"
    ] and shop.github.labels(home, number) == ["needs-info"]


def test_sigterm_ends_everything_in_time_and_the_next_start_goes_on(tmp_path: Path) -> None:
    with stopped(tmp_path) as shop:
        home = shop.repository("acme/rocket")
        first = shop.start("bot", "serve")
        wait(shop.ready, 60, "up")
        shop.connect()
        thinking, told_to_end = threading.Event(), threading.Event()

        def slowly(request: object) -> None:
            thinking.set()
            told_to_end.wait(15)

        shop.model.misbehave("slow one", slowly)
        slow = shop.github.open_issue(home, "slow one", "It does not work.")
        others = [shop.github.open_issue(home, f"It breaks {count}", "It does not work.") for count in range(4)]
        assert thinking.wait(30)
        start = time.monotonic()
        first.send_signal(signal.SIGTERM)
        told_to_end.set()
        assert first.wait(40) == 0
        assert time.monotonic() - start < 30
        # What was begun was ended: it is decided. A write that was not begun is left to the next start.
        assert [decision.verdict for decision in shop.decided(home, slow, "triage")] == ["VAGUE"]

        shop.web(), shop.worker()
        wait(shop.ready, 60, "up again")
        shop.quiet()
        assert all(bounced(shop, home, number) for number in (slow, *others))
        assert len(shop.model.about("slow one")) == 1


def test_missed_deliveries_are_answered_and_a_killed_server_leaves_nothing(tmp_path: Path) -> None:
    with stopped(tmp_path) as shop:
        home = shop.repository("acme/rocket")
        shop.connect()
        issue = shop.github.open_issue(home, "It breaks", "It does not work.")
        pull = shop.github.open_pull(home, "Read", "Fixes #1", files={APP: BROKEN}, closes=[issue])
        shop.github.push(home, pull, {APP: f"# newer\n{BROKEN}"})
        assert len(shop.in_vain()) >= 3
        served = shop.start("bot", "serve")
        wait(shop.ready, 60, "up")
        shop.quiet()
        assert bounced(shop, home, issue)
        assert [review.commit_id for review in shop.reviews(home, pull)] == [shop.head(home, pull)]
        assert len(shop.inline(home, pull)) == len(shop.checks(home)) == 1

        # No process is left behind.
        group = served.pid
        assert len(processes_of(group)) >= 3
        os.kill(served.pid, signal.SIGKILL)
        served.wait(10)
        # Its children notice, drain and end: none goes on without a parent that would restart it.
        wait(lambda: not processes_of(group), 60, "children ended")


def processes_of(group: int) -> list[int]:
    pids = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) == group and fields[0] != "Z":
            pids.append(int(folder.name))
    return pids


def test_the_kill_switch_asks_nobody_and_writes_nothing(tmp_path: Path) -> None:
    with site(tmp_path, BOUNCER_PAUSED="true") as shop:
        home = shop.repository("acme/rocket")
        shop.github.open_issue(home, "It breaks", "It does not work.")
        shop.slowly.open_pull(home, "Read", "Fixes #1", files={APP: BROKEN}, closes=[1])
        assert shop.model.asked == []
        assert (shop.comments_on(home, 1), shop.github.labels(home, 1), shop.github.checks(home)) == ([], [], [])
        assert {job.outcome for job in shop.jobs.list(("done",), home)} == {"skipped: paused by the operator"}
        assert "BOUNCER_PAUSED is set" in shop.browser().get("/")


def test_a_spent_budget_is_a_skip_that_shows_and_waits_for_tomorrow(tmp_path: Path) -> None:
    # One question may take three calls at worst, and takes one; a fifth of the budget is the maintainers': the
    # third question does not fit any more.
    with site(tmp_path, BOUNCER_REPOSITORY_CALLS="5") as shop:
        home = shop.repository("acme/rocket")
        for number in range(2):
            issue = shop.github.open_issue(home, f"It breaks {number}", "Help.")
            # One after the other: questions that are under way together hold their worst cases.
            wait(lambda: bounced(shop, home, issue), 60, "bounced")  # noqa: B023
        third = shop.github.open_issue(home, "It breaks again", "Help.")
        wait(lambda: len(shop.decided(home, third)) == 1, 60, "decided")
        assert shop.comments_on(home, third) == []
        assert [decision.abstained for decision in shop.decided(home, third)] == ["skipped:budget"]
        assert len(shop.model.asked) == 2
        wait(lambda: shop.jobs.list(("waiting",), home), 60, "the job waits")
        # What builds on its verdict waits with it.
        (waiting,) = (job for job in shop.jobs.list(("waiting",), home) if job.task == "triage")
        assert 0 < waiting.due - time.time() < 24 * 3600 + 700
        number = shop.github.open_pull(home, "Read", "Fixes #1", files={APP: BROKEN}, closes=[1])
        wait(lambda: shop.checks(home), 60, "a check that says so")
        (check,) = shop.checks(home, shop.head(home, number))
        assert check.conclusion == "skipped"
        assert "budget" in check.output["title"]
        assert shop.inline(home, number) == []
        pages = shop.browser()
        assert "skipped:budget" in pages.get(f"/decisions?repository={home}&came=abstained")
        assert 'abstained="skipped:budget"' in pages.get("/metrics")


def test_an_app_that_github_does_not_know_decides_nothing_and_says_why(tmp_path: Path) -> None:
    with stopped(tmp_path) as shop:
        home = shop.repository("acme/rocket")
        shop.environment["GITHUB_APP_PRIVATE_KEY"] = shop.github.create_app("another").private_key
        shop.web()
        shop.worker()
        wait(shop.ready, 60, "up")
        shop.connect()
        number = shop.github.open_issue(home, "It breaks", "It does not work.")
        wait(lambda: len(shop.troubles()) == 3, 60, "triage, and two jobs that build on it, tell of it")
        errors = {job.rpartition(":")[2]: error for job, error in shop.troubles().items()}
        assert "GitHub answered 401" in errors.pop("triage")
        assert all(error.endswith(": waits for triage") for error in errors.values())
        assert shop.decided(home, number) == ()
        assert shop.comments_on(home, number) == []
