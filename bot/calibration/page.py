"""The report of a calibration, as text for a terminal and as one self-contained HTML page. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any, get_args

from pydantic import Field

from bot.calibration import plots, risk
from bot.calibration.findings import STEPS, Bouncer, DuplicateFindings, Findings
from bot.calibration.risk import OperatingPoint
from bot.core.config import TriageConfig, VerifyConfig
from bot.core.frozen import Frozen
from bot.core.page import render
from bot.core.text import amount

#: Labels that can be the threshold, mildest first: their severities are 1 to 3.
LABELS: Mapping[Bouncer, tuple[str, ...]] = {
    "triage": get_args(TriageConfig.model_fields["bounce_at"].annotation),
    "verify": get_args(VerifyConfig.model_fields["bounce_at"].annotation),
}
#: Heading, names of good and bad subjects, and the harm that is done to a good one.
_WORDS: Mapping[Bouncer, tuple[str, str, str, str]] = {
    "triage": ("Issues", "actionable issues", "issues that were probably not actionable", "bounced"),
    "verify": ("Pull requests", "good patches", "patches that were reverted or repaired", "held back"),
}
#: Thresholds that are always listed, percent.
_TENTHS = tuple(range(10, 100, 10))


class Calibration(Frozen):
    """The results of one ``bouncer calibrate``."""

    repository: str
    model: str
    created: date
    exported: date
    requests: int = Field(description="to GitHub, for the export")
    cost_usd: float | None = None
    unfinished: int = Field(0, description="cases that were not judged yet")
    findings: tuple[Findings, ...]
    duplicates: DuplicateFindings | None = Field(None, description="None: the issues are not indexed")

    @property
    def settings(self) -> str:
        lines: list[str] = []
        for findings in self.findings:
            lines.append(f"{findings.bouncer}:")
            line, percent = findings.promise.line, f"{100 * findings.promise.harm:g}"
            if line is None:
                lines.append("  mode: shadow")
                continue
            by_label = f"  bounce_at: {_place(findings)}"
            lines.append(by_label if findings.level else f"  bounce_above: {line.bounce_above}")
            # bouncer.yml takes whole percents; the dashboard checks the promise against this one.
            if percent.isdigit():
                lines.append(f"  harm: {percent}")
        return "\n".join([*lines, *([self.duplicates.settings] if self.duplicates else [])])


def as_text(calibration: Calibration) -> str:
    head = f"{calibration.repository}, judged by {calibration.model}. "
    head += f"{amount(calibration.requests, 'request')} to GitHub for the export."
    if calibration.unfinished:
        cases = amount(calibration.unfinished, "case is", "cases are")
        head += f" {cases} not judged yet: the same command goes on."
    parts = [
        "\n".join([title(findings), *(f"  {line}" for line in sentences(findings))])
        for findings in calibration.findings
    ]
    if duplicates := calibration.duplicates:
        parts.append("\n".join([duplicates.title, *(f"  {line}" for line in duplicates.sentences())]))
    return "\n\n".join([head, *parts, f"For .github/bouncer.yml:\n\n{calibration.settings}"])


def title(findings: Findings) -> str:
    good = sum(case.good for case in findings.cases)
    subjects, fine, wrong, _ = _WORDS[findings.bouncer]
    return f"{subjects}: {good} {fine}, {len(findings.cases) - good} {wrong}"


def sentences(findings: Findings) -> list[str]:
    _, fine, wrong, harmed = _WORDS[findings.bouncer]
    promise, line = findings.promise, findings.promise.line
    if line is None:
        good = sum(case.good for case in findings.cases)
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
        caught = (
            f"{line.caught} of {line.bad} of the others" if line.bad else f"and there were no {wrong} to catch"
        )
        lines = [
            f"Promise: with the threshold at {_place(findings)}, at most {_percent(promise.harm)} of the {fine} "
            f"are {harmed} (95 % sure, as long as the future resembles this past).",
            f"Here it bounces {findings.bounced} of {len(findings.cases)}: {line.harmed} of {line.good} {fine} "
            f"(at most {_percent(line.bound)} in truth), {caught}.",
            f"Such a promise takes at least {promise.needed} {fine}.",
        ]
    if findings.by_label:
        lines.append("The replies carry no probability, so the threshold is a label.")
    elif findings.calibration_error is not None and findings.brier is not None:
        lines.append(
            f"Expected calibration error {findings.calibration_error:.3f}, Brier score {findings.brier:.3f}."
        )
    lines += [f"{count} not judged: {why}." for why, count in findings.unjudged.items()]
    return lines


def _percent(share: float) -> str:
    return f"{round(100 * share, 1):g} %"


def as_html(calibration: Calibration) -> str:
    """Render one self-contained page: no script, no external font or picture."""
    return render(
        "bot.calibration",
        "page.html.jinja",
        calibration=calibration,
        parts=[_part(findings) for findings in calibration.findings],
        settings=calibration.settings,
        amount=amount,
    )


def _part(findings: Findings) -> dict[str, Any]:
    """Return the page's section on one bouncer. Risk and reliability need a bad subject."""
    subjects, fine, wrong, harmed = _WORDS[findings.bouncer]
    both = any(not case.good for case in findings.cases)
    mistakes = findings.mistakes()
    return {
        "name": subjects,
        "title": title(findings),
        "sentences": sentences(findings),
        "fine": fine,
        "wrong": wrong,
        "harmed": harmed,
        "line": findings.promise.line,
        "place": _place(findings),
        "cases": len(findings.cases),
        "rows": rows(findings),
        "by_line": plots.by_line(findings.curve, _promised(findings), fine, wrong),
        "coverage": plots.risk_over_coverage(findings.curve, _promised(findings)) if both else None,
        "reliability": plots.reliability(findings.reliability) if both and not findings.by_label else None,
        "mistakes": [
            (
                f"{fine.capitalize()} that would have been {harmed}",
                [mistake for mistake in mistakes if mistake.good],
            ),
            (f"Let through: {wrong}", [mistake for mistake in mistakes if not mistake.good]),
        ],
    }


def _place(findings: Findings) -> str:
    """Return the promised threshold as a label or a percentage; empty without a promise."""
    if findings.promise.line is None:
        return ""
    return (
        LABELS[findings.bouncer][findings.level - 1]
        if findings.level
        else f"{findings.promise.line.bounce_above} %"
    )


def _promised(findings: Findings) -> int | None:
    return None if findings.promise.line is None else findings.promise.line.bounce_above


def rows(findings: Findings) -> Sequence[tuple[str, OperatingPoint, bool]]:
    """Return a row per threshold: name, operating point, and True for the promised one."""
    if findings.by_label:
        places = [
            (f"at {name}", level * 100 // STEPS) for level, name in enumerate(LABELS[findings.bouncer], start=1)
        ]
        promised = None if findings.level is None else findings.level * 100 // STEPS
    else:
        promised = _promised(findings)
        places = [(f"from {at} %", at) for at in sorted({*_TENTHS, *([] if promised is None else [promised])})]
    return [(name, risk.line_at(findings.cases, at), at == promised) for name, at in places]
