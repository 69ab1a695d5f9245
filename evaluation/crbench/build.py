"""Building review tasks, from a data set of fixes or from a repository's own (CR-Bench, Algorithm 1).

Instances are done in their order, several at a time, each with its reason if discarded; a build is begun,
continued, and told about.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Literal

from bot import settings
from bot.cli.files import print_json, progress
from bot.cli.remote import reached
from bot.core.errors import BudgetExceeded, ForgeError, ModelError, OperatorError, TransientError
from bot.core.text import amount
from bot.github.protocol import Forge
from bot.models.protocol import caveat
from bot.settings import Settings
from evaluation.crbench.mapping import Instance, MappedInstance, Unmapped, discarded, map_instance, tally
from evaluation.crbench.metrics import averages, kinds_of
from evaluation.crbench.own import Change, code_change, own_fixes, trunk
from evaluation.crbench.pulls import ClonedPulls, ContextError, ForgePulls, PullContext, PullSource
from evaluation.crbench.sections import data_section
from evaluation.crbench.task import (
    CLEAN_DAYS,
    PARAPHRASE,
    PREVENTABLE,
    TAGS,
    ReviewTask,
    describe,
)
from evaluation.dataset import choose, fingerprint, read_shaped
from evaluation.git.clones import Clones
from evaluation.git.history import History, PullCommits, Pulls, read_commits
from evaluation.git.repository import GitError, GitRepository
from evaluation.report.terminal import say, show, tell_counts
from evaluation.run.lines import LineFile
from evaluation.run.model import Account, benchmark_prompts
from evaluation.run.runner import in_order

#: How a clone's pull refs are used: not at all, to refute numbers in subjects, or also to infer missing ones.
PullRefs = Literal["ignore", "verify", "infer"]
#: What a build counts of the bugs: name -> dimension.
_TAGS = {"categories": "category", "impacts": "impact", "severities": "severity"}
#: Adds the bug that a fix repairs to its task.
Describe = Callable[[Instance, ReviewTask], ReviewTask]


@dataclass(frozen=True)
class Clone:
    """One repository, ready to be asked."""

    repository: GitRepository
    pulls: PullSource


@contextmanager
def histories(
    find: Path | Callable[[str], Path | None],
    instances: Iterable[Instance],
    pull_refs: PullRefs = "verify",
    forge_of: Callable[[str], Forge] | None = None,
) -> Iterator[Mapping[str, Clone]]:
    """Open the clones that the instances need, by ``owner/name``; those that are missing are left out.

    ``find`` is the folder of the clones, or gives that of one. ``forge_of`` gives a repository's forge, if pull
    requests are to be looked up on GitHub. Raises OperatorError if a clone is shallow, or if there is none at all.
    """
    bases: dict[str, set[str]] = {}
    for instance in instances:
        bases.setdefault(instance.repo, set()).add(instance.base_commit)
    with Clones(find) as clones:
        repositories = {name: repository for name in bases if (repository := clones.of(name)) is not None}
        if bases and not repositories:
            names = ", ".join(sorted(bases)[:3])
            raise OperatorError(f"no clone of {names}: clones are folders named owner+name or owner/name")
        yield {
            name: Clone(
                repository,
                ForgePulls(forge_of(name)) if forge_of else _pulls(repository, name, bases[name], pull_refs),
            )
            for name, repository in repositories.items()
        }


def _pulls(repository: GitRepository, full_name: str, bases: set[str], pull_refs: PullRefs) -> ClonedPulls:
    present = sorted(base for base in bases if repository.has_commit(base))
    pulls = Pulls.read(repository) if pull_refs != "ignore" else Pulls()
    try:
        history = History(read_commits(repository, present, full_name), pulls)
        inferred = PullCommits(repository, pulls, present) if pull_refs == "infer" else None
    except GitError as error:
        raise OperatorError(f"{repository.folder}: its history cannot be read: {error}") from error
    return ClonedPulls(repository, history, pulls, inferred)


def map_instances(
    instances: Sequence[Instance], clones: Mapping[str, Clone], unmapped: Unmapped = "ignore", workers: int = 2
) -> Iterator[MappedInstance]:
    """Lines 3 to 7 of the algorithm for every instance, in their order."""
    return in_order(lambda fix: _mapped(fix, clones, unmapped), instances, workers)


def build_tasks(
    instances: Sequence[Instance],
    clones: Mapping[str, Clone],
    described: Describe,
    unmapped: Unmapped = "ignore",
    workers: int = 2,
) -> Iterator[ReviewTask]:
    """The whole algorithm for every instance, in their order; ``described`` adds the bug to a task.

    Raises BudgetExceeded if the next question may not be asked; what was yielded before stands.
    """
    return in_order(lambda fix: _built(fix, clones, described, unmapped), instances, workers)


def _mapped(fix: Instance, clones: Mapping[str, Clone], unmapped: Unmapped) -> MappedInstance:
    clone = clones.get(fix.repo)
    if clone is None:
        # Looked at again once there is one.
        return discarded(fix, f"no clone of {fix.repo}").model_copy(update={"unfinished": True})
    try:
        return map_instance(fix, clone.repository, clone.pulls, unmapped)
    except (TransientError, ForgeError) as error:
        return discarded(fix, f"unfinished: {error}").model_copy(update={"unfinished": True})


def _built(fix: Instance, clones: Mapping[str, Clone], described: Describe, unmapped: Unmapped) -> ReviewTask:
    mapped = _mapped(fix, clones, unmapped)
    task = ReviewTask(**mapped.model_dump(), base_commit=fix.base_commit, fix=fix.patch)
    if not task.kept:
        return task
    try:
        return described(fix, task.model_copy(update={"pull": _context(task, clones)}))
    except BudgetExceeded:
        raise
    except ContextError as error:
        return task.model_copy(update={"kept": False, "reason": str(error)})
    except (ModelError, TransientError, ForgeError) as error:
        reason = f"unfinished: {error}"
        return task.model_copy(update={"kept": False, "reason": reason, "unfinished": True})


def _context(task: ReviewTask, clones: Mapping[str, Clone]) -> PullContext:
    clone = clones[task.repo]
    [number] = task.prs
    commits = (commit for commit in task.blame_commits if number in clone.pulls.pulls_of(commit, task.base_commit))
    try:
        return clone.pulls.context_of(number, next(commits), task.base_commit)
    except GitError as error:
        raise ContextError(f"pull request #{number}: {error}") from error


def build_from_fixes(instances: str, repos: Path, out: Path, **options: Any) -> int:
    """Tasks of a data set of fixes, from the clones below ``repos``; returns the exit code."""
    fixes = list(read_shaped(instances, Instance))
    if not fixes:
        raise OperatorError(f"{instances} holds no instance")
    question = {"instances": fingerprint(instances) or instances}
    return _Build(out, repos, question, **options).run(lambda environment: fixes)


def build_from_history(
    repo: Path, since: datetime, name: str | None, out: Path | None, clean: int, **options: Any
) -> int:
    """Tasks of a repository's own bug fixes; returns the exit code."""
    with GitRepository(repo) as repository:
        full_name = name or repository.full_name()
        try:
            head = repository.head()
        except GitError as error:
            raise OperatorError(f"{repo} has no history: {error}") from None

    def fixes(environment: Settings) -> list[Instance]:
        with GitRepository(repo) as repository, ExitStack() as connections:
            forge = None if options["offline"] else forge_for(environment, connections, full_name)
            try:
                return list(own_fixes(repository, full_name, since, environment.github_web_url, forge))
            except (ForgeError, TransientError) as error:
                raise OperatorError(f"GitHub does not show the issues of {full_name}: {error}") from error

    question = {"repo": full_name, "head": head, "since": since.date().isoformat(), "clean": clean}
    path = out or Path(f"own-{full_name.replace('/', '+')}.jsonl")
    build = _Build(path, lambda full_name: repo, question, **options)
    return build.run(fixes, lambda every: clean_pulls(repo, full_name, since, every, clean))


