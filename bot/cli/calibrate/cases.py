"""Read past subjects, judge them in shadow with the live handlers, and remember the verdicts in a file."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import click
from pydantic import ValidationError

from bot import app
from bot.calibration.export import FRESH, Journal, SteadyChronicle, export
from bot.calibration.fates import Undoings, of_issue
from bot.calibration.findings import Bouncer, DuplicateFindings, PastSuggestion, PastVerdict
from bot.calibration.risk import suggestion_promise
from bot.cli.files import progress, write_text
from bot.cli.remote import reached
from bot.core.actions import Decision
from bot.core.errors import DatabaseAway, OperatorError, SettingsError
from bot.core.events import RepositoryEvent
from bot.core.frozen import first_fault
from bot.core.io_limits import read_file
from bot.core.subjects import Fate, Repository, Subject
from bot.features.duplicates.record import DuplicatesRecord
from bot.features.services import IndexedIssue
from bot.features.shared.labels import BouncerRecord, InputLabel, OutputLabel, severity
from bot.features.triage.record import TriageRecord
from bot.features.verify.record import VerifyRecord
from bot.github.history import GitHubChronicle
from bot.github.offline import Snapshot, issue_opened, just_opened, pull_just_opened
from bot.github.protocol import Past
from bot.pipeline.store import Ledger, migrated
from bot.pipeline.store.issues import Issues, says_duplicate
from bot.settings import Settings

#: The largest export, bytes.
MAX_EXPORT = 512 << 20


def read_export(file: Path, name: str) -> Past:
    """Read an export of a repository from a file. Raises OperatorError."""
    past = _read_past(file)
    if past.repository.full_name.lower() != name.lower():
        raise OperatorError(f"{file} is an export of {past.repository.full_name}, not of {name}")
    return past


def recent_export(file: Path, limit: int) -> Past | None:
    """Return the export of an earlier command if it is less than 24 hours old and large enough."""
    if not file.is_file():
        return None
    past = _read_past(file)
    if app.now() - past.exported_at >= FRESH or past.limit < limit:
        return None
    click.echo(f"using the export of {past.exported_at:%H:%M} UTC; --fresh makes a new one", err=True)
    return past


def new_export(environment: Settings, name: str, file: Path, limit: int, asking: tuple[str, ...]) -> Past:
    """Read an export from GitHub and store it. A killed command leaves its progress to the next one."""
    if environment.github_token is None and environment.needs_setup:
        raise OperatorError(
            f"{name}: set GITHUB_TOKEN or the App's credentials: GitHub shows the original texts of issues only "
            "to a signed-in user"
        )
    calls: list[object] = []
    journal = Journal(file.with_suffix(".partial.jsonl"))
    with reached(environment, name, calls.append) as access, progress() as advance:
        chronicle = SteadyChronicle(
            GitHubChronicle(access.forge),
            journal,
            app.now(),
            lambda why: click.echo(why, err=True),
            lambda: len(calls),
        )
        past = export(chronicle, limit, asking, advance)
    write_text(file, past.model_dump_json(exclude_defaults=True))
    journal.clear()
    return past


def _read_past(file: Path) -> Past:
    try:
        return Past.model_validate_json(read_file(file, MAX_EXPORT))
    except OSError as error:
        raise OperatorError(f"{file}: {error.strerror}") from None
    except ValidationError as error:
        place, message = first_fault(error, "file")
        raise OperatorError(f"{file}: not an export of bouncer calibrate: {place}: {message}") from None


@dataclass(frozen=True)
class PastCase:
    """One past subject: the event that opened it, what could be read about it then, and its fate."""

    bouncer: Bouncer | Literal["duplicates"]
    event: RepositoryEvent
    snapshot: Snapshot
    fate: Fate
    title: str
    url: str

    @property
    def subject(self) -> Subject:
        return self.event.subject


def cases(past: Past, asking: Iterable[str], limit: int) -> tuple[PastCase, ...]:
    """Return up to ``limit`` issues and ``limit`` pull requests whose fate is known, newest first.

    Raises OperatorError if there are none.
    """
    labels, about = tuple(asking), past.repository
    issues = [
        PastCase("triage", *just_opened(row.issue, about), fate, row.issue.title, row.issue.html_url)
        for row in past.issues
        if row.whole and (fate := of_issue(row, labels)) is not None
    ]
    undoings = Undoings(past.pulls, past.messages, past.exported_at)
    pulls = [
        PastCase(
            "verify",
            *pull_just_opened(row.pull, row.diff, row.issues, about),
            fate,
            row.pull.title,
            row.pull.html_url,
        )
        for row in past.pulls
        if row.diff is not None and (fate := undoings.of_pull(row)) is not None
    ]
    if not issues and not pulls:
        raise OperatorError(f"{about.full_name} has no closed issue or merged pull request to learn from")
    return (*issues[:limit], *pulls[:limit])


class Verdicts:
    """Verdicts by subject, appended to a file as they arrive; ``question`` identifies what was asked.

    Failures are stored too, to be reported; the next command asks about them again.
    """

    def __init__(self, journal: Journal, question: str) -> None:
        self._journal = journal
        self._question = question
        self._lock = threading.Lock()
        self._rows: dict[str, dict[str, Any]] = {}
        self.cost_usd: float | None = None
        for row in journal.rows():
            if row.get("question") == question and {"subject", "cost_usd"} <= set(row):
                self._take(row)

    def find(self, case: PastCase) -> dict[str, Any] | None:
        return self._rows.get(_key(case.subject))

    def add(self, case: PastCase, decision: Decision) -> None:
        """Write one line. Raises OperatorError if the disk refuses it."""
        row = {"question": self._question, "subject": _key(case.subject), **_fields(decision)}
        with self._lock:
            self._take(row)
        self._journal.append(row)

    def _take(self, row: dict[str, Any]) -> None:
        self._rows[row["subject"]] = row
        if row["cost_usd"] is not None:
            self.cost_usd = (self.cost_usd or 0.0) + row["cost_usd"]


def _key(subject: Subject) -> str:
    return f"{subject.key} {subject.revision}"


def _fields(decision: Decision) -> dict[str, Any]:
    record = decision.record
    explanations: list[str] = []
    more: dict[str, Any] = {}
    if isinstance(record, TriageRecord):
        explanations = [record.explanation]
    elif isinstance(record, VerifyRecord):
        explanations = [verdict.explanation for verdict in record.verdicts]
    elif isinstance(record, DuplicatesRecord):
        more = {"root": record.root, "p_same_cause": record.p_same_cause}
    return {
        **more,
        "label": decision.verdict,
        "p_bounce": record.p_bounce if isinstance(record, BouncerRecord) else None,
        "explanation": "\n\n".join(filter(None, explanations)),
        "problem": "" if decision.verdict else decision.reason,
        "cost_usd": decision.usage.cost_usd,
    }


def past_verdicts(cases: Sequence[PastCase], verdicts: Verdicts, bouncer: Bouncer) -> list[PastVerdict]:
    """Return the verdicts on the cases of one bouncer, without cases that were not reached."""
    labels: type[InputLabel] | type[OutputLabel] = InputLabel if bouncer == "triage" else OutputLabel
    return [
        PastVerdict(
            subject=case.subject.key,
            number=case.subject.number,
            title=case.title,
            url=case.url,
            good=case.fate.good,
            why=case.fate.why,
            severity=None if row["label"] is None else severity(labels(row["label"])),
            **{name: row[name] for name in ("label", "p_bounce", "explanation", "problem")},
        )
        for case in cases
        if case.bouncer == bouncer and (row := verdicts.find(case)) is not None
    ]


@contextmanager
def index_of(settings: Settings) -> Iterator[Issues | None]:
    """Open the index in DATABASE_URL for a block; None if there is no database, or it does not answer."""
    with ExitStack() as stack:
        try:
            index = Ledger(stack.enter_context(migrated(settings.database_url, must_exist=True))).issues
        except (SettingsError, DatabaseAway):
            index = None
        yield index


def past_duplicates(history: Sequence[IndexedIssue], repository: Repository, limit: int) -> tuple[PastCase, ...]:
    """Return up to ``limit`` closed issues as cases, newest first.

    An issue whose own text names the issue that it repeats is no test, and of a duplicate of an issue that nothing
    names the right answer is not known.
    """
    closed = [
        issue
        for issue in history
        if issue.state == "closed" and not issue.unnamed and not says_duplicate(f"{issue.title} {issue.body}")
    ]
    cases = []
    for issue in closed[:limit]:
        opening = issue_opened(issue.title, issue.body, repository, issue.number)
        repeats = issue.root != issue.number
        why = f"closed as a duplicate of #{issue.root}" if repeats else "closed otherwise"
        cases.append(PastCase("duplicates", *opening, Fate(good=not repeats, why=why), issue.title, ""))
    return tuple(cases)


def duplicate_findings(
    cases: Sequence[PastCase], history: Sequence[IndexedIssue], verdicts: Verdicts, harm: float
) -> DuplicateFindings:
    """Return the threshold. An issue that was compared with none counts nowhere."""
    roots = {issue.number: issue.root for issue in history if issue.root != issue.number}
    answers = [
        (case, row) for case in cases if (row := verdicts.find(case)) is not None and row["label"] is not None
    ]
    suggestions = tuple(
        PastSuggestion(
            number=case.subject.number,
            title=case.title,
            root=row["root"],
            p=row["p_same_cause"],
            repeats=roots.get(case.subject.number),
        )
        for case, row in answers
        if row["label"] == "duplicate" and row["root"] is not None
    )
    return DuplicateFindings(
        issues=len(answers),
        duplicates=sum(case.subject.number in roots for case, _ in answers),
        suggestions=suggestions,
        promise=suggestion_promise([(row.p, row.right) for row in suggestions], harm),
    )
