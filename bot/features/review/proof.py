"""Proof of a finding: a drafted test that passes before the change and fails after it, for the finding's reason.

Before the change means on the merge base: the head's files with the change taken back. The head may be executed
where verify may execute it, and nowhere else.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bot.code.diff import Diff, FileDiff, apply_hunks
from bot.core.actions import Usage
from bot.core.errors import BudgetExceeded, ForgeError, ModelError, SandboxError
from bot.core.subjects import PullRequest
from bot.features.review.record import Doubt
from bot.features.services import Services
from bot.features.shared.findings import Finding, Proof, ProofOutcome
from bot.features.shared.harness import prepared
from bot.features.shared.taxonomy import Severity
from bot.reproduction.attempt import Candidate, Reproduction
from bot.reproduction.command import TestCommand
from bot.reproduction.drafting import Author
from bot.reproduction.execution import Harness
from bot.reproduction.pipeline import Options, reproduce_in
from bot.reproduction.report import read_report
from bot.reproduction.setup import SetupFailed

#: Drafts a finding: it is looked for where the finding says, not in a whole report.
DRAFTS = 3
#: Tests that fail on the head and are tried on the merge base.
TRIED = 3
#: Seconds that one finding may take.
SECONDS = 600.0
#: Characters of a test and of its output that are kept.
KEPT = 4_000


class NotReversible(Exception):
    """The merge base cannot be had from the head and the change."""


@dataclass
class Proving:
    """Proves findings of one change, each once; ``omitted`` are files that the forge does not show."""

    services: Services
    pull: PullRequest
    diff: Diff
    omitted: Sequence[str] = ()
    usage: Usage = field(default_factory=Usage)
    proofs: dict[str, Proof] = field(default_factory=dict)

    def ask(self, findings: Sequence[Finding], doubts: dict[str, Doubt], folder: Path) -> bool:
        """Try what was not yet; whether there was anything. Raises TransientError."""
        fresh = [each for each in findings if each.fingerprint not in self.proofs]
        if not fresh:
            return False
        try:
            head, before = self._checkouts(folder)
            command = TestCommand.of_repository(self.services.config.reproduce.command)
            with prepared(self.services, folder / "base", command) as harness:
                for finding in fresh:
                    doubt = doubts.get(finding.fingerprint)
                    self.proofs[finding.fingerprint] = self._prove(finding, doubt, head, before, harness)
        except (ForgeError, SandboxError, SetupFailed, NotReversible, ValueError) as error:
            for finding in fresh:
                self.proofs.setdefault(finding.fingerprint, Proof(outcome="not run", why=str(error)[:300]))
        return True

    def seen(self, finding: Finding) -> Finding:
        """The finding with its proof; one whose test passes before and after is at most of medium severity."""
        proof = self.proofs.get(finding.fingerprint)
        severity = finding.severity
        if proof is not None and proof.outcome == "passes on both" and severity == Severity.HIGH:
            severity = Severity.MEDIUM
        return finding.model_copy(update={"proof": proof, "severity": severity})

    def _checkouts(self, folder: Path) -> tuple[Path, Path]:
        """Head and merge base; the environment is set up from a third one, which nobody's change has touched."""
        head, before = folder / "head", folder / "before"
        if not before.exists():
            if self.omitted:
                raise NotReversible("the change is not shown in full")
            for name, sha in (("base", self.pull.base_sha), ("head", self.pull.head_sha)):
                (folder / name).mkdir()
                self.services.forge.checkout(sha, folder / name)
            take_back(self.diff, head, before)
        return head, before

    def _prove(self, finding: Finding, doubt: Doubt | None, head: Path, before: Path, harness: Harness) -> Proof:
        services = self.services
        author = Author(services.model, services.prompts, f"{services.forge.repository}#{self.pull.number}")
        report = read_report(*_report(finding, doubt))
        ran = any(each.outcome != "not run" for each in self.proofs.values())
        options = Options(samples=DRAFTS, seconds=SECONDS, probe=not ran, turn=False)
        try:
            result = reproduce_in(head, report, author, harness, options)
        except ModelError as error:
            self.usage += error.usage or Usage()
            why = "the model budget is spent" if isinstance(error, BudgetExceeded) else error.reason
            return Proof(outcome="not run", why=why)
        self.usage += result.usage
        return compared(result, before, harness)


