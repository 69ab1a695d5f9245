"""A task of the benchmark as the event that a live repository would send (BouncerBench, figure 1)."""

from __future__ import annotations

from bot.core.model import Issue, Repository
from bot.errors import OperatorError
from bot.forge.offline import AUTHOR, issue_opened, pull_request_opened, split_title
from evaluation.bouncerbench.tasks import InputTask, OutputTask, number_of
from evaluation.git.clones import Clones
from evaluation.run.staging import Staged


def stage_input(task: InputTask, code: Clones | None = None) -> Staged:
    """The issue is opened. Raises OperatorError where its text is not at hand.

    ``code`` lets a handler read the files of the base commit; raises OperatorError where it is not there.
    """
    title, body = split_title(_text(task))
    opened = issue_opened(title, body, _repository(task), number_of(task.instance_id))
    return _staged(task, Staged(task.instance_id, opened.event, opened.snapshot), code)


def stage_output(task: OutputTask, code: Clones | None = None) -> Staged:
    """A pull request with the patch is opened, closing the issue. Raises OperatorError without text or patch.

    ``code``: as for ``stage_input``.
    """
    if task.patch is None:
        raise OperatorError(f"{task.instance_id}: the task has no patch")
    number = number_of(task.instance_id)
    title, body = split_title(_text(task))
    issue = Issue(number=number, title=title, body=body, author=AUTHOR)
    opened = pull_request_opened(
        task.patch,
        title=f"Resolve #{number}",
        body=f"Fixes #{number}.",
        issues=(issue,),
        repository=_repository(task),
        number=number + 1,
        base_sha=task.base_commit,
    )
    return _staged(task, Staged(task.instance_id, opened.event, opened.snapshot), code)


def _staged(task: InputTask | OutputTask, staged: Staged, code: Clones | None) -> Staged:
    return staged if code is None else code.beside(staged, task.base_commit)


def _text(task: InputTask | OutputTask) -> str:
    if task.problem_statement is None:
        raise OperatorError(f"{task.instance_id}: the task has no issue text")
    return task.problem_statement


def _repository(task: InputTask | OutputTask) -> Repository:
    owner, _, name = task.repo.partition("/")
    return Repository(id=1, owner=owner, name=name or owner)
