"""Other people's golden review comments as review tasks: AACR-Bench and Martian's code review benchmark.

Both name real pull requests and what a reviewer should have said about them. Neither ships the code, so a
task comes of a pull request whose commits a local clone holds: the commit that the data set names, else the
head in the clone's ``refs/pull``. Title and description are taken from the branch's newest message where
the data set has none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from bot import settings
from bot.core.errors import ModelError, OperatorError, TransientError
from bot.core.frozen import Frozen, Lenient
from bot.features.shared.findings import Impact, Severity
from bot.models.prompts import Prompts
from bot.models.protocol import Model, Prompt
from evaluation.crbench.mapping import Text, tally
from evaluation.crbench.pulls import ContextError, PullContext, read_diff
from evaluation.crbench.task import Kind, Known, Level, PaperSeverity, Remark, ReviewTask
from evaluation.dataset import Row, fingerprint, read_rows, shaped
from evaluation.git.clones import Clones
from evaluation.git.history import Pulls
from evaluation.git.repository import GitError, GitRepository
from evaluation.report.terminal import tell_counts
from evaluation.run.lines import LineFile
from evaluation.run.model import Account, benchmark_prompts

GoldenSet = Literal["aacr", "martian"]

_URL = re.compile(r"^https?://[^/]+/(?P<repo>[\w.-]+/[\w.-]+)/pull/(?P<number>\d+)/?$")
_IMPACTS = {
    "Security Vulnerability": Impact.SECURITY,
    "Performance": Impact.PERFORMANCE_EFFICIENCY,
    "Maintainability and Readability": Impact.MAINTAINABILITY,
}
_LEVELS: dict[str, Level] = {"Diff Level": "diff", "File Level": "file", "Repo Level": "repository"}

KIND = "crbench.kind"


class KindReply(Frozen):
    """The kind of a confirmed comment."""

    reason: str = Field(description="briefly: what follows if nothing is changed")
    kind: Kind


class GoldenPull(Frozen):
    """A pull request, what a reviewer should have said about it, and comments that people rejected."""

    repo: str = Field(description="owner/name")
    number: int
    title: str = ""
    base: str = Field("", description="a commit of the base branch; empty if the data set does not say")
    head: str = Field("", description="the commit that was reviewed; empty if the data set does not say")
    language: str = ""
    bugs: tuple[Known, ...]
    rejected: tuple[Remark, ...] = ()

    @property
    def instance_id(self) -> str:
        """As SWE-bench names its instances."""
        return f"{self.repo.replace('/', '__')}-{self.number}"


class _AacrComment(Lenient):
    note: Text = ""
    category: Text = ""
    context: Text = ""
    path: Text = ""
    to_line: int | None = None


class _Aacr(Frozen):
    githubPrUrl: str
    source_commit: str
    target_commit: str
    sample_kind: Literal["positive", "negative"]
    project_main_language: Text = ""
    comments: list[_AacrComment]


class _MartianComment(Lenient):
    comment: str
    severity: str | None = None


class _Martian(Frozen):
    url: str
    pr_title: str = ""
    comments: list[_MartianComment]


def read_golden(rows: Iterator[Row], kind: GoldenSet) -> Iterator[GoldenPull]:
    """The pull requests of a data set with their confirmed and their rejected comments, if they have any.

    Raises OperatorError with file and line.
    """
    pulls: dict[str, GoldenPull] = {}
    for row in rows:
        pull = _read_aacr(row) if kind == "aacr" else _read_martian(row)
        before = pulls.get(pull.instance_id, pull.model_copy(update={"bugs": (), "rejected": ()}))
        both = {"bugs": before.bugs + pull.bugs, "rejected": before.rejected + pull.rejected}
        pulls[pull.instance_id] = before.model_copy(update=both)
    yield from (pull for pull in pulls.values() if pull.bugs or pull.rejected)


def golden_task(pull: GoldenPull, clone: GitRepository | None, pulls: Pulls) -> ReviewTask:
    """A task, or the reason why the pull request's change cannot be had from the clone."""
    reason, context = None, None
    try:
        if clone is None:
            raise ContextError(f"no clone of {pull.repo}")
        context = _context(pull, clone, pulls)
    except (ContextError, GitError) as error:
        reason = str(error)
    return ReviewTask(
        instance_id=pull.instance_id,
        repo=pull.repo,
        prs=(pull.number,),
        kept=reason is None,
        reason=reason,
        base_commit=context.base_sha if context else pull.base,
        bugs=pull.bugs if context else (),
        rejected=pull.rejected if context else (),
        language=pull.language,
        pull=context,
    )


def _context(pull: GoldenPull, clone: GitRepository, pulls: Pulls) -> PullContext:
    head = next(
        (sha for sha in (pull.head, pulls.heads.get(pull.number, "")) if sha and clone.has_commit(sha)), None
    )
    if head is None:
        raise ContextError(f"the clone holds no commit of pull request #{pull.number}")
    onto = pull.base if pull.base and clone.has_commit(pull.base) else _before_merge(clone, head)
    base = clone.run("merge-base", onto, head).decode("ascii").strip()
    diff = read_diff(clone, base, head, pull.number)
    if not diff:
        raise ContextError(f"pull request #{pull.number} changes nothing against {base[:10]}")
    # The newest message in the branch that is not a merge's, without its title: that names a single commit.
    message = clone.run(
        "log", "--no-show-signature", "--no-merges", "--max-count=1", "--format=%B", f"{base}..{head}"
    )
    body = message.decode("utf-8", "replace").strip().partition("\n")[2].strip()
    return PullContext(
        number=pull.number, title=pull.title, body=body, base_sha=base, head_sha=head, diff=diff, comments=None
    )


