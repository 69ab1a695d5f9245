"""From a fix to the one pull request that brought its bug in (CR-Bench, Algorithm 1, lines 3 to 7).

The removed lines are blamed at the base commit, each commit is traced to its pull request, and the instance
is kept where that makes exactly one. Commits without a pull request count for nothing, as they do in the
paper's union over GitHub's answers; ``unmapped="discard"`` lets a single one disqualify.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Literal, Protocol

from pydantic import BeforeValidator, ConfigDict, Field

from bot.core.frozen import Frozen
from bot.forge.protocol import Forge
from evaluation.crbench.blame import BlameOptions, blame_fix
from evaluation.crbench.fix import FixError, parse_fix
from evaluation.git.history import History
from evaluation.git.inference import PullCommits
from evaluation.git.repository import GitError, GitRepository

#: What becomes of an instance some of whose blamed commits no pull request brought in.
Unmapped = Literal["ignore", "discard"]

#: Rows of which only a part is known hold null, or nothing.
Text = Annotated[str, BeforeValidator(lambda value: "" if value is None else value)]

_SHA = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


class Instance(Frozen):
    """A fixed bug, as SWE-bench describes one. Other fields of a row are not read."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    instance_id: str
    repo: str = Field(description="owner/name")
    base_commit: Text = Field("", description="full SHA of the commit that the fix applies to")
    patch: Text = Field("", description="the fix, a unified diff without its tests")
    problem_statement: Text = Field("", description="title and body of the issue")


class MappedInstance(Frozen):
    """What Algorithm 1 found for one instance: a line of ``--until mapping``."""

    instance_id: str
    repo: str
    blame_commits: tuple[str, ...] = Field((), description="full SHAs that wrote the removed lines, sorted")
    prs: tuple[int, ...] = Field((), description="numbers of the pull requests that brought them in, ascending")
    unmapped_commits: tuple[str, ...] = Field((), description="those of blame_commits with no pull request")
    kept: bool
    reason: str | None = Field(None, description="why it was discarded; None where it is kept")
    unfinished: bool = Field(False, description="a step failed that may succeed later; the build tries it again")


class PullFinder(Protocol):
    """Finds the merged pull requests of a commit."""

    def pulls_of(self, commit: str, base: str) -> tuple[int, ...]:
        """Numbers of the pull requests that brought ``commit`` into the history of ``base``."""
        ...


class ClonedPulls:
    """Pull requests as merge and squash subjects tell, without a network; see ``history`` for the rules."""

    def __init__(self, history: History, inferred: PullCommits | None = None) -> None:
        self._history = history
        self._inferred = inferred

    def pulls_of(self, commit: str, base: str) -> tuple[int, ...]:
        integration = self._history.integration_of(commit, base)
        if integration is not None:
            return (integration.number,)
        inferred = None if self._inferred is None else self._inferred.number_of(commit)
        return () if inferred is None else (inferred,)


class ForgePulls:
    """Pull requests as GitHub's ``commits/{sha}/pulls`` tells; only merged ones count."""

    def __init__(self, forge: Forge) -> None:
        self._forge = forge
        self._known: dict[str, tuple[int, ...]] = {}

    def pulls_of(self, commit: str, base: str) -> tuple[int, ...]:
        if commit not in self._known:
            pulls = self._forge.pulls_for_commit(commit)
            self._known[commit] = tuple(sorted(pull.number for pull in pulls if pull.merged))
        return self._known[commit]


def map_instance(
    instance: Instance, repository: GitRepository, finder: PullFinder, options: BlameOptions, unmapped: Unmapped
) -> MappedInstance:
    """Blame and trace one instance. What cannot be read is a reason to discard it, never an error.

    ``finder`` may raise TransientError or ForgeError where it asks over a network; those are passed on.
    """
    reason = unusable(instance, repository)
    if reason is not None:
        return discarded(instance, reason)
    try:
        commits = tuple(sorted(blame_fix(repository, instance.base_commit, instance.patch, options)))
    except (FixError, GitError) as error:
        return discarded(instance, str(error))
    pulls = {commit: finder.pulls_of(commit, instance.base_commit) for commit in commits}
    return _judged(instance, pulls, unmapped, options)


def unusable(instance: Instance, repository: GitRepository) -> str | None:
    """Why an instance cannot be looked at in this clone; None where it can."""
    if not instance.patch.strip():
        return "no fix: its patch is empty"
    if not _SHA.fullmatch(instance.base_commit):
        return f"base commit {instance.base_commit!r} is not a full SHA"
    if not repository.has_commit(instance.base_commit):
        return f"base commit {instance.base_commit} is not in the clone"
    return None


def discarded(instance: Instance, reason: str) -> MappedInstance:
    """The record of an instance that could not be looked at."""
    return MappedInstance(instance_id=instance.instance_id, repo=instance.repo, kept=False, reason=reason)


def _judged(
    instance: Instance, pulls: Mapping[str, tuple[int, ...]], unmapped: Unmapped, options: BlameOptions
) -> MappedInstance:
    numbers = tuple(sorted({number for found in pulls.values() for number in found}))
    orphans = tuple(commit for commit, found in pulls.items() if not found)
    reason = _reason(instance, pulls, numbers, orphans, unmapped, options)
    return MappedInstance(
        instance_id=instance.instance_id,
        repo=instance.repo,
        blame_commits=tuple(pulls),
        prs=numbers,
        unmapped_commits=orphans,
        kept=reason is None,
        reason=reason,
    )


def _reason(
    instance: Instance,
    pulls: Mapping[str, tuple[int, ...]],
    numbers: tuple[int, ...],
    orphans: tuple[str, ...],
    unmapped: Unmapped,
    options: BlameOptions,
) -> str | None:
    if not pulls:
        return _nothing_blamed(instance, options)
    if not numbers:
        return f"no pull request: {_count(len(orphans), 'commit')} came in without one"
    if len(numbers) > 1:
        return f"{len(numbers)} pull requests: {', '.join(f'#{number}' for number in numbers)}"
    if orphans and unmapped == "discard":
        return f"{_count(len(orphans), 'commit')} of {len(pulls)} came in without a pull request"
    return None


def _nothing_blamed(instance: Instance, options: BlameOptions) -> str:
    excluded = any(
        file.old_path is not None and file.removed and not options.counts(file.old_path)
        for file in parse_fix(instance.patch)
    )
    if excluded:
        return "nothing to blame: only tests or documentation lose lines"
    return "nothing to blame: the fix only adds lines"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
