"""``bouncer serve``: one command, two processes; they come back when they die, and end in good order."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.testing.github import SimulatedGitHub
from tests.bot.jobs.rig import REPOSITORY, Rig, wait
from tests.bot.jobs.test_crash import children


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    with SimulatedGitHub() as github:
        rig = Rig(github, f"sqlite:///{tmp_path}/x.db", tmp_path)
        yield rig
        rig.close()


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def family(pid: int) -> list[int]:
    return [each for child in children(pid) for each in (child, *family(child))]


@pytest.mark.timeout(240)
def test_it_works_survives_its_children_and_ends_with_all_of_them(rig: Rig) -> None:
    serve = rig.start("bot", "serve")
    wait(rig.ready, 60, "ready")
    first = rig.github.open_issue(REPOSITORY, "Broken", "It does not work.")
    assert rig.deliver("issues", rig.opened(first)) == 202
    wait(lambda: rig.github.comments(REPOSITORY, first), 30, "the first comment")

    for child in children(serve.pid):
        os.kill(child, signal.SIGKILL)
    second = rig.github.open_issue(REPOSITORY, "Broken too", "It does not work.")
    wait(lambda: rig.deliver("issues", rig.opened(second), "again") == 202, 60, "the web server came back")
    wait(lambda: rig.github.comments(REPOSITORY, second), 60, "the worker came back")

    everybody = family(serve.pid)
    begun = time.monotonic()
    serve.send_signal(signal.SIGTERM)
    assert serve.wait(35) == 0
    assert time.monotonic() - begun < 30
    # Python's own tracker of child processes notices a moment later.
    wait(lambda: not any(alive(pid) for pid in everybody), 5, "nobody is left behind")
    assert rig.jobs.worker_age() is None, "the worker did not say good-bye"


@pytest.mark.timeout(240)
def test_a_job_that_runs_when_the_end_comes_is_finished(rig: Rig) -> None:
    serve = rig.start("bot", "serve")
    wait(rig.ready, 60, "ready")
    rig.github.fail("slow", "POST", "/comments$", wait=4)
    number = rig.github.open_issue(REPOSITORY, "Broken", "It does not work.")
    rig.deliver("issues", rig.opened(number), "d")
    wait(lambda: rig.ledger.decisions.of_job("d:triage"), 30, "the model has answered")
    serve.send_signal(signal.SIGTERM)
    assert serve.wait(35) == 0
    assert len(rig.github.comments(REPOSITORY, number)) == 1
    assert rig.jobs.get("d:triage").outcome == "posted"


@pytest.mark.timeout(240)
def test_children_do_not_outlive_a_killed_parent(rig: Rig) -> None:
    serve = rig.start("bot", "serve")
    wait(rig.ready, 60, "ready")
    everybody = family(serve.pid)
    assert len(everybody) >= 3
    os.kill(serve.pid, signal.SIGKILL)
    serve.wait(10)
    wait(lambda: not any(alive(pid) for pid in everybody), 40, "the children ended too")


def test_a_web_server_answers_what_it_has_begun(rig: Rig) -> None:
    web = rig.web()
    wait(lambda: rig.deliver("ping", {"zen": "x", "sender": {"id": 1, "login": "a"}}) == 202, 60, "up")
    answers: list[int] = []
    stop = threading.Event()

    def send() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            answers.append(rig.deliver("ping", {"sender": {"id": 1, "login": "a"}}, f"p-{number}"))

    sender = threading.Thread(target=send)
    sender.start()
    time.sleep(1)
    web.send_signal(signal.SIGTERM)
    web.wait(30)
    stop.set()
    sender.join()
    accepted = answers.count(202)
    assert accepted > 0
    assert set(answers) <= {202, 0}
    counts = rig.ledger.counters.all()
    # Also the counts of the last moments are added before the process ends.
    assert counts[("bouncer_deliveries", (("answer", "accepted"),))] >= accepted + 1