def _before_merge(clone: GitRepository, head: str) -> str:
    """The newest commit of the clone's first-parent chain that does not hold ``head`` yet."""
    trunk = clone.run("rev-list", "--first-parent", clone.head()).decode("ascii").split()
    low, high = 0, len(trunk)  # trunk[:low] holds it, trunk[high:] does not
    while low < high:
        middle = (low + high) // 2
        if not clone.run("rev-list", "--max-count=1", head, f"^{trunk[middle]}").strip():
            low = middle + 1
        else:
            high = middle
    if low == len(trunk):
        raise ContextError(f"{head[:10]} is older than the whole first-parent chain")
    return trunk[low]


def _read_aacr(row: Row) -> GoldenPull:
    data = shaped(row, _Aacr)
    repo, number = _place(data.githubPrUrl, row.where)
    confirmed = data.sample_kind == "positive"
    comments = [comment for comment in data.comments if comment.note.strip()]
    places = [
        {"description": comment.note.strip(), "path": comment.path, "line": comment.to_line}
        for comment in comments
    ]
    bugs = [
        Known(**place, impact=_IMPACTS.get(comment.category), level=_LEVELS.get(comment.context))
        for place, comment in zip(places, comments, strict=True)
    ]
    # The data set's "source" is the base branch, its "target" the pull request's own commit.
    return GoldenPull(
        repo=repo,
        number=number,
        base=data.source_commit,
        head=data.target_commit,
        language=data.project_main_language,
        bugs=tuple(bugs) if confirmed else (),
        rejected=() if confirmed else tuple(Remark(**place) for place in places),
    )


def _read_martian(row: Row) -> GoldenPull:
    data = shaped(row, _Martian)
    repo, number = _place(data.url, row.where)
    bugs: list[Known] = []
    for comment in data.comments:
        word = (comment.severity or "").strip()
        try:
            tagged = PaperSeverity(word) if word else None
        except ValueError:
            names = ", ".join(PaperSeverity)
            raise OperatorError(f"{row.where}: severity: {word[:60]!r} is none of {names}") from None
        severity = None if tagged is None else Severity(tagged)
        if text := comment.comment.strip():
            bugs.append(Known(description=text, severity=severity, paper_severity=tagged))
    return GoldenPull(repo=repo, number=number, title=data.pr_title, bugs=tuple(bugs))


def _place(url: str, where: str) -> tuple[str, int]:
    match = _URL.match(url)
    if match is None:
        raise OperatorError(f"{where}: {url!r} is not the address of a pull request")
    return match["repo"], int(match["number"])


def with_kinds(task: ReviewTask, model: Model, prompts: Prompts) -> ReviewTask:
    """The task with the kind of every confirmed comment. Raises ModelError or TransientError."""

    def ask(number: int, bug: Known) -> Known:
        system, user = prompts.render(KIND, comment=bug.description, path=bug.path)
        subject = f"{task.instance_id}/{number}"
        reply = model.complete(Prompt(purpose=KIND, system=system, user=user, subject=subject), KindReply)
        return bug.model_copy(update={"kind": reply.value.kind})

    bugs = tuple(ask(number, bug) for number, bug in enumerate(task.bugs))
    return task.model_copy(update={"bugs": bugs, "model": model.id})


def build_golden(
    kind: GoldenSet,
    source: str,
    repos: Path,
    out: Path,
    judge: str | None,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Make review tasks of pull requests whose change a local clone holds, for replay and score crbench."""
    pulls = list(read_golden(read_rows(source), kind))
    if not pulls:
        raise OperatorError(f"{source} holds no pull request with comments")
    question: dict[str, Any] = {"source": fingerprint(source) or source, "set": kind}
    question |= {"judge": judge} if judge else {}
    account = Account(settings.load(), out.with_name(f"{out.name}.cache"), None)
    model, prompts = account.model(judge) if judge else None, benchmark_prompts()
    pulls_of: dict[str, Pulls] = {}
    with LineFile(out, question, overwrite) as lines, Clones(repos) as clones:
        finished_ids = {row.get("instance_id") for row in lines.rows()}
        for pull in pulls:
            if pull.instance_id in finished_ids:
                continue
            clone = clones.of(pull.repo)
            if clone is not None and pull.repo not in pulls_of:
                pulls_of[pull.repo] = Pulls.read(clone)
            task = golden_task(pull, clone, pulls_of.get(pull.repo, Pulls()))
            try:
                lines.append(task if model is None else with_kinds(task, model, prompts))
            except (ModelError, TransientError) as error:
                raise OperatorError(f"{task.instance_id}: {error}; the same command goes on from here") from None
        tasks = [ReviewTask.model_validate(row) for row in lines.rows()]
    counts = tally(tasks)
    counts["confirmed comments"] = sum(len(task.bugs) for task in tasks)
    counts["rejected comments"] = sum(len(task.rejected) for task in tasks)
    counts.update(f"of kind {bug.kind}" for task in tasks for bug in task.bugs if bug.kind)
    tell_counts(counts, out, as_json)
