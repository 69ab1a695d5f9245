"""What ``/metrics`` shows: counted in processes, summed in the database, so that any web process can answer."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from sqlalchemy import func, select

from bot.jobs.store import Jobs
from bot.ledger import Ledger
from bot.ledger.counters import Counted
from bot.ledger.tables import DECISIONS, MODEL_CALLS, POSTINGS

#: Names of what processes count, with the line that explains each.
DELIVERIES = "bouncer_deliveries"
GITHUB_CALLS = "bouncer_github_calls"
GITHUB_SECONDS = "bouncer_github_seconds"
GITHUB_REMAINING = "bouncer_github_quota_remaining"
_HELP = {
    DELIVERIES: "Webhook deliveries by answer",
    GITHUB_CALLS: "Calls to GitHub by method and status",
    GITHUB_SECONDS: "Seconds spent waiting for GitHub",
    GITHUB_REMAINING: "Calls left of an installation's quota",
}
_GAUGES = frozenset({GITHUB_REMAINING})


class Counts:
    """Counts of this process, added to the shared ones from time to time; a killed process loses its last few."""

    def __init__(self) -> None:
        self._counts: dict[Counted, float] = defaultdict(float)
        self._gauges: dict[Counted, float] = {}
        self._lock = threading.Lock()

    def add(self, name: str, amount: float = 1, **labels: str) -> None:
        """Count something."""
        with self._lock:
            self._counts[_key(name, labels)] += amount

    def set(self, name: str, value: float, **labels: str) -> None:
        """Note the present value of something."""
        with self._lock:
            self._gauges[_key(name, labels)] = value

    def flush(self, ledger: Ledger) -> None:
        """Add what was counted since the last time."""
        with self._lock:
            counts, self._counts = self._counts, defaultdict(float)
            gauges, self._gauges = self._gauges, {}
        ledger.counters.add(counts)
        ledger.counters.set(gauges)


def _key(name: str, labels: dict[str, str]) -> Counted:
    return name, tuple(sorted(labels.items()))


def exposition(ledger: Ledger, jobs: Jobs) -> bytes:
    """The page in Prometheus' text format."""
    registry = CollectorRegistry()
    registry.register(_Collector(lambda: _metrics(ledger, jobs)))
    return generate_latest(registry)


class _Collector:
    def __init__(self, collect: Callable[[], Iterator[Metric]]) -> None:
        self.collect = collect

    def describe(self) -> list[Metric]:
        return []


def _metrics(ledger: Ledger, jobs: Jobs) -> Iterator[Metric]:
    yield from _counted(ledger)
    yield from _jobs(jobs)
    yield from _decided(ledger)
    yield from _asked(ledger)


def _counted(ledger: Ledger) -> Iterator[Metric]:
    families: dict[str, Metric] = {}
    for (name, labels), value in sorted(ledger.counters.all().items()):
        kind = GaugeMetricFamily if name in _GAUGES else CounterMetricFamily
        names = [label for label, _ in labels]
        family = families.setdefault(name, kind(name, _HELP.get(name, name), labels=names))
        family.add_metric([text for _, text in labels], value)  # type: ignore[attr-defined]
    yield from families.values()


def _jobs(jobs: Jobs) -> Iterator[Metric]:
    states = GaugeMetricFamily("bouncer_jobs", "Jobs by state; dead ones wait for a retry", labels=["state"])
    for state, count in sorted(jobs.counts().items()):
        states.add_metric([state], count)
    yield states
    yield GaugeMetricFamily(
        "bouncer_deliveries_untaken", "Recorded deliveries that no worker has made jobs of", jobs.untaken()
    )
    yield GaugeMetricFamily(
        "bouncer_queue_age_seconds", "How long the oldest due job or delivery has waited", jobs.oldest_age()
    )
    seen = jobs.worker_age()
    if seen is not None:
        yield GaugeMetricFamily("bouncer_worker_seen_seconds", "Since a worker was seen", seen)


def _decided(ledger: Ledger) -> Iterator[Metric]:
    decided = CounterMetricFamily(
        "bouncer_decisions",
        "Decisions by kind and verdict or reason to abstain",
        labels=["kind", "verdict", "abstained"],
    )
    columns = (DECISIONS.c.kind, DECISIONS.c.verdict, DECISIONS.c.abstained)
    posted = CounterMetricFamily("bouncer_postings", "What was written to GitHub", labels=["type"])
    with ledger.database.read() as connection:
        for kind, verdict, abstained, count in connection.execute(
            select(*columns, func.count()).group_by(*columns)
        ):
            # Only the bouncers' labels are a closed set; a command's verdict is what somebody typed.
            shown = verdict if kind in ("triage", "verify", "review", "reproduce") else ""
            decided.add_metric([kind, shown or "", abstained or ""], count)
        for kind, count in connection.execute(select(POSTINGS.c.type, func.count()).group_by(POSTINGS.c.type)):
            posted.add_metric([kind], count)
    yield decided
    yield posted


def _asked(ledger: Ledger) -> Iterator[Metric]:
    calls = CounterMetricFamily("bouncer_model_calls", "Questions to models", labels=["model", "result"])
    tokens = CounterMetricFamily("bouncer_model_tokens", "Tokens by direction", labels=["model", "direction"])
    seconds = CounterMetricFamily("bouncer_model_seconds", "Seconds spent waiting for models", labels=["model"])
    cost = CounterMetricFamily("bouncer_model_cost_usd", "Known cost of model calls", labels=["model"])
    columns = (
        func.count(),
        func.count(MODEL_CALLS.c.reply),
        func.sum(MODEL_CALLS.c.input_tokens),
        func.sum(MODEL_CALLS.c.output_tokens),
        func.sum(MODEL_CALLS.c.seconds),
        func.sum(MODEL_CALLS.c.cost_usd),
    )
    with ledger.database.read() as connection:
        rows = connection.execute(select(MODEL_CALLS.c.model, *columns).group_by(MODEL_CALLS.c.model)).all()
    for model, all_calls, answered, sent, received, waited, spent in rows:
        calls.add_metric([model, "answered"], answered)
        calls.add_metric([model, "failed"], all_calls - answered)
        tokens.add_metric([model, "in"], float(sent))
        tokens.add_metric([model, "out"], float(received))
        seconds.add_metric([model], float(waited))
        cost.add_metric([model], float(spent or 0))
    yield from (calls, tokens, seconds, cost)
