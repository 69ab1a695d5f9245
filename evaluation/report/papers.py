"""Every table and figure of the three papers: the command that regenerates it, and where its data comes from."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from evaluation.report.page import Section, Table


@dataclass(frozen=True)
class Item:
    """One table or figure.

    A page with runs of all benchmarks in ``of`` shows it if ``mark`` matches one of its words (``_words``).
    Without ``of`` no page of runs does.
    """

    name: str
    about: str
    command: str
    data: str
    of: tuple[str, ...] = ()
    mark: str = ""


_INPUT, _OUTPUT, _REVIEW = "bouncerbench-input", "bouncerbench-output", "crbench"
_PUBLISHED = "published by the authors: hf:uw-swag/input-bouncer and hf:uw-swag/output-bouncer"
_REBUILT = "the authors' tasks are not published; built anew from SWE-bench and clones (build crbench)"
_CASES = "own cases, or Defects4J and GHRB checked out by their own tools; LIBRO's records are published"
_NOTHING = "nothing to compute"
_SCORE_INPUT = f"score {_INPUT} --tasks INPUT --run RUN_I"
_SCORE_OUTPUT = f"score {_OUTPUT} --tasks OUTPUT --run RUN_O"
_SCORE_REVIEW = "score crbench --tasks REVIEW --run RUN_R --judge J --judge-style paper"
_DRAFT = "replay brt --cases CASES --model M"
_RANKS = "score bloom --annotations COMPONENTS --rankings CSV --out PAGE"
_BOOKS = "score bloom --baseline BASELINE --altered CLOSED --open OPEN --out PAGE"
_ALTERED = "replay brt --cases CHANGED --model M --out ALTERED; score bloom --baseline BASELINE --altered ALTERED"
_LIBRO = "published in LIBRO's package: github.com/coinse/libro"

#: Words in capitals stand for files, runs and models of the reader's own.
PAPERS: dict[str, tuple[Item, ...]] = {
    "BouncerBench": (
        Item("Table I", "annotation labels", _SCORE_INPUT, _PUBLISHED, (_INPUT,), "beside the paper's table I$"),
        Item(
            "Table II",
            "input bouncing",
            f"replay {_INPUT} --tasks INPUT --model MODEL_I --out RUN_I; {_SCORE_INPUT}",
            _PUBLISHED,
            (_INPUT,),
            "^Beside the paper's table II$",
        ),
        Item(
            "Table III",
            "output bouncing",
            f"replay {_OUTPUT} --tasks OUTPUT --model MODEL_O --out RUN_O; {_SCORE_OUTPUT}",
            _PUBLISHED,
            (_OUTPUT,),
            "^Beside the paper's table III$",
        ),
        Item(
            "Table IV",
            "submissions before and after both bouncers",
            "build bouncerbench --annotations ANNOTATIONS --instances INSTANCES --patches PATCHES "
            "--submission NAME --out BUILT; score bouncerbench-chain --tasks OUTPUT --input RUN_I --output RUN_O",
            "patches of the submissions: SWE-bench's experiments repository",
            (_INPUT, _OUTPUT),
            "^Beside the paper's table IV$",
        ),
        Item("Figure 1", "overview", "–", _NOTHING),
        Item(
            "Figure 2",
            "rates by length of the issue",
            "report RUN_I",
            f"{_PUBLISHED}, with texts",
            (_INPUT,),
            "in the bins of the paper's figure 2",
        ),
        Item(
            "Figure 3",
            "rates by length of the patch",
            "report RUN_O",
            f"{_PUBLISHED}, with patches",
            (_OUTPUT,),
            "in the bins of the paper's figure 3",
        ),
        Item(
            "Figure 4",
            "flow through both bouncers",
            "report RUN_I RUN_O",
            _PUBLISHED,
            (_INPUT, _OUTPUT),
            "The input bouncer turns away",
        ),
        Item(
            "II.A",
            "construction: counts of every step, Lite",
            "build bouncerbench --annotations ANNOTATIONS --instances INSTANCES --patches PATCHES --out BUILT",
            "annotations: OpenAI; patches: SWE-bench's experiments repository",
        ),
        Item(
            "II.A.2",
            "incorrect patches by failing tests",
            _SCORE_OUTPUT,
            "tests_status",
            (_OUTPUT,),
            "^Incorrect patches by the kind of test that fails$",
        ),
        Item(
            "IV.C",
            "agreement with annotators",
            _SCORE_INPUT,
            _PUBLISHED,
            (_INPUT,),
            "^agreement with annotators %$",
        ),
        Item(
            "IV.E",
            "the agentic bouncer: recorded labels, flips",
            f"{_SCORE_OUTPUT} --against RUN_O2; report bouncerbench-output=ANSWERS --tasks OUTPUT",
            "two runs, one of them with --investigate",
            (_OUTPUT, _OUTPUT),
            "^all flips$",
        ),
        Item("IV.G", "cost", "report RUN_I RUN_O", "the run's own usage", (_INPUT, _OUTPUT), "^USD$"),
    ),
    "CR-Bench": (
        Item("Table 1", "other benchmarks", "–", _NOTHING),
        Item("Table 2", "taxonomy", "–", "a definition; it is in the prompts"),
        Item(
            "Table 3",
            "averages of the data set",
            "build crbench --instances FIXES --repos CLONES --offline --model BUILDER --out REVIEW",
            _REBUILT,
            (_REVIEW,),
            "^Data set$",
        ),
        Item(
            "Table 4",
            "reviewers",
            f"replay crbench --tasks REVIEW --preset paper --strategy reflexion --model MODEL_R --out RUN_R; "
            f"{_SCORE_REVIEW}",
            _REBUILT,
            (_REVIEW,),
            "^Reviewers$",
        ),
        Item("Figure 1", "an example", "–", _NOTHING),
        Item("Figure 2", "construction", "–", _NOTHING),
        Item(
            "Figure 3",
            "bugs by category, severity, impact",
            "report RUN_R",
            _REBUILT,
            (_REVIEW,),
            "as in the paper's figure 3",
        ),
        Item(
            "Figure 4",
            "recall by category, impact, severity",
            _SCORE_REVIEW,
            _REBUILT,
            (_REVIEW,),
            "^Bugs found by (category|impact|severity)$",
        ),
    ),
    "Test generation from bug reports": (
        Item("LIBRO: %BRT", "of all bugs", "score brt --rankings CSV --bugs 750", _LIBRO),
        Item("LIBRO: acc@n, wef@n", "after selection", "score brt --rankings CSV --before BEFORE", _LIBRO),
        Item("LIBRO: ranking", "order, selection", "score brt --outcomes OUTCOMES --features FEATURES", _LIBRO),
        Item("Table 1", "components of reports", "score bloom --reports REPORTS", _CASES),
        Item(
            "Table 2",
            "Remember: %BRT",
            f"{_DRAFT} --preset libro --out RUN; score brt --run RUN --plain",
            _CASES,
            ("brt",),
            "^Bugs reproduced$",
        ),
        Item("3.1", "Remember: repeated runs", "score bloom --baseline RUN --repeat AGAIN --plain", _CASES),
        Item(
            "Table 3",
            "Understand: rephrased, translated",
            f"build bloom --cases CASES --change rephrased --model M --judge J --out REPHRASED; {_ALTERED}; "
            "build bloom --cases CASES --change translated --language German --model M --judge J --out TRANSLATED",
            _CASES,
        ),
        Item(
            "Table 4",
            "Apply: renamed methods",
            f"build bloom --cases CASES --change hash --out HASHED; {_ALTERED}; "
            "build bloom --cases CASES --change meaningful --change rephrased --model M --judge J --out RENAMED",
            _CASES,
        ),
        Item("Table 5", "Analyze: closed and open book", f"{_DRAFT} --book BOOK --out OPEN; {_BOOKS}", _CASES),
        Item("Figure 1", "open and closed book, Defects4J", _BOOKS, _CASES),
        Item("Figure 2", "open and closed book, GHRB", _BOOKS, _CASES),
        Item("Figure 3", "ranks of components", _RANKS, _CASES),
        Item("Figure 4", "the same: StarCoder, as reported", _RANKS, _CASES),
        Item("Figure 5", "the same: StarCoder, changed", _RANKS, _CASES),
        Item("Figure 6", "the same: GPT-4o, as reported", _RANKS, _CASES),
        Item("Figure 7", "the same: GPT-4o, changed", _RANKS, _CASES),
        Item(
            "3.4", "components of a run of your own", "score bloom --annotations COMPONENTS --run DRAFTED", _CASES
        ),
        Item(
            "3.5",
            "Evaluate: the model picks",
            f"{_DRAFT} --preset libro --pick --out PICKED; score bloom --baseline BASELINE --picked PICKED",
            _CASES,
        ),
        Item(
            "3.6",
            "Create: two rates",
            "build bloom --cases CASES --change clarified --known HINTS --model M --judge J --out CLARIFIED; "
            "replay brt --cases ASKED --model M --out ANSWERED; "
            "score bloom --baseline BASELINE --clarified ANSWERED --asked ASKED --unclear UNCLEAR",
            _CASES,
        ),
        Item("5.1", "bugs with one report", "score bloom --reports REPORTS", _LIBRO),
    ),
}


def papers_section(benchmarks: Collection[str], sections: Sequence[Section]) -> Section:
    """For each item what regenerates it, and if these sections about runs, by benchmark, show it."""
    words = tuple(_words(sections))

    def data(item: Item) -> str:
        if (
            item.of
            and Counter(item.of) <= Counter(benchmarks)
            and any(re.search(item.mark, word) for word in words)
        ):
            return "on this page"
        return item.data if item.data == _NOTHING else f"not on this page; {item.data}"

    tables = tuple(
        Table(
            ("item", "about", "bouncer-eval ...", "data"),
            tuple((item.name, item.about, item.command, data(item)) for item in items),
            title=paper,
            folded=True,
            prose=True,
        )
        for paper, items in PAPERS.items()
    )
    text = (
        "The commands that reproduce the tables and figures of the papers, and the data that they need. Words in "
        "capitals are files, runs and models of your own; CHANGED and ASKED are the cases.jsonl of a build."
    )
    return Section("Tables and figures of the papers", (text,), tables)


def _words(sections: Sequence[Section]) -> Iterator[str]:
    """Titles and captions, the first cells of our own rows, and the columns in which one of these has a value."""
    for section in sections:
        yield section.title
        yield from (figure.caption for figure in section.figures)
        for table in section.tables:
            own_rows = table.rows[: table.quoted_from]
            yield table.title
            yield from (str(row[0]) for row in own_rows)
            for place, name in enumerate(table.header):
                if any(row[place] is not None for row in own_rows):
                    yield name
