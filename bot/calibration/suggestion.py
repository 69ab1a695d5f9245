"""A first ``bouncer.yml`` for a repository, from the verdicts on subjects whose fate is known. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from bot.calibration import risk
from bot.calibration.findings import Bouncer
from bot.core.subjects import KnownFate

#: Largest share of good subjects to bounce.
HARM = 0.05
_GOOD: Mapping[Bouncer, str] = {"triage": "actionable issues", "verify": "good patches"}


class SuggestedConfig(NamedTuple):
    """The text of the file, and why it is so."""

    config: str
    explanation: str


def suggest(fates: Mapping[Bouncer, Sequence[KnownFate]], schema_url: str = "") -> SuggestedConfig:
    """Return thresholds that keep the promise of ``bouncer calibrate``, and shadow mode if there is none."""
    lines = [f"# yaml-language-server: $schema={schema_url}"] if schema_url else []
    reasons = []
    for bouncer, known_fates in fates.items():
        cases = [
            risk.Judged(subject=fate.subject, p_bounce=fate.p_bounce, good=fate.good)
            for fate in known_fates
            if fate.p_bounce is not None
        ]
        promise, good = risk.promise(cases, HARM), sum(case.good for case in cases)
        if line := promise.line:
            lines += [f"{bouncer}:", f"  bounce_above: {line.bounce_above}", f"  harm: {HARM * 100:.0f}"]
            reasons.append(
                f"`{bouncer}` bounces at or above {line.bounce_above} %. In this repository's history that "
                f"bounced {line.harmed} of {line.good} {_GOOD[bouncer]}; at most {HARM:.0%} are promised."
            )
        else:
            lines += [f"{bouncer}:", "  mode: shadow"]
            reasons.append(
                f"`{bouncer}` stays in shadow mode, which posts nothing: the outcome of {good} {_GOOD[bouncer]} "
                f"is known, and a promise takes at least {promise.needed}. `bouncer calibrate` reads older ones."
            )
    points = "\n".join(f"- {reason}" for reason in reasons)
    explanation = (
        f"This adds a configuration for Bouncer:\n\n{points}\n\nChange what you like before you merge it, or "
        "close this pull request to keep the defaults."
    )
    return SuggestedConfig("\n".join(lines) + "\n", explanation)
