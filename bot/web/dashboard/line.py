"""The line of a repository: what it did, what another one would have done, and whether its promise holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from flask import render_template, request
from markupsafe import Markup
from pydantic import ConfigDict

from bot.calibration import plots, reliability, risk
from bot.calibration.fates import KnownFate
from bot.calibration.risk import Judged, OperatingPoint, PromiseRecord
from bot.core.frozen import Frozen
from bot.store.overview import Overview
from bot.web.dashboard.backing import DashboardBackend, DashboardSettings

_WORDS: dict[Literal["triage", "verify"], tuple[str, str, str]] = {
    "triage": ("Issues", "issues that a merged pull request closed", "issues closed as not planned"),
    "verify": ("Pull requests", "patches merged and kept for 30 days", "patches reverted or repaired"),
}
_TENTHS = range(10, 100, 10)


class Drawn(Frozen):
    """One bouncer's line, for the template."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    name: str
    fine: str
    wrong: str
    good: int
    harmed: int
    bad: int
    caught: int
    harm: int | None
    watch: PromiseRecord | None
    rows: tuple[tuple[str, OperatingPoint], ...]
    by_line: Markup | None
    coverage: Markup | None
    reliability: Markup | None


def line(settings: DashboardSettings, backend: DashboardBackend) -> str:
    """Both bouncers of one repository."""
    repositories = Overview(backend.ledger().database).repositories()
    repository = request.args.get("repository") or (repositories[0] if len(repositories) == 1 else "")
    drawn = [
        _drawn(bouncer, fates)
        for bouncer in _WORDS
        if repository and (fates := backend.ledger().fates.of(repository, bouncer))
    ]
    return render_template("dashboard/line.html", repositories=repositories, repository=repository, drawn=drawn)


def _drawn(bouncer: Literal["triage", "verify"], fates: Sequence[KnownFate]) -> Drawn:
    name, fine, wrong = _WORDS[bouncer]
    cases = [
        Judged(subject=each.subject, p_bounce=each.p_bounce, good=each.good)
        for each in fates
        if each.p_bounce is not None
    ]
    good = [each for each in fates if each.good]
    bad = [each for each in fates if not each.good]
    # The promise that is in force is the one under which the newest subject was judged.
    harm = fates[-1].harm
    watch = None if harm is None else risk.held((each.bounced for each in good if each.harm == harm), harm / 100)
    curve = risk.curve(cases)
    return Drawn(
        name=name,
        fine=fine,
        wrong=wrong,
        good=len(good),
        harmed=sum(each.bounced for each in good),
        bad=len(bad),
        caught=sum(each.bounced for each in bad),
        harm=harm,
        watch=watch,
        rows=tuple((f"from {at} %", risk.line_at(cases, at)) for at in _TENTHS) if cases else (),
        by_line=plots.by_line(curve, None, fine, wrong) if cases else None,
        coverage=plots.risk_over_coverage(curve, None) if cases else None,
        reliability=plots.reliability(reliability.bins(cases)) if cases else None,
    )
