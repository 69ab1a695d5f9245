"""Judge a repository's closed issues for duplicates, from the index that ``bouncer index`` made."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from bot.calibration.duplicates import DuplicateFindings, PastSuggestion, draw_threshold
from bot.cli.calibrate.judging import PastCase, Verdicts
from bot.core.errors import DatabaseAway, SettingsError
from bot.core.subjects import Fate, Repository
from bot.features.services import IndexedIssue
from bot.github.offline import issue_opened
from bot.pipeline.store import Ledger, migrated
from bot.pipeline.store.issues import Issues, says_duplicate
from bot.settings import Settings


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


def findings(
    cases: Sequence[PastCase], history: Sequence[IndexedIssue], verdicts: Verdicts, harm: float
) -> DuplicateFindings:
    """Return the threshold. An issue that was compared with none counts nowhere."""
    roots = {issue.number: issue.root for issue in history if issue.root != issue.number}
    suggestions: list[PastSuggestion] = []
    numbers: list[int] = []
    for case in cases:
        row, number = verdicts.find(case), case.subject.number
        if row is None or row["label"] is None:
            continue
        numbers.append(number)
        if row["label"] == "duplicate" and row["root"] is not None:
            suggestions.append(
                PastSuggestion(
                    number=number,
                    title=case.title,
                    root=row["root"],
                    p=row["p_same_cause"],
                    repeats=roots.get(number),
                )
            )
    return draw_threshold(len(numbers), sum(number in roots for number in numbers), suggestions, harm)
