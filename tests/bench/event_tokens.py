"""Tokens that one event of each feature costs: web and worker in processes, a simulated GitHub, a scripted model.

``python -m tests.bench tokens`` counts the prompts that were sent, schemas included, as the product estimates them
itself (``bot.core.text.estimate``), and adds up the limits of their replies. The repository, the issues and the
changes are those of ``bouncer demo``: small. Replies are written down here, so nothing is paid.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bot.cli import demo
from bot.core.config import PATH
from tests.e2e.provider import OPINIONS, Question
from tests.e2e.site import Site, site

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
    with tempfile.TemporaryDirectory() as folder, site(Path(folder)) as shop:
        rows = measure(shop, EVENTS)
    print(f"{'event':48}{'calls':>7}{'prompt tokens':>15}{'reply limit':>13}  schemas")
    for name, questions in rows.items():
        tokens, limit = (sum(getattr(question, field) for question in questions) for field in ("tokens", "limit"))
        schemas = ", ".join(dict.fromkeys(question.purpose for question in questions))
        print(f"{name:48}{len(questions):7}{tokens:15,}{limit:13,}  {schemas}")
