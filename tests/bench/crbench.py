"""How long blame and mapping take on real repositories once their clones are local, and how many are kept.

``python -m tests.bench crbench --repos DIR [--instances F] [--limit 50] [--workers 2]``: for every clone in
DIR, the first 50 of its instances in F (SWE-bench's form), and where F names none for it, its own newest
fixes.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from evaluation.crbench.build import histories, map_instances, tally
from evaluation.crbench.mapping import Instance
from evaluation.crbench.own import own_fixes
from evaluation.dataset import read_shaped
from evaluation.git.repository import GitRepository, find_clone


def main() -> None:
    """Print one line a repository."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repos", type=Path, required=True)
    parser.add_argument("--instances")
    parser.add_argument("--limit", type=int, default=50)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    fixes = list(read_shaped(options.instances, Instance)) if options.instances else []
    print(f"{'repository':28} {'commits':>8} {'fixes':>6} {'kept':>5} {'open s':>7} {'map s':>7}  source")
    for full_name in _names(options.repos):
        _measure(options.repos, full_name, fixes, options.limit, options.workers)


def _names(folder: Path) -> Iterator[str]:
    for path in sorted(folder.iterdir()):
        name = path.name.replace("+", "/", 1)
        if find_clone(folder, name) is not None:
            yield name


def _measure(folder: Path, full_name: str, fixes: list[Instance], limit: int, workers: int) -> None:
    clone = find_clone(folder, full_name)
    assert clone is not None
    selection = [fix for fix in fixes if fix.repo == full_name and fix.patch][:limit]
    source = "given"
    with GitRepository(clone) as repository:
        commits = int(repository.run("rev-list", "--count", repository.head()))
        if not selection:
            source = "its own fixes"
            everything = own_fixes(repository, full_name, datetime.fromtimestamp(0, UTC), "https://github.com")
            selection = [fix for fix, _ in zip(everything, range(limit), strict=False)]
    started = time.perf_counter()
    with histories(lambda name: clone, selection) as clones:
        opened_at = time.perf_counter()
        mapped = list(map_instances(selection, clones, workers=workers))
        done = time.perf_counter()
    counts = f"{commits:8} {len(mapped):6} {tally(mapped)['kept']:5}"
    print(f"{full_name:28} {counts} {opened_at - started:7.1f} {done - opened_at:7.1f}  {source}", flush=True)
