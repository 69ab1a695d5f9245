"""Shared by the commands that judge: their options, asking the live handlers, and the exit code of a gate."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from bot.cli.files import json_option, progress, prompts_option, with_options
from bot.cli.numbers import Finite
from bot.core.errors import OperatorError, TransientError

if TYPE_CHECKING:
    from bot.core.actions import Decision, Task
    from bot.core.events import RepositoryEvent
    from bot.features.services import Services
    from bot.github.offline import Snapshot
    from bot.reproduction.execution import SandboxHarness
    from bot.sandbox.protocol import Sandbox
    from bot.settings import Settings

#: Equal errors that end a command.
MOST_EQUAL_ERRORS = 3

F = TypeVar("F", bound=Callable[..., Any])
Case = TypeVar("Case")
Answer = TypeVar("Answer", bound="Decision | None")

_model_option = click.option("--model", metavar="ID", help="provider:name; fallbacks after commas.")
cost_option = click.option("--max-cost", type=Finite(min=0), metavar="USD", help="Most that the model may cost.")


class Judging(NamedTuple):
    """The options of a command that judges: model, prompts, a bouncer.yml, and keys that override it."""

    model: str | None
    prompts: str | None
    config: str | None
    overrides: Mapping[str, Mapping[str, Any]]

    def settings(self) -> Settings:
        """Return the environment's settings with these options on top."""
        from bot import settings

        return settings.load(bouncer_model=self.model, bouncer_prompts_dir=self.prompts)

    def over(self, defaults: Mapping[str, Mapping[str, Any]]) -> Judging:
        """Return the same options with keys that ``--set`` may override."""
        return self._replace(overrides=_merged(defaults, self.overrides))

    def forcing(self, keys: Mapping[str, Mapping[str, Any]]) -> Judging:
        """Return the same options with keys that nothing overrides."""
        return self._replace(overrides=_merged(self.overrides, keys))


def _merged(
    lower: Mapping[str, Mapping[str, Any]], upper: Mapping[str, Mapping[str, Any]]
) -> Mapping[str, Mapping[str, Any]]:
    return {name: {**lower.get(name, {}), **upper.get(name, {})} for name in {**lower, **upper}}


def _overrides(
    _context: click.Context, _option: click.Parameter, assignments: tuple[str, ...]
) -> Mapping[str, Mapping[str, Any]]:
    """Read the values of ``--set``; raises BadParameter."""
    from bot.core import config_file

    overrides: dict[str, dict[str, Any]] = {}
    for assignment in assignments:
        key, equals, value = assignment.partition("=")
        section, dot, name = key.strip().partition(".")
        if not (equals and dot and name):
            raise click.BadParameter(f"{assignment!r} is not of the form section.key=value")
        try:
            overrides.setdefault(section, {})[name] = config_file.value(value)
        except ValueError as error:
            raise click.BadParameter(f"{assignment!r}: {error}") from None
    return overrides


set_option = click.option(
    "--set",
    "overrides",
    metavar="KEY=VALUE",
    multiple=True,
    callback=_overrides,
    help="Override a key of bouncer.yml, such as triage.bounce_above=80 (repeatable).",
)


