"""What calibration found, as text for a terminal and as one self-contained HTML page. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any, get_args

from jinja2 import Environment, PackageLoader, StrictUndefined
from pydantic import Field

from bot.calibration import plots, risk
from bot.calibration.findings import STEPS, Bouncer, Findings
from bot.calibration.risk import OperatingPoint
from bot.core.config import TriageConfig, VerifyConfig
from bot.core.frozen import Frozen

#: The labels at which a line can be drawn, mildest first: their severities are 1 to 3.
LABELS: Mapping[Bouncer, tuple[str, ...]] = {
    "triage": get_args(TriageConfig.model_fields["bounce_at"].annotation),
    "verify": get_args(VerifyConfig.model_fields["bounce_at"].annotation),
}
#: What good and bad subjects are called, and what harm is done to a good one.
_WORDS: Mapping[Bouncer, tuple[str, str, str, str]] = {
    "triage": ("Issues", "actionable issues", "issues that were probably not actionable", "bounced"),
    "verify": ("Pull requests", "good patches", "patches that were reverted or repaired", "held back"),
}
#: Lines that are always listed, percent.
_TENTHS = tuple(range(10, 100, 10))


class Calibration(Frozen):
    """Everything that one command found."""

    repository: str
    model: str
    made: date
    exported: date
    requests: int = Field(description="to GitHub, for the export")
    cost_usd: float | None = None
    unfinished: int = Field(0, description="cases that were not judged yet")
    findings: tuple[Findings, ...]

    @property
    def settings(self) -> str:
        """The lines for bouncer.yml."""
        return "\n".join("\n".join([f"{each.bouncer}:", *_section(each)]) for each in self.findings)


def _section(each: Findings) -> list[str]:
    if each.promise.line is None:
        return ["  mode: shadow"]
    drawn = f"bounce_at: {_place(each)}" if each.level else f"bounce_above: {each.promise.line.bounce_above}"
    percent = f"{100 * each.promise.harm:g}"
    # bouncer.yml takes whole percents; the watch on the dashboard needs one to hold against.
    return [f"  {drawn}", *([f"  harm: {percent}"] if percent.isdigit() else [])]


def as_text(found: Calibration) -> str:
    """For a terminal."""
    parts = [
        f"{found.repository}, judged by {found.model}. {found.requests} requests to GitHub for the export."
        + (f" {found.unfinished} cases are not judged yet: the same command goes on." if found.unfinished else "")
    ]
    parts += ["\n".join([title(each), *(f"  {line}" for line in told(each))]) for each in found.findings]
    return "\n\n".join([*parts, f"For .github/bouncer.yml:\n\n{found.settings}"])


def title(each: Findings) -> str:
    good = sum(case.good for case in each.cases)
    subjects, fine, wrong, _ = _WORDS[each.bouncer]
    return f"{subjects}: {good} {fine}, {len(each.cases) - good} {wrong}"


def told(each: Findings) -> list[str]:
    """What was found, a sentence each."""
    _, fine, wrong, harmed = _WORDS[each.bouncer]
    promise, line = each.promise, each.promise.line
    if line is None:
        good = sum(case.good for case in each.cases)
        why = (
            f"there are {good}, and it takes at least {promise.needed}"
            if good < promise.needed
            else f"no line is safe enough: the model is too sure of too many of the {good}"
        )
        lines = [
            f"No promise can be given that at most {_percent(promise.harm)} of the {fine} are {harmed}: {why}.",
            "Run in shadow mode: everything is judged and recorded, nothing is written; then calibrate again.",
        ]
    else:
        lines = [
            f"Promise: with the line at {_place(each)}, at most {_percent(promise.harm)} of the {fine} are "
            f"{harmed} (95 % sure, as long as the future resembles this past).",
            f"Here it bounces {each.bounced} of {len(each.cases)}: {line.harmed} of {line.good} {fine} "
            f"(at most {_percent(line.bound)} in truth), {_caught(line, wrong)}.",
            f"Such a promise takes at least {promise.needed} {fine}.",
        ]
    if each.by_label:
        lines.append("The replies carry no probability, so the line is drawn at a label.")
    elif each.calibration_error is not None and each.brier is not None:
        lines.append(f"Expected calibration error {each.calibration_error:.3f}, Brier score {each.brier:.3f}.")
    lines += [f"{count} not judged: {why}." for why, count in each.unjudged.items()]
    return lines


def _caught(line: OperatingPoint, wrong: str) -> str:
    return f"{line.caught} of {line.bad} of the others" if line.bad else f"and there were no {wrong} to catch"


def _percent(share: float) -> str:
    return f"{round(100 * share, 1):g} %"


def as_html(found: Calibration) -> str:
    """One page that needs nothing else: no script, no font, no picture from elsewhere."""
    pages = Environment(
        loader=PackageLoader("bot.calibration", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return pages.get_template("page.html.jinja").render(
        found=found, parts=[_part(each) for each in found.findings], settings=found.settings
    )


def _part(each: Findings) -> dict[str, Any]:
    """One bouncer, for the page. Without a bad subject, risk and reliability have nothing to show."""
    subjects, fine, wrong, harmed = _WORDS[each.bouncer]
    both = any(not case.good for case in each.cases)
    mistakes = each.mistakes()
    return {
        "name": subjects,
        "title": title(each),
        "told": told(each),
        "fine": fine,
        "wrong": wrong,
        "harmed": harmed,
        "line": each.promise.line,
        "place": _place(each),
        "cases": len(each.cases),
        "rows": rows(each),
        "by_line": plots.by_line(each.curve, _drawn(each), fine, wrong),
        "coverage": plots.risk_over_coverage(each.curve, _drawn(each)) if both else None,
        "reliability": plots.reliability(each.reliability) if both and not each.by_label else None,
        "mistakes": [
            (f"{fine.capitalize()} that would have been {harmed}", [one for one in mistakes if one.good]),
            (f"Let through: {wrong}", [one for one in mistakes if not one.good]),
        ],
    }


def _place(each: Findings) -> str:
    """Where the promised line lies, as people say it; empty without one."""
    if each.promise.line is None:
        return ""
    return LABELS[each.bouncer][each.level - 1] if each.level else f"{each.promise.line.bounce_above} %"


def _drawn(each: Findings) -> int | None:
    return None if each.promise.line is None else each.promise.line.bounce_above


def rows(each: Findings) -> Sequence[tuple[str, OperatingPoint, bool]]:
    """Lines beside each other: name, what it does, and whether it is the promised one."""
    if each.by_label:
        places = [(f"at {name}", level * 100 // STEPS) for level, name in enumerate(LABELS[each.bouncer], start=1)]
        chosen = None if each.level is None else each.level * 100 // STEPS
    else:
        chosen = _drawn(each)
        places = [(f"from {at} %", at) for at in sorted({*_TENTHS, *([] if chosen is None else [chosen])})]
    return [(name, risk.line_at(each.cases, at), at == chosen) for name, at in places]
