"""Cost of the sandbox: one start of a small project, and ten candidates beside their tests' own time.

Goals: a start in 50 ms, ten candidates in 3 s beside the tests' own time. The tests' own time is the wall time
from the program's start to its end as the sandbox saw it; everything else of a run counts as overhead. Figures
depend on what else the machine does: the load is printed with them.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from bot.reproduction.execution import SandboxHarness
from bot.reproduction.protocol import Target, TestCommand
from bot.sandbox.bubblewrap import Bubblewrap
from bot.sandbox.protocol import Limits, ProgramRun

_CANDIDATE = (
    "from package.module_0 import value\n\n\ndef test_{number}():\n    assert value({number}) == {number}\n"
)


def main() -> None:
    """Measure and print; exit code 1 where a goal is missed."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench sandbox", description=__doc__)
    parser.add_argument("--files", type=int, default=100, help="files of the project (default 100)")
    parser.add_argument("--starts", type=int, default=50, help="starts to measure (default 50)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        project = _project(Path(folder), options.files)
        print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, project of {options.files} files")
        good = _report_starts(project, options.starts)
        good = _report_candidates(project) and good
    sys.exit(0 if good else 1)


def _project(folder: Path, files: int) -> Path:
    package = folder / "package"
    package.mkdir()
    (package / "__init__.py").touch()
    (folder / "tests").mkdir()
    for number in range(files - 1):
        (package / f"module_{number}.py").write_text("def value(x):\n    return x\n" + "# line\n" * 100)
    return folder


def _report_starts(project: Path, count: int) -> bool:
    def start() -> float:
        return Bubblewrap().run(ProgramRun(["true"], workdir=project, limits=Limits())).seconds

    # Everything that is not the program: copying, namespaces, mounts, and their end.
    before = _processor_time()
    costs = sorted(spent - own for spent, own in (_timed(start) for _ in range(count)))
    busy = (_processor_time() - before) / count
    median, p95 = statistics.median(costs), costs[int(len(costs) * 0.95) - 1]
    print(f"start: median {median * 1e3:.1f} ms, p95 {p95 * 1e3:.1f} ms of {count} (goal: 50 ms)")
    print(f"       processor time {busy * 1e3:.1f} ms each")
    return median <= 0.05


def _report_candidates(project: Path) -> bool:
    harness = SandboxHarness(
        Bubblewrap(),
        TestCommand(argv=(sys.executable, "-m", "pytest", "{tests}")),
        env={"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    )

    def ten() -> float:
        total = 0.0
        for number in range(10):
            path = f"tests/test_{number}.py"
            done = harness.run(project, [Target(path=path)], {path: _CANDIDATE.format(number=number)})
            assert done.outcome.status == "passed", done.outcome
            total += done.seconds
        return total

    spent, own = _timed(ten)
    beside = spent - own
    print(f"10 candidates: {spent:.2f} s, the tests' own {own:.2f} s, beside them {beside:.2f} s (goal: 3 s)")
    return beside <= 3


def _processor_time() -> float:
    """Seconds of this process and its ended children."""
    used = (resource.getrusage(scope) for scope in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def _timed(work: Callable[[], float]) -> tuple[float, float]:
    started = time.perf_counter()
    own = work()
    return time.perf_counter() - started, own
