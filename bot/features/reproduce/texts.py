"""The comment about a reproduction, and the text of the draft pull request. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from bot.core.frozen import Frozen
from bot.core.markdown import clean_line, code_span, details, fence
from bot.core.subjects import Repository
from bot.core.text import amount
from bot.models.protocol import caveat
from bot.reproduction.protocol import Attempt, OfferedTest, Reproduction, TestOutcome

#: Characters of the failure in the first sentence, of the test, and of the folded output.
MAX_FAILURE = 200
MAX_CODE = 12_000
MAX_OUTPUT = 6_000
MAX_REASONS = 5


class BaseCommit(Frozen):
    """The commit on which tests are run."""

    repository: Repository
    branch: str
    sha: str

    @property
    def at(self) -> str:
        """``main`` at abc1234."""
        return f"{code_span(self.branch, limit=100)} at {self.sha[:7]}"


def reproduced(result: Reproduction, commit: BaseCommit) -> str:
    """Return the comment that offers the best test."""
    best = result.best
    assert best is not None
    how = "save it as" if best.candidate.new_file else "add it to"
    lines = [
        f"**{_headline(best, result, commit)}**",
        "",
        fence(best.candidate.code[:MAX_CODE], "java" if best.candidate.path.endswith(".java") else "python"),
        "",
        *_output(best.outcome),
        f"To use it, {how} {code_span(best.candidate.path)}.",
        "",
        *_footer(result),
    ]
    return "\n".join(lines).rstrip()


def not_reproduced(result: Reproduction, commit: BaseCommit) -> str:
    """Return the comment about a failed attempt."""
    drafts = f"{amount(result.drafts, 'draft was', 'drafts were')} tried"
    reason = f": {result.reason}" if result.reason else ""
    lines = [
        f"**Not reproduced on {commit.at}.** {drafts}{reason}.",
        "",
        *(f"- {line}" for line in _reasons(result.attempts, commit)),
        "",
        "This says nothing about whether the report is right.",
        "",
        *_footer(result),
    ]
    return "\n".join(lines).rstrip()


def not_run(reason: str, host: str) -> str:
    """Return the comment that says that nothing was run."""
    text = clean_line(reason, host=host, limit=400)
    return f"**Not run.** {text[:1].upper()}{text[1:]}" + ("" if text.endswith((".", "!", "?")) else ".")


def pull_title(issue: int, title: str) -> str:
    """Return the title of the draft pull request."""
    return f"Add a failing test for #{issue}: {clean_line(title, limit=160)}"


def pull_body(result: Reproduction, commit: BaseCommit, issue: int) -> str:
    """Return the text of the draft pull request; it names the issue without closing it."""
    best = result.best
    assert best is not None
    lines = [
        f"This adds one test for #{issue} and nothing else. {_headline(best, result, commit)}",
        "",
        *_output(best.outcome),
        "It fails until the bug is fixed. Push the fix to this branch, or copy the test into yours.",
        "A model wrote it, so its commit says `[skip ci]`: CI runs with the next push, once you have read it.",
        "",
        *_footer(result),
    ]
    return "\n".join(lines).rstrip()


def failure_line(outcome: TestOutcome) -> str:
    """Return the exception in one line, like the last line of a traceback."""
    first = outcome.message.strip().split("\n", 1)[0]
    return ": ".join(filter(None, (outcome.exception_type, first)))


def _headline(best: OfferedTest, result: Reproduction, commit: BaseCommit) -> str:
    how = " as reported" if best.grade == "reported" else ""
    return (
        f"Reproduced on {commit.at}: {code_span(best.command)} fails with "
        f"{code_span(failure_line(best.outcome) or best.outcome.status, limit=MAX_FAILURE)}{how} "
        f"({best.agreeing} of {result.drafts} drafts agree)."
    )


def _output(outcome: TestOutcome) -> list[str]:
    return [details("Output", fence(outcome.output[-MAX_OUTPUT:], "text")), ""] if outcome.output else []


def _reasons(attempts: Sequence[Attempt], commit: BaseCommit) -> list[str]:
    common = Counter(_why(attempt) for attempt in attempts).most_common(MAX_REASONS)
    host = commit.repository.host
    lines = [f"{count} x {clean_line(why, host=host, limit=200)}" for why, count in common]
    remaining = len(attempts) - sum(count for _, count in common)
    return [*lines, f"{remaining} x something else"] if remaining else lines


def _why(attempt: Attempt) -> str:
    if attempt.why:
        return attempt.why.split("\n", 1)[0]
    return f"fails with {failure_line(attempt.outcome)}" if attempt.outcome else attempt.fate


def _footer(result: Reproduction) -> list[str]:
    usage, runner = result.usage, f", run in {result.sandbox}" if result.sandbox else ""
    cost_line = f"`{result.model}`, {amount(usage.calls, 'call')}, {usage.cost}{runner}" if result.model else ""
    repairs = result.best.repairs if result.best else 0
    if repairs:
        count = amount(repairs, "drafted repair")
        cost_line += f"\n\nThe test passes with {count} of the bug, which nobody has read."
    folded = [details("How", cost_line)] if cost_line else []
    disclosure = ["*An AI model drafts these tests and may be wrong.*", ""] if result.model else []
    return [*disclosure, *([f"_{note}_", ""] if (note := caveat(result.model)) else []), *folded]
