"""``bouncer action``: handle a workflow's event as a delivery, with the workflow's token."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import click

from bot import app, router
from bot.app import Access
from bot.cli.files import json_option, print_json
from bot.cli.judging import Judging, as_object, gate, set_option
from bot.cli.numbers import Finite
from bot.cli.remote import configured, reached
from bot.cli.review import write_sarif
from bot.core import events
from bot.core.actions import Decision, Task
from bot.core.config import RepoConfig
from bot.core.errors import ForgeError, NotFound, OperatorError, SettingsError, TransientError
from bot.core.io_limits import read_file
from bot.core.markdown import clean_line
from bot.core.subjects import PullRequest
from bot.core.text import show
from bot.features.commands.record import CommandsRecord
from bot.features.services import NoHistory, Services
from bot.features.shared.posts import Mark, Posts
from bot.features.shared.review_history import last_on
from bot.github import webhook
from bot.models.protocol import Model
from bot.pipeline.body import Seal, without_marker
from bot.pipeline.publisher import Publisher, Spaced
from bot.pipeline.readings import at_present
from bot.pipeline.store import Ledger, migrated
from bot.settings import Settings, Workflow, load

#: What a workflow can ask for; code is never executed here.
TASKS = router.JUDGES
_NO_EXECUTION: Mapping[str, Mapping[str, Any]] = {
    "verify": {"execute": False, "tests": False},
    "reproduce": {"mode": "off"},
}
#: A key that is shorter could be guessed from a marker, characters.
SHORTEST_KEY = 20
NO_KEY = "no key signs comments, so nothing that was posted before is remembered"


class TaskResult(NamedTuple):
    """A decision, the outcome of publishing it, and the permission that was missing."""

    decision: Decision
    outcome: str
    missing: str = ""


@click.command()
@click.option(
    "--run", "task_names", default=" ".join(TASKS), show_default=True, help="What to do, separated by spaces."
)
@click.option("--model", metavar="ID", help="The model that judges: provider:name.")
@click.option(
    "--fail-on",
    default="",
    metavar="WORDS",
    help="Exit with 1 on: bounce, abstain, finding, low, medium, high; separated by spaces.",
)
@click.option(
    "--sarif", "sarif_file", default="", metavar="FILE", help="Write a review's findings as SARIF 2.1.0."
)
@click.option("--max-cost", type=Finite(min=0), metavar="USD", help="Most that the model may cost for this event.")
@set_option
@json_option
def command(
    task_names: str,
    model: str | None,
    fail_on: str,
    sarif_file: str,
    max_cost: float | None,
    overrides: Mapping[str, Mapping[str, Any]],
    as_json: bool,
) -> int:
    """Handle the event of the workflow that this runs in: judge, and post with the workflow's token.

    No code is checked out or executed: issues, diffs and files are read over the API.
    """
    words = _words(fail_on, ("bounce", "abstain", "finding", "low", "medium", "high"), "--fail-on")
    tasks = _words(task_names, TASKS, "--run")
    environment, workflow = load(bouncer_model=model), Workflow()
    event = _event(workflow)
    if event is None:
        click.echo(f"Nothing to do for the event {workflow.github_event_name}.", err=True)
        return 0
    environment.check_model()
    if environment.github_token is None:
        raise OperatorError("GITHUB_TOKEN is not set: give the step the workflow's token")
    try:
        judge = app.build_model(environment, budget=app.total_budget(max_cost))
    except SettingsError as error:
        if not _is_for_fork(workflow, event):
            raise
        line = f"not judged: {error}. GitHub gives a fork's pull request no secrets"
        click.echo(f"bouncer: {line}", err=True)
        _summarise(workflow, [line])
        return int("abstain" in words)
    results = _results(environment, event, tasks, judge, overrides)
    reviews = [result.decision for result in results if result.decision.kind == "review"]
    if sarif_file and reviews:
        write_sarif(sarif_file, reviews[0])
    _print(workflow, results, as_json=as_json)
    if any(result.missing for result in results) and not _is_for_fork(workflow, event):
        return 1
    return max((gate(words, result.decision) for result in results), default=0)


def _words(text: str, allowed: tuple[str, ...], option: str) -> tuple[str, ...]:
    words = tuple(text.replace(",", " ").split())
    if wrong := [word for word in words if word not in allowed]:
        raise OperatorError(f"{option}: {wrong[0]!r} is not one of {', '.join(allowed)}")
    return words


def _event(workflow: Workflow) -> events.RepositoryEvent | None:
    """Return the workflow's event; None if Bouncer does not handle it."""
    if not workflow.github_event_name or workflow.github_event_path is None:
        raise OperatorError(
            "GITHUB_EVENT_NAME or GITHUB_EVENT_PATH is not set: this command runs only inside a GitHub workflow"
        )
    # The same payload; the workflow that runs is the base branch's, with a token that may write.
    name = {"pull_request_target": "pull_request"}.get(workflow.github_event_name, workflow.github_event_name)
    try:
        body = read_file(workflow.github_event_path, webhook.MAX_BYTES)
    except OSError as error:
        raise OperatorError(f"GITHUB_EVENT_PATH: {workflow.github_event_path}: {error.strerror}") from None
    event = webhook.parse(name, webhook.load(body, "application/json"))
    return event if isinstance(event, events.RepositoryEvent) else None


