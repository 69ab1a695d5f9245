"""The check run of a pull request. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from bot.core.actions import Conclusion, SetCheck, Usage
from bot.core.config import VerifyConfig
from bot.core.markdown import clean, clean_line, code_span
from bot.core.subjects import Repository
from bot.features.shared.labels import OutputLabel
from bot.features.verify.record import ExecutedTest, OutputVerdict, Unjudged
from bot.models.protocol import caveat

#: The name of the check run.
CHECK = "bouncer / verify"
#: Characters of one point, and of one folded explanation.
POINT = 300
EXPLANATION = 3_000


_SOLVED, _NOT_FULLY, _NOT = "Appears to solve", "May not fully solve", "Probably doesn't solve"


def skipped(head_sha: str, why: str, *, fails: bool = False) -> SetCheck:
    """Return a check that says that nothing was judged. ``fails``: the check fails as a gate."""
    return SetCheck(
        name=CHECK,
        head_sha=head_sha,
        conclusion="failure" if fails else "skipped",
        title=f"Not judged: {why}",
        summary=f"Nothing was judged: {why}.",
    )


def check(
    head_sha: str,
    verdicts: Sequence[OutputVerdict],
    unjudged: Sequence[Unjudged],
    runs: Sequence[ExecutedTest],
    *,
    config: VerifyConfig,
    repository: Repository,
    usage: Usage,
    model: str,
    note: str = "",
    exempt: Sequence[str] = (),
) -> SetCheck:
    """Return the check for a pull request with at least one linked issue. It begins with ``note``.

    ``exempt``: paths that the change itself exempted from judgement; the title names them.
    """
    host = repository.host
    due = [issue.issue for issue in unjudged if issue.due] if fails_unjudged(config) else []
    if not verdicts:
        why = "; ".join(clean_line(issue.why, host=host, limit=POINT) for issue in unjudged)
        return skipped(head_sha, why, fails=bool(due))
    by_issue = {run.issue: run for run in runs}
    parts = [_section(verdict, by_issue.get(verdict.issue), host) for verdict in verdicts]
    parts += [
        f"### {issue.issue}\n\nNot judged: {clean_line(issue.why, host=host, limit=POINT)}" for issue in unjudged
    ]
    parts.append("*An AI model's opinion; it may be wrong.*")
    if model_note := caveat(model):
        parts.append(f"_{model_note}_")
    cost = "cost unknown" if usage.cost_usd is None else f"{usage.cost_usd:.4f} USD"
    calls = "1 call" if usage.calls == 1 else f"{usage.calls} calls"
    parts.append("\n".join(_folded("Model and cost", f"`{model}`: {calls}, {usage.tokens}, {cost}")).rstrip())
    title = _title(verdicts, by_issue)
    if due:
        title += f"; not judged: {', '.join(due)}"
    if exempt:
        more = f" and {len(exempt) - 1} more" if len(exempt) > 1 else ""
        title += f"; not judged: {clean_line(exempt[0], limit=60)}{more}"
    return SetCheck(
        name=CHECK,
        head_sha=head_sha,
        conclusion="failure" if due else _conclusion(verdicts, config.gate),
        title=title,
        summary="\n\n".join(filter(None, (note, *parts))),
    )


def fails_unjudged(config: VerifyConfig) -> bool:
    """Return True if the check fails when a verdict was due and there is none."""
    return config.gate and config.gate_unjudged == "fail"


def _conclusion(verdicts: Sequence[OutputVerdict], gate: bool) -> Conclusion:
    if not any(verdict.bounced for verdict in verdicts):
        return "success"
    return "failure" if gate else "neutral"


def _title(verdicts: Sequence[OutputVerdict], runs: dict[int, ExecutedTest]) -> str:
    """Return the worst verdict in words, with its issues."""
    phrases = [_appears(verdict, runs.get(verdict.issue)) for verdict in verdicts]
    worst = next(phrase for phrase in (_NOT, _NOT_FULLY, _SOLVED) if phrase in phrases)
    issues = [verdict.issue for verdict, phrase in zip(verdicts, phrases, strict=True) if phrase == worst]
    title = f"{worst} {', '.join(f'#{issue}' for issue in issues)}"
    if worst != _SOLVED:
        return title
    issue_runs = [runs[issue] for issue in issues if issue in runs]
    if not issue_runs:
        return f"{title} (not executed)"
    if len(issue_runs) < len(issues) or not all(run.solved for run in issue_runs):
        return f"{title}; its reproducing test is inconclusive"
    passes = "its reproducing test passes" if len(issue_runs) == 1 else "their reproducing tests pass"
    return f"{title}; {passes} here"


def _appears(verdict: OutputVerdict, run: ExecutedTest | None) -> str:
    """Return the verdict in words. A test that fails counts against the patch; one that passes proves nothing."""
    if not verdict.bounced:
        return _SOLVED
    failed = run is not None and run.solved is False
    return _NOT if failed or verdict.label == OutputLabel.INCORRECT else _NOT_FULLY


#: Below every test that passes on head, because the pull request's code ran in the process that reported it.
_UNVERIFIED = (
    "The pass proves nothing by itself: the pull request's own code ran in the test, and a wrong patch can \
pass it."
)


def _section(verdict: OutputVerdict, run: ExecutedTest | None, host: str) -> str:
    words = "Right as far as stated; wording open" if verdict.open_wording else f"{_appears(verdict, run)} it"
    lines = [f"### #{verdict.issue}: {words}", "", *_table(verdict, host)]
    for title, points in (
        ("Missing", () if verdict.demands else verdict.missing),
        ("May have broken", verdict.regressions),
        ("Covered", () if verdict.demands else verdict.covered),
        ("Remarks (not counted)", verdict.remarks),
    ):
        if points:
            lines += [f"{title}:", *(f"- {clean_line(point, host=host, limit=POINT)}" for point in points), ""]
    if run is not None:
        lines += [f"Test {code_span(run.test, limit=POINT)}: {run.base} on base, {run.head} on head."]
        lines += [_UNVERIFIED, ""] if run.head == "passed" else [""]
        lines += _folded(
            f"Output of `{clean_line(run.command, limit=POINT)}`", clean(run.output, host=host, limit=4_000)
        )
    lines += _folded(
        f"Why: {verdict.label}{_chances(verdict)}", clean(verdict.explanation, host=host, limit=EXPLANATION)
    )
    return "\n".join(lines).rstrip()


def _table(verdict: OutputVerdict, host: str) -> list[str]:
    """Return the demands and their grades as a table."""
    if not verdict.demands:
        return []
    rows = ["| Demand | Basis | Grade | Line |", "|---|---|---|---|"]
    for demand in verdict.demands:
        text = clean_line(demand.text, host=host, limit=POINT)
        line = code_span(demand.quote, limit=100) if demand.quote.strip() else ""
        cells = (text, demand.basis, demand.word, line)
        # GitHub ends a cell at a bar behind two backslashes.
        rows.append("| " + " | ".join(re.sub(r"\\*\|", r"\\|", cell) for cell in cells) + " |")
    return [*rows, ""]


def _chances(verdict: OutputVerdict) -> str:
    if verdict.p_bounce is None:
        return ""
    chance = f"{verdict.p_bounce}% likely to fall short"
    if verdict.p_form is not None:
        return f" ({chance} (decides); {verdict.p_form}% likely to miss only an exact form)"
    if verdict.p_objects is None:
        return f" ({chance})"
    chance += " (decides)" if verdict.line == "p_bounce" else ""
    return f" ({chance}; {verdict.p_objects}% likely to draw an objection)"


def _folded(title: str, text: str) -> list[str]:
    return [f"<details><summary>{title}</summary>", "", text, "", "</details>", ""]
