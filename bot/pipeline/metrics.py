"""Metrics: counts of processes and of recorded rows, summed in the database as they happen.

So any web process can serve ``/metrics``, without counting the rows of tables that grow.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING

from prometheus_client import generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from sqlalchemy.exc import SQLAlchemyError

from bot.pipeline.admin import Jobs
from bot.pipeline.store import Ledger
from bot.pipeline.store.counters import Counted, counted
from bot.pipeline.store.decisions import watch
from bot.pipeline.store.overview import Overview

if TYPE_CHECKING:
    from bot.github.http import Exchange

#: Names of the metrics that processes count.
DELIVERIES = "bouncer_deliveries"
GITHUB_CALLS = "bouncer_github_calls"
GITHUB_SECONDS = "bouncer_github_seconds"
GITHUB_REMAINING = "bouncer_github_quota_remaining"
_HELP = {
    DELIVERIES: "Webhook deliveries by answer",
    GITHUB_CALLS: "Calls to GitHub by method and status",
    GITHUB_SECONDS: "Seconds spent waiting for GitHub",
    GITHUB_REMAINING: "Calls left of an installation's quota",
    "bouncer_decisions": "Decisions by kind and verdict or reason to abstain",
    "bouncer_postings": "What was written to GitHub",
    "bouncer_model_calls": "Questions to models",
    "bouncer_model_tokens": "Tokens by direction",
    "bouncer_model_seconds": "Seconds spent waiting for models",
    "bouncer_model_cost_usd": "Known cost of model calls",
}
_GAUGES = frozenset({GITHUB_REMAINING})


class Counts:
    """Counts of this process, added to the database in intervals; a killed process loses the last few."""

    def __init__(self) -> None:
        self._counts: dict[Counted, float] = defaultdict(float)
        self._gauges: dict[Counted, float] = {}
        self._lock = threading.Lock()
        self._flushing = threading.Lock()

    def add(self, name: str, amount: float = 1, **labels: str) -> None:
        """Add to a counter."""
        with self._lock:
            self._counts[counted(name, **labels)] += amount

    def set(self, name: str, value: float, **labels: str) -> None:
        """Set a gauge."""
        with self._lock:
            self._gauges[counted(name, **labels)] = value

    def observe(self, call: Exchange) -> None:
        """Count a call to GitHub, and set the rest of the installation's quota."""
        self.add(GITHUB_CALLS, method=call.method, status=str(call.status))
        self.add(GITHUB_SECONDS, call.seconds)
        if call.installation is not None and call.remaining is not None:
            self.set(GITHUB_REMAINING, call.remaining, installation=str(call.installation))

    def flush(self, ledger: Ledger) -> None:
        """Add the counts since the last time to the database, after those of a thread that is doing so.

        Raises SQLAlchemyError; the counts are kept for the next time.
        """
        with self._flushing:
            with self._lock:
                counts, self._counts = self._counts, defaultdict(float)
                gauges, self._gauges = self._gauges, {}
            try:
                ledger.counters.add(counts)
            except SQLAlchemyError:
                with self._lock:
                    for counter, amount in counts.items():
                        self._counts[counter] += amount
                raise
            ledger.counters.set(gauges)


def exposition(ledger: Ledger, jobs: Jobs) -> bytes:
    """Return all metrics in Prometheus' text format."""
    return generate_latest(_Collected(ledger, jobs))


class _Collected(Collector):
    def __init__(self, ledger: Ledger, jobs: Jobs) -> None:
        self._ledger, self._jobs = ledger, jobs

    def collect(self) -> Iterator[Metric]:
        yield from _counted(self._ledger)
        yield from _jobs(self._jobs)
        yield _promises(self._ledger)
        alarm = Overview(self._ledger.database).abstention_alarm()
        yield GaugeMetricFamily(
            "bouncer_abstention_alarm", "1 if abstentions because of outages jumped", bool(alarm)
        )


def _counted(ledger: Ledger) -> Iterator[Metric]:
    families: dict[str, Metric] = {}
    for (name, labels), value in sorted(ledger.counters.all().items()):
        kind = GaugeMetricFamily if name in _GAUGES else CounterMetricFamily
        names = [label for label, _ in labels]
        family = families.setdefault(name, kind(name, _HELP.get(name, name), labels=names))
        family.add_metric([text for _, text in labels], value)  # type: ignore[attr-defined]
    yield from families.values()


def _promises(ledger: Ledger) -> Metric:
    broken = GaugeMetricFamily(
        "bouncer_promise_broken",
        "1 if more good subjects were bounced than bouncer calibrate promised",
        labels=["repository", "bouncer"],
    )
    for repository, bouncer in ledger.fates.promises():
        record = watch(ledger.fates.of(repository, bouncer))
        broken.add_metric([repository, bouncer], float(record is not None and record.broken))
    return broken


def _jobs(jobs: Jobs) -> Iterator[Metric]:
    states = GaugeMetricFamily(
        "bouncer_jobs", "Jobs that have not ended, by state; dead ones wait for a retry", labels=["state"]
    )
    for state, count in sorted(jobs.unfinished().items()):
        states.add_metric([state], count)
    yield states
    yield GaugeMetricFamily(
        "bouncer_deliveries_untaken", "Recorded deliveries that no worker has made jobs of", jobs.untaken()
    )
    yield GaugeMetricFamily(
        "bouncer_queue_age_seconds", "How long the oldest due job or delivery has waited", jobs.oldest_age()
    )
    age = jobs.worker_age()
    if age is not None:
        yield GaugeMetricFamily("bouncer_worker_seen_seconds", "Since a worker was seen", age)
