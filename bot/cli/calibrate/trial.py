"""Judge a repository's past in shadow, and choose the thresholds."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import click

from bot import app
from bot.calibration.export import Journal
from bot.calibration.findings import Bouncer, DuplicateFindings, Findings, draw_line
from bot.calibration.page import Calibration
from bot.cli.calibrate.cases import (
    PastCase,
    Verdicts,
    cases,
    duplicate_findings,
    index_of,
    past_duplicates,
    past_verdicts,
)
from bot.cli.judging import decided, judge_all
from bot.core.actions import Decision
from bot.core.config import RepoConfig
from bot.core.errors import OperatorError
from bot.core.subjects import Repository
from bot.features.services import IssueIndex, NoIndex
from bot.features.verify.judgement import prompt_names
from bot.github.offline import ReplayForge
from bot.github.protocol import Past
from bot.settings import Settings


class DuplicatesResult(NamedTuple):
    """The threshold for duplicates, its cost, and False if the budget ended the judging."""

    findings: DuplicateFindings | None = None
    cost_usd: float | None = None
    finished: bool = True


@dataclass(frozen=True)
class ShadowTrial:
    """How past subjects are judged: in shadow, so that nothing is written or executed."""

    environment: Settings
    config: RepoConfig
    folder: Path
    limit: int
    harm: float
    max_cost: float | None
    workers: int

    def calibrate(self, past: Past, asking: tuple[str, ...], *, with_duplicates: bool) -> tuple[Calibration, bool]:
        """Judge the past and choose thresholds. Also return False if the budget ended the judging."""
        past_cases = cases(past, asking, self.limit)
        verdicts = self._verdicts(self._bouncers_question(), "judged.jsonl")
        finished = self._judge(past_cases, verdicts)
        duplicates = DuplicatesResult()
        if with_duplicates:
            duplicates = self._duplicates(past.repository, verdicts.cost_usd)
        costs = [cost for cost in (verdicts.cost_usd, duplicates.cost_usd) if cost is not None]
        calibration = Calibration(
            repository=past.repository.full_name,
            model=self.environment.bouncer_model,
            created=app.now().date(),
            exported=past.exported_at.date(),
            requests=past.requests,
            cost_usd=sum(costs) if costs else None,
            unfinished=sum(verdicts.find(case) is None for case in past_cases),
            findings=_findings(past_cases, verdicts, self.harm),
            duplicates=duplicates.findings,
        )
        return calibration, finished and duplicates.finished

    def _bouncers_question(self) -> str:
        """Return what both bouncers are asked. The threshold is not part of the question."""
        prompts, triage, verify = app.prompts(self.environment), self.config.triage, self.config.verify
        hashes = [prompts.hash(f"triage.{triage.prompt}"), prompts.hash(*prompt_names(verify))]
        return "\n".join([*hashes, f"{triage.investigate} {verify.investigate}"])

    def _verdicts(self, question: str, file: str) -> Verdicts:
        """Return earlier verdicts of the model on the same question."""
        text = f"{self.environment.bouncer_model}\n{question}"
        return Verdicts(Journal(self.folder / file), hashlib.sha256(text.encode()).hexdigest()[:16])

    def _duplicates(self, repository: Repository, spent: float | None) -> DuplicatesResult:
        """Judge closed issues for duplicates. ``spent`` counts against the budget."""
        name = repository.full_name
        with index_of(self.environment) as index:
            history = index.history(name) if index else None
            if index is None or history is None:
                click.echo(
                    f"duplicates are not judged: DATABASE_URL has no index; bouncer index {name} makes it",
                    err=True,
                )
                return DuplicatesResult()
            past_cases = past_duplicates(history, repository, self.limit)
            question = app.prompts(self.environment).hash("duplicates.compare")
            verdicts = self._verdicts(question, "duplicates.jsonl")
            finished = self._judge(past_cases, verdicts, spent, index)
            findings = duplicate_findings(past_cases, history, verdicts, self.harm)
            return DuplicatesResult(findings, verdicts.cost_usd, finished)

    def _judge(
        self,
        past_cases: Sequence[PastCase],
        verdicts: Verdicts,
        spent: float | None = None,
        index: IssueIndex | None = None,
    ) -> bool:
        """Judge what is not judged yet. Return False if the budget ended it. Raises OperatorError."""
        remaining = self.max_cost
        if remaining is not None:
            remaining = max(0.0, remaining - (spent or 0.0) - (verdicts.cost_usd or 0.0))
        model = app.build_model(self.environment, budget=app.total_budget(remaining))
        exhausted = threading.Event()

        def judge(case: PastCase) -> Decision | None:
            before = verdicts.find(case)
            if (before is not None and before["label"] is not None) or exhausted.is_set():
                return None
            services = app.offline_services(self.environment, ReplayForge(case.snapshot), self.config, model)
            decision = decided(
                case.bouncer, case.event, replace(services, issue_index=index or NoIndex())
            ) or Decision(
                kind=case.bouncer, subject=case.subject, reason="skipped by the configuration", abstained="skipped"
            )
            if decision.abstained == "skipped:budget":
                exhausted.set()
            else:
                verdicts.add(case, decision)
            return decision

        judge_all(judge, past_cases, self.workers, "judged")
        return not exhausted.is_set()


def _findings(past_cases: Sequence[PastCase], verdicts: Verdicts, harm: float) -> tuple[Findings, ...]:
    """Return a threshold per bouncer. Raises OperatorError if nothing was judged."""
    bouncers: tuple[Bouncer, ...] = ("triage", "verify")
    by_bouncer = {bouncer: past_verdicts(past_cases, verdicts, bouncer) for bouncer in bouncers}
    findings = tuple(
        draw_line(bouncer, rows, harm) for bouncer, rows in by_bouncer.items() if any(row.label for row in rows)
    )
    if not findings:
        why = next(
            (row["problem"] for case in past_cases if (row := verdicts.find(case))), "--max-cost leaves no room"
        )
        raise OperatorError(f"none of the {len(past_cases)} cases was judged: {why}")
    return findings


def as_object(calibration: Calibration) -> dict[str, Any]:
    """Return a calibration as ``--json`` prints it."""
    keys = {"repository", "model", "requests", "cost_usd", "unfinished"}
    return {
        **calibration.model_dump(mode="json", include=keys),
        "settings": calibration.settings,
        "duplicates": calibration.duplicates and calibration.duplicates.model_dump(mode="json"),
        **{
            findings.bouncer: {
                **findings.promise.model_dump(mode="json"),
                **findings.model_dump(
                    mode="json", include={"by_label", "calibration_error", "brier", "unjudged", "curve"}
                ),
                "good": sum(case.good for case in findings.cases),
                "cases": len(findings.cases),
                "bounced": findings.bounced,
                "mistakes": [case.model_dump(mode="json") for case in findings.mistakes()],
            }
            for findings in calibration.findings
        },
    }
