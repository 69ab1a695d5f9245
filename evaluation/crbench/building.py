"""Building review tasks, from a data set of fixes or from a repository's own: begun, continued, told about."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import track

from bot import app
from bot.core.disclaimer import caveat
from bot.errors import BudgetExceeded, ForgeError, OperatorError, SettingsError, TransientError
from bot.forge.protocol import Forge
from bot.ops import settings
from bot.ops.settings import Settings
from evaluation.cli.options import print_json, say
from evaluation.crbench.blame import BlameOptions
from evaluation.crbench.build import MappingOptions, build_tasks, map_instances, tally
from evaluation.crbench.clones import Clones
from evaluation.crbench.dataset import statistics
from evaluation.crbench.lines import LineFile
from evaluation.crbench.mapping import Instance, MappedInstance
from evaluation.crbench.own import own_fixes
from evaluation.crbench.printing import print_statistics
from evaluation.crbench.steps import PARAPHRASE, PREVENTABLE, TAGS, Steps
from evaluation.crbench.task import ReviewTask
from evaluation.dataset import fingerprint, read_rows, shaped, task_id, unique
from evaluation.git.repository import GitError, GitRepository, find_clone
from evaluation.prompts import benchmark_prompts
from evaluation.run.model import asked_model


def build_command(instances: str, repos: Path, out: Path, **given: Any) -> int:
    """Find the pull requests that brought in the bugs that INSTANCES fix (CR-Bench, Algorithm 1).

    Clones, bare or not, are folders of --repos named owner+name or owner/name.
    """
    fixes = read_instances(instances)
    question = {"instances": fingerprint(instances) or instances}
    return _Build(out, partial(find_clone, repos), question, **given).run(lambda environment: fixes)


def build_own_command(repo: Path, since: datetime, name: str | None, out: Path | None, **given: Any) -> int:
    """The same from a repository's own bug fixes: what would the reviewer have found here?"""
    with GitRepository(repo) as repository:
        full_name = name or repository.full_name()
        if full_name is None:
            raise OperatorError(f"{repo}: neither its origin nor its folder says owner/name; give --name")
        try:
            head = repository.head()
        except GitError as error:
            raise OperatorError(f"{repo} has no history: {error}") from None

    def fixes(environment: Settings) -> list[Instance]:
        with GitRepository(repo) as repository:
            forge = None if given["offline"] else forge_for(environment, full_name)
            try:
                return list(own_fixes(repository, full_name, since, environment.github_web_url, forge))
            except (ForgeError, TransientError) as error:
                raise OperatorError(f"GitHub does not show the issues of {full_name}: {error}") from error

    question = {"repo": full_name, "head": head, "since": since.date().isoformat()}
    path = out or Path(f"own-{full_name.replace('/', '+')}.jsonl")
    return _Build(path, lambda wanted: repo, question, **given).run(fixes)


def read_instances(source: str) -> list[Instance]:
    """The fixes of a data set. Raises OperatorError with file and line for the first bad row."""
    rows = ((task_id(row), row.where, shaped(row, Instance)) for row in read_rows(source))
    return list(unique(rows))


def forge_for(environment: Settings, full_name: str) -> Forge:
    """GitHub as the operator's App sees one repository. Raises OperatorError where it does not."""
    try:
        github_app = app.build_app(environment)
    except SettingsError as error:
        raise OperatorError(f"{error}; --offline needs no GitHub") from error
    try:
        installation = github_app.installation_for(*full_name.split("/", 1))
    except (ForgeError, TransientError) as error:
        raise OperatorError(
            f"the App cannot read {full_name} ({error}); --offline reads the clone alone"
        ) from error
    return github_app.forge(installation.id, full_name)[0]


@dataclass
class _Build:
    """One call of a build command."""

    out: Path
    find: Callable[[str], Path | None]
    question: dict[str, Any]
    offline: bool
    until: str
    pull_refs: Any
    unmapped: Any
    ignore_whitespace: bool
    follow_moves: bool
    include_tests: bool
    include_documentation: bool
    model: str | None
    prompts: Path | None
    cache: Path | None
    max_cost: float | None
    workers: int
    overwrite: bool
    as_json: bool

    def run(self, read: Callable[[Settings], list[Instance]]) -> int:
        """Build or continue; returns the exit code: 1 where the cost cap stopped it."""
        environment = settings.load(bouncer_model=self.model)
        with LineFile(self.out, self._question(environment), self.overwrite) as lines:
            lines.forget(lambda row: bool(row.get("unfinished")))
            done = {row.get("instance_id") for row in lines.rows()}
            waiting = [fix for fix in read(environment) if fix.instance_id not in done]
            forge_of = None if self.offline else partial(forge_for, environment)
            stopped = None
            with Clones(self.find, waiting, self.pull_refs, forge_of) as clones:
                try:
                    for value in _shown(self._values(waiting, clones, environment), len(waiting)):
                        lines.append(value)
                except BudgetExceeded as error:
                    stopped = str(error)
            self._report(lines, environment)
        if stopped is not None:
            say(f"stopped: {stopped}; the same command goes on from here")
        return 0 if stopped is None else 1

    def _values(self, waiting: list[Instance], clones: Clones, environment: Settings) -> Iterator[MappedInstance]:
        blame = BlameOptions(
            self.ignore_whitespace, self.follow_moves, self.include_tests, self.include_documentation
        )
        options = MappingOptions(blame, self.unmapped, self.workers)
        if self.until == "mapping":
            return map_instances(waiting, clones, options)
        cache = self.cache or self.out.with_name(self.out.name + ".cache")
        model = asked_model(environment, environment.bouncer_model, cache, self.max_cost)
        return build_tasks(waiting, clones, options, Steps(model, benchmark_prompts(self.prompts)))

    def _question(self, environment: Settings) -> dict[str, Any]:
        """What decides the lines: two calls that differ in it do not share a file."""
        policies = (
            "offline",
            "until",
            "pull_refs",
            "unmapped",
            "ignore_whitespace",
            "follow_moves",
            "include_tests",
            "include_documentation",
        )
        asked = {name: getattr(self, name) for name in policies}
        if self.until == "tasks":
            prompts = benchmark_prompts(self.prompts)
            asked["model"] = environment.bouncer_model
            asked["prompts"] = {name: prompts.hash(name) for name in (PREVENTABLE, PARAPHRASE, TAGS)}
        return {**self.question, **asked}

    def _report(self, lines: LineFile, environment: Settings) -> None:
        """What came of it: words on stderr, or one JSON object on stdout."""
        if self.until == "mapping":
            counts = tally(MappedInstance.model_validate(row) for row in lines.rows())
            if self.as_json:
                print_json({"out": str(self.out), **dict(counts.most_common())})
            for reason, count in counts.most_common() if not self.as_json else ():
                say(f"{count:6}  {reason}")
            return
        result = statistics(ReviewTask.model_validate(row) for row in lines.rows())
        if self.as_json:
            print_json({"out": str(self.out), **result.model_dump(mode="json")})
            return
        print_statistics(self.out.name, result)
        if warning := caveat(environment.bouncer_model):
            say(warning)


def _shown(values: Iterator[MappedInstance], total: int) -> Iterator[MappedInstance]:
    console = Console(file=sys.stderr)
    yield from track(values, "", total, console=console, transient=True, disable=not sys.stderr.isatty())
