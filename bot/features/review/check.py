"""The check run of a review: what was looked at, and why findings are not posted. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from bot.core import actions
from bot.core.markdown import clean_line
from bot.features.review.record import Reason
from bot.features.review.rounds import LATE
from bot.features.review.texts import EXPECTED, Conclusion, Page, amount, path_span, section
from bot.features.shared.pull_requests import not_analysed
from bot.models.protocol import caveat

#: The name of the check run.
CHECK = "bouncer / review"
#: Reasons not to post a finding, for the check.
_NOT_POSTED: Mapping[Reason, str] = {
    "duplicate": "repeats another",
    "out_of_scope": "no defect",
    "dismissed": "dismissed before",
    "already_posted": "posted before",
    "unchanged": "on lines that were reviewed before",
    "muted": "of a category that is muted here",
    "below_severity": "below `review.min_severity`",
    "late": f"neither of high severity nor proven, from review {LATE} on",
    "unlikely": "below `review.min_confidence`",
    "doubted": "refuted by a second look",
    "over_total": "over `review.max_total`",
    "over_limit": "over `review.max_findings`",
    "repair_does_not_apply": "with a repair that does not apply",
    "repair_changes_nothing": "with a repair that changes nothing",
}


def check(outcome: Conclusion, page: Page) -> actions.SetCheck:
    """Return the check run. It never fails: findings are advice."""
    open_findings = [finding for finding in outcome.memory.open if finding not in outcome.gone]
    unread = [file for file in outcome.skipped if file.reason not in EXPECTED]
    conclusion: actions.Conclusion = "neutral"
    if outcome.verdict == "not_reviewed":
        conclusion, title = "skipped", f"Not reviewed: {outcome.reason}"
    elif outcome.selected:
        title = amount(len(outcome.selected), "possible defect")
    elif open_findings:
        title = f"Nothing new; {amount(len(open_findings), 'earlier finding')} open"
    elif unread:
        title = f"No defects found, but {amount(len(unread), 'file')} not reviewed"
    else:
        conclusion, title = "success", "No defects found"
    reasons = Counter(_NOT_POSTED[finding.reason] for finding in outcome.suppressed)
    total = outcome.rounds.posted + len(outcome.selected)
    model = outcome.result.model
    parts = (
        _looked_at(outcome, page),
        section("Findings that are not posted:", (f"{count} {reason}" for reason, count in reasons.items())),
        section(
            "Not reviewed:", (f"{path_span(file.path)}: {clean_line(file.reason)}" for file in outcome.skipped)
        ),
        "" if outcome.is_over else f"Posted so far: {total} of at most {outcome.max_total} findings.",
        not_analysed(outcome.too_slow),
        f"*An AI model's opinion; it may be wrong.* `{model}`" if model else "",
        f"_{note}_" if (note := caveat(model)) else "",
    )
    return actions.SetCheck(
        name=CHECK,
        head_sha=page.pull.head_sha,
        conclusion=conclusion,
        title=title,
        summary="\n\n".join(filter(None, parts)),
    )


def _looked_at(outcome: Conclusion, page: Page) -> str:
    if not outcome.result.rounds:
        return f"No model was asked: {outcome.reason.removesuffix(': no model was asked')}."
    paths = outcome.shown - {file.path for file in outcome.result.unread}
    lines = amount(sum(outcome.scope.changed.get(path, 0) for path in paths), "changed line")
    if not page.since:
        return f"Looked at {lines} in {amount(len(paths), 'file')}."
    files = f"{len(paths)} of {amount(len(outcome.diff.files), 'file')}"
    return f"Looked at {lines} since {page.since[:7]}, and at lines of the change that depend on them, in {files}."