def clean_pulls(
    repo: Path, full_name: str, since: datetime, fixes: Sequence[Instance], limit: int
) -> Iterator[ReviewTask]:
    """A sample of merged pull requests of which no fix changed a line within CLEAN_DAYS days.

    They are older than that, and change code. Pull requests are found in the clone alone.
    """
    with GitRepository(repo) as repository:
        changes = list(trunk(repository, since))
        if not changes or not limit:
            return
        newest, term = changes[0], timedelta(days=CLEAN_DAYS)
        tip = Instance(instance_id="", repo=full_name, base_commit=newest.commit)
        with histories(lambda name: repo, [*fixes, tip]) as clones:
            repaired = _repaired(fixes, changes, clones)
            numbers = {change.number(full_name): change for change in changes if newest.at - change.at > term}
            names = {
                f"{full_name.replace('/', '__')}-{number}.clean": change
                for number, change in numbers.items()
                if number is not None
                and not any(timedelta(0) <= at - change.at <= term for at in repaired.get(number, ()))
                and code_change(repository, change)
            }
            clone = clones[full_name]
            for name in sorted(choose(names, limit, 0)):
                change = names[name]
                number = change.number(full_name)
                assert number is not None, "only changes with a number are named"
                try:
                    pull = clone.pulls.context_of(number, change.commit, newest.commit)
                except (ContextError, GitError):
                    continue
                yield ReviewTask(
                    instance_id=name, repo=full_name, prs=(number,), kept=True, base_commit=pull.base_sha,
                    pull=pull, clean=True,
                )  # fmt: skip


def _repaired(
    fixes: Sequence[Instance], changes: Sequence[Change], clones: Mapping[str, Clone]
) -> dict[int, list[datetime]]:
    """When a fix changed a line of each pull request, by its number."""
    moments = {change.parent: change.at for change in changes}
    repaired: dict[int, list[datetime]] = {}
    for fix, mapped in zip(fixes, map_instances(fixes, clones), strict=True):
        for number in mapped.prs:
            repaired.setdefault(number, []).append(moments[fix.base_commit])
    return repaired