def _results(
    settings: Settings,
    event: events.RepositoryEvent,
    tasks: tuple[str, ...],
    model: Model,
    overrides: Mapping[str, Mapping[str, Any]],
) -> tuple[TaskResult, ...]:
    """Decide and publish. Raises OperatorError if earlier comments could not be recognised."""
    if len(settings.marker_key) < SHORTEST_KEY:
        why = "the key that signs comments is short" if settings.marker_key else NO_KEY
        click.echo(f"bouncer: {why}: set BOUNCER_MARKER_KEY to a random secret", err=True)
    with reached(settings, event.repository.full_name) as access:
        if access.forge.identity().id < 0:
            raise OperatorError(
                "GitHub's GraphQL API cannot be used: without it this step would repeat its comments"
            )
        judging = Judging(None, None, None, overrides).forcing(_NO_EXECUTION)
        config = configured(access.forge, access.forge.about(), judging)
        return tuple(_handle(settings, access, config, event, tasks, model))


def _handle(
    settings: Settings,
    access: Access,
    config: RepoConfig,
    event: events.RepositoryEvent,
    tasks: tuple[str, ...],
    model: Model,
) -> Iterator[TaskResult]:
    """Decide each task, and publish its decisions. A task that fails does not stop the others."""
    services = app.offline_services(settings, access.forge, config, model)
    later: TransientError | None = None
    with _publisher(settings) as publisher:
        for task in router.tasks(event):
            if task not in tasks and not router.feature_named(task).only_answers:
                continue
            with_history = replace(services, history=StandingHistory(event, services, settings.marker_key))
            try:
                decisions = _decide(event, task, with_history)
                for decision in decisions:
                    yield _publish(publisher, decision, services, access)
                if task == "review" and not decisions and isinstance(event.about, PullRequest):
                    # Running the step again must not pass the gate.
                    past = with_history.history.decisions(event.subject.key, "review")
                    if earlier := last_on(past, event.about):
                        yield TaskResult(earlier, "posted before")
            except TransientError as error:
                later = later or error
    if later is not None:
        raise later


def _decide(event: events.RepositoryEvent, task: Task, services: Services) -> tuple[Decision, ...]:
    """Return the decisions of a task; an abstention if the issue or pull request was deleted or transferred."""
    try:
        present = at_present(event, task, services.forge)
    except NotFound as error:
        word = f"forge:{error.status or 404}"
        return (Decision(kind=task, subject=event.subject, abstained=word, reason=str(error)),)
    return router.decide(present, services, only=task)


@contextmanager
def _publisher(settings: Settings) -> Iterator[Publisher]:
    """Return the live publisher with a temporary register: markers on GitHub identify earlier posts."""
    with (
        tempfile.TemporaryDirectory(prefix="bouncer-action-") as folder,
        migrated(f"sqlite:///{folder}/register.db") as database,
    ):
        ledger = Ledger(database)
        yield Publisher(ledger.postings, settings.secrets, Spaced(), settings.marker_key, shares_account=True)


