"""``python -m tests.comments``: every text that Bouncer can post, written to ``comments.md`` for people to read.

The texts come from the functions that the handlers call and go through the publisher's last look, so that what
stands in the file is what stands on GitHub. The words of the model are made up here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

from bot.core.actions import Skipped, Usage
from bot.core.commands import Command
from bot.core.config import VerifyConfig
from bot.core.config_file import load
from bot.core.events import CommentCreated
from bot.core.subjects import Actor, Comment, Issue, PullRequest, Repository
from bot.features.closing import handler as closing
from bot.features.commands import handler as commands
from bot.features.config import handler as config
from bot.features.duplicates import handler as duplicates
from bot.features.gate import texts as gate
from bot.features.gate.judgement import Readiness
from bot.features.ready import handler as ready
from bot.features.ready.handler import ReadyRecord
from bot.features.reproduce import texts as reproduce
from bot.features.reproduce.record import StoredTest
from bot.features.reproduce.texts import BaseCommit
from bot.features.review import handler as reviewer
from bot.features.review import texts as review
from bot.features.review.record import Doubt, ReviewRecord, Suppressed
from bot.features.review.texts import Page, ReviewOutcome
from bot.features.shared.findings import Proof
from bot.features.shared.history import with_suggestion
from bot.features.shared.labels import InputLabel, OutputLabel
from bot.features.shared.review_history import PastFindings
from bot.features.shared.rights import no_run_reason
from bot.features.triage import texts as triage
from bot.features.triage.judgement import InputVerdict
from bot.features.verify import texts as verify
from bot.features.verify.judgement import NO_BEHAVIOUR
from bot.features.verify.judging import NO_ISSUE
from bot.features.verify.record import (
    ExecutedTest,
    GradedDemand,
    NewTest,
    NewTests,
    OutputVerdict,
    Rival,
    Twin,
    Unjudged,
    VerifyRecord,
)
from bot.features.verify.runs import FORK
from bot.features.watch import handler as watch
from bot.features.watch.handler import commit_name
from bot.features.why import handler as why
from bot.pipeline.body import Rules
from bot.reproduction.protocol import Attempt, Candidate, OfferedTest, Reproduction, TestOutcome
from bot.router import SLASH_COMMANDS
from tests.builders import placed_finding

FILE = Path(__file__).with_name("comments.md")
HOST = "github.example"
MODEL = "openai:gpt-5-mini"
DAY = date(2026, 3, 4)
ACME = Repository(id=1, owner="acme", name="rocket", html_url=f"https://{HOST}/acme/rocket")
ANN, MIA = Actor(id=2, login="ann"), Actor(id=3, login="mia")
SHA = "620aa51" + "0" * 33
PULL = PullRequest(number=7, title="Read values", author=ANN, head_sha=SHA, base_repository="acme/rocket")
PAGE = Page(ACME, PULL)
USAGE = Usage(calls=2, input_tokens=5200, output_tokens=410, cost_usd=0.0021)
#: Who wrote a text by the sentence that says so: a model's words are never shown without.
DISCLOSURES = ("AI model", "AI review")

Text = tuple[str, str]


def on_issues() -> Iterator[Text]:
    """Yield the texts for authors of issues."""
    questions = ("What should `load` return for an empty file: None, or an error?", "Which version is this?")
    yield "A bounced issue", _bounced(questions)
    yield (
        "A bounced issue, where the model has no question",
        _bounced((), missing=("steps to reproduce", "version")),
    )
    yield "A bounced issue, where it names nothing that is missing", _bounced(())
    yield "An issue that a maintainer labelled", _bounced(questions, marked_by="mia")
    yield "... where the model has no question", _bounced((), marked_by="mia")
    yield "A bounced issue, while paused", _bounced(questions, paused=True)
    yield "After an answer that leaves a question open", _bounced(questions[:1], again=True)
    yield "After an answer that leaves all open", _bounced((), again=True)
    yield "The same comment once the issue is clear", triage.CLEARED
    yield "... once a maintainer has accepted it", commands.accepted("mia", "")
    yield "... with a reason", commands.accepted("mia", "this is known.")
    yield "A clear and accepted issue, with `triage.brief`", _ready(None)
    yield "... that a test reproduces", _ready(StoredTest.model_validate(REPRODUCING))
    same = duplicates.suggestion_of(12, "fail when `load` is given an empty file", HOST)
    yield "A clear issue that may repeat another", same + duplicates.ALONE
    shas = (SHA, "d" * 40)
    proven = duplicates.with_failure(same, "ParseError: line 1, column 1", shas)
    yield "... once the drafted tests of both fail in the same way", proven + duplicates.ALONE
    yield "A bounced issue that may repeat another", with_suggestion(_bounced(questions), same)
    yield "Before an unanswered issue is closed", closing.WARNING.format(days=23)
    yield "The same comment once it is closed", closing.CLOSED.format(days=30)
    yield "... after an answer", closing.ANSWERED
    test, change = "tests/test_shapes.py::test_issue_5", [commit_name(SHA, 15)]
    yield "When a watched test no longer fails", watch.fixed(test, SHA, change)
    yield "The same comment when it fails again", watch.regressed(test, SHA, change[:0])


def _bounced(
    questions: tuple[str, ...],
    *,
    missing: tuple[str, ...] = (),
    again: bool = False,
    paused: bool = False,
    marked_by: str = "",
) -> str:
    verdict = InputVerdict(
        label=InputLabel.VAGUE,
        bounced=True,
        p_bounce=86,
        explanation="It says that loading fails, not with which file or how.",
        questions=questions,
        missing=missing,
        marked_by=marked_by,
    )
    return triage.bounce(verdict, MODEL, DAY, ACME, f"https://{HOST}/apps/bouncer", again=again, paused=paused)


#: As it is stored.
REPRODUCING = {
    "path": "tests/test_shapes.py",
    "name": "test_issue_5",
    "content": "",
    "code": "def test_issue_5():\n    assert split([1, 2, 3], 2) == [[1, 2], [3]]\n",
    "new_file": False,
    "command": ("python", "-m", "pytest", "{tests}"),
    "branch": "main",
    "sha": SHA,
}


def _ready(test: StoredTest | None) -> str:
    record = ReadyRecord(
        ready=True,
        accepted_by="mia",
        request="Make `split` keep the rest of the list as a last, shorter part.",
        sha=SHA,
        files=("src/shapes.py",) if test else (),
    )
    return ready.comment_on(record, test, "split drops the rest", ACME)


def to_commands() -> Iterator[Text]:
    """Answers to people who said ``/bouncer``."""
    on_issue = _comment_by("", ANN)
    yield "/bouncer help", commands.help_text(SLASH_COMMANDS)
    yield "/bouncer acept", commands.suggestion("accept")
    yield "/bouncer accept, from somebody who may not", _refused("accept", on_issue)
    yield "/bouncer recheck, from an author who has asked before", _refused("recheck", on_issue)
    yield "/bouncer why, from an author who has asked before", _refused("why", on_issue)
    yield "/bouncer why, from somebody who may not", _refused("why", _comment_by("", MIA))
    yield "/bouncer review on an issue", _refused("review", on_issue)
    yield "/bouncer accept on a pull request", _refused("accept", _comment_by("", ANN, pull=True))
    yield "/bouncer recheck by the author, while paused", _refused("recheck", on_issue, paused=True)
    yield "/bouncer review, where reviews are off", commands.off("review")
    yield "/bouncer dismiss below a pull request with several findings", reviewer.WHICH.format(count=2)
    yield "... with none", reviewer.NO_FINDING
    yield "... in a thread that is about none", reviewer.NOT_A_FINDING
    yield "A dismissed finding", reviewer.note("mia", "the caller checks it.")
    test, bad = "tests/test_shapes.py::test_issue_5", commit_name(SHA, 4)
    yield "/bouncer bisect", f"mia: {watch.bisected(test, 'v1.1', [bad], 7, 1)}"
    two = [bad, commit_name("7ab" + SHA[3:])]
    yield "... if a commit that cannot be run leaves two", f"mia: {watch.bisected(test, 'v1.1', two, 7, 1)}"
    yield "... if the test is flaky", f"mia: {watch.not_failing(test, 'flaky', SHA)}"
    yield "... if it does not fail any more", f"mia: {watch.not_failing(test, 'passes', SHA)}"
    yield "... if it fails on every tag", f"mia: {watch.no_passing_tag(test, ['v1.2', 'v1.1'])}"
    yield "... without a test", f"mia: {watch.NO_TEST}"
    yield "/bouncer why", why.answer("`load` is called with a file that the text does not name.", MODEL)
    yield "/bouncer why, where there is nothing to explain", why.NOTHING
    yield "/bouncer why, once too often", why.ENOUGH


def _comment_by(body: str, by: Actor, *, pull: bool = False) -> CommentCreated:
    issue = Issue(number=5, title="Loading fails", author=ANN, is_pull_request=pull)
    return CommentCreated(sender=by, repository=ACME, issue=issue, comment=Comment(id=9, body=body, author=by))


def _refused(word: str, event: CommentCreated, *, paused: bool = False) -> str:
    return commands.refusal(Command(word=word), event, SLASH_COMMANDS, paused=paused)


def on_settings() -> Iterator[Text]:
    """The check on a commit that changes ``bouncer.yml``."""
    unknown_mode = load("triage:\n  mode: loud\n")[1]
    several = load("triage:\n  mode: loud\n  nonsense: 1\nreview:\n  max_findings: 900\n")[1]
    for name, problems, proposed in (
        ("A push of a wrong bouncer.yml", unknown_mode, False),
        ("A pull request with several mistakes in it", several, True),
        ("A push of a valid one", (), False),
    ):
        check = config.report(problems, SHA, proposed=proposed)
        yield name, f"{Rules(host=HOST).title(check.title)}\n\n{check.summary}"


def from_the_gate() -> Iterator[Text]:
    """The check and the comment of ``gate``, which asks no model."""
    config, _ = load("gate:\n  ready_labels: [ready]\n")
    none = Readiness(missing=("no issue is linked",))
    closed = Readiness(missing=("#12 is closed", "#15 was opened earlier for #13"))
    ready = Readiness(issue="#12")
    for name, readiness in (
        ("A pull request without an issue", none),
        ("A pull request whose issues are not ready", closed),
        ("A pull request whose issue is ready", ready),
        ("An exempt pull request", Readiness(exempt="its author belongs to the project")),
    ):
        check = gate.check(SHA, readiness, config)
        yield name, f"{Rules(host=HOST).title(check.title)}\n\n{check.summary}"
    yield "A pull request that became a draft", gate.converted(closed, config)
    yield "The same comment once it is ready for review again", gate.returned(ready)


def in_checks() -> Iterator[Text]:
    """Titles and summaries of the check."""
    solved = _verdict(2, OutputLabel.CORRECT_AND_PRECISE, covered=("empty files",))
    partly = _verdict(
        2,
        OutputLabel.BROAD_MISSING_KEY_ASPECTS,
        covered=("empty files",),
        missing=("Files with a header only still fail.",),
        regressions=("`load` of a missing file returns None. (suspected)",),
        remarks=("`notes.txt` does not belong here.",),
    )
    wrong = _verdict(2, OutputLabel.INCORRECT, missing=("Empty files still fail.",))
    unjudged = Unjudged(issue="#3", why="the linked issue is in another repository")
    run = ExecutedTest(
        issue=2, test="tests/test_load.py::test_empty", command="pytest tests/test_load.py::test_empty",
        base="failed", head="passed", solved=True, output="1 passed",
    )  # fmt: skip
    still = run.model_copy(update={"head": "failed", "solved": False, "output": "1 failed"})
    silent = run.model_copy(update={"base": "passed", "solved": None})
    fork = PULL.model_copy(update={"head_repository": "ann/rocket"})
    fork_note = no_run_reason(fork, Command(word="verify", run="1234567"), "verify") or ""
    yield from _check("A patch that solves its issue", [solved])
    yield from _check("... with its reproducing test", [solved], runs=[run])
    yield from _check("... with a test that says nothing", [solved], runs=[silent])
    rivals = [Rival(issue=2, pull=15, head="failed"), Rival(issue=2, pull=16)]
    yield from _check("... and other pull requests for the issue", [solved], runs=[run], rivals=tuple(rivals))
    yield from _check("A patch that leaves something out", [partly], others=[unjudged])
    yield from _check("A wrong patch", [wrong], runs=[still])
    yield from _check("A patch for two issues", [solved, wrong.model_copy(update={"issue": 4})])
    demands = [
        GradedDemand(
            text="An empty file gives an empty table", basis="stated", grade="met", quote="return Table()"
        ),
        GradedDemand(
            text="`load` of a missing file raises", basis="implied", grade="cannot_tell", missing="`open_at`"
        ),
        GradedDemand(text="The error says `no header`", basis="guess", grade="not_met", quote='"no head"'),
    ]
    graded = {"demands": tuple(demands), "p_form": 45}
    yield from _check("A patch that was graded by demands", [solved.model_copy(update=graded)])
    unmet = [demands[0].model_copy(update={"grade": "not_met"}), *demands[1:]]
    yield from _check(
        "... of which one is not met", [wrong.model_copy(update={"demands": tuple(unmet), "p_form": 5})]
    )
    yield from _check("A fork's patch", [solved], note=fork_note)
    earlier = [Twin(number=9, closes=(3,), share=85), Twin(number=11, share=60)]
    yield from _check("A patch with earlier ones like it", [solved], note=verify.twins(earlier))
    yield from _check("Nothing that can be judged", [], others=[unjudged])
    described = _verdict(None, OutputLabel.CORRECT_BUT_INCOMPLETE, covered=("Empty files load.",))
    described = described.model_copy(update={"unsaid": ("`load` of a missing file returns None.",)})
    broken = _verdict(
        None,
        OutputLabel.BROAD_MISSING_KEY_ASPECTS,
        covered=("Empty files load.",),
        missing=("It logs a warning.",),
    )
    nothing = Unjudged(issue="the description", why=NO_BEHAVIOUR)
    yield from _check("A pull request without an issue that does what it says", [described])
    yield from _check("... that does not do all that it says", [broken])
    yield from _check("... with one line about a large change", [], others=[nothing])
    proof = NewTest(
        test="tests/test_load.py::test_empty", before="failed", after="passed", output="assert None == []"
    )
    idle = proof.model_copy(update={"test": "tests/test_load.py::test_full", "before": "passed", "output": ""})
    red = idle.model_copy(update={"after": "failed", "output": "assert 1 == 2"})
    files = ("tests/test_load.py",)
    for name, tests in (
        ("New tests that show the fix", NewTests(files=files, tests=(proof,))),
        ("... one of which does not", NewTests(files=files, tests=(proof, idle))),
        ("... one of which fails", NewTests(files=files, tests=(proof, red))),
        ("... in a fork", NewTests(files=files, why=FORK.format(sha=SHA))),
        ("No new test", NewTests()),
    ):
        yield from _check(name, [solved], new_tests=tests)
    no_issue = [Unjudged(why=NO_ISSUE)]
    yield from _check("... and no issue", [], others=no_issue, new_tests=NewTests(files=files, tests=(proof,)))
    for reason in (
        "no linked issue",
        "it is a draft",
        "it changes nothing in pulls.paths",
        "paused by a maintainer",
    ):
        check = verify.skipped(SHA, reason)
        yield f"Not judged: {reason}", f"{check.title}\n\n{check.summary}"


def _verdict(issue: int | None, label: OutputLabel, **points: tuple[str, ...]) -> OutputVerdict:
    bounced = label in (OutputLabel.BROAD_MISSING_KEY_ASPECTS, OutputLabel.INCORRECT)
    return OutputVerdict(
        issue=issue,
        label=label,
        bounced=bounced,
        p_bounce=88 if bounced else 6,
        explanation="The issue asks for empty files to load; the patch looks for data first.",
        covered=points.get("covered", ()),
        missing=points.get("missing", ()),
        regressions=points.get("regressions", ()),
        remarks=points.get("remarks", ()),
    )


def _check(
    name: str,
    verdicts: list[OutputVerdict],
    *,
    runs: list[ExecutedTest] | None = None,
    others: list[Unjudged] | None = None,
    note: str = "",
    **more: Any,
) -> Iterator[Text]:
    record = VerifyRecord(
        verdicts=tuple(verdicts), unjudged=tuple(others or ()), runs=tuple(runs or ()), note=note, **more
    )
    check = verify.check(SHA, record, config=VerifyConfig(), repository=ACME, usage=USAGE, model=MODEL)
    yield name, f"{Rules(host=HOST).title(check.title)}\n\n{check.summary}"


def in_reviews() -> Iterator[Text]:
    """Yield the texts for authors of pull requests."""
    finding = placed_finding(
        path="src/app.py",
        line=4,
        code=("return data.value",),
        fingerprint="0123456789abcdef",
        comment="Fails for an empty file. `parse` returns None then, which has no `value`.",
        suggestion="        return data.value if data else None",
        places=("src/cli.py:12",),
    )
    proof = Proof(
        outcome="proven", command="pytest tests/test_load.py", test="def test_empty():\n    load(EMPTY)",
        output="AttributeError: 'NoneType' object has no attribute 'value'",
    )  # fmt: skip
    left_out = [Skipped(path="uv.lock", reason="lock file"), Skipped(path="docs/a.md", reason="pulls.paths")]
    large = [Skipped(path="data.py", reason="beyond the limit of one review")]
    yield "A finding on its line", review.inline(finding, PAGE).body
    yield "A finding with its proof", review.inline(finding.model_copy(update={"proof": proof}), PAGE).body
    yield "Above one finding", review.opening(1, (), MODEL, PAGE)
    yield "Above several", review.opening(2, left_out, MODEL, PAGE, dropped=1)
    second = finding.model_copy(update={"path": "src/cli.py", "comment": "Opens the file twice."})
    unplaced = finding.model_copy(update={"line": None})
    yield "The summary", review.summary([unplaced], large, [second], PAGE) or ""
    yield "The summary once nothing is left to say", review.settled(PAGE)
    yield "Nothing found, for somebody who asked", review.nothing_found(PAGE, MODEL)
    yield "No finding may be posted any more, for somebody who asked", review.enough(8, PAGE)
    doubt = Doubt(
        fingerprint=second.fingerprint, outcome="stands", breaks_when="an empty file", instead="it is never closed"
    )
    proven = finding.model_copy(update={"proof": proof})
    yield "Below the text above findings", review.handover(ReviewRecord(posted=(proven, finding)))
    yield "... after a second question", review.handover(ReviewRecord(posted=(second,), doubts=(doubt,)))
    withheld = tuple(Suppressed(finding=second, reason=reason) for reason in ("late", "late", "already_posted"))
    clean = ReviewOutcome(
        verdict="clean", reason="", record=ReviewRecord(rounds=1), model=MODEL, max_total=8,
        lines=2, files=1, all_files=1,
    )  # fmt: skip
    record = ReviewRecord(rounds=1, posted=(finding,), suppressed=withheld)
    two = PastFindings(posted=(finding, second))
    later = replace(clean, verdict="defects", record=record, memory=two)
    over = replace(
        clean, verdict="not_reviewed", record=ReviewRecord(), model="", memory=PastFindings(posted=(finding,) * 8),
        reason="8 findings were posted, review.max_total allows 8",
    )  # fmt: skip
    for name, outcome, since in (
        ("The check after a clean review", clean, ""),
        ("The check of a later review", later, "1234567"),
        ("The check when no finding may be posted any more", over, "1234567"),
    ):
        check = review.check(outcome, Page(ACME, PULL, since))
        yield name, f"{Rules(host=HOST).title(check.title)}\n\n{check.summary}"


def about_reproducing() -> Iterator[Text]:
    """Drafted tests."""
    commit = BaseCommit(repository=ACME, branch="main", sha="abc1234" + "0" * 33)
    outcome = TestOutcome(
        status="failed",
        phase="call",
        exception_type="ValueError",
        message="empty file",
        output="ValueError: empty file",
    )
    code = "def test_empty():\n    load(EMPTY)\n"
    candidate = Candidate(
        number=1, draft=code, path="tests/test_load.py", content=code, name="test_empty", code=code, new_file=True,
        syntax="", tokens=9,
    )  # fmt: skip
    offered = OfferedTest(
        candidate=candidate, outcome=outcome, agreeing=7, grade="reported", command="pytest tests/test_load.py"
    )
    reproduction = Reproduction(
        state="reproduced", tests=(offered,), drafts=10, sandbox="bubblewrap", usage=USAGE, model=MODEL
    )
    attempts = (
        Attempt(number=1, fate="passed"),
        Attempt(number=2, fate="unusable", why="it imports nothing that exists"),
    )
    vain = Reproduction(
        state="not reproduced",
        reason="no draft fails as reported",
        attempts=attempts,
        drafts=2,
        usage=USAGE,
        model=MODEL,
    )
    yield "Reproduced", reproduce.reproduced(reproduction, commit)
    yield (
        "A draft pull request",
        f"{reproduce.pull_title(5, 'Loading fails')}\n\n{reproduce.pull_body(reproduction, commit, 5)}",
    )
    yield "Not reproduced", reproduce.not_reproduced(vain, commit)
    yield "Not run", reproduce.not_run("drafting tests is switched off here (`reproduce.mode`)", HOST)


SECTIONS = {
    "On issues": on_issues,
    "Answers to commands": to_commands,
    "On settings": on_settings,
    "Checks: the title, then the summary": in_checks,
    "The gate": from_the_gate,
    "Reviews": in_reviews,
    "Drafted tests": about_reproducing,
}


def texts() -> Iterator[Text]:
    """Each with its name."""
    for section in SECTIONS.values():
        yield from section()


def page() -> str:
    """The file."""
    parts = [
        "# Every text that Bouncer posts",
        "",
        "Made by `python -m tests.comments`; the model's words are made up.",
    ]
    for title, section in SECTIONS.items():
        parts += ["", f"## {title}"]
        for name, body in section():
            parts += ["", f"### {name}", "", "~~~~~text", Rules(host=HOST).text(body, 65_000), "~~~~~"]
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    FILE.write_text(page(), "utf-8")
