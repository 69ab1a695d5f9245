"""Run an issue's stored test on the default branch, and say when its outcome changes and since which commit.

With ``reproduce.watch: daily`` each decision asks to be repeated a day later, until the issue is closed.
Everything runs in the sandbox; no model is asked, and nothing is ever closed.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import Any

from pydantic import Field

from bot.core import events
from bot.core.actions import Decision, Record, SetLabels, UpsertComment
from bot.core.commands import Command
from bot.core.config import PATH
from bot.core.errors import ForgeError, SandboxError
from bot.core.markdown import code_span
from bot.core.text import amount
from bot.features.reproduce.record import BuildState, StoredTest, stored_test
from bot.features.services import Services
from bot.features.shared.builds import Builds, FirstCommits, find_change
from bot.features.shared.rights import answer, asked_for, is_paused

Daily = events.IssueUnanswered | events.IssueReopened
Trigger = Daily | events.CommentCreated

#: Commits of the default branch that are looked through.
MAX_COMMITS = 1_000
#: Commits that a comment names one by one.
MAX_NAMED = 3

NO_TEST = "there is no drafted test for this issue. `/bouncer reproduce` drafts one."
OFF = "running tests is switched off here (`reproduce.mode`)."
NO_SANDBOX = "the operator of this bot has switched the sandbox off."
NO_TAG = "no tag lies on the default branch, so there is no commit to start from."
SANDBOX_FAILED = "the sandbox failed. Try again later."


class WatchRecord(Record):
    """The state of an issue's stored test on the default branch, or the result of a bisection."""

    state: BuildState | None = Field(None, description="None if nothing was run")
    sha: str = Field("", description="the head of the default branch with that state")
    change: tuple[str, ...] = Field((), description="commits one of which changed the state, oldest first")
    builds: int = 0


def concerns(event: Trigger, commands: Sequence[Command]) -> bool:
    """Return True if the day is over, the issue is open again, or a person asks for a bisection."""
    if isinstance(event, events.CommentCreated):
        is_request = any(command.word == "bisect" for command in commands)
        return is_request and not (event.issue.is_pull_request or event.sender.is_bot)
    return isinstance(event, events.IssueReopened) or event.task in ("reproduce", "watch")


def handle(event: Trigger, services: Services) -> Decision | None:
    """Watch or bisect; None if the event asks for neither."""
    if isinstance(event, events.CommentCreated):
        return _bisect(event, services) if asked_for("bisect", event, services) else None
    config = services.config.reproduce
    is_off = "off" in (config.watch, config.mode)
    # A mistake in the file falls back to off, and is no wish to end the watch.
    is_mistaken = is_off and any(
        "reproduce" in (*problem.shadowed, problem.key.partition(".")[0]) for problem in services.config_problems
    )
    if (is_off and not is_mistaken) or services.harnesses is None:
        return None
    past = services.history.decisions(event.subject.key, "reproduce", "watch", "commands")
    test = stored_test(past)
    requests = (decision.record.at for decision in reversed(past) if decision.record and decision.again_days)
    if test is None or (isinstance(event, events.IssueUnanswered) and event.since != next(requests, None)):
        return None  # A later decision has a day of its own.
    watch = _Watch(event, services, test)
    return watch.rest("skipped:config", f"{PATH} has a mistake") if is_mistaken else watch.decide(past)


