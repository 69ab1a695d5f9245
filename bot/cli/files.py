"""What the commands that work on files share: reading them, options, asking the live handlers, printing."""

from __future__ import annotations

import json
import sys
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from bot.core.errors import OperatorError, TransientError

if TYPE_CHECKING:
    from bot.core.actions import Decision, Task
    from bot.core.events import RepositoryEvent
    from bot.features.services import Services
    from bot.github.offline import Snapshot
    from bot.settings import Settings

#: Bytes of an input file: more than GitHub shows of any issue or diff.
MAX_BYTES = 64 << 20

F = TypeVar("F", bound=Callable[..., Any])


def read_text(path: str, *, may_be_empty: bool = False) -> str:
    """The text of a file, ``-`` for standard input; undecodable bytes become replacement characters.

    Raises OperatorError that names the file.
    """
    try:
        if path == "-":
            raw = sys.stdin.buffer.read(MAX_BYTES + 1)
        else:
            with Path(path).open("rb") as file:
                raw = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise OperatorError(f"{path}: {error.strerror or error}") from None
    name = "standard input" if path == "-" else path
    if len(raw) > MAX_BYTES:
        raise OperatorError(f"{name}: larger than {MAX_BYTES >> 20} MB")
    if not raw.strip() and not may_be_empty:
        raise OperatorError(f"{name}: empty")
    if b"\0" in raw:
        raise OperatorError(f"{name}: not text")
    return raw.decode("utf-8", "replace")


def write_text(path: str | Path, text: str) -> None:
    """Write a file that an option names; raises OperatorError that names it where that cannot be done."""
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise OperatorError(f"{path}: {error.strerror or error}") from None


def rendered(template: str, **values: object) -> str:
    """A page of this package."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    pages = Environment(loader=PackageLoader("bot.cli", "."), autoescape=True, undefined=StrictUndefined)
    return pages.get_template(template).render(values)


def data_folder(settings: Settings, *names: str) -> Path:
    """A folder below BOUNCER_DATA_DIR that is nobody else's, made where there is none; raises OperatorError."""
    folder = settings.bouncer_data_dir.joinpath(*names)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise OperatorError(f"BOUNCER_DATA_DIR: {folder}: {error.strerror}") from None
    return folder


def read_diff(path: str, *, may_be_empty: bool = False) -> str:
    """A unified diff; raises OperatorError that names the file where nothing of it can be read."""
    from bot.code.diff import parse

    text = read_text(path, may_be_empty=may_be_empty)
    diff = parse(text)
    if diff.flaws and not diff.files:
        raise OperatorError(f"{'standard input' if path == '-' else path}: {diff.flaws[0]}")
    return text


class Share(click.ParamType[float]):
    """``5%``, ``5`` or ``0.05``."""

    name = "percent"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        text = str(value).strip()
        try:
            number = float(text.removesuffix("%").strip())
        except ValueError:
            self.fail(f"{text!r} is no share like 5%", param, ctx)
        share = number if number < 1 and not text.endswith("%") else number / 100
        if not 0 < share < 1:
            self.fail(f"{text!r} is not between 0 and 100 %", param, ctx)
        return share


