"""CR-Evaluator: every review comment is a bug hit, a valid suggestion or noise (CR-Bench, 5, listing 6).

The judge sees the known bugs, numbered, the files that the fix changed, the lines of the change around the bug
and around the comment, and the comment: not its author, the strategy, or what other comments say. Comments of all
tasks are put to it in a shuffled order, and the classes stand in another order in each question, both drawn from a
seed. Several judges or draws vote; a class needs
more than half of the votes. A vote that failed is no vote, and a comment without a majority stays unjudged:
it is counted as such, never as noise.
"""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, get_args

import numpy as np
from pydantic import Field

from bot.code.change.diff import Diff, Hunk, parse
from bot.core.actions import Usage
from bot.core.errors import BudgetExceeded, ModelError, TransientError
from bot.core.frozen import Frozen, Lenient
from bot.features.shared.findings import Finding, Severity
from bot.models.prompts import Prompts
from bot.models.protocol import Model, Prompt
from evaluation.crbench.paper_review import PaperComment
from evaluation.crbench.task import ReviewTask
from evaluation.dataset import read_rows, shaped, validated
from evaluation.run.folder import Record
from evaluation.run.runner import in_order
from evaluation.statistics import fleiss_kappa

#: Which findings are judged: those that people would have seen, or also those that were held back.
Scope = Literal["posted", "reported"]
#: Which question a judge is asked: ours, with the code, or the paper's (listing 6).
Style = Literal["ours", "paper"]


class ReviewComment(Frozen):
    """One review comment. Nothing in it tells which system wrote it."""

    task_id: str
    path: str
    line: int | None = Field(description="None if no line carries it")
    text: str
    looks: int = Field(1, description="looks of a panel that saw it")
    models: int = Field(1, description="models of these looks")
    proof: str = Field("", description="what became of the attempt to prove it; empty if there was none")
    suppressed: str = Field("", description="why it was held back; empty if it was posted")
    severity: Severity | None = Field(None, description="as its reviewer told it; None if it did not")
    confidence: int | None = Field(None, description="percent, as its reviewer told it; None if it did not")
    depends: bool = Field(False, description="it rests on code that its reviewer was not shown")

    @property
    def key(self) -> str:
        """Equal for the same words on the same line of the same task."""
        content = f"{self.task_id}\0{self.path}\0{self.line}\0{self.text}"
        return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()[:16]


class _Line(Frozen):
    instance_id: str
    path: str
    line: int | None = None
    comment: str = Field(min_length=1)


def comments_in_file(source: str) -> Iterator[ReviewComment]:
    """Comments of any reviewer, one a line: instance_id, path, line (or null), comment.

    Raises OperatorError with file and line.
    """
    for row in read_rows(source):
        line = shaped(row, _Line)
        yield ReviewComment(task_id=line.instance_id, path=line.path, line=line.line, text=line.comment)


class _HeldBack(Lenient):
    finding: Finding
    reason: str


class _Skipped(Lenient):
    path: str


class ReviewFields(Lenient):
    """The findings in the record of a review, and the files that were not shown."""

    posted: tuple[Finding, ...] = ()
    suppressed: tuple[_HeldBack, ...] = ()
    skipped: tuple[_Skipped, ...] = ()

    @classmethod
    def of(cls, record: Record) -> ReviewFields:
        """Raises OperatorError if the record has another shape."""
        return validated(cls.model_validate, record.decision_record, f"record of {record.task_id}")


class _Comments(Lenient):
    comments: tuple[PaperComment, ...] = ()


def comments_in(records: Iterable[Record], scope: Scope) -> Iterator[ReviewComment]:
    for record in records:
        details = validated(_Comments.model_validate, record.details, f"record of {record.task_id}")
        for paper_comment in details.comments:
            yield ReviewComment(
                task_id=record.task_id,
                path=paper_comment.file,
                line=paper_comment.line,
                text=paper_comment.comment,
                severity=paper_comment.severity,
            )
        fields = ReviewFields.of(record)
        findings = [(finding, "") for finding in fields.posted]
        if scope == "reported":
            findings += [(entry.finding, entry.reason) for entry in fields.suppressed]
        for finding, reason in findings:
            yield ReviewComment(
                task_id=record.task_id,
                path=finding.path,
                line=finding.line,
                text=finding.comment,
                looks=finding.looks,
                models=max(len(finding.models), 1),
                proof=finding.proof.outcome if finding.proof else "",
                suppressed=reason,
                severity=finding.severity,
                confidence=finding.confidence,
                depends=bool(finding.depends_on),
            )