class _Watch:
    """One day of one issue's test."""

    def __init__(self, event: Daily, services: Services, test: StoredTest) -> None:
        self.event, self.services, self.test = event, services, test
        self.builds, self.now = Builds(test, services), services.clock().timestamp()

    def decide(self, past: Sequence[Decision]) -> Decision:
        """Run the test if the branch moved, and tell of a change."""
        issue = self.services.forge.issue(self.event.number)
        if issue.state == "closed":
            return self.rest("skipped:closed", "it is closed", again=False)
        if issue.locked:
            return self.rest("skipped:locked", "it is locked")
        if is_paused(past):
            return self.rest("skipped:paused", "paused by a maintainer")
        state, sha = _last_state(past, self.test)
        try:
            # A branch that was just renamed is not found, and must not end the watch.
            head = self.services.forge.head(self.services.repository.default_branch)
            if head == sha:
                return self.rest("skipped:unchanged", "the default branch has not moved", state=state, sha=sha)
            now = self.builds.state(head, expected=state)
            change = FirstCommits() if now in (state, "flaky", "not run") else self._find(sha, head, now)
        except (SandboxError, ForgeError) as error:
            return self.rest("sandbox", f"nothing could be run: {error}", state=state, sha=sha)
        if now == "flaky" or change.flaky:
            # Another day would only be another throw of the dice.
            return self.rest("skipped:flaky", "the test is flaky", again=False, state="flaky", sha=head)
        if now == "not run":
            reason = "the test cannot be run, or fails in another way"
            return self.rest("skipped:unbuildable", reason, state=state, sha=sha)
        if now == state:
            return self.rest("skipped:unchanged", f"the test still {now[:4]}s", state=now, sha=head)
        return self._changed(now, head, change)

    def _find(self, since: str, head: str, now: BuildState) -> FirstCommits:
        """Return the commits that may have changed the outcome; none if the last commit is not on the branch."""
        commits = self.services.forge.commits(head, MAX_COMMITS)
        if since not in commits:
            return FirstCommits()
        steps = self.services.config.reproduce.bisect_steps
        between = list(takewhile(lambda sha: sha != since, commits))
        return find_change(
            between[::-1], self.builds.state, after=now, builds=lambda: len(self.builds.states) < steps
        )

    def _changed(self, now: BuildState, head: str, change: FirstCommits) -> Decision:
        number, name = self.event.number, f"{self.test.path}::{self.test.name}"
        label = self.services.config.reproduce.maybe_fixed_label
        since = _named(change.commits, self.services)
        if now == "passes":
            body, labels = fixed(name, head, since), SetLabels(number=number, add=(label,))
        else:
            body, labels = regressed(name, head, since), SetLabels(number=number, remove=(label,))
        comment = UpsertComment(task="watch", number=number, body=body, only_edit=now == "fails")
        builds = len(self.builds.states)
        record = WatchRecord(at=self.now, state=now, sha=head, change=change.commits, builds=builds)
        return Decision(
            kind="watch",
            subject=self.event.subject,
            verdict=now,
            actions=(comment, labels),
            reason=f"the test {now} now",
            record=record,
            again_days=1,
        )

    def rest(self, word: str, reason: str, *, again: bool = True, **values: Any) -> Decision:
        """Return the decision of a day on which nothing is said."""
        return Decision(
            kind="watch",
            subject=self.event.subject,
            abstained=word,
            reason=reason,
            record=WatchRecord(at=self.now, **values),
            again_days=1 if again else None,
        )


def _last_state(past: Sequence[Decision], test: StoredTest) -> tuple[BuildState, str]:
    """Return the last outcome since the test was drafted, and its commit."""
    for decision in reversed(past):
        if decision.kind == "reproduce" and decision.verdict == "reproduced":
            break
        if isinstance(decision.record, WatchRecord) and decision.record.state in ("passes", "fails"):
            return decision.record.state, decision.record.sha
    return "fails", test.sha


def _named(commits: Sequence[str], services: Services) -> list[str]:
    """Return commits in words, with the merged pull requests that brought them; of many commits, without."""
    names, branch = list[str](), services.repository.default_branch
    for sha in commits:
        try:
            pulls = services.forge.pulls_for_commit(sha) if len(commits) <= MAX_NAMED else ()
        except ForgeError:
            pulls = ()
        merged = (pull.number for pull in pulls if pull.merged and pull.base_ref == branch)
        names.append(commit_name(sha, next(merged, None)))
    return names


def commit_name(sha: str, pull: int | None = None) -> str:
    """Return a short commit id, with the pull request that brought the commit if there is one."""
    return sha[:7] + (f" (pull request #{pull})" if pull else "")