def with_options(*options: Callable[[F], F]) -> Callable[[F], F]:
    """All of these, in the order of ``--help``."""

    def decorate(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
model_option = click.option("--model", metavar="ID", help="provider:name; more after commas, to fall back on.")
prompts_option = click.option("--prompts", metavar="DIR", help="Other prompt templates.")
model_options = with_options(
    model_option,
    prompts_option,
    click.option("--config", metavar="FILE", help="A bouncer.yml; the defaults without it."),
    json_option,
)
repo_option = click.option(
    "--repo",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="A checkout, with the change or without: the code around it is read there; nothing is run or changed.",
)


class Judging(NamedTuple):
    """What ``model_options`` say, and the keys of the repository's config that other options stand for."""

    model: str | None
    prompts: str | None
    config: str | None
    overrides: Mapping[str, Mapping[str, Any]]

    def settings(self) -> Settings:
        """The environment's, these options on top."""
        from bot import settings

        return settings.load(bouncer_model=self.model, bouncer_prompts_dir=self.prompts)


def decide(
    task: Task, event: RepositoryEvent, snapshot: Snapshot, judging: Judging, repo: Path | None = None
) -> Decision:
    """What the live handler of ``task`` makes of an event; ``repo`` is a checkout of the code around it."""
    from bot import app
    from bot.github.offline import CheckedOut, ReplayForge

    config = app.repo_config(judging.config, judging.overrides)
    forge = ReplayForge(snapshot) if repo is None else CheckedOut(snapshot, repo, _commit(snapshot, repo))
    services = app.offline_services(judging.settings(), forge, config)
    return answered(task, event, services, str(judging.config))


def _commit(snapshot: Snapshot, repo: Path) -> str:
    """Which commit a checkout stands for: the head where the change is in it, else the base."""
    from bot.code.context import Sides
    from bot.code.diff import parse
    from bot.github.protocol import FolderTree

    [(number, pull)] = snapshot.pull_requests.items()
    diff = parse(snapshot.diffs[number].text)
    sides = Sides(FolderTree(repo, working=True))
    return pull.head_sha if any(sides.after(file) is not None for file in diff.files) else pull.base_sha


def answered(task: Task, event: RepositoryEvent, services: Services, place: str) -> Decision:
    """What the handler of ``task`` decides; ``place`` is where it may have been switched off.

    Raises OperatorError for an error of the provider's, of GitHub's or of the sandbox: that is no abstention.
    """
    decision = decided(task, event, services)
    if decision is None:
        raise OperatorError(f"{task} is switched off in {place}")
    if error := failure(decision):
        raise OperatorError(error)
    return decision


def failure(decision: Decision) -> str:
    """Return the error that prevented a verdict; empty for a verdict and for an abstention."""
    word = decision.abstained or ""
    if word not in ("model:unavailable", "model:unreachable", "sandbox") and not word.startswith("forge:"):
        return ""
    from bot.features.verify.record import VerifyRecord

    error = decision.record.failure if isinstance(decision.record, VerifyRecord) else ""
    return " ".join((error or decision.reason).split())


class EqualErrors:
    """Ends a command at the third equal error: the same error so many times is not one subject's. Thread-safe."""

    MOST = 3

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._lock = threading.Lock()

    def add(self, decision: Decision) -> None:
        """Count the error that prevented a verdict, if any. Raises OperatorError at the third equal one."""
        if error := failure(decision):
            with self._lock:
                self._counts[error] += 1
                count = self._counts[error]
            if count >= self.MOST:
                raise OperatorError(f"stopped after {self.MOST} equal errors: {error}")


def decided(task: Task, event: RepositoryEvent, services: Services) -> Decision | None:
    """What the handler of ``task`` decides; None where the event is none of its business."""
    from bot import router
    from bot.core.actions import Decision, Usage

    try:
        decisions = router.decide(event, services, only=task)
    except TransientError as error:
        # There is no later try here, as the job queue has: nobody answered, so nothing was judged.
        return Decision(
            kind=task,
            subject=event.subject,
            abstained="model:unreachable",
            reason=str(error),
            usage=error.usage or Usage(),
        )
    return decisions[0] if decisions else None


def as_object(decision: Decision) -> dict[str, Any]:
    """Return a decision as ``--json`` prints it: the fields of its record beside the verdict."""
    plain = decision.model_dump(mode="json", include={"kind", "verdict", "abstained", "reason", "usage", "model"})
    return {**plain, "label": decision.verdict, **(decision.record.as_json() if decision.record else {})}


def show_card(text: str, *, err: bool = False) -> None:
    """Print for a person; what could steer a terminal or forge text in it is written out as an escape."""
    from bot.core.text import show

    click.echo("\n".join(show(line) for line in text.split("\n")), err=err)


def spoken(decision: Decision) -> str:
    """The last line of a card: who spoke, for how long, and what that is worth."""
    from bot.models.protocol import caveat

    return " ".join(f"{decision.model}, {decision.usage.seconds:.1f} s. {caveat(decision.model)}".split())


def print_json(value: dict[str, Any]) -> None:
    """One JSON object on standard output."""
    click.echo(json.dumps(value, ensure_ascii=True))
