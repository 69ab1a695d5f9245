"""CR-Bench as a benchmark: the pull request as its reviewers could see it, and the live reviewer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from bot import app
from bot.cli.judging import operator_harness
from bot.core.config import ReviewConfig
from bot.core.errors import NotRecorded, OperatorError
from bot.core.subjects import PullRequest
from bot.github.offline import AUTHOR, Snapshot, pull_just_opened
from bot.github.protocol import PullDiff
from bot.reproduction.execution import SandboxHarness
from bot.reproduction.protocol import TestCommand
from evaluation.benchmark import Benchmark, Session
from evaluation.brt.drafting import working_sandbox
from evaluation.crbench import sections
from evaluation.crbench.judged import BENCHMARK, Scored, reviewed_run, scored
from evaluation.crbench.metrics import figures
from evaluation.crbench.paper_review import paper_session
from evaluation.crbench.pulls import PullContext
from evaluation.crbench.task import ReviewTask, read_tasks
from evaluation.git.clones import ClonedForge, Clones
from evaluation.git.repository import GitError, GitRepository
from evaluation.report.cutoff import Sample
from evaluation.report.terminal import say
from evaluation.run.model import benchmark_prompts
from evaluation.run.replay import ReplayRequest
from evaluation.run.staging import Staged, repository_named, through_handler


class PastForge(ClonedForge):
    """A snapshot, and the files of the commits that existed when the pull request was opened."""

    def __init__(self, snapshot: Snapshot, repository: GitRepository, pull: PullContext) -> None:
        super().__init__(snapshot, repository, (pull.base_sha, pull.head_sha))
        self._pull = pull

    def _visible_commit(self, ref: str) -> str:
        commit = self._snapshot.heads.get(ref, ref)
        if commit not in self._visible:
            try:
                self._clone.run("merge-base", "--is-ancestor", f"{commit}^{{commit}}", self._pull.head_sha)
            except GitError:
                raise NotRecorded(f"{ref} came after pull request #{self._pull.number}, or beside it") from None
            self._visible.add(commit)
        return commit


def stage(task_id: str, full_name: str, pull: PullContext, clone: GitRepository | None = None) -> Staged:
    """Open the pull request on the repository as it was, before any comment. ``clone`` lets files be read."""
    repository = repository_named(full_name)
    pull_request = PullRequest(
        number=pull.number,
        title=pull.title,
        body=pull.body,
        author=AUTHOR,
        head_sha=pull.head_sha,
        head_ref="change",
        head_repository=full_name,
        base_sha=pull.base_sha,
        base_ref=repository.default_branch,
        base_repository=full_name,
    )
    event, snapshot = pull_just_opened(pull_request, PullDiff(text=pull.diff), (), repository)
    heads = {pull_request.base_ref: pull.base_sha, pull_request.head_ref: pull.head_sha}
    staged = Staged(task_id, event, snapshot.model_copy(update={"heads": heads}))
    return replace(staged, forge=lambda content: PastForge(content, clone, pull)) if clone else staged


@contextmanager
def opened(
    request: ReplayRequest,
    config: str | None,
    repos: Path | None,
    overrides: Mapping[str, Mapping[str, Any]],
    as_paper: bool,
    test_command: str | None = None,
) -> Iterator[Session[ReviewTask]]:
    """The pull requests for the review handler; ``overrides`` are keys of the config by section.

    ``repos`` lets it read files, as they were when the pull request was opened. ``as_paper``: the paper's reviewer
    instead (``paper_review``).
    ``test_command`` runs tests if findings are to be proven and a task does not name a command itself.
    Raises OperatorError if what is asked for is not at hand.
    """
    review = {"max_total": 100, **overrides.get("review", {})}
    full = app.repo_config(config, {**overrides, "review": review})
    if as_paper:
        yield paper_session(full.review, benchmark_prompts(request.prompts))
        return
    if repos is None and (full.review.prove or full.review.investigate):
        key = "prove" if full.review.prove else "investigate"
        raise OperatorError(f"--repos DIR is needed: review.{key} is on, and there is no code to look at")
    harness = None
    if full.review.prove:
        sandbox = working_sandbox(request.environment)
        harness = operator_harness(sandbox, test_command or full.reproduce.command, full.reproduce.seconds)
    with Clones(repos or Path()) as clones:
        session = through_handler(
            partial(_staged, clones if repos else None, harness),
            "review",
            full,
            app.prompts(request.environment),
            prompt_names=_question_names(full.review),
            parts=("pulls", "review", *(("reproduce",) if harness else ())),
            recognition=request.recognised,
        )
        more: dict[str, Any] = {"code": repos is not None}
        if harness is not None:
            more |= {"sandbox": harness.sandbox.name, "test_command": harness.command.argv}
        yield replace(session, config={**session.config, **more})


def _staged(clones: Clones | None, harness: SandboxHarness | None, task: ReviewTask) -> Staged:
    assert task.pull is not None, "read_tasks gives complete tasks only"
    clone = clones.of(task.repo) if clones else None
    if clones and clone is None:
        say(f"warning: {task.instance_id} is reviewed without code: --repos holds no clone of {task.repo}")
    staged = stage(task.instance_id, task.repo, task.pull, clone)
    if harness is None:
        return staged
    own = replace(harness, command=TestCommand(argv=task.command)) if task.command else harness
    return replace(staged, harness=replace(own, env=task.env))


def _question_names(config: ReviewConfig) -> tuple[str, ...]:
    names = [f"review.{config.strategy}", "review.doubt"]
    # The first look of reflexion is a single shot, and so is the question that is investigated.
    names += ["review.single-shot"] if config.strategy == "reflexion" or config.investigate else []
    names += ["investigate", "investigated"] if config.investigate else []
    return (*dict.fromkeys(names), *(("reproduce.draft", "reproduce.repair") if config.prove else ()))


CRBENCH: Benchmark[ReviewTask, Scored] = Benchmark(
    BENCHMARK,
    read_tasks,
    lambda task: task.instance_id,
    lambda run, name, source, scoring: scored(reviewed_run(run, name), source, scoring),
    sections.on_report,
    lambda item: Sample(
        item.name, [tally.task_id for tally in item.tallies], figures(item.tallies), item.recognised
    ),
    lambda scores: [sections.judge_cost(score) for score in scores],
)
