"""Tokens of an event of each feature; with ``--repos``, of a review's questions. No model is asked.

``python -m tests.bench tokens`` prints one line for each event: web and worker in processes, a simulated GitHub, a
scripted model. It counts the prompts that were sent, schemas included, as the product estimates them itself
(``bot.core.text.estimate``), and adds up the limits of their replies. The repository, the issues and the changes
are those of ``bouncer demo``: small.

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
import re
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from bot.cli import demo
from bot.code.change.packing import pack
from bot.core.config import PATH
from bot.core.text import estimate
from evaluation.git.repository import GitRepository, find_clone
from tests.bench.context import NEEDS, REVIEW, kind_of, read_change
from tests.bench.needs import Case, read_cases
from tests.e2e.provider import MODEL, OPINIONS, Question, completion
from tests.e2e.site import Site, site

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


OFF = {name: f"{name}: {{mode: 'off'}}" for name in ("triage", "verify", "review", "duplicates")}
TABLE = "rocket/table.py"
CODE = """import unittest

from rocket import Table


class TestEmpty(unittest.TestCase):
    def test_empty(self):
        self.assertEqual(Table.read("").names, [])
"""


def finding(text: str) -> dict[str, Any]:
    """One finding on the first line that the change adds."""
    path = re.findall(r"^=== (\S+)", text, re.MULTILINE)[-1]
    quote = re.findall(r"^ *\d+ ?\+(.*\S.*)$", text, re.MULTILINE)[0]
    place = {"path": path, "quote": quote, "line": None, "symbol": "sorted"}
    grades = {"category": "logic", "impact": "reliability", "severity": "high", "confidence": 80}
    comment = "The rows of this table change too. `sort` works in place."
    return {"reasoning": "It sorts.", "findings": [{**place, **grades, "comment": comment}]}


#: The shortest answer to each schema that leads on to the next question.
ANSWERS: dict[str, Callable[[str], dict[str, Any]]] = {
    "PaperInputReply": lambda text: {"explanation": "All is said.", "label": "WELL_SPECIFIED"},
    "PaperOutputReply": lambda text: {"explanation": "It does.", "label": "CORRECT_AND_PRECISE"},
    "DemandsReply": lambda text: {"demands": [{"text": "An empty text gives a Table.", "basis": "stated"}]},
    "RubricReply": lambda text: {
        "grades": [{"demand": 1, "grade": "not_met", "why": "None is returned.", "quote": "", "missing": ""}],
        "p_behaviour": 90,
        "p_form": 5,
    },
    "ReviewReply": finding,
    "DoubtReply": lambda text: {
        "trace": "`sort` changes the list itself.",
        "breaks_when": "a table is sorted twice",
        "quote": "",
        "instead": "the first one changes",
        "p_holds": 80,
        "verdict": "upheld",
    },
    "Draft": lambda text: {"plan": "Read an empty text.", "code": CODE},
}


class Event(NamedTuple):
    """Something that happens, and the features that are switched on for it."""

    name: str
    config: str
    act: Callable[[Site, str], object]
    before: Callable[[Site, str], object] = lambda shop, home: None


def issue(shop: Site, home: str) -> int:
    """Open the demo's clear issue."""
    return shop.github.open_issue(home, *demo.CLEAR, author="bob")


def vague(shop: Site, home: str) -> int:
    """Open the demo's vague issue."""
    return shop.github.open_issue(home, *demo.VAGUE)


def answer(shop: Site, home: str) -> int:
    """Answer the questions on the first issue as its author."""
    return shop.github.comment(home, 1, demo.ANSWER, "alice")


def patch(shop: Site, home: str) -> int:
    """Open a pull request for the first issue."""
    text = demo.TABLE.replace("always returns a Table.", "None for an empty text.")
    return shop.github.open_pull(
        home, "Say that an empty text gives None", "Closes #1", "carl", files={TABLE: text}, closes=[1]
    )


def change(shop: Site, home: str) -> int:
    """Open a pull request with a defect."""
    files = {TABLE: demo.TABLE + demo.SORTED}
    return shop.github.open_pull(home, "Add Table.sorted", "Rows in another order.", "dora", files=files)