def forge_for(environment: Settings, connections: ExitStack, full_name: str) -> Forge:
    """Return a repository as the commands that read GitHub see it. Raises OperatorError if it cannot be read."""
    try:
        return connections.enter_context(reached(environment, full_name)).forge
    except (OperatorError, TransientError) as error:
        raise OperatorError(f"{error}; --offline reads the clone alone") from error


@dataclass
class _Build:
    """One call of a build command."""

    out: Path
    find: Path | Callable[[str], Path | None]
    question: dict[str, Any]
    offline: bool
    until: str
    pull_refs: PullRefs
    unmapped: Unmapped
    model: str | None
    prompts: str | None
    cache: Path | None
    max_cost: float | None
    workers: int
    overwrite: bool
    as_json: bool

    def run(
        self,
        read: Callable[[Settings], list[Instance]],
        clean: Callable[[list[Instance]], Iterable[ReviewTask]] = lambda fixes: (),
    ) -> int:
        """Build or continue; returns the exit code: 1 if the cost cap stopped it or no instance was finished."""
        environment = settings.load(bouncer_model=self.model)
        with LineFile(self.out, self._question(environment), self.overwrite) as lines, ExitStack() as connections:
            lines.forget(lambda row: bool(row.get("unfinished")))
            finished_ids = {row.get("instance_id") for row in lines.rows()}
            every = read(environment)
            waiting = [fix for fix in every if fix.instance_id not in finished_ids]
            forge_of = None if self.offline else partial(forge_for, environment, connections)
            stopped = None
            with histories(self.find, waiting, self.pull_refs, forge_of) as clones:
                try:
                    with progress() as advance:
                        for number, value in enumerate(self._values(waiting, clones, environment), 1):
                            lines.append(value)
                            advance("", number, len(waiting))
                except BudgetExceeded as error:
                    stopped = str(error)
            if stopped is None and self.until == "tasks":
                for task in clean(every):
                    if task.instance_id not in finished_ids:
                        lines.append(task)
            self._report(lines, environment)
            unfinished = Counter(row["reason"] for row in lines.rows() if row.get("unfinished"))
            count = sum(1 for _ in lines.rows())
        if stopped is not None:
            say(f"stopped: {stopped}; the same command goes on from here")
        if unfinished:
            [(reason, _)] = unfinished.most_common(1)
            total = unfinished.total()
            say(f"{total} of {count} instances are not finished and are tried again next time: {reason}")
        return 1 if stopped is not None or (count and unfinished.total() == count) else 0

    def _values(
        self, waiting: list[Instance], clones: Mapping[str, Clone], environment: Settings
    ) -> Iterator[MappedInstance]:
        if self.until == "mapping":
            return map_instances(waiting, clones, self.unmapped, self.workers)
        cache = self.cache or self.out.with_name(self.out.name + ".cache")
        model = Account(environment, Path(cache), self.max_cost).model(environment.bouncer_model)
        prompts = benchmark_prompts(self.prompts)
        return build_tasks(waiting, clones, partial(describe, model, prompts), self.unmapped, self.workers)

    def _question(self, environment: Settings) -> dict[str, Any]:
        """Return the options that determine the output; calls that differ in them must not share a file."""
        values: dict[str, Any] = {
            name: getattr(self, name) for name in ("offline", "until", "pull_refs", "unmapped")
        }
        if self.until == "tasks":
            prompts = benchmark_prompts(self.prompts)
            values["model"] = environment.bouncer_model
            values["prompts"] = {name: prompts.hash(name) for name in (PREVENTABLE, PARAPHRASE, TAGS)}
        return {**self.question, **values}

    def _report(self, lines: LineFile, environment: Settings) -> None:
        """Print the result: text on stderr, or one JSON object on stdout."""
        if self.until == "mapping":
            counts = tally(MappedInstance.model_validate(row) for row in lines.rows())
            tell_counts(counts, self.out, self.as_json)
            return
        tasks = [ReviewTask.model_validate(row) for row in lines.rows()]
        remaining, clean = [task for task in tasks if task.bugs], sum(task.clean for task in tasks)
        kinds = {
            "discarded": dict(tally(task for task in tasks if not task.kept).most_common()),
            **{name: kinds_of(remaining, kind) for name, kind in _TAGS.items()},
        }
        if self.as_json:
            means = averages(remaining).model_dump(mode="json")
            print_json({"out": str(self.out), "averages": means, **kinds, "clean": clean})
            return
        show([data_section({self.out.name: averages(remaining)})], stderr=True)
        for name, counts_of_kind in kinds.items():
            if counts_of_kind:
                say(f"{name}: {', '.join(f'{kind} {count}' for kind, count in counts_of_kind.items())}")
        if clean:
            say(f"and {amount(clean, 'clean pull request')}")
        if warning := caveat(environment.bouncer_model):
            say(warning)
