"""Which of the eight components a bug report holds (section 3.4, Table 1), found by rules. Pure.

The authors annotated by hand; these rules are an approximation, and what they find is called that wherever it is
shown. Whether a patched method is named can be told only where the patched methods are known.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Literal, get_args

from bot.core.frozen import Frozen

Component = Literal[
    "natural language bug description",
    "buggy method or API name",
    "natural language bug fix",
    "bug fix code",
    "developer's intent",
    "test code",
    "expected or actual output",
    "stack trace",
]
COMPONENTS: tuple[Component, ...] = get_args(Component)

#: Share of the authors' annotated Defects4J reports that hold each component (Table 1).
PUBLISHED: dict[Component, float] = {
    "natural language bug description": 0.9275,
    "buggy method or API name": 0.6375,
    "natural language bug fix": 0.0393,
    "bug fix code": 0.0515,
    "developer's intent": 0.0651,
    "test code": 0.4692,
    "expected or actual output": 0.2604,
    "stack trace": 0.1093,
}

_FENCE = re.compile(r"^(```|~~~)[^\n]*\n(.*?)(?:^\1|\Z)", re.DOTALL | re.MULTILINE)
_TRACE = re.compile(
    r"""^\s*at\ [\w.$<>]+\([^)\n]*\)
    | Traceback\ \(most\ recent\ call\ last\)
    | ^\s*File\ "[^"\n]+",\ line\ \d+""",
    re.MULTILINE | re.VERBOSE,
)
_DIFF = re.compile(
    r"""^(?: diff\ --git\  | Index:\  | @@\ -\d | ---\ \S+\s*\n\+\+\+\  )
    | ^[+-]\s*\w.*\n[+-]\s*\w""",
    re.MULTILINE | re.VERBOSE,
)
_CODE_LINE = re.compile(
    r"""^\s* (?: >>>\  | import\  | from\ \w+\ import\  | @\w+ | assert )
    | ^\s* (?: def | class | public | private | new )(?:\ )
    | [;{}]\s*$
    | ^\s*\w+\ ?=\ ?\w+[.(]""",
    re.MULTILINE | re.VERBOSE,
)
_FIX = re.compile(
    r"""\b (?:
      (?: sh | c | w )ould\ (?:be\ )?(?:fixed|changed|replaced|solved)
    | (?: the | a | possible | proposed | suggested | simple | easy )\ (?:fix|solution)
    | fix(?:ing)?\ (?:it|this)\ (?:by|would|is)
    | (?: suggest | propose )\w*\b .{0,40} \b(?:chang|replac|add|us)
    | replac(?:e|ing)\  .{1,60} \ (?:with|by)\b
    )""",
    re.IGNORECASE | re.VERBOSE,
)
_INTENT = re.compile(
    r"""\b (?:
      I(?: 'm | \ am | \ was )?\ (?: trying | try | want | wanted | need | needed | attempt\w* | using )\b
    | we\ (?: are\ trying | want | need | use )\b
    | (?: steps\ | how\  )?to\ reproduce
    | my\ use\ ?case
    )""",
    re.IGNORECASE | re.VERBOSE,
)
_OUTPUT = re.compile(
    r"""\b(?:expected|actual)\b .{0,60} (?: [:=<\["'`] | \bis\b | \bwas\b )
    | \bbut\ (?: was | got | it\ (?:returns|prints|gives) )\b
    | \b(?: returns? | prints? | outputs? | gives? | yields? | produces? | results?\ in )\ [`"'\[<(\d]
    | \binstead\ of\ [`"'\[<(\d]
    | \boutput(?:\ is)?:""",
    re.IGNORECASE | re.VERBOSE,
)
#: Words of prose from which a text explains something.
_PROSE = 12


class Presence(Frozen):
    """Which components a report holds; a component that cannot be told is missing."""

    bug_id: str
    found: dict[Component, bool]


def presence(bug_id: str, report: str, patched: Iterable[str] | None = None) -> Presence:
    """The components of a report in Markdown. ``patched``: names of the patched methods, None where unknown."""
    blocks = [body for _, body in _FENCE.findall(report)]
    prose = _FENCE.sub("\n", report)
    without_trace = _TRACE.sub("", prose)
    found: dict[Component, bool] = {
        "natural language bug description": len(re.findall(r"[A-Za-z]{2,}", without_trace)) >= _PROSE,
        "natural language bug fix": bool(_FIX.search(prose)),
        "bug fix code": any(_DIFF.search(block) for block in blocks) or bool(_DIFF.search(prose)),
        "developer's intent": bool(_INTENT.search(prose)),
        "test code": _has_code(blocks, prose),
        "expected or actual output": bool(_OUTPUT.search(report)),
        "stack trace": bool(_TRACE.search(report)),
    }
    if patched is not None:
        names = [name for name in patched if len(name) > 1]
        found["buggy method or API name"] = any(re.search(rf"(?<!\w){re.escape(n)}(?!\w)", report) for n in names)
    return Presence(bug_id=bug_id, found=found)


def _has_code(blocks: Sequence[str], prose: str) -> bool:
    """Two lines that look like a program's, in one place, which is neither a trace nor a diff."""
    for text in (*blocks, prose):
        if not _DIFF.search(text) and len(_CODE_LINE.findall(_TRACE.sub("", text))) >= 2:
            return True
    return False


def shares(reports: Sequence[Presence]) -> dict[Component, float]:
    """The share of reports that hold each component; one that is known of none is left out."""
    known = {c: [each.found[c] for each in reports if c in each.found] for c in COMPONENTS}
    return {component: sum(values) / len(values) for component, values in known.items() if values}