def judging_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --model, --prompts, --config, --set and --json. The command gets ``judging`` and ``as_json``."""

    @wraps(command)
    def collect(
        *,
        model: str | None,
        prompts: str | None,
        config: str | None,
        overrides: Mapping[str, Mapping[str, Any]],
        **values: Any,
    ) -> Any:
        return command(judging=Judging(model, prompts, config, overrides), **values)

    config_option = click.option(
        "--config",
        metavar="FILE",
        help="A bouncer.yml.  [default: with a URL and in backlog the repository's, else the default keys]",
    )
    return with_options(_model_option, prompts_option, config_option, set_option, json_option)(collect)


repo_option = click.option(
    "--repo",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="A checkout to read the surrounding code from, with or without the change; no file of it is changed.",
)


def runner_option(purpose: str, *, required: bool = False) -> Callable[[F], F]:
    """Return ``--test-command``, whose value is for ``operator_harness``."""
    return click.option(
        "--test-command",
        metavar="CMD",
        required=required,
        help=f"{purpose}; {{tests}} in it becomes what to run. Its program may be the system's, in a virtual "
        "environment or Python installation, or in BOUNCER_SANDBOX_FOLDERS; it sees nothing else of this machine.",
    )


def operator_harness(sandbox: Sandbox | None, test_command: str, seconds: int) -> SandboxHarness:
    """Return the way to run tests as the operator says. Raises OperatorError if the sandbox is switched off."""
    from bot.reproduction.execution import SandboxHarness
    from bot.reproduction.protocol import TestCommand
    from bot.sandbox.protocol import Limits

    if sandbox is None:
        raise OperatorError("the sandbox is switched off (BOUNCER_SANDBOX); tests are run nowhere else")
    try:
        parsed = TestCommand.parse(test_command)
    except ValueError as error:
        raise OperatorError(f"--test-command: {error}") from error
    limits = Limits(seconds=seconds, cpu_seconds=seconds)
    return SandboxHarness(sandbox=sandbox, command=parsed, limits=limits, by_operator=True)


def decide(
    task: Task,
    event: RepositoryEvent,
    snapshot: Snapshot,
    judging: Judging,
    repo: Path | None = None,
    test_command: str | None = None,
) -> Decision:
    """Ask the live handler of ``task`` about an event; ``repo`` is a checkout of the surrounding code.

    ``test_command`` runs tests on ``repo``, which must hold the change then.
    """
    from bot import app
    from bot.github.offline import CheckedOut, ReplayForge
    from bot.reproduction.setup import OperatorHarnesses

    config, environment = app.repo_config(judging.config, judging.overrides), judging.settings()
    commit = "" if repo is None else _commit(snapshot, repo)
    forge = ReplayForge(snapshot) if repo is None else CheckedOut(snapshot, repo, commit)
    services = app.offline_services(environment, forge, config)
    if test_command is not None:
        if commit not in {pull.head_sha for pull in snapshot.pull_requests.values()}:
            raise OperatorError(f"--test-command: --repo {repo} does not hold the change")
        harness = operator_harness(app.build_sandbox(environment), test_command, config.reproduce.seconds)
        services = dataclasses.replace(services, harnesses=OperatorHarnesses(harness))
    return required_decision(task, event, services, str(judging.config))


def _commit(snapshot: Snapshot, repo: Path) -> str:
    """Return the commit that a checkout holds: the head if it contains the change, else the base."""
    from bot.code.change.diff import Sides, parse
    from bot.github.protocol import FolderTree

    [(number, pull)] = snapshot.pull_requests.items()
    diff = parse(snapshot.diffs[number].text)
    sides = Sides(FolderTree(repo, working=True))
    return pull.head_sha if any(sides.after(file) is not None for file in diff.files) else pull.base_sha


def required_decision(task: Task, event: RepositoryEvent, services: Services, config_file: str) -> Decision:
    """Return the decision of the handler of ``task``; ``config_file`` is the file that may switch it off.

    Raises OperatorError for an error of the provider, GitHub or the sandbox: that is not an abstention.
    """
    decision = decided(task, event, services)
    if decision is None:
        raise OperatorError(f"{task} is switched off in {config_file}")
    if error := failure(decision):
        raise OperatorError(error)
    return decision


def failure(decision: Decision) -> str:
    """Return the error that prevented a verdict; empty for a verdict and for an abstention."""
    word = decision.abstained or ""
    if word not in ("model:unavailable", "model:unreachable", "sandbox") and not word.startswith("forge:"):
        return ""
    from bot.features.verify.record import VerifyRecord

    return " ".join((decision.record_of(VerifyRecord).failure or decision.reason).split())


def judge_all(judge: Callable[[Case], Answer], cases: Sequence[Case], workers: int, step: str) -> list[Answer]:
    """Judge cases, several at a time, with a bar for ``step``. Return the decisions in the order of the cases.

    Raises OperatorError at the third equal error, which has a common cause; what waits is not judged.
    """
    errors: Counter[str] = Counter()
    decisions: list[Answer] = []
    with ThreadPoolExecutor(workers) as pool, progress() as advance:
        for decision in pool.map(judge, cases):
            decisions.append(decision)
            advance(step, len(decisions), len(cases))
            if decision is not None and (error := failure(decision)):
                errors[error] += 1
                if errors[error] == MOST_EQUAL_ERRORS:
                    pool.shutdown(wait=False, cancel_futures=True)
                    raise OperatorError(f"stopped after {MOST_EQUAL_ERRORS} equal errors: {error}")
    return decisions


def decided(task: Task, event: RepositoryEvent, services: Services) -> Decision | None:
    """Return the decision of the handler of ``task``; None if the event does not concern it."""
    from bot import router
    from bot.core.actions import Decision, Usage

    try:
        decisions = router.decide(event, services, only=task)
    except TransientError as error:
        # A command has no job queue that would try again later.
        return Decision(
            kind=task,
            subject=event.subject,
            abstained="model:unreachable",
            reason=str(error),
            usage=error.usage or Usage(),
        )
    return decisions[0] if decisions else None


def lowest_severity(fail_on: Collection[str]) -> str | None:
    """Return the mildest severity that ``--fail-on`` names."""
    return next((severity for severity in ("low", "medium", "high") if severity in fail_on), None)


def gate(fail_on: Collection[str], decision: Decision) -> int:
    """Return the exit code of a gate: 1 if ``--fail-on`` names the result. An empty change is no abstention."""
    from bot.features.review.record import ReviewRecord
    from bot.features.shared.findings import Severity
    from bot.features.shared.history import bounced

    if bounced(decision):
        return int("bounce" in fail_on)
    if decision.verdict is None:
        return int("abstain" in fail_on and decision.abstained != "empty")
    worst = max((finding.severity.rank for finding in decision.record_of(ReviewRecord).posted), default=None)
    lowest = lowest_severity(fail_on)
    if worst is None:
        return 0
    return int("finding" in fail_on or (lowest is not None and worst >= Severity(lowest).rank))


def as_object(decision: Decision) -> dict[str, Any]:
    """Return a decision as ``--json`` prints it: the fields of its record beside the verdict."""
    plain = decision.model_dump(mode="json", include={"kind", "verdict", "abstained", "reason", "usage", "model"})
    return {**plain, "label": decision.verdict, **(decision.record.as_json() if decision.record else {})}


def spoken(decision: Decision) -> str:
    """Return the last line of a card: the model, its time, and its caveat."""
    from bot.models.protocol import caveat

    return " ".join(f"{decision.model}, {decision.usage.seconds:.1f} s. {caveat(decision.model)}".split())
