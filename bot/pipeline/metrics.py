"""``/metrics``: the counts in the database, and the state of the jobs, in Prometheus' text format."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from bot.pipeline.admin import Jobs
from bot.pipeline.store import Ledger
from bot.pipeline.store.counters import DELIVERY_ANSWERS, GITHUB_CALLS, GITHUB_REMAINING, GITHUB_SECONDS
from bot.pipeline.store.feedback import watch

_HELP = {
    DELIVERY_ANSWERS: "Webhook deliveries by answer",
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


def exposition(ledger: Ledger, jobs: Jobs) -> bytes:
    return generate_latest(_LedgerCollector(ledger, jobs))


class _LedgerCollector(Collector):
    def __init__(self, ledger: Ledger, jobs: Jobs) -> None:
        self._ledger, self._jobs = ledger, jobs

    def collect(self) -> Iterator[Metric]:
        yield from _counters(self._ledger)
        yield from _jobs(self._jobs)
        yield _promises(self._ledger)
        alarm = self._ledger.overview.abstention_alarm()
        yield GaugeMetricFamily(
            "bouncer_abstention_alarm", "1 if abstentions because of outages jumped", bool(alarm)
        )


def _counters(ledger: Ledger) -> Iterator[Metric]:
    families: dict[str, Metric] = {}
    for (name, labels), value in sorted(ledger.counters.all().items()):
        family_type = GaugeMetricFamily if name in _GAUGES else CounterMetricFamily
        names = [label for label, _ in labels]
        family = families.setdefault(name, family_type(name, _HELP.get(name, name), labels=names))
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
