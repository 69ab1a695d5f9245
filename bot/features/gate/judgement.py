"""The conditions and the exemptions of the gate. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from bot.core.config import RepoConfig, gitignore
from bot.core.frozen import Frozen
from bot.core.markdown import code_span
from bot.core.subjects import INSIDERS, Issue
from bot.core.text import amount
from bot.github.protocol import PullFacts

#: GitHub's author association of a person with a merged pull request.
_MERGED_BEFORE = "CONTRIBUTOR"


class LinkedIssue(Frozen):
    """An issue that a pull request links, and what was decided about it."""

    name: str = Field(description="``#12``, or ``owner/name#12`` for one of another repository")
    issue: Issue | None = Field(None, description="None if it cannot be read")
    accepted: bool = False
    bounced: bool = False
    cleared: bool = Field(False, description="triage found it clear")
    earlier: int | None = Field(None, description="an older open pull request for it")


class Readiness(Frozen):
    """The answer: an issue that is ready, an exemption, or what is missing."""

    issue: str = Field("", description="the issue that is ready")
    exempt: str = Field("", description="why none is needed; a clause")
    missing: tuple[str, ...] = Field((), description="what is missing, one clause for each linked issue")

    @property
    def passes(self) -> bool:
        """Return True if the pull request may be reviewed."""
        return bool(self.issue or self.exempt)

    @property
    def sentence(self) -> str:
        """The answer in one line."""
        if self.exempt:
            return f"No issue needed: {self.exempt}"
        return f"{self.issue} is ready for work" if self.issue else f"Not ready: {'; '.join(self.missing)}"


def evaluate(facts: PullFacts, issues: Sequence[LinkedIssue], config: RepoConfig) -> Readiness:
    """Return the answer for a pull request. One ready issue is enough."""
    if exempt := _exemption(facts, config):
        return Readiness(exempt=exempt)
    problems = [_problem(linked, config) for linked in issues]
    for linked, problem in zip(issues, problems, strict=True):
        if not problem:
            return Readiness(issue=linked.name)
    return Readiness(missing=tuple(problems) or ("no issue is linked",))


def _exemption(facts: PullFacts, config: RepoConfig) -> str:
    gate = config.gate
    if facts.pull.author.is_bot:
        return "its author is a bot"
    if facts.association in INSIDERS:
        return "its author belongs to the project"
    if gate.known_authors and facts.association == _MERGED_BEFORE:
        return "its author has a merged pull request"
    size = max(facts.lines, facts.changed_files)
    if 0 < size <= gate.exempt_lines:
        return f"it changes {amount(facts.lines, 'line')}"
    # Of a renamed file only the new path is known.
    lists_all = facts.paths and len(facts.paths) == facts.changed_files and not facts.renames
    globs = gitignore(gate.exempt_paths)
    if lists_all and all(globs.match_file(path) for path in facts.paths):
        return "it changes only files in gate.exempt_paths"
    return ""


def _problem(linked: LinkedIssue, config: RepoConfig) -> str:
    """Return why work on an issue should not begin; empty if it may."""
    issue, name = linked.issue, linked.name
    if issue is None:
        return f"{code_span(name)} cannot be found"
    if issue.is_pull_request:
        return f"{name} is a pull request, not an issue"
    if issue.state == "closed":
        return f"{name} is closed"
    if linked.bounced:
        return f"{name} still lacks details that its author was asked for"
    ready_labels = {label.lower() for label in config.gate.ready_labels}
    is_marked = issue.claimed or linked.accepted or any(label.lower() in ready_labels for label in issue.labels)
    if not is_marked and not (config.gate.trust_triage and linked.cleared):
        return f"{name} is not marked as ready for work"
    return f"#{linked.earlier} was opened earlier for {name}" if linked.earlier else ""