def _bisect(event: events.CommentCreated, services: Services) -> Decision:
    """Find the first bad commit after the last tag on which the stored test passes, and answer the comment."""
    if event.issue.locked:
        return Decision(kind="watch", subject=event.subject, abstained="skipped:locked", reason="it is locked")
    config = services.config.reproduce
    test = stored_test(services.history.decisions(event.subject.key, "reproduce"))
    builds, change = None, FirstCommits()
    if config.mode == "off":
        text = OFF
    elif services.harnesses is None:
        text = NO_SANDBOX
    elif test is None:
        text = NO_TEST
    else:
        builds = Builds(test, services)
        try:
            text, change = _bisection(test, builds, services)
        except SandboxError:
            text = SANDBOX_FAILED
    return Decision(
        kind="watch",
        subject=event.subject,
        verdict="bisected" if change.commits else None,
        abstained=None if change.commits else "not bisected",
        reason=text,
        actions=(answer(event, text, "bisect"),),
        record=WatchRecord(change=change.commits, builds=len(builds.states) if builds else 0),
    )


def _bisection(test: StoredTest, builds: Builds, services: Services) -> tuple[str, FirstCommits]:
    """Return the answer, and the commits one of which is the first bad one."""
    name, steps = f"{test.path}::{test.name}", services.config.reproduce.bisect_steps
    head = services.forge.head(services.repository.default_branch)
    if (state := builds.state(head)) != "fails":
        return not_failing(name, state, head), FirstCommits()
    commits = services.forge.commits(head, MAX_COMMITS)
    tags = {sha: tag for tag, sha in services.forge.tags().items()}
    places = [place for place, sha in enumerate(commits) if sha in tags]
    if not places:
        return NO_TAG, FirstCommits()
    bad = 0
    # The other half of the builds is for the search itself.
    for number, place in enumerate(places):
        if number >= steps // 2:
            break
        outcome = builds.state(commits[place])
        if outcome == "flaky":
            return flaky_on(name, commits[place]), FirstCommits()
        if outcome == "passes":
            between = commits[bad:place][::-1]
            change = find_change(between, builds.state, after="fails", builds=lambda: len(builds.states) < steps)
            if change.flaky:
                return flaky_on(name, change.flaky), FirstCommits()
            skipped = sum(state == "not run" for state in builds.states.values())
            since = _named(change.commits, services)
            return bisected(name, tags[commits[place]], since, len(builds.states), skipped), change
        if outcome == "fails":
            bad = place
    return no_passing_tag(name, [tags[commits[place]] for place in places[: steps // 2]]), FirstCommits()


def fixed(test: str, head: str, since: Sequence[str]) -> str:
    """Return the comment when the test no longer fails."""
    return f"**The drafted test no longer fails {_since(since, head)}. Close?**\n\n{_run(test, head)}"


def regressed(test: str, head: str, since: Sequence[str]) -> str:
    """Return the same comment when the test fails again."""
    return f"**The drafted test fails again {_since(since, head)}.**\n\n{_run(test, head)}"


def bisected(test: str, tag: str, commits: Sequence[str], builds: int, skipped: int) -> str:
    """Return the answer of a bisection. ``tag``: the last one on which the test passes."""
    count = f"{amount(builds, 'commit was', 'commits were')} built"
    count += f", {skipped} of which cannot be run" if skipped else ""
    name, last = code_span(test, limit=200), code_span(tag, limit=100)
    if len(commits) == 1:
        return f"{name} fails since {commits[0]}. It passes on {last}; {count}."
    return f"{name} fails since one of {_list(commits)}. It passes on {last}; {count}."


def _since(commits: Sequence[str], head: str) -> str:
    if not commits:
        return f"on {head[:7]}"
    return f"since {commits[0]}" if len(commits) == 1 else f"since one of {_list(commits)}"


def _list(commits: Sequence[str]) -> str:
    if len(commits) > MAX_NAMED:
        return f"{len(commits)} commits, {commits[0]} to {commits[-1]}"
    return ", ".join(commits)


def _run(test: str, head: str) -> str:
    return (
        f"{code_span(test, limit=200)} is run on the default branch once a day, this time on {head[:7]}. "
        "*A model drafted the test, so a pass does not prove a fix.*"
    )


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
