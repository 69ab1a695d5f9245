"""The comments about a stored test on the default branch. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from bot.core.frozen import Frozen
from bot.core.markdown import code_span

#: Commits that are named one by one.
MAX_COMMITS = 3


class NamedCommit(Frozen):
    """A commit with the pull request that brought it, if there is one."""

    sha: str
    pull: int | None = None

    def __str__(self) -> str:
        return self.sha[:7] + (f" (pull request #{self.pull})" if self.pull else "")


def fixed(test: str, head: str, since: Sequence[NamedCommit]) -> str:
    """Return the comment when the test no longer fails."""
    return f"**The drafted test no longer fails {_since(since, head)}. Close?**\n\n{_run(test, head)}"


def regressed(test: str, head: str, since: Sequence[NamedCommit]) -> str:
    """Return the same comment when the test fails again."""
    return f"**The drafted test fails again {_since(since, head)}.**\n\n{_run(test, head)}"


def bisected(test: str, tag: str, commits: Sequence[NamedCommit], builds: int, skipped: int) -> str:
    """Return the answer of a bisection. ``tag``: the last one on which the test passes."""
    count = f"{builds} commits were built" + (f", {skipped} of which cannot be run" if skipped else "")
    name, last = code_span(test, limit=200), code_span(tag, limit=100)
    if len(commits) == 1:
        return f"{name} fails since {commits[0]}. It passes on {last}; {count}."
    return f"{name} fails since one of {_list(commits)}. It passes on {last}; {count}."


def _since(commits: Sequence[NamedCommit], head: str) -> str:
    if not commits:
        return f"on {head[:7]}"
    return f"since {commits[0]}" if len(commits) == 1 else f"since one of {_list(commits)}"


def _list(commits: Sequence[NamedCommit]) -> str:
    if len(commits) > MAX_COMMITS:
        return f"{len(commits)} commits, {commits[0]} to {commits[-1]}"
    return ", ".join(map(str, commits))


def _run(test: str, head: str) -> str:
    return (
        f"{code_span(test, limit=200)} is run on the default branch once a day, this time on {head[:7]}. "
        "*A model drafted the test, so a pass does not prove a fix.*"
    )


NO_TEST = "there is no drafted test for this issue. `/bouncer reproduce` drafts one."
OFF = "running tests is switched off here (`reproduce.mode`)."
NO_SANDBOX = "the operator of this bot has switched the sandbox off."
NO_TAG = "no tag lies on the default branch, so there is no commit to start from."
SANDBOX_FAILED = "the sandbox failed. Try again later."


def not_failing(test: str, state: str, head: str) -> str:
    """Return the answer if the test does not fail on the default branch."""
    results = {
        "passes": f"passes on {head[:7]}, so there is no failure to look for.",
        "flaky": f"is flaky: its runs on {head[:7]} differ, so a bisection would name a wrong commit.",
    }
    other = f"cannot be run on {head[:7]}, or fails in another way than reported."
    return f"{code_span(test, limit=200)} {results.get(state, other)}"


def flaky_on(test: str, sha: str) -> str:
    """Return the answer if the test turned out to be flaky on the way."""
    return f"{code_span(test, limit=200)} is flaky: its runs on {sha[:7]} differ. Nothing is concluded from it."


def no_passing_tag(test: str, tags: Sequence[str]) -> str:
    """Return the answer if the test passes on no tag that was tried."""
    names = ", ".join(code_span(tag, limit=100) for tag in tags)
    return f"{code_span(test, limit=200)} passes on none of the newest tags: {names}."