Class = Literal["BUG_HIT", "VALID_SUGGESTION", "NOISE"]
CLASSES: tuple[Class, ...] = get_args(Class)

#: The prompt of each style.
PROMPTS: dict[Style, str] = {"ours": "crbench.judge", "paper": "crbench.judge-paper"}
#: Lines of the change that a judge is shown around a place.
AROUND = 24
#: At most so many places of the change that brought the bug in.
PLACES = 3


class JudgeReply(Frozen):
    """A judge's answer: the reason comes before the class."""

    reason: str = Field(description="briefly: what the comment claims, and how that relates to the known bug")
    classification: Class
    bug: int | None = Field(None, description="number of the known bug that it hits; null for other classes")


class PaperJudgeReply(Frozen):
    """A judge's answer with the paper's two fields, in its order (listing 6)."""

    classification: Class
    reason: str = Field(description="brief explanation")


class Vote(Frozen):
    """The vote of one judge; ``label`` is None if there was no usable reply, and ``reason`` says why."""

    judge: str
    label: Class | None
    bug: int | None = Field(None, description="index of the known bug that it hits, from 0")
    reason: str = ""


class Judgement(Frozen):
    """All votes on one comment, and what they come to."""

    task_id: str
    key: str
    votes: tuple[Vote, ...]
    label: Class | None = Field(description="the class with more than half of the votes; None = unjudged")
    bug: int | None = Field(None, description="index of the known bug that is hit, from 0")


@dataclass(frozen=True)
class Panel:
    """The judges: every model gives ``draws`` votes on every comment."""

    models: tuple[Model, ...]
    prompts: Prompts
    draws: int = 1
    seed: int = 0
    workers: int = 4
    style: Style = "ours"


class Verdicts(Frozen):
    """A whole judging session."""

    judgements: tuple[Judgement, ...] = Field(description="one a distinct comment, in the order of the comments")
    usage: Usage


def judge_all(panel: Panel, tasks: Mapping[str, ReviewTask], comments: Iterable[ReviewComment]) -> Verdicts:
    """Judge every distinct comment once. Raises BudgetExceeded if a question may not be asked."""
    distinct = list({comment.key: comment for comment in comments if comment.task_id in tasks}.values())
    order = random.Random(panel.seed).sample(range(len(distinct)), len(distinct))  # noqa: S311 - not a secret

    def judge(place: int) -> tuple[Judgement, Usage]:
        comment = distinct[place]
        task = tasks[comment.task_id]
        votes = [_vote(panel, model, draw, task, comment) for model in panel.models for draw in range(panel.draws)]
        judgement = decide(task.instance_id, comment.key, [vote for vote, _ in votes])
        return judgement, sum((usage for _, usage in votes), Usage())

    results = dict(zip(order, in_order(judge, order, panel.workers), strict=True))
    judgements = [results[place] for place in range(len(distinct))]
    return Verdicts(
        judgements=tuple(judgement for judgement, _ in judgements),
        usage=sum((usage for _, usage in judgements), Usage()),
    )


def decide(task_id: str, key: str, votes: Sequence[Vote]) -> Judgement:
    """The class with more than half of all votes asked for, failed ones included; else none."""
    counts = Counter(vote.label for vote in votes if vote.label is not None)
    label = next((name for name, count in counts.items() if 2 * count > len(votes)), None)
    hits = Counter(vote.bug for vote in votes if vote.label == "BUG_HIT" and vote.bug is not None)
    bug = min(hits, key=lambda bug: (-hits[bug], bug)) if label == "BUG_HIT" and hits else None
    return Judgement(task_id=task_id, key=key, votes=tuple(votes), label=label, bug=bug)


def agreement(judgements: Iterable[Judgement]) -> float | None:
    """Fleiss' kappa over the comments on which every vote came; None with one judge, or nothing to compare."""
    full = [
        judgement
        for judgement in judgements
        if len(judgement.votes) > 1 and all(vote.label for vote in judgement.votes)
    ]
    ratings = [[sum(vote.label == label for vote in judgement.votes) for label in CLASSES] for judgement in full]
    return fleiss_kappa(np.array(ratings, dtype=np.int64)) if ratings else None


