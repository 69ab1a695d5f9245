"""Proof of a finding: a drafted test that passes before the change and fails after it, for the finding's reason.

The code before the change is the merge base: the head's files with the change reverted. The head is executed only
if verify may execute it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from bot.code.change.diff import Diff
from bot.core.actions import Usage
from bot.core.errors import BudgetExceeded, ModelError
from bot.core.subjects import PullRequest
from bot.features.review.record import Doubt
from bot.features.services import Services
from bot.features.shared.findings import Finding, Proof, ProofOutcome, Severity
from bot.features.shared.merge_base import BothSides, NotRunnable, both_sides
from bot.reproduction.notation import command_line
from bot.reproduction.protocol import (
    Author,
    Candidate,
    Options,
    Reproduction,
    run_twice,
)
from bot.reproduction.report import read_report

#: Drafts for one finding.
DRAFTS = 3
#: Tests that fail on the head and are run on the merge base.
MAX_TESTS = 3
#: Seconds that one finding may take.
SECONDS = 600.0
#: Characters of a test and of its output that are recorded.
MAX_OUTPUT = 4_000


@dataclass
class Proving:
    """Tries once to prove each finding of a change; ``omitted`` are files that the forge does not show."""

    services: Services
    pull: PullRequest
    diff: Diff
    omitted: Sequence[str] = ()
    usage: Usage = field(default_factory=Usage)
    proofs: dict[str, Proof] = field(default_factory=dict)

    def prove(self, findings: Sequence[Finding], doubts: dict[str, Doubt]) -> bool:
        """Prove findings that were not tried before. Return True if there were any. Raises TransientError."""
        new = [finding for finding in findings if finding.fingerprint not in self.proofs]
        if not new:
            return False
        try:
            if self.omitted:
                raise NotRunnable("the change is not shown in full")
            with both_sides(self.pull, self.diff, self.services) as sides:
                for finding in new:
                    self.proofs[finding.fingerprint] = self._prove(finding, doubts.get(finding.fingerprint), sides)
        except NotRunnable as error:
            for finding in new:
                self.proofs.setdefault(finding.fingerprint, Proof(outcome="not run", why=str(error)))
        return True

    def with_proof(self, finding: Finding) -> Finding:
        """Return the finding with its proof. If its test passes on both sides, its severity is at most medium."""
        proof = self.proofs.get(finding.fingerprint)
        severity = finding.severity
        if proof is not None and proof.outcome == "passes on both" and severity == Severity.HIGH:
            severity = Severity.MEDIUM
        return finding.model_copy(update={"proof": proof, "severity": severity})

    def _prove(self, finding: Finding, doubt: Doubt | None, sides: BothSides) -> Proof:
        services = self.services
        author = Author(services.model, services.prompts, f"{services.forge.repository}#{self.pull.number}")
        report = read_report(*_report(finding, doubt))
        has_run = any(proof.outcome != "not run" for proof in self.proofs.values())
        options = Options(
            samples=DRAFTS, seconds=SECONDS, probe=not has_run, turn=False, framed=False, repairs=1, patches=0
        )
        try:
            result = sides.harness.reproduce(sides.head, report, author, options)
        except ModelError as error:
            self.usage += error.usage or Usage()
            why = "the model budget is spent" if isinstance(error, BudgetExceeded) else error.reason
            return Proof(outcome="not run", why=why)
        self.usage += result.usage
        return compare(result, sides)


def compare(result: Reproduction, sides: BothSides) -> Proof:
    """Run the tests of the head on the merge base too, and return the proof."""
    if result.state == "not run":
        return Proof(outcome="not run", why=result.reason)
    for test in result.tests[:MAX_TESTS]:
        if _passes(test.candidate, sides):
            outcome = test.outcome
            return _proof(test.candidate, "proven", test.command, outcome.output or outcome.message)
    passes = (attempt.candidate for attempt in result.attempts if attempt.fate == "passed" and attempt.candidate)
    passing = next(passes, None)
    if not result.tests and passing is not None and _passes(passing, sides):
        return _proof(passing, "passes on both", command_line(sides.harness.command, passing.target), "")
    why = "its tests fail before the change too" if result.tests else result.reason
    return Proof(outcome="not proven", why=why)


def _proof(candidate: Candidate, outcome: ProofOutcome, command: str, output: str) -> Proof:
    test, output = candidate.code[:MAX_OUTPUT], output[-MAX_OUTPUT:]
    return Proof(outcome=outcome, path=candidate.path, command=command, test=test, output=output)


def _passes(candidate: Candidate, sides: BothSides) -> bool:
    """Return True if the test passes twice before the change."""
    runs = run_twice(sides.harness, sides.before, candidate.target, {candidate.path: candidate.content})
    return runs.first.outcome.status == runs.second.outcome.status == "passed"


def _report(finding: Finding, doubt: Doubt | None) -> tuple[str, str]:
    """Return the finding as the title and text of a bug report, from which tests are drafted."""
    code = "\n".join(finding.code)
    case = ""
    if doubt is not None and doubt.breaks_when:
        case = f"It breaks with: {doubt.breaks_when}\n\nWhat happens then: {doubt.instead}\n\n"
    before = f"A change to `{finding.path}` brought this in. Before it the code did the right thing"
    task = "so that the test has to pass there and to fail now"
    body = f"{finding.comment}\n\n{case}{before}, {task}. The code at fault:\n\n```\n{code}\n```"
    return finding.comment.split("\n")[0][:200], body
