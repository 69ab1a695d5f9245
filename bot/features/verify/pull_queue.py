"""Open pull requests in the order in which a maintainer should look at them. No model is asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Literal, get_args

from bot.core.actions import Decision
from bot.core.frozen import Frozen
from bot.features.shared import history
from bot.features.verify.record import NewTests, VerifyRecord
from bot.github.protocol import OpenPull

Verdict = Literal["verified", "not judged", "may fall short"]
Tests = Literal["shown", "none", "failing"]
Turn = Literal["maintainers", "author"]

#: The columns, in the order in which they sort.
_ORDERS = tuple(get_args(values) for values in (Verdict, Tests, Turn))


class QueuedPull(Frozen):
    """An open pull request with what is known about it."""

    pull: OpenPull
    verdict: Verdict
    tests: Tests
    turn: Turn

    @property
    def order(self) -> tuple[object, ...]:
        """Verified ones first, then those whose new tests show it, then those that wait for us, oldest on top."""
        values = (self.verdict, self.tests, self.turn)
        places = (order.index(value) for order, value in zip(_ORDERS, values, strict=True))
        return (*places, self.pull.created_at, self.pull.number)

    def days(self, now: datetime) -> int:
        """Return the age in whole days."""
        return max(0, (now - self.pull.created_at).days)

    def as_object(self, now: datetime, url: str) -> dict[str, Any]:
        """Return the pull request as ``--json`` prints it."""
        return {
            "number": self.pull.number,
            "title": self.pull.title,
            "url": f"{url}/pull/{self.pull.number}",
            "author": self.pull.author,
            "draft": self.pull.draft,
            "verdict": self.verdict,
            "tests": self.tests,
            "turn": self.turn,
            "days": self.days(now),
        }


def in_order(
    repository: str, pulls: Sequence[OpenPull], decisions: Callable[[str, str], Sequence[Decision]]
) -> tuple[QueuedPull, ...]:
    """Return pull requests with what was decided about their present code; ``decisions`` as in ``History``."""
    rows = (_row(pull, decisions(f"{repository}#{pull.number}", "verify")) for pull in pulls)
    return tuple(sorted(rows, key=lambda row: row.order))


def _row(pull: OpenPull, past: Sequence[Decision]) -> QueuedPull:
    present = [decision for decision in past if decision.subject.revision == f"sha:{pull.head_sha}"]
    last = history.last_verdict(present)
    record = history.last_record(present, VerifyRecord)
    verdict: Verdict = "not judged" if last is None else "may fall short" if history.bounced(last) else "verified"
    new_tests = (record and record.new_tests) or NewTests()
    tests: Tests = "failing" if new_tests.failing else "shown" if new_tests.telling else "none"
    # Drafts and what a maintainer spoke to last wait for the author; so does a patch that was sent back.
    has_answer = pull.member_at is not None and pull.member_at > pull.author_at
    turn: Turn = "author" if pull.draft or has_answer or verdict == "may fall short" else "maintainers"
    return QueuedPull(pull=pull, verdict=verdict, tests=tests, turn=turn)