def _vote(panel: Panel, model: Model, draw: int, task: ReviewTask, comment: ReviewComment) -> tuple[Vote, Usage]:
    prompt = question(panel, draw, task, comment)
    schema: type[JudgeReply] | type[PaperJudgeReply] = PaperJudgeReply if panel.style == "paper" else JudgeReply
    try:
        reply = model.complete(prompt, schema)
    except BudgetExceeded:
        raise
    except (ModelError, TransientError) as error:
        return Vote(judge=model.id, label=None, reason=str(error)), error.usage or Usage()
    answer = reply.value
    bug = None
    if answer.classification == "BUG_HIT":
        # With a single bug there is no doubt which is meant.
        number = 1 if len(task.bugs) == 1 or isinstance(answer, PaperJudgeReply) else answer.bug
        if number is None or not 1 <= number <= len(task.bugs):
            return Vote(judge=model.id, label=None, reason="it names none of the known bugs"), reply.usage
        bug = number - 1
    return Vote(judge=model.id, label=answer.classification, bug=bug, reason=answer.reason), reply.usage


def question(panel: Panel, draw: int, task: ReviewTask, comment: ReviewComment) -> Prompt:
    """The question about one comment; several draws are taken at the provider's own temperature."""
    seed = hashlib.sha256(f"{panel.seed}:{comment.key}:{draw}".encode()).digest()
    name = PROMPTS[panel.style]
    classes = random.Random(seed).sample(CLASSES, len(CLASSES))  # noqa: S311 - not a secret
    system, user = panel.prompts.render(
        name,
        bugs=tuple(bug.description for bug in task.bugs),
        files=task.fixed_files,
        origin=brought_in(task),
        code=around(_change(task), comment.path, comment.line),
        path=comment.path,
        line=comment.line,
        comment=comment.text,
        classes=classes,
    )
    return Prompt(
        purpose=name,
        system=system,
        user=user,
        subject=f"{task.instance_id}/{comment.key}",
        temperature=0.0 if panel.draws == 1 else None,
        sample=draw,
    )


def around(change: Diff, path: str, line: int | None) -> str:
    """The lines of the change around a line of a file; empty if the change has none near it."""
    hunks = [hunk for file in change.named(path) for hunk in file.hunks]
    if not hunks:
        return ""
    if line is None:
        return _excerpt(path, hunks[0], 0)
    places = [
        (abs((diff_line.new or diff_line.old or 0) - line), hunk, at)
        for hunk in hunks
        for at, diff_line in enumerate(hunk.lines)
    ]
    distance, hunk, at = min(places, key=lambda place: place[0])
    return _excerpt(path, hunk, at) if distance <= AROUND else ""


def brought_in(task: ReviewTask) -> str:
    """The places where the change added lines that the later fix takes away, else its first hunk in each file."""
    change = _change(task)
    excerpts: list[str] = []
    first: list[str] = []
    for file in task.fixed:
        removals = {line.text.strip() for hunk in file.hunks for line in hunk.lines if line.mark == "-"} - {""}
        changed_files = change.named(file.old_path or file.path)
        for hunk in (hunk for changed_file in changed_files for hunk in changed_file.hunks):
            added = (
                at for at, line in enumerate(hunk.lines) if line.mark == "+" and line.text.strip() in removals
            )
            at = next(added, None)
            (first if at is None else excerpts).append(_excerpt(file.path, hunk, at or 0))
    return "\n\n".join((excerpts or first)[:PLACES])


_parsed = lru_cache(maxsize=64)(parse)


def _change(task: ReviewTask) -> Diff:
    return Diff() if task.pull is None else _parsed(task.pull.diff)


def _excerpt(path: str, hunk: Hunk, at: int) -> str:
    """Some lines of a hunk, each with its number in the new file, its mark and its text."""
    start = max(0, at - AROUND // 2)
    lines = hunk.lines[start : start + AROUND]
    return "\n".join([path, *(f"{line.new or '':>6} {line.mark} {line.text}" for line in lines)])