def _publish(publisher: Publisher, decision: Decision, services: Services, access: Access) -> TaskResult:
    try:
        published = publisher.publish(decision, "action", services, access.writer)
    except NotFound as error:
        return TaskResult(decision, f"gone: {error}")
    except ForgeError as error:
        if error.status != 403:
            raise
        # As a workflow writes them below ``permissions:``.
        needed = router.feature_named(decision.kind).permissions.items()
        missing = "` and `".join(f"{name.replace('_', '-')}: {level}" for name, level in needed)
        return TaskResult(decision, f"not posted: {error}", missing)
    outcome = str(published)
    return TaskResult(decision, "not posted (shadow mode)" if outcome == "withheld" else outcome)


def _is_for_fork(workflow: Workflow, event: events.RepositoryEvent) -> bool:
    """Return True if a fork's pull request started the workflow: no secrets, and a token that only reads."""
    return (
        workflow.github_event_name == "pull_request"
        and isinstance(event, events.PullRequestEvent)
        and event.pull_request.from_fork
    )


def _line(result: TaskResult) -> str:
    """Return the verdict, its outcome and the missing permission on one line."""
    decision = result.decision
    verdict = decision.verdict or f"no verdict ({decision.reason})"
    line = f"{decision.kind}: {verdict}; {result.outcome}"
    return f"{line}. The workflow needs `permissions:` with `{result.missing}`" if result.missing else line


def _print(workflow: Workflow, results: Sequence[TaskResult], *, as_json: bool) -> None:
    """Print the results, and write them to the workflow's summary page."""
    lines = [_line(result) for result in results] or ["Nothing to do for this event."]
    if as_json:
        print_json(
            {"decisions": [{**as_object(result.decision), "outcome": result.outcome} for result in results]}
        )
    else:
        for line in lines:
            # A model's text must not start a workflow command in the log.
            click.echo("bouncer: " + show(" ".join(line.split())).replace("##[", "## ["))
    _summarise(workflow, lines)


def _summarise(workflow: Workflow, lines: list[str]) -> None:
    """Write to the workflow's summary page, which needs no permission."""
    if workflow.github_step_summary is None:
        return
    text = "\n".join(["### Bouncer", "", *(f"- {clean_line(line, limit=500)}" for line in lines), ""])
    with Path(workflow.github_step_summary).open("a", encoding="utf-8") as file:
        file.write(text)


class StandingHistory(NoHistory):
    """The history of a run without a database: earlier decisions, read back from our posts and labels on GitHub.

    Our own comments and reviews count, by account and signed marker, and commands of people with rights. Authors
    give no commands: they could delete the comments by which their commands are counted.
    """

    def __init__(self, event: events.RepositoryEvent, services: Services, marker_key: bytes) -> None:
        seal = Seal(repository=services.forge.repository, number=event.number or 0, key=marker_key)

        def read_mark(body: str) -> Mark | None:
            # Without a key to sign with, no marker counts.
            marker = seal.read(body) if seal.key else None
            return None if marker is None else Mark(*marker)

        self._posts = Posts(event, replace(services, history=NoHistory()), read_mark, without_marker)

    def decisions(self, subject: str, *kinds: Task) -> tuple[Decision, ...]:
        event = self._posts.event
        if subject != event.subject.key or not event.number:
            return ()
        # Verdicts first: a command answers what stood before it.
        return tuple(
            decision
            for feature in sorted(router.FEATURES, key=lambda feature: not feature.judges)
            if feature.standing is not None and (not kinds or feature.name in kinds)
            for decision in feature.standing(self._posts)
        )

    def commands(self, repository: str, since: datetime) -> tuple[Decision, ...]:
        return tuple(
            decision
            for decision in self.decisions(self._posts.event.subject.key, "commands")
            if isinstance(decision.record, CommandsRecord) and decision.record.at >= since.timestamp()
        )
