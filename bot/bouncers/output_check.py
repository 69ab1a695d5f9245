"""What people read in the check run of the output bouncer. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlsplit

from bot.actions import Conclusion, SetCheck, Usage
from bot.bouncers.output import OutputVerdict
from bot.bouncers.speaker import caveat
from bot.domain import Repository
from bot.frozen import Frozen
from bot.text import clean, clean_line

NAME = "bouncer / verify"

#: Characters of one point, and of one folded explanation.
POINT = 300
EXPLANATION = 3_000


class Unjudged(Frozen):
    """A linked issue about which nothing can be said, and why."""

    issue: str = "the patch"
    why: str


class Run(Frozen):
    """What came of an issue's stored reproducing test on base and head."""

    issue: int
    test: str
    command: str
    base: str
    head: str
    output: str = ""

    @property
    def speaks(self) -> bool | None:
        """True: fails on base and passes on head; False: fails on both; None: says nothing."""
        if self.base not in ("failed", "error"):
            return None
        return {"passed": True, "failed": False, "error": False}.get(self.head)


def skipped(head_sha: str, why: str) -> SetCheck:
    """A check that says that nothing was judged."""
    return SetCheck(
        name=NAME,
        head_sha=head_sha,
        conclusion="skipped",
        title=f"Not judged: {why}",
        summary=f"Nothing was judged: {why}.",
    )


def check(
    head_sha: str,
    verdicts: Sequence[OutputVerdict],
    unjudged: Sequence[Unjudged],
    runs: Sequence[Run],
    *,
    gate: bool,
    repository: Repository,
    usage: Usage,
    model: str,
) -> SetCheck:
    """The check for a pull request with at least one linked issue."""
    host = urlsplit(repository.html_url).netloc
    if not verdicts:
        return skipped(head_sha, "; ".join(clean_line(each.why, host=host, limit=POINT) for each in unjudged))
    by_issue = {run.issue: run for run in runs}
    parts = [_section(verdict, by_issue.get(verdict.issue), host) for verdict in verdicts]
    parts += [
        f"### {each.issue}\n\nNot judged: {clean_line(each.why, host=host, limit=POINT)}" for each in unjudged
    ]
    if note := caveat(model):
        parts.append(f"_{note}_")
    parts.append(_spent(usage, model))
    return SetCheck(
        name=NAME,
        head_sha=head_sha,
        conclusion=_conclusion(verdicts, gate),
        title=_title(verdicts, by_issue),
        summary="\n\n".join(parts),
    )


def _conclusion(verdicts: Sequence[OutputVerdict], gate: bool) -> Conclusion:
    if not any(verdict.bounced for verdict in verdicts):
        return "success"
    return "failure" if gate else "neutral"


def _title(verdicts: Sequence[OutputVerdict], runs: dict[int, Run]) -> str:
    missed = [verdict for verdict in verdicts if verdict.bounced]
    named = ", ".join(f"#{verdict.issue}" for verdict in missed or verdicts)
    spoke = [runs[verdict.issue].speaks for verdict in missed or verdicts if verdict.issue in runs]
    if missed:
        if False in spoke:
            return f"Does not solve {named}: its reproducing test still fails here"
        return f"May miss part of {named}"
    if spoke and all(spoke):
        return f"Solves {named}: yes, evidence: its reproducing test fails on base and passes here"
    return f"Solves {named}: yes, as far as reading can tell"


def _section(verdict: OutputVerdict, run: Run | None, host: str) -> str:
    heading = "May miss something" if verdict.bounced else "Solves it"
    lines = [f"### #{verdict.issue}: {heading}", ""]
    lines += _points("Missing", verdict.missing, host)
    lines += _points("Covered", verdict.covered, host)
    if run is not None:
        lines += [f"Test `{clean_line(run.test, limit=POINT)}`: {run.base} on base, {run.head} on head.", ""]
        lines += _folded(
            f"Output of `{clean_line(run.command, limit=POINT)}`", clean(run.output, host=host, limit=4_000)
        )
    chance = "" if verdict.p_bounce is None else f" ({verdict.p_bounce:.0f} % that it falls short)"
    lines += _folded(f"Why: {verdict.label}{chance}", clean(verdict.explanation, host=host, limit=EXPLANATION))
    return "\n".join(lines).rstrip()


def _points(title: str, points: Sequence[str], host: str) -> list[str]:
    if not points:
        return []
    return [f"{title}:", *(f"- {clean_line(point, host=host, limit=POINT)}" for point in points), ""]


def _folded(title: str, text: str) -> list[str]:
    return [f"<details><summary>{title}</summary>", "", text, "", "</details>", ""]


def _spent(usage: Usage, model: str) -> str:
    cost = "cost unknown" if usage.cost_usd is None else f"{usage.cost_usd:.4f} USD"
    tokens = f"{usage.input_tokens} + {usage.output_tokens} tokens"
    calls = "1 call" if usage.calls == 1 else f"{usage.calls} calls"
    return "\n".join(_folded("Model and cost", f"`{model}`: {calls}, {tokens}, {cost}")).rstrip()
