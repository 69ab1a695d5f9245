"""The keys of ``.github/bouncer.yml``, the configuration of a repository. Every key has a default.

It is read from the default branch only, never from a pull request's head.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import Annotated, Literal

import re2
from pathspec import GitIgnoreSpec
from pydantic import AfterValidator, Field, StringConstraints

from bot.core.frozen import Frozen

PATH = ".github/bouncer.yml"
#: Days from the warning to the closing of an unanswered issue.
WARNING_DAYS = 7
#: Smallest and largest share of harm that can be promised, percent.
HARM = (1, 50)
#: Chance in percent from which an issue is called vague: about the share of vague issues in BouncerBench (650 of
#: 1,699). On 120 of its issues the macro F of a capable model was 0.69 here and 0.64 at 50 (docs/replay.md).
VAGUE_FROM = 40

LabelName = Annotated[str, StringConstraints(min_length=1, max_length=50, pattern=r"^[^\x00-\x1f,]+$")]
Globs = Annotated[tuple[Annotated[str, StringConstraints(max_length=300)], ...], Field(max_length=200)]
Percent = Annotated[int, Field(ge=0, le=100)]
HarmPercent = Annotated[int, Field(ge=HARM[0], le=HARM[1])]
Investigate = Annotated[
    bool,
    Field(description="let the model look at the repository's code first; costs several model calls per question"),
]
ContextTokens = Annotated[
    int, Field(ge=0, le=100_000, description="most tokens of surrounding code in one question; 0 = none")
]


def gitignore(patterns: Sequence[str]) -> GitIgnoreSpec:
    """Return a matcher of ``.gitignore`` patterns that takes linear time. Raises ValueError."""
    try:
        return GitIgnoreSpec.from_lines(patterns, backend="re2")
    except (re.error, re2.error) as error:
        raise ValueError(f"no pattern: {error}") from None


def _gitignore(patterns: tuple[str, ...]) -> tuple[str, ...]:
    """Reject invalid patterns (``!`` alone, a backslash at the end) when the file is read."""
    gitignore(patterns)
    return patterns


Patterns = Annotated[Globs, AfterValidator(_gitignore)]


class TriageConfig(Frozen):
    """The input bouncer on issues."""

    mode: Literal["comment", "label", "shadow", "off"] = Field(
        "comment", description="comment and label; label only; record only; off"
    )
    bounce_at: Literal["REASONABLY_SPECIFIED", "VAGUE", "IMPOSSIBLE_TO_SOLVE"] = Field(
        "VAGUE",
        description="bounce at this label or worse (BouncerBench, III: VAGUE); an issue is vague at a "
        f"probability of {VAGUE_FROM} % or more",
    )
    bounce_above: Percent | None = Field(
        None, description="bounce at or above this probability (percent) instead; `prompt: paper` asks for none"
    )
    harm: HarmPercent | None = Field(
        None,
        description="the promise of `bouncer calibrate`: at most this percentage of actionable issues bounce; "
        "the dashboard warns when it is broken",
    )
    prompt: Literal["paper", "panel", "careful"] = Field(
        "careful",
        description="`paper`: the paper's question and its two fields, explanation and label, for replay; "
        "`panel`: the harshest of three reviewers; `careful`: a probability, with anchors",
    )
    investigate: Investigate = False
    examples: int = Field(
        0,
        ge=0,
        le=5,
        description="show the model what maintainers asked on so many of the nearest closed issues; needs the "
        "index of `bouncer index`; 0 = none",
    )
    brief: bool = Field(
        False,
        description="when an issue is clear, accepted with `/bouncer accept` and, unless `reproduce.mode` is off, "
        "reproduced: set `ready_label` and post a brief for the person who does the work",
    )
    ready_label: LabelName = Field("ready", description="set on an issue with a brief")
    label: LabelName = Field("needs-info", description="set on a bounced issue, removed when it is clear")
    accepted_label: LabelName | None = Field(None, description="set on an issue that is clear enough")
    authors: Literal["external", "all"] = Field(
        "external", description="judge issues by outside contributors only, or by everyone"
    )
    ignore_kinds: tuple[Literal["question", "tracking", "form"], ...] = Field(
        ("question", "tracking"),
        description="which of questions, tracking issues and issues from a form (told by type, label, title or "
        "headings) are left alone; the others are judged as what they are, except with `prompt: paper`",
    )
    ignore_authors: tuple[str, ...] = Field((), description="logins whose issues are left alone")
    ignore_labels: tuple[str, ...] = Field(
        (), description="issues with one of these labels are left alone, and never closed"
    )
    ignore_assignees: tuple[str, ...] = Field(
        (), description="issues that are assigned to one of these logins are left alone; `*` = to anybody"
    )
    ignore_milestones: tuple[str, ...] = Field(
        (), description="issues planned for one of these milestones are left alone; `*` = for any"
    )
    language: Annotated[str, StringConstraints(pattern=r"^(auto|[a-z]{2})$")] = Field(
        "en", description="what issues are answered in: auto = in their own language, or a code (de, pt, zh...)"
    )
    close_after_days: int | None = Field(
        None,
        ge=14,
        le=365,
        description="close a bounced issue as not planned when its author has not answered for so long; they are "
        "warned a week before, and an answer reopens it. Never one that anybody else took up",
    )

    @property
    def warn_after_days(self) -> int | None:
        """Days from a bounce to the warning; None if issues are never closed."""
        return None if self.close_after_days is None else self.close_after_days - WARNING_DAYS


class VerifyConfig(Frozen):
    """The output bouncer on pull requests."""

    mode: Literal["check", "shadow", "off"] = Field("check", description="a check run; record only; off")
    bounce_at: Literal["CORRECT_BUT_INCOMPLETE", "BROAD_MISSING_KEY_ASPECTS", "INCORRECT"] = Field(
        "BROAD_MISSING_KEY_ASPECTS", description="bounce at this label or worse (BouncerBench, III)"
    )
    bounce_above: Percent | None = Field(None, description="as triage.bounce_above")
    harm: HarmPercent | None = Field(None, description="as triage.harm, for good patches held back")
    prompt: Literal["paper", "panel", "careful", "rubric"] = Field(
        "careful",
        description="as triage.prompt; `rubric`: two questions, demands from the issue, then a grade for each; "
        "the paper's question is asked without the code around the change",
    )
    investigate: Investigate = False
    context_tokens: ContextTokens = 8_000
    gate: bool = Field(False, description="a bounced patch fails the check instead of leaving it neutral")
    gate_unjudged: Literal["pass", "fail"] = Field(
        "pass",
        description="what a gate does if a verdict was due and there is none (model or budget gone, patch too "
        "large); `pass`: the check is skipped, which GitHub takes for passed. Without a linked issue, or left out "
        "by `pulls`, nothing is due",
    )
    execute: bool = Field(False, description="run an issue's reproducing test on base and head, in the sandbox")
    description: bool = Field(
        False,
        description="judge a pull request without a linked issue by its title and description, one model call: "
        "which claims it does not implement, and what it changes without saying so; not measured yet",
    )
    tests: bool = Field(
        False,
        description="run the tests that a pull request adds or changes without and with the rest of the change, "
        "in the sandbox, with `reproduce.setup` and `reproduce.command`; shown in the check, no part of a verdict",
    )


class GateConfig(Frozen):
    """The gate: a pull request needs an issue that is ready for work."""

    mode: Literal["off", "shadow", "check", "draft"] = Field(
        "off",
        description="off; record only; a check run that fails; the check, and the pull request becomes a draft "
        "until its issue is ready (needs `contents: write`)",
    )
    ready_labels: tuple[LabelName, ...] = Field(
        ("ready", "help wanted", "good first issue"),
        description="an issue with one of these labels is ready; so is one with an assignee or a milestone, and "
        "one that a maintainer accepted with `/bouncer accept`",
    )
    trust_triage: bool = Field(False, description="an issue that triage found clear is ready without a maintainer")
    exempt_paths: Patterns = Field(
        ("*.md", "*.rst", "docs/"),
        description="a pull request that changes only these files needs no issue, as in .gitignore",
    )
    exempt_lines: int = Field(
        20, ge=0, le=10_000, description="a pull request of at most so many changed lines needs no issue; 0 = none"
    )
    known_authors: bool = Field(False, description="people with a merged pull request need no issue, like members")


class Instruction(Frozen):
    """An instruction of the maintainers for the review of some files."""

    paths: Patterns = Field((), description="files that it is about, as in .gitignore; empty = all")
    text: Annotated[str, StringConstraints(min_length=1, max_length=2_000)] = Field(
        description="what to look for; it cannot change what is asked or how it is answered"
    )


class ReviewConfig(Frozen):
    """The reviewer."""

    mode: Literal["comment", "shadow", "off"] = Field("comment", description="inline comments; record only; off")
    when: Literal["push", "open", "command"] = Field(
        "push", description="after every push; once; only on `/bouncer review`, which works with the others too"
    )
    strategy: Literal["single-shot", "reflexion", "panel"] = Field(
        "single-shot",
        description="read once; read, then revise its own review; several independent reviews through one lens "
        "each, merged, which costs about five times as much (see Models and cost)",
    )
    iterations: int = Field(2, ge=1, le=5, description="reflexion: rounds of revision")
    looks: int = Field(4, ge=2, le=12, description="panel: independent reviews of each part of the change")
    doubt: bool | None = Field(
        None,
        description="ask about each finding again before it is posted, one model call per finding; a finding that "
        "stays unsure is posted only if its severity is high; unset: with `panel` about each, else only about "
        "those that depend on code that was not shown, which is looked up",
    )
    prove: bool = Field(
        False,
        description="draft a test for each finding and run it before and after the change, in the sandbox, with "
        "reproduce's command and set-up; of forks only what a maintainer names",
    )
    min_severity: Literal["low", "medium", "high"] = Field("medium", description="weaker findings are not posted")
    min_confidence: Percent = Field(
        50,
        description="post findings at least this likely (percent) to be right; a second question overrides it",
    )
    max_findings: int = Field(5, ge=1, le=25, description="most inline comments per push")
    max_total: int = Field(
        8, ge=1, le=100, description="most findings on one pull request; then no model is asked"
    )
    ignore: Patterns = Field((), description="paths not to review, as in .gitignore")
    instructions: Annotated[tuple[Instruction, ...], Field(max_length=50)] = Field(
        (), description="what else to look for; AGENTS.md and similar files on the default branch are read too"
    )
    investigate: Investigate = False
    context_tokens: ContextTokens = 4_100
    call_tokens: int = Field(24_000, ge=2_000, le=400_000, description="most tokens of diff in one model call")
    max_calls: int = Field(
        4, ge=1, le=20, description="most model calls per round; the rest is named, not reviewed"
    )

    @property
    def doubts(self) -> bool:
        """True if findings get a second question."""
        return self.strategy == "panel" if self.doubt is None else self.doubt


class PullConfig(Frozen):
    """Which pull requests verify and review look at."""

    drafts: bool = Field(False, description="also judge drafts")
    bots: bool = Field(False, description="also judge pull requests by bots")
    branches: Globs = Field((), description="only pull requests into these branches (globs); empty = all")
    paths: Patterns = Field(
        (),
        description="files that count, as in .gitignore; a pull request that changes none of them is left alone, "
        "and only these are reviewed; empty = all",
    )
    ignore_labels: tuple[str, ...] = Field((), description="pull requests with one of these are left alone")
    ignore_titles: tuple[str, ...] = Field((), description="titles that start with one of these are left alone")
    ignore_authors: tuple[str, ...] = Field((), description="logins whose pull requests are left alone")


class ReproduceConfig(Frozen):
    """Drafting bug-reproducing tests. Off unless switched on: it executes code, in the sandbox."""

    mode: Literal["off", "comment", "pull"] = Field(
        "off",
        description="off; a comment; a draft pull request, whose commit says `[skip ci]`: CI, with its secrets, "
        "is to run what a model wrote only after somebody read it",
    )
    automatic: bool = Field(False, description="without a command too, for accepted issues with `reproduce.label`")
    label: LabelName = Field("bug", description="issues with this label are tried automatically")
    reproduced_label: LabelName = Field("reproduced", description="set when a test reproduces the report")
    samples: int = Field(10, ge=1, le=50, description="drafts to ask for (LIBRO uses 50; 10 costs less)")
    examples: Literal["static", "repository"] = Field(
        "static", description="few-shot examples: two fixed ones, or the most similar of the repository's own"
    )
    setup: Annotated[tuple[str, ...], Field(max_length=20)] = Field(
        (), description="commands that prepare the environment, with network, on the default branch's files"
    )
    command: Annotated[str, StringConstraints(max_length=500)] = Field(
        "python -m pytest {tests}",
        description="how tests are run (Maven, Gradle, JUnit's console, too); {tests} becomes test ids or files",
    )
    python: Annotated[str, StringConstraints(max_length=200, pattern=r"^[A-Za-z0-9._/-]+$")] = Field(
        "python3", description="the Python to create the environment with"
    )
    repairs: int = Field(3, ge=0, le=3, description="how often an unusable draft is repaired, one model call each")
    patches: int = Field(
        2,
        ge=0,
        le=5,
        description="repairs of the bug to draft if several tests fail as reported, one model call each; a test "
        "that passes with one of them is offered first",
    )
    threshold: int = Field(1, ge=1, le=50, description="how many drafts must fail the same way")
    pick: bool = Field(False, description="let the model choose among the best drafts")
    seconds: int = Field(120, ge=1, le=1800, description="most seconds for one test run")
    watch: Literal["off", "daily"] = Field(
        "off",
        description="run the stored test of each open issue on the default branch once a day, and comment when it "
        "no longer fails; asks no model",
    )
    maybe_fixed_label: LabelName = Field("maybe-fixed", description="set while a watched test no longer fails")
    bisect_steps: int = Field(
        12, ge=2, le=50, description="most commits that `/bouncer bisect` builds, and the watch to name a fix"
    )


class DuplicatesConfig(Frozen):
    """Naming an earlier issue that a new one may repeat. It needs the index of `bouncer index`."""

    mode: Literal["comment", "shadow", "off"] = Field(
        "shadow", description="a line in the triage comment, or a comment; record only; off"
    )
    suggest_above: Percent | None = Field(
        None,
        description="name an earlier issue at or above this probability (percent) of the same cause; unset: never",
    )


class RepoConfig(Frozen):
    """The whole file."""

    triage: TriageConfig = TriageConfig()
    pulls: PullConfig = PullConfig()
    verify: VerifyConfig = VerifyConfig()
    gate: GateConfig = GateConfig()
    review: ReviewConfig = ReviewConfig()
    reproduce: ReproduceConfig = ReproduceConfig()
    duplicates: DuplicatesConfig = DuplicatesConfig()

    @property
    def hash(self) -> str:
        """Identifies the configuration under which a decision was made."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()[:12]

    def over(self, base: RepoConfig) -> RepoConfig:
        """Return this configuration with the keys of ``base`` that it does not set. Lists are not merged."""
        values = base.model_dump(exclude_unset=True)
        for section, keys in self.model_dump(exclude_unset=True).items():
            values[section] = {**values.get(section, {}), **keys}
        return RepoConfig.model_validate(values)

    def in_shadow(self, *sections: str) -> RepoConfig:
        """Return the same configuration with these sections (default: all of them) in shadow mode.

        Sections that are off stay off. Reproduction has no shadow mode, so it is switched off.
        """
        update = {}
        for name in sections or MODES:
            section = getattr(self, name)
            if section.mode != "off":
                update[name] = section.model_copy(update={"mode": "off" if name == "reproduce" else "shadow"})
        return self.model_copy(update=update)

    def mode(self, section: str) -> str:
        """Return the mode of a section; empty if it has none, or if there is no such section."""
        return getattr(getattr(self, section, None), "mode", "")

    @property
    def labels(self) -> frozenset[str]:
        """Every label that Bouncer may set or remove here."""
        triage, reproduce = self.triage, self.reproduce
        names = (
            triage.label,
            triage.accepted_label,
            triage.ready_label if triage.brief else None,
            reproduce.reproduced_label,
            reproduce.maybe_fixed_label,
        )
        return frozenset(label for label in names if label)


#: The sections that have a mode.
MODES: tuple[str, ...] = tuple(name for name, section in RepoConfig() if hasattr(section, "mode"))


class Problem(Frozen):
    """A mistake in the file."""

    key: str = Field(description="dotted path; empty for the file as a whole")
    line: int = Field(ge=1)
    message: str
    shadowed: tuple[str, ...] = Field((), description="sections that are in shadow mode because of it")
    file: str = Field("", description="``owner/name`` of the repository, if it is the owner's file")

    def __str__(self) -> str:
        place = ", ".join(filter(None, (self.file, f"line {self.line}", self.key)))
        shadowed = "everything" if self.shadowed == MODES else " and ".join(self.shadowed)
        return f"{place}: {self.message}" + (
            f"; shadow mode for {shadowed} until this is fixed" if shadowed else ""
        )
