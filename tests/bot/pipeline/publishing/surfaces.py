"""The places where a model's words are posted: from the handlers' own templates through the real publisher."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from typing import Any

from bot.core.actions import Action, Decision, InlineComment, Skipped, SubmitReview, UpsertComment, Usage
from bot.core.config import RepoConfig, VerifyConfig
from bot.core.subjects import Actor, PullRequest, Repository, Subject
from bot.features.duplicates import handler as duplicates
from bot.features.ready import handler as ready
from bot.features.ready.handler import ReadyRecord
from bot.features.reproduce.record import StoredTest
from bot.features.review import texts
from bot.features.review.record import Doubt, ReviewRecord
from bot.features.services import NoHistory, Services
from bot.features.shared.findings import Finding
from bot.features.triage import texts as triage
from bot.features.triage.judgement import InputVerdict
from bot.features.verify import texts as verify
from bot.features.verify.record import (
    ExecutedTest,
    GradedDemand,
    NewTest,
    NewTests,
    OutputVerdict,
    Unjudged,
    VerifyRecord,
)
from bot.features.watch import handler as watch
from bot.features.watch.handler import commit_name
from bot.github.protocol import PullDiff
from bot.models.prompts import Prompts
from bot.pipeline.publisher import Publisher
from bot.pipeline.store.decisions import Posting
from bot.router import SLASH_COMMANDS
from tests.bot.pipeline.publishing.rendering import Page, dangerous, fault
from tests.scripted import ScriptedModel

HOST = "ghe.example"
#: The end of an inline comment's text.
SEVERITY = "Severity: low. *AI review, may be wrong.*"
#: A secret of the operator's, with characters that Markdown escapes and breaks.
OWN_SECRET = "hunter2@x!se_cret<z"
SHA = "a" * 40
REPOSITORY = Repository(id=1, owner="acme", name="rocket", html_url=f"https://{HOST}/acme/rocket")
PULL = PullRequest(number=20, title="t", author=Actor(id=5, login="mia"), head_sha=SHA)
PAGE = texts.Page(REPOSITORY, PULL)
DIFF = "diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-x = 1\n+x = 2\n"


class Register:
    """Postings that remember nothing: every text is written as if it were the first."""

    def find(self, key: str) -> None:
        return None

    def put(self, posting: Posting) -> None: ...


class Forge:
    """Says what the publisher asks before it writes: nothing stands yet."""

    repository = REPOSITORY.full_name

    def identity(self) -> Actor:
        return Actor(id=99, login="bouncer[bot]")

    def comments(self, number: int) -> tuple[()]:
        return ()

    reviews = comments

    def check_runs(self, head_sha: str, name: str) -> tuple[()]:
        return ()

    def diff(self, number: int) -> PullDiff:
        return PullDiff(text=DIFF)


class Paper:
    """Writes down what it is asked to write; every other wish is an AttributeError."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def create_comment(self, number: int, body: str) -> int:
        self.texts = [body]
        return 1

    def create_check(self, name: str, sha: str, job: str, conclusion: str, *texts: str) -> int:
        self.texts = list(texts)
        return 1

    def create_review(self, number: int, commit: str, body: str, comments: tuple[InlineComment, ...]) -> int:
        self.texts = [body, *(comment.body for comment in comments)]
        return 1


