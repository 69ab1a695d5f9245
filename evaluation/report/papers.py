"""Every table and figure of the three papers: the command that regenerates it, and where its data comes from."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from evaluation.report.page import Section, Table


@dataclass(frozen=True)
class Item:
    """One table or figure; ``of`` are the benchmarks whose runs are enough, empty if files are needed."""

    name: str
    about: str
    command: str
    data: str
    of: tuple[str, ...] = ()


_INPUT, _OUTPUT, _REVIEW, _BRT = "bouncerbench-input", "bouncerbench-output", "crbench", "brt"
_PUBLISHED = "published by the authors: hf:uw-swag/input-bouncer and hf:uw-swag/output-bouncer"
_REBUILT = "the authors' tasks are not published; built anew from SWE-bench and clones (build crbench)"
_CASES = "own cases, or Defects4J and GHRB checked out by their own tools; LIBRO's records are published"
_NOTHING = "nothing to compute"
_RANKS = "score bloom --reports F --rankings CSV|--run R --out F"
_BOOKS = "score bloom --altered R --open R --out F"

PAPERS: dict[str, tuple[Item, ...]] = {
    "BouncerBench": (
        Item("Table I", "annotation labels", f"score {_INPUT}; report", _PUBLISHED, (_INPUT,)),
        Item("Table II", "input bouncing", f"replay {_INPUT}; score {_INPUT}", _PUBLISHED, (_INPUT,)),
        Item("Table III", "output bouncing", f"replay {_OUTPUT}; score {_OUTPUT}", _PUBLISHED, (_OUTPUT,)),
        Item(
            "Table IV",
            "submissions before and after both bouncers",
            "build bouncerbench --submission NAME; replay both; score bouncerbench-chain",
            "patches of the submissions: SWE-bench's experiments repository",
            (_INPUT, _OUTPUT),
        ),
        Item("Figure 1", "overview", "–", _NOTHING),
        Item("Figure 2", "rates by length of the issue", "report", f"{_PUBLISHED}, with issue texts", (_INPUT,)),
        Item("Figure 3", "rates by length of the patch", "report", f"{_PUBLISHED}, with patches", (_OUTPUT,)),
        Item("Figure 4", "flow through both bouncers", "report with both runs", _PUBLISHED, (_INPUT, _OUTPUT)),
        Item(
            "II.A.2", "incorrect patches by failing tests", f"score {_OUTPUT}; report", "tests_status", (_OUTPUT,)
        ),
        Item("IV.C", "agreement with annotators", f"score {_INPUT}", _PUBLISHED, (_INPUT,)),
        Item("IV.E", "flips of the agentic bouncer", f"score {_OUTPUT} --against", "two runs", (_OUTPUT,)),
        Item("IV.G", "cost", "report", "the run's own usage", (_INPUT, _OUTPUT)),
    ),
    "CR-Bench": (
        Item("Table 1", "other benchmarks", "–", _NOTHING),
        Item("Table 2", "taxonomy", "build crbench (tags)", "a definition; it is in the prompts"),
        Item("Table 3", "averages of the data set", "build crbench; report", _REBUILT, (_REVIEW,)),
        Item(
            "Table 4",
            "reviewers",
            "replay crbench --preset paper --strategy S; score crbench --judge M",
            _REBUILT,
            (_REVIEW,),
        ),
        Item("Figure 1", "an example", "–", _NOTHING),
        Item("Figure 2", "construction", "–", _NOTHING),
        Item("Figure 3", "bugs by category, severity, impact", "report", _REBUILT, (_REVIEW,)),
        Item("Figure 4", "recall by category, impact, severity", "score crbench; report", _REBUILT, (_REVIEW,)),
    ),
    "Test generation from bug reports": (
        Item("Table 1", "components of reports", _RANKS, _CASES),
        Item("Table 2", "Remember: %BRT", "replay brt; score brt", _CASES, (_BRT,)),
        Item(
            "Table 3",
            "Understand: rephrased, translated",
            "build bloom --change rephrased|translated; replay brt; score bloom --baseline R --altered R",
            _CASES,
            (_BRT,),
        ),
        Item(
            "Table 4",
            "Apply: renamed methods",
            "build bloom --change hash|meaningful; replay brt; score bloom --baseline R --altered R",
            _CASES,
            (_BRT,),
        ),
        Item(
            "Table 5",
            "Analyze: closed and open book",
            "replay brt --book F; score bloom --altered R --open R",
            _CASES,
            (_BRT,),
        ),
        Item("Figure 1", "open and closed book, Defects4J", _BOOKS, _CASES),
        Item("Figure 2", "open and closed book, GHRB", _BOOKS, _CASES),
        Item("Figure 3", "ranks of components", _RANKS, _CASES),
        Item("Figure 4", "the same: StarCoder, as reported", _RANKS, _CASES),
        Item("Figure 5", "the same: StarCoder, changed", _RANKS, _CASES),
        Item("Figure 6", "the same: GPT-4o, as reported", _RANKS, _CASES),
        Item("3.5", "Evaluate: the model picks", "replay brt --pick; score bloom --picked R", _CASES, (_BRT,)),
        Item(
            "3.6",
            "Create: two rates",
            "build bloom --change clarified; score bloom --clarified R --asked F",
            _CASES,
        ),
        Item("Figure 7", "the same: GPT-4o, changed", _RANKS, _CASES),
    ),
}


def papers_section(benchmarks: Collection[str]) -> Section:
    """For each item what regenerates it, and whether the runs of this page are what it needs."""
    tables = tuple(
        Table(
            ("item", "about", "bouncer-eval ...", "data"),
            tuple((item.name, item.about, item.command, _data(item, benchmarks)) for item in items),
            title=paper,
            folded=True,
            prose=True,
        )
        for paper, items in PAPERS.items()
    )
    words = "The commands that reproduce the tables and figures of the papers, and the data that they need."
    return Section("Tables and figures of the papers", (words,), tables)


def _data(item: Item, benchmarks: Collection[str]) -> str:
    if item.of and set(item.of) <= set(benchmarks):
        return "on this page"
    return item.data if item.data == _NOTHING else f"not on this page; {item.data}"