def compared(result: Reproduction, before: Path, harness: Harness) -> Proof:
    """What the tests that were tried on the head say once they have been run on the merge base too."""
    if result.state == "not run":
        return Proof(outcome="not run", why=result.reason)
    for shown in result.tests[:TRIED]:
        if _passes(shown.candidate, before, harness):
            outcome = shown.outcome
            return _proof(shown.candidate, "proven", shown.command, outcome.output or outcome.message)
    passed = (each.candidate for each in result.attempts if each.fate == "passed")
    passing = next((each for each in passed if each is not None), None)
    if not result.tests and passing is not None and _passes(passing, before, harness):
        return _proof(passing, "passes on both", harness.command.line(passing.target), "")
    why = "its tests fail before the change too" if result.tests else result.reason
    return Proof(outcome="not proven", why=why)


def _proof(candidate: Candidate, outcome: ProofOutcome, command: str, output: str) -> Proof:
    test, told = candidate.code[:KEPT], output[-KEPT:]
    return Proof(outcome=outcome, path=candidate.path, command=command, test=test, output=told)


def _passes(candidate: Candidate, folder: Path, harness: Harness) -> bool:
    """Whether it passes there, two times."""
    runs = harness.run_twice(folder, [candidate.target], {candidate.path: candidate.content})
    return runs.first.outcome.status == runs.second.outcome.status == "passed"


def _report(finding: Finding, doubt: Doubt | None) -> tuple[str, str]:
    """The finding as a bug report: what a test is drafted from, and its failure is held against."""
    code = "\n".join(finding.code)
    named = ""
    if doubt is not None and doubt.breaks_when:
        named = f"It breaks with: {doubt.breaks_when}\n\nWhat happens then: {doubt.instead}\n\n"
    before = f"A change to `{finding.path}` brought this in. Before it the code did the right thing"
    asked = "so that the test has to pass there and to fail now"
    body = f"{finding.comment}\n\n{named}{before}, {asked}. The code at fault:\n\n```\n{code}\n```"
    return finding.comment.split("\n")[0][:200], body


def take_back(diff: Diff, head: Path, before: Path) -> None:
    """Make ``before`` of ``head`` with the change taken back. Raises NotReversible where the two do not fit."""
    if diff.flaws:
        raise NotReversible("the change cannot be read in full")
    shutil.copytree(head, before, symlinks=True)
    for file in diff.files:
        old = None if file.change == "added" else _inside(before, file.old_path or file.path)
        text = _reversed(file, before)
        if file.change != "copied" and file.change != "deleted":
            _inside(before, file.path).unlink(missing_ok=True)
        if old is not None and file.change != "copied":
            old.parent.mkdir(parents=True, exist_ok=True)
            old.write_bytes(text)


def _reversed(file: FileDiff, folder: Path) -> bytes:
    """The file's bytes before the change."""
    if file.change == "added":
        return b""
    if file.binary:
        raise NotReversible(f"{file.path} is no text")
    try:
        content = "" if file.change == "deleted" else _inside(folder, file.path).read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError):
        raise NotReversible(f"{file.path} cannot be read at the head") from None
    text = apply_hunks(content, file.hunks, reverse=True)
    if text is None:
        raise NotReversible(f"{file.path} at the head is not what the change says")
    return (text if text.endswith("\n") or not text else f"{text}\n").encode()


def _inside(folder: Path, path: str) -> Path:
    """A path below the folder; raises NotReversible where it leads outside, by its name or by a link."""
    place = folder / path
    if not place.parent.resolve().is_relative_to(folder.resolve()) or place.is_symlink():
        raise NotReversible(f"{path} leads outside")
    return place
