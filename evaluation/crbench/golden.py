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

from bot.core.errors import OperatorError
from bot.core.frozen import Frozen, Lenient
from bot.features.shared.taxonomy import Impact, Severity
from evaluation.crbench.context import ContextError, PullContext, read_diff
from evaluation.crbench.mapping import tally
from evaluation.crbench.task import Known, PaperSeverity, ReviewTask
from evaluation.dataset import Row, fingerprint, read_rows, shaped
from evaluation.git.clones import Clones
from evaluation.git.history import Pulls
from evaluation.git.repository import GitError, GitRepository
from evaluation.report.terminal import tell_counts
from evaluation.run.lines import LineFile

GoldenSet = Literal["aacr", "martian"]

_URL = re.compile(r"^https?://[^/]+/(?P<repo>[\w.-]+/[\w.-]+)/pull/(?P<number>\d+)/?$")
_IMPACTS = {
    "Security Vulnerability": Impact.SECURITY,
    "Performance": Impact.PERFORMANCE_EFFICIENCY,
    "Maintainability and Readability": Impact.MAINTAINABILITY,
}


class GoldenPull(Frozen):
    """A pull request and what a reviewer should have said about it."""

    repo: str = Field(description="owner/name")
    number: int
    title: str = ""
    base: str = Field("", description="a commit of the base branch; empty if the data set does not say")
    head: str = Field("", description="the commit that was reviewed; empty if the data set does not say")
    bugs: tuple[Known, ...]

    @property
    def instance_id(self) -> str:
        """As SWE-bench names its instances."""
        return f"{self.repo.replace('/', '__')}-{self.number}"


class _Aacr(Frozen):
    githubPrUrl: str
    source_commit: str
    target_commit: str
    sample_kind: Literal["positive", "negative"]
    comments: list[dict[str, Any]]


class _MartianComment(Lenient):
    comment: str
    severity: str | None = None


class _Martian(Frozen):
    url: str
    pr_title: str = ""
    comments: list[_MartianComment]


def read_golden(rows: Iterator[Row], kind: GoldenSet, *, defects_only: bool) -> Iterator[GoldenPull]:
    """The pull requests of a data set; of AACR-Bench the comments that people confirmed, not the rejected
    ones.

    ``defects_only`` leaves out comments about maintainability. Raises OperatorError with file and line.
    """
    read = _read_aacr if kind == "aacr" else _read_martian
    for row in rows:
        pull = read(row)
        if pull is None:
            continue
        bugs = [bug for bug in pull.bugs if not (defects_only and bug.impact == Impact.MAINTAINABILITY)]
        if bugs:
            yield pull.model_copy(update={"bugs": tuple(bugs)})


def golden_task(pull: GoldenPull, clone: GitRepository | None, pulls: Pulls) -> ReviewTask:
    """A task, or the reason why the pull request's change cannot be had from the clone."""
    if clone is None:
        return _task(pull, f"no clone of {pull.repo}")
    try:
        return _task(pull, None, _context(pull, clone, pulls))
    except (ContextError, GitError) as error:
        return _task(pull, str(error))


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
    subject, body = _own_words(clone, base, head)
    return PullContext(
        number=pull.number,
        title=pull.title or subject,
        body=body,
        base_sha=base,
        head_sha=head,
        diff=diff,
        comments=None,
    )


def _own_words(clone: GitRepository, base: str, head: str) -> tuple[str, str]:
    """First line and the rest of the newest message in the branch that is not a merge's."""
    message = clone.run(
        "log", "--no-show-signature", "--no-merges", "--max-count=1", "--format=%B", f"{base}..{head}"
    )
    subject, _, body = message.decode("utf-8", "replace").strip().partition("\n")
    return subject, body.strip()


def _before_merge(clone: GitRepository, head: str) -> str:
    """The newest commit of the clone's first-parent chain that does not hold ``head`` yet."""
    trunk = clone.run("rev-list", "--first-parent", clone.head()).decode("ascii").split()
    low, high = 0, len(trunk)  # trunk[:low] holds it, trunk[high:] does not
    while low < high:
        middle = (low + high) // 2
        if _holds(clone, trunk[middle], head):
            low = middle + 1
        else:
            high = middle
    if low == len(trunk):
        raise ContextError(f"{head[:10]} is older than the whole first-parent chain")
    return trunk[low]


def _holds(clone: GitRepository, commit: str, ancestor: str) -> bool:
    return not clone.run("rev-list", "--max-count=1", ancestor, f"^{commit}").strip()


def _task(pull: GoldenPull, reason: str | None, context: PullContext | None = None) -> ReviewTask:
    return ReviewTask(
        instance_id=pull.instance_id,
        repo=pull.repo,
        prs=(pull.number,),
        kept=reason is None,
        reason=reason,
        base_commit=context.base_sha if context else pull.base,
        bugs=pull.bugs if context else (),
        pull=context,
    )


def _read_aacr(row: Row) -> GoldenPull | None:
    data = shaped(row, _Aacr)
    if data.sample_kind == "negative":
        return None
    repo, number = _place(data.githubPrUrl, row.where)
    bugs = [
        Known(description=str(comment["note"]).strip(), impact=_IMPACTS.get(str(comment.get("category"))))
        for comment in data.comments
        if str(comment.get("note") or "").strip()
    ]
    # The data set's "source" is the base branch, its "target" the pull request's own commit.
    return GoldenPull(repo=repo, number=number, base=data.source_commit, head=data.target_commit, bugs=tuple(bugs))


def _read_martian(row: Row) -> GoldenPull | None:
    data = shaped(row, _Martian)
    repo, number = _place(data.url, row.where)
    bugs = [_known(comment, row.where) for comment in data.comments if comment.comment.strip()]
    return GoldenPull(repo=repo, number=number, title=data.pr_title, bugs=tuple(bugs))


def _known(comment: _MartianComment, where: str) -> Known:
    """A comment as a bug; its severity is None if there is none. Raises OperatorError for an unknown one."""
    word = (comment.severity or "").strip()
    try:
        tagged = PaperSeverity(word) if word else None
    except ValueError:
        raise OperatorError(f"{where}: severity: {word[:60]!r} is none of {', '.join(PaperSeverity)}") from None
    severity = None if tagged is None else Severity(tagged)
    return Known(description=comment.comment.strip(), severity=severity, paper_severity=tagged)


def _place(url: str, where: str) -> tuple[str, int]:
    match = _URL.match(url)
    if match is None:
        raise OperatorError(f"{where}: {url!r} is not the address of a pull request")
    return match["repo"], int(match["number"])


def build_golden(
    kind: GoldenSet, source: str, repos: Path, out: Path, defects_only: bool, overwrite: bool, as_json: bool
) -> None:
    """Make review tasks of pull requests whose change a local clone holds, for replay and score crbench."""
    pulls = list(read_golden(read_rows(source), kind, defects_only=defects_only))
    question: dict[str, Any] = {"source": fingerprint(source) or source, "set": kind, "defects_only": defects_only}
    pulls_of: dict[str, Pulls] = {}
    with LineFile(out, question, overwrite) as lines, Clones(repos) as clones:
        finished_ids = {row.get("instance_id") for row in lines.rows()}
        for pull in pulls:
            if pull.instance_id not in finished_ids:
                clone = clones.of(pull.repo)
                if clone is not None and pull.repo not in pulls_of:
                    pulls_of[pull.repo] = Pulls.read(clone)
                lines.append(golden_task(pull, clone, pulls_of.get(pull.repo, Pulls())))
        counts = tally(ReviewTask.model_validate(row) for row in lines.rows())
    tell_counts(counts, out, as_json)
