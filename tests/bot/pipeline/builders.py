"""Small events for tests of jobs, and what makes jobs of them."""

from __future__ import annotations

from bot.core import events
from bot.core.actions import Task
from bot.core.subjects import Actor, Issue, Repository
from bot.pipeline.inbox import DEBOUNCE_SECONDS, Inbox
from bot.pipeline.job import Job
from bot.pipeline.queue import Queue
from bot.pipeline.store import Database

ANA = Actor(id=1, login="ana")
ROCKET = Repository(id=1, owner="acme", name="rocket")


def make_inbox(database: Database, queue: Queue, *tasks: Task, debounce: bool = False) -> Inbox:
    """One that makes these jobs of every event; as the router says if none is named."""
    tasks_of = (lambda event: tasks) if tasks else None
    delay = DEBOUNCE_SECONDS if debounce else 0.0
    return Inbox(database, queue, tasks=tasks_of, debounce_seconds=delay)


def opened(number: int = 7, repository: Repository = ROCKET, title: str = "It is broken") -> events.IssueOpened:
    issue = Issue(number=number, title=title, author=ANA)
    return events.IssueOpened(repository=repository, sender=ANA, issue=issue, installation=1)


def removed(*names: str, **fields: object) -> events.InstallationRepositoriesChanged:
    """The App was taken off repositories."""
    place = {"sender": ANA, "account": "acme", "installation": 1}
    return events.InstallationRepositoriesChanged(removed=names, **place, **fields)


def job(name: str = "d", number: int = 7, order: int = 1, **values: object) -> Job:
    """A triage job of the delivery ``name``."""
    facts = {"task": "triage", "kind": "issue_opened", "due": 0.0, "created_at": 0.0, "position": 0, **values}
    return Job(id=f"{name}:triage", delivery=name, seq=order, repository="acme/rocket", number=number, **facts)


def unread(name: str, number: int = 7) -> dict[str, object]:
    """The row of a delivery whose event cannot be read."""
    about = {"kind": "issue_opened", "repository": "acme/rocket", "number": number, "event": "{}"}
    return {"id": name, **about, "received_at": 1.0, "dispatched_at": 1.0}