def say(command: str) -> Callable[[Site, str], object]:
    """A maintainer writes a command below the first issue."""
    return lambda shop, home: shop.github.comment(home, 1, command, "mia")


def indexed(shop: Site, home: str) -> None:
    """Three earlier issues, and their index."""
    for title in ("Empty text", "Reading nothing", "None from Table.read"):
        shop.github.open_issue(home, title, demo.CLEAR[1])
    shop.quiet()
    command = [sys.executable, "-m", "bot", "index", home, "--pause", "0"]
    subprocess.run(command, env=shop.environment, cwd=shop.folder, check=True, capture_output=True, timeout=120)


def reproduced(shop: Site, home: str) -> None:
    """An issue with a stored test."""
    issue(shop, home)
    shop.quiet()
    say("/bouncer reproduce")(shop, home)


def only(section: str, keys: str = "") -> str:
    """Return a configuration in which one feature alone asks a model."""
    rest = [line for name, line in OFF.items() if name != section]
    return "\n".join([*rest, f"{section}: {{{keys}}}" if keys else "", ""])


REPRODUCE = "mode: comment, command: 'python -m unittest {tests}'"
EVENTS = (
    Event("triage: an issue", only("triage"), issue),
    *(Event(f"triage, {name}: an issue", only("triage", f"prompt: {name}"), issue) for name in ("panel", "paper")),
    Event("triage, investigate, one look: an issue", only("triage", "investigate: true"), issue),
    Event("triage, brief: an issue", only("triage", "brief: true"), issue),
    Event("triage: an answer to a bounce", only("triage"), answer, vague),
    *(
        Event(f"verify, {name}: a pull request", only("verify", f"prompt: {name}"), patch, issue)
        for name in ("careful", "rubric", "panel", "paper")
    ),
    Event("verify, description: a pull request", only("verify", "description: true"), change),
    Event("review, single-shot: a pull request", only("review"), change),
    Event("review, with doubt: a pull request", only("review", "doubt: true"), change),
    Event("review, panel of 4 with doubt: a pull request", only("review", "strategy: panel"), change),
    Event("duplicates, 3 candidates: an issue", only("duplicates"), issue, indexed),
    Event("reproduce, 10 drafts: a command", only("reproduce", REPRODUCE), say("/bouncer reproduce"), issue),
    Event("watch: a bisection", only("reproduce", f"{REPRODUCE}, samples: 1"), say("/bouncer bisect"), reproduced),
    Event("ready: an accepted issue", only("triage", "brief: true"), say("/bouncer accept"), issue),
    Event("gate: a pull request", only("gate", "mode: check"), change),
    Event("why: a command", only("triage"), say("/bouncer why"), vague),
)


def measure(shop: Site, events: Sequence[Event]) -> dict[str, Sequence[Question]]:
    """Let each event happen in a repository of its own, and return the questions that it led to."""
    OPINIONS.update(ANSWERS)
    questions: dict[str, Sequence[Question]] = {}
    for number, event in enumerate(events):
        home = shop.repository(f"acme/t{number}", {**demo.FILES, PATH: event.config})
        event.before(shop, home)
        shop.quiet()
        start = len(shop.model.asked)
        event.act(shop, home)
        shop.quiet(180)
        questions[event.name] = shop.model.asked[start:]
    return questions


def print_events() -> None:
    """Measure every event, and print one line for each."""
    with TemporaryDirectory() as folder, site(Path(folder)) as shop:
        rows = measure(shop, EVENTS)
    print(f"{'event':48}{'calls':>7}{'prompt tokens':>15}{'reply limit':>13}  schemas")
    for name, questions in rows.items():
        tokens, limit = (sum(getattr(question, field) for question in questions) for field in ("tokens", "limit"))
        schemas = ", ".join(dict.fromkeys(question.purpose for question in questions))
        print(f"{name:48}{len(questions):7}{tokens:15,}{limit:13,}  {schemas}")


if __name__ == "__main__":
    main()
