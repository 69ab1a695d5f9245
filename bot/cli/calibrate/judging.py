"""Past subjects, judged in shadow by the live handlers; what was judged once is kept in a file."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import count
from typing import Any

from bot.calibration.export import Journal
from bot.calibration.fates import Fate, Undoings, of_issue
from bot.calibration.findings import Bouncer, PastVerdict
from bot.cli.files import EqualErrors, decided
from bot.core.actions import Decision
from bot.core.errors import OperatorError
from bot.core.events import RepositoryEvent
from bot.core.subjects import Subject
from bot.features.services import Services
from bot.features.shared.labels import BouncerRecord, InputLabel, OutputLabel, severity
from bot.features.triage.record import TriageRecord
from bot.features.verify.record import VerifyRecord
from bot.github.offline import ReplayForge, Snapshot, just_opened, pull_just_opened
from bot.github.protocol import Past


@dataclass(frozen=True)
class PastCase:
    """One past subject: what happened when it was opened, what could be read about it, and what became of it."""

    bouncer: Bouncer
    event: RepositoryEvent
    snapshot: Snapshot
    fate: Fate
    title: str
    url: str

    @property
    def subject(self) -> Subject:
        return self.event.subject


def cases(past: Past, asking: Iterable[str], limit: int) -> tuple[PastCase, ...]:
    """Up to ``limit`` issues and ``limit`` pull requests whose fate is known, newest first.

    Raises OperatorError where there is none.
    """
    asked, about = tuple(asking), past.repository
    issues = [
        PastCase("triage", *just_opened(each.issue, about), fate, each.issue.title, each.issue.html_url)
        for each in past.issues
        if each.whole and (fate := of_issue(each, asked)) is not None
    ]
    undoings = Undoings(past.pulls, past.messages, past.exported_at)
    pulls = [
        PastCase(
            "verify",
            *pull_just_opened(each.pull, each.diff, each.issues, about),
            fate,
            each.pull.title,
            each.pull.html_url,
        )
        for each in past.pulls
        if each.diff is not None and (fate := undoings.of_pull(each)) is not None
    ]
    if not issues and not pulls:
        raise OperatorError(f"{about.full_name} has no closed issue or merged pull request that tells anything")
    return (*issues[:limit], *pulls[:limit])


class Kept:
    """Verdicts by subject, appended to a file as they come; ``question`` says what they are an answer to.

    Failures are kept too, so that they can be told, but asked again by the next command.
    """

    def __init__(self, journal: Journal, question: str) -> None:
        self._journal = journal
        self._question = question
        self._lock = threading.Lock()
        self._known: dict[str, dict[str, Any]] = {}
        self.cost_usd: float | None = None
        for row in journal.rows():
            if row.get("question") == question and {"subject", "cost_usd"} <= set(row):
                self._take(row)

    def find(self, case: PastCase) -> dict[str, Any] | None:
        return self._known.get(_key(case.subject))

    def keep(self, case: PastCase, decision: Decision) -> None:
        """Write one line. Raises OperatorError where the disk refuses it."""
        row = {"question": self._question, "subject": _key(case.subject), **_told(decision)}
        with self._lock:
            self._take(row)
        self._journal.append(row)

    def _take(self, row: dict[str, Any]) -> None:
        self._known[row["subject"]] = row
        if row["cost_usd"] is not None:
            self.cost_usd = (self.cost_usd or 0.0) + row["cost_usd"]


def _key(subject: Subject) -> str:
    return f"{subject.key} {subject.revision}"


def _told(decision: Decision) -> dict[str, Any]:
    record = decision.record
    explanations: list[str] = []
    if isinstance(record, TriageRecord):
        explanations = [record.explanation]
    elif isinstance(record, VerifyRecord):
        explanations = [verdict.explanation for verdict in record.verdicts]
    return {
        "label": decision.verdict,
        "p_bounce": record.p_bounce if isinstance(record, BouncerRecord) else None,
        "explanation": "\n\n".join(filter(None, explanations)),
        "problem": "" if decision.verdict else decision.reason,
        "cost_usd": decision.usage.cost_usd,
    }


def judge(
    found: Sequence[PastCase],
    services: Callable[[ReplayForge], Services],
    kept: Kept,
    workers: int,
    advance: Callable[[int], None],
) -> bool:
    """Judge what is not judged yet; False where the budget ended it. ``advance`` is told how many are done.

    Raises OperatorError at the third equal error; the remaining cases are not asked about.
    """
    spent, stopped = threading.Event(), threading.Event()
    errors = EqualErrors()
    done = count(1)

    def one(case: PastCase) -> None:
        before = kept.find(case)
        if (before is None or before["label"] is None) and not (spent.is_set() or stopped.is_set()):
            decision = _decided(case, services(ReplayForge(case.snapshot)))
            if decision.abstained == "skipped:budget":
                spent.set()
            else:
                kept.keep(case, decision)
                try:
                    errors.add(decision)
                except OperatorError:
                    stopped.set()
                    raise
        advance(next(done))

    with ThreadPoolExecutor(workers) as pool:
        for each in [pool.submit(one, case) for case in found]:
            each.result()
    return not spent.is_set()


def _decided(case: PastCase, services: Services) -> Decision:
    return decided(case.bouncer, case.event, services) or Decision(
        kind=case.bouncer, subject=case.subject, reason="none of the bouncer's business", abstained="skipped"
    )


def verdicts(found: Sequence[PastCase], kept: Kept, bouncer: Bouncer) -> list[PastVerdict]:
    """What is known of the cases of one bouncer; those that were not reached are left out."""
    return [
        _verdict(case, row) for case in found if case.bouncer == bouncer and (row := kept.find(case)) is not None
    ]


def _verdict(case: PastCase, row: dict[str, Any]) -> PastVerdict:
    labels: type[InputLabel] | type[OutputLabel] = InputLabel if case.bouncer == "triage" else OutputLabel
    return PastVerdict(
        subject=case.subject.key,
        number=case.subject.number,
        title=case.title,
        url=case.url,
        good=case.fate.good,
        why=case.fate.why,
        label=row["label"],
        severity=None if row["label"] is None else severity(labels(row["label"])),
        p_bounce=row["p_bounce"],
        explanation=row["explanation"],
        problem=row["problem"],
    )