class Press:
    """Posts a text everywhere and says what is alive in what was posted."""

    def __init__(self, secret: str = OWN_SECRET) -> None:
        self.sent: list[str] = []
        self._paper = Paper()
        self._publisher = Publisher(Register(), [secret])  # type: ignore[arg-type]
        self._services = Services(
            commands=SLASH_COMMANDS,
            prompts=Prompts(),
            forge=Forge(),  # type: ignore[arg-type]
            model=ScriptedModel(),
            config=RepoConfig(),
            clock=lambda: datetime(2026, 11, 1, tzinfo=UTC),
            history=NoHistory(),
            repository=REPOSITORY,
        )

    def post(self, action: Action) -> list[str]:
        # A kind whose decisions hold whatever became of the subject meanwhile: nothing is read again before.
        subject = Subject(repository=REPOSITORY.full_name, number=20, revision="")
        decision = Decision(kind="feedback", subject=subject, verdict="said", actions=(action,))
        self._publisher.publish(decision, "job", self._services, self._paper)  # type: ignore[arg-type]
        self.sent += self._paper.texts
        return self._paper.texts

    def comment(self, text: str) -> str:
        """A bounce: the text as a question and as the explanation."""
        verdict = InputVerdict(
            label="VAGUE", bounced=True, p_bounce=90, explanation=text, questions=(text, "THE NEXT"), missing=()
        )
        body = triage.bounce(verdict, "scripted:test", date(2026, 11, 1), REPOSITORY, "")
        (posted,) = self.post(UpsertComment(task="triage", number=20, body=body))
        return (
            fault(posted, HOST, folds=None if _late(text) else 1)
            or _swallowed(text, posted, "\n- THE NEXT\n", "\n</details>")
            or _leak(posted)
        )

    def check(self, text: str) -> str:
        """A check: the text as a point, as the explanation, and as why another issue was not judged."""
        verdict = OutputVerdict(
            issue=12, label="INCORRECT", bounced=True, p_bounce=90, explanation=text, covered=(), missing=(text,),
            demands=(GradedDemand(text=text, basis="guess", grade="met", quote=text),),
            unsaid=(text,),
        )  # fmt: skip
        test = NewTest(test=text, before="failed", after="failed", output=f"{text}\nRAN")
        run = ExecutedTest(
            issue=12, test=text, command=text, base="failed", head="failed", solved=False, output=text
        )
        record = VerifyRecord(
            verdicts=(verdict,),
            runs=(run,),
            unjudged=(Unjudged(issue="x", why=text),),
            new_tests=NewTests(files=(text,), tests=(test,)),
        )
        action = verify.check(
            SHA, record, config=VerifyConfig(), repository=REPOSITORY, usage=Usage(calls=1), model="scripted:test"
        )
        _, summary, _ = self.post(action)
        problem = fault(summary, HOST, ours="#12", folds=None if _late(text) else 4, marker=False)
        return problem or _swallowed(text, summary, "\n\n### x\n\nNot judged: ") or _leak(summary)

    def review(self, text: str) -> str:
        """A review: the text as an inline comment with a suggestion, and in its body."""
        comment = texts.inline(_finding(text), PAGE).model_copy(update={"suggestion": "x = 3"})
        opening = texts.opening(1, (Skipped(path=text, reason="binary"),), "scripted:test", PAGE)
        doubt = Doubt(fingerprint="f1", outcome="stands", breaks_when=text, instead=text)
        record = ReviewRecord(posted=(_finding(text), _finding(text)), doubts=(doubt,))
        opening += f"\n\n{texts.handover(record)}\n\nTHE END"
        action = SubmitReview(number=20, commit_id=SHA, body=opening, comments=(comment,))
        body, inline = self.post(action)
        return (
            fault(body, HOST, folds=None if _late(text) else 1)
            or _swallowed(text, body, "```\n\n</details>\n\nTHE END")
            or fault(inline, HOST, suggestions=1)
            or _swallowed(text, inline, f"{SEVERITY}\n\n```suggestion\nx = 3\n```\n\n<!-- ")
            or _leak(body)
            or _leak(inline)
        )

    def summary(self, text: str) -> str:
        """A review's summary: the text as a finding without a line, in a bullet behind a link."""
        body = texts.summary([_finding(text).model_copy(update={"line": None})], (), (_finding(text),), PAGE)
        assert body is not None
        (posted,) = self.post(UpsertComment(task="review", number=20, body=body))
        return (
            fault(posted, HOST)
            or _swallowed(text, posted, "Severity: low.\n\nNo longer in the change:\n- ")
            or _leak(posted)
        )

    def suggestion(self, text: str) -> str:
        """The comment that names an earlier issue, with how a test fails that ran the repository's code."""
        sentence = duplicates.with_failure(duplicates.suggestion_of(12, text, HOST), text, (SHA, "b" * 40))
        body = sentence + duplicates.ALONE
        (posted,) = self.post(UpsertComment(task="duplicates", number=20, body=body))
        return fault(posted, HOST, ours="#12") or _leak(posted)

    def brief(self, text: str) -> str:
        """The comment on an issue that is ready: the text as the request, as a test, and as every name."""
        record = ReadyRecord(ready=True, accepted_by="mia", request=text, sha=SHA, files=("a.py",))
        test = StoredTest(
            path=text, name=text, content="", code=text, new_file=False, command=(text,), branch=text, sha=SHA
        )
        (posted,) = self.post(
            UpsertComment(task="triage", number=20, body=ready.comment_on(record, test, text, REPOSITORY))
        )
        return dangerous(Page(posted), posted, HOST) or _swallowed(text, posted, "\n</details>") or _leak(posted)

    def linked_file(self, text: str) -> str:
        """The same comment: the text as a file that it links. Such a name may take the fold with it."""
        record = ReadyRecord(ready=True, accepted_by="mia", sha=SHA, files=(text,))
        return self.raw(ready.comment_on(record, None, "Reading fails", REPOSITORY))

    def watch(self, text: str) -> str:
        """The comments on a watched test and on a bisection: the text as the name of the test and of tags."""
        commits = (commit_name(SHA, 15),)
        bodies = (
            watch.fixed(text, SHA, commits),
            watch.regressed(text, SHA, commits),
            watch.bisected(text, text, commits, 4, 1),
            watch.not_failing(text, "flaky", SHA),
            watch.flaky_on(text, SHA),
            watch.no_passing_tag(text, (text, text)),
        )
        for body in bodies:
            (posted,) = self.post(UpsertComment(task="watch", number=20, body=body))
            if problem := fault(posted, HOST, ours="#15") or _leak(posted):
                return problem
        return ""

    def raw(self, text: str) -> str:
        """The text as a whole body: what a handler that forgot to clean would post."""
        (posted,) = self.post(UpsertComment(task="triage", number=20, body=text))
        return dangerous(Page(posted), posted, HOST) or _leak(posted)

    def everywhere(self, text: str) -> str:
        """The first fault of any place."""
        return next((f"{place.__name__}: {problem}" for place in self.places() if (problem := place(text))), "")

    def places(self) -> tuple[Any, ...]:
        on_pulls = self.check, self.review, self.summary
        return self.comment, *on_pulls, self.suggestion, self.brief, self.watch, self.raw


def _finding(text: str) -> Finding:
    values: dict[str, Any] = {"category": "logic", "impact": "functionality", "severity": "low"}
    return Finding.model_construct(
        path="a.py", line=1, start_line=None, side="RIGHT", code=("x = 2",), fingerprint="f1", comment=text,
        suggestion=None, **values,
    )  # fmt: skip


def _late(text: str) -> bool:
    """Return True if it holds our secret, white space aside: the whole text may be withheld then."""
    return OWN_SECRET[:8] in "".join(text.replace("\u200b", "").split())


def _swallowed(text: str, posted: str, *templates: str) -> str:
    """Return True if words of the template are missing around ``text``."""
    if _late(text):
        return ""
    return next((f"lost {template!r}" for template in templates if template not in posted), "")


def _leak(posted: str) -> str:
    """Return True if a secret can be read in a posted text."""
    plain = re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", posted.replace("\u200b", ""))
    return next((f"tells {item}" for item in (OWN_SECRET, *SHAPES) if item in plain), "")


SHAPES = ("ghp_" + "a1B2" * 9, "sk-proj-abcdefghij0123456789", "://me:hunter3@db@")
