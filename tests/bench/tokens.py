"""Tokens of an event of each feature; with ``--repos``, of a review's questions. No model is asked.

``python -m tests.bench tokens`` prints what ``event_tokens`` measures: one line for each event.

``python -m tests.bench tokens --repos DIR [--against CHECKOUT ...] [--every N]``

The changes of ``needs.txt`` are reviewed by ``bouncer review`` with its defaults, once by each version, through a
server on loopback that finds no defect. DIR holds clones named ``owner+name``; CHECKOUT is the folder of another
version. The message of the commit is title and description. Tokens are upper estimates: means a pull request.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory

from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from bot.code.change.packing import pack
from bot.core.text import estimate
from evaluation.git.repository import GitRepository, find_clone
from tests.bench.context import NEEDS, REVIEW, kind_of, read_change
from tests.bench.event_tokens import print_events
from tests.bench.needs import Case, read_cases
from tests.e2e.provider import MODEL, completion

ROOT = Path(__file__).parents[2]


class Counter:
    """A provider that finds no defect, and the tokens and number of the questions since the last reset."""

    def __init__(self, server: HTTPServer) -> None:
        self.url = server.url_for("/v1")
        self.tokens = self.calls = 0
        server.expect_request("/v1/chat/completions").respond_with_handler(self._answer)

    def _answer(self, request: Request) -> Response:
        self.tokens += sum(estimate(message["content"]) for message in json.loads(request.data)["messages"])
        self.calls += 1
        return completion(json.dumps({"reasoning": "", "findings": []}))


def main() -> None:
    """Print one line for each version and kind of change."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repos", type=Path)
    parser.add_argument("--against", type=Path, nargs="*", default=[])
    parser.add_argument("--every", type=int, default=1, help="take one of so many changes")
    arguments = parser.parse_args()
    if arguments.repos is None:
        print_events()
        return
    versions = [*arguments.against, ROOT]
    rows: dict[str, list[list[tuple[int, int]]]] = {}
    with HTTPServer() as server:
        counter = Counter(server)
        for case in read_cases(NEEDS)[:: arguments.every]:
            if (clone := find_clone(arguments.repos, case.repository)) is None:
                continue
            with GitRepository(clone) as repository, material(case, repository) as (kind, options):
                rows.setdefault(kind, []).append([review(version, counter, options) for version in versions])
    for kind, of_kind in [*sorted(rows.items()), ("all", [costs for costs in rows.values() for costs in costs])]:
        for number, version in enumerate(versions):
            tokens, calls = (mean(costs[number][column] for costs in of_kind) for column in (0, 1))
            name = "this version" if version == ROOT else version.name
            print(f"{kind}, {len(of_kind)} changes, {name}: {tokens:,.0f} tokens in {calls:.1f} calls")


@contextmanager
def material(case: Case, repository: GitRepository) -> Iterator[tuple[str, list[str]]]:
    """Yield the kind of a change, and the options of ``bouncer review`` with its files."""
    diff, _ = read_change(repository, case.commit)
    patch = repository.run("diff-tree", "-p", "-M", "--root", "--no-commit-id", case.commit)
    message = repository.run("log", "-1", "--format=%B", case.commit).decode("utf-8", "replace")
    title, _, description = message.partition("\n")
    with TemporaryDirectory() as name:
        folder = Path(name, "code")
        with tarfile.open(fileobj=io.BytesIO(repository.run("archive", "--format=tar", case.commit))) as archive:
            archive.extractall(folder, filter="data")
        Path(name, "patch").write_bytes(patch)
        texts = ["--title", title, "--description", description.strip()]
        kind = kind_of(diff, pack(diff, REVIEW.call_tokens, REVIEW.max_calls))
        yield kind, ["--diff", str(Path(name, "patch")), "--repo", str(folder), *texts]


def review(version: Path, counter: Counter, options: list[str]) -> tuple[int, int]:
    """Return the tokens and the number of questions of one review by a version."""
    counter.tokens = counter.calls = 0
    environment = {**os.environ, "PYTHONPATH": str(version), "BOUNCER_MODEL": MODEL, "OPENAI_API_KEY": "sk-bench",
                   "OPENAI_BASE_URL": counter.url}  # fmt: skip
    command = [sys.executable, "-m", "bot", "review", *options, "--json"]
    subprocess.run(command, cwd=version, env=environment, check=True, stdout=subprocess.DEVNULL, timeout=120)
    return counter.tokens, counter.calls


if __name__ == "__main__":
    main()
