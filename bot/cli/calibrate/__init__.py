"""``bouncer calibrate``: choose the threshold from a repository's own history, with a promise."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from bot.cli.files import data_folder, print_json, show_card, write_text
from bot.cli.judging import Judging, cost_option, judging_options
from bot.cli.numbers import Harm
from bot.cli.remote import repository as named
from bot.core.errors import OperatorError

if TYPE_CHECKING:
    from bot.calibration.findings import Bouncer, DuplicateFindings, Findings
    from bot.calibration.page import Calibration
    from bot.cli.calibrate.cases import PastCase, Verdicts
    from bot.core.config import RepoConfig
    from bot.core.subjects import Repository
    from bot.features.services import IssueIndex, Services
    from bot.github.offline import ReplayForge
    from bot.github.protocol import Past
    from bot.settings import Settings

#: Everything is judged, and nothing is written or executed.
_IN_SHADOW: Mapping[str, Mapping[str, Any]] = {
    "triage": {"mode": "shadow"},
    "verify": {"mode": "shadow", "execute": False},
    "pulls": {"drafts": True},
    "duplicates": {"mode": "shadow", "suggest_above": 0},
}


@click.command()
@click.argument("repository", metavar="OWNER/REPO")
@click.option(
    "--harm",
    type=Harm(),
    default="5%",
    show_default=True,
    help="Largest share of actionable issues to bounce, and of suggested duplicates that are wrong.",
)
@click.option(
    "--limit",
    type=click.IntRange(1, 1000),
    default=200,
    show_default=True,
    help="Most issues, and most pull requests.",
)
@cost_option
@click.option("--from", "source", metavar="FILE", help="Read an export instead of GitHub.")
@click.option(
    "--fresh", is_flag=True, help="Read GitHub again, even if the last export is less than 24 hours old."
)
@click.option("--export", "target", metavar="FILE", help="Write the export here, for --from.")
@click.option(
    "--out", default="calibration.html", show_default=True, metavar="FILE", help="Where to write the page."
)
@click.option(
    "--needs-info",
    multiple=True,
    metavar="LABEL",
    help="Another label that asks the author for details (repeatable).",
)
@click.option("--workers", type=click.IntRange(1, 64), default=4, show_default=True, help="Questions at a time.")
@judging_options
def command(
    repository: str,
    harm: float,
    limit: int,
    max_cost: float | None,
    source: str | None,
    fresh: bool,
    target: str | None,
    out: str,
    needs_info: tuple[str, ...],
    workers: int,
    judging: Judging,
    as_json: bool,
) -> int:
    """Judge the last issues and pull requests of OWNER/REPO without posting, and choose a threshold.

    Nothing is written to GitHub, and bouncer.yml is not changed: the lines for it are printed. Exports and
    verdicts are stored below BOUNCER_DATA_DIR: if interrupted, the same command resumes. An export is used for
    24 hours. Duplicates are judged if DATABASE_URL has the index of bouncer index.
    """
    from bot import app
    from bot.cli.calibrate.cases import new_export, read_export, recent_export

    environment = judging.settings()
    environment.check_model()
    shadow = app.repo_config(judging.config, judging.forcing(_IN_SHADOW).overrides)
    name = named(repository, environment)
    folder = data_folder(environment, "calibration", name.replace("/", "+"))
    asking = (shadow.triage.label, *needs_info)
    if source is not None:
        past = read_export(Path(source), name)
    else:
        file = folder / "export.json"
        recent = None if fresh else recent_export(file, limit)
        past = recent or new_export(environment, name, file, limit, asking)
    if target:
        write_text(target, past.model_dump_json(exclude_defaults=True))
    trial = _Trial(environment, shadow, folder, limit, harm, max_cost, workers)
    with_duplicates = app.repo_config(judging.config, judging.overrides).duplicates.mode != "off"
    calibration, finished = _calibrate(trial, past, asking, with_duplicates=with_duplicates)
    _show(calibration, out, as_json=as_json)
    return 0 if finished else 1


class _Trial(NamedTuple):
    """How past subjects are judged: in shadow, so that nothing is written or executed."""

    environment: Settings
    config: RepoConfig
    folder: Path
    limit: int
    harm: float
    max_cost: float | None
    workers: int


def _calibrate(
    trial: _Trial, past: Past, asking: tuple[str, ...], *, with_duplicates: bool
) -> tuple[Calibration, bool]:
    """Judge the past and choose thresholds. Also return False if the budget ended the judging."""
    from bot import app
    from bot.calibration.page import Calibration
    from bot.cli.calibrate.cases import cases

    past_cases = cases(past, asking, trial.limit)
    verdicts = _verdicts(trial, _bouncers_question(trial.environment, trial.config), "judged.jsonl")
    finished = _judge(trial, past_cases, verdicts)
    duplicates = DuplicatesResult()
    if with_duplicates:
        remaining = None if trial.max_cost is None else trial.max_cost - (verdicts.cost_usd or 0.0)
        duplicates = _duplicates(trial._replace(max_cost=remaining), past.repository)
    costs = [cost for cost in (verdicts.cost_usd, duplicates.cost_usd) if cost is not None]
    calibration = Calibration(
        repository=past.repository.full_name,
        model=trial.environment.bouncer_model,
        created=app.now().date(),
        exported=past.exported_at.date(),
        requests=past.requests,
        cost_usd=sum(costs) if costs else None,
        unfinished=sum(verdicts.find(case) is None for case in past_cases),
        findings=_findings(past_cases, verdicts, trial.harm),
        duplicates=duplicates.findings,
    )
    return calibration, finished and duplicates.finished


def _bouncers_question(environment: Settings, config: RepoConfig) -> str:
    """Return what both bouncers are asked. The threshold is not part of the question."""
    from bot import app
    from bot.features.verify.judgement import prompt_names

    prompts = app.prompts(environment)
    hashes = [prompts.hash(f"triage.{config.triage.prompt}"), prompts.hash(*prompt_names(config.verify))]
    return "\n".join([*hashes, f"{config.triage.investigate} {config.verify.investigate}"])


def _verdicts(trial: _Trial, question: str, file: str) -> Verdicts:
    """Return earlier verdicts of the model on the same question."""
    from bot.calibration.export import Journal
    from bot.cli.calibrate.cases import Verdicts

    text = f"{trial.environment.bouncer_model}\n{question}"
    return Verdicts(Journal(trial.folder / file), hashlib.sha256(text.encode()).hexdigest()[:16])


class DuplicatesResult(NamedTuple):
    """The threshold for duplicates, its cost, and False if the budget ended the judging."""

    findings: DuplicateFindings | None = None
    cost_usd: float | None = None
    finished: bool = True


def _duplicates(trial: _Trial, repository: Repository) -> DuplicatesResult:
    """Judge closed issues for duplicates."""
    from bot import app
    from bot.cli.calibrate.cases import duplicate_findings, index_of, past_duplicates

    name = repository.full_name
    with index_of(trial.environment) as index:
        history = index.history(name) if index else None
        if index is None or history is None:
            click.echo(
                f"duplicates are not judged: DATABASE_URL has no index; bouncer index {name} makes it", err=True
            )
            return DuplicatesResult()
        cases = past_duplicates(history, repository, trial.limit)
        question = app.prompts(trial.environment).hash("duplicates.compare")
        verdicts = _verdicts(trial, question, "duplicates.jsonl")
        finished = _judge(trial, cases, verdicts, index)
        findings = duplicate_findings(cases, history, verdicts, trial.harm)
        return DuplicatesResult(findings, verdicts.cost_usd, finished)


def _judge(trial: _Trial, cases: Sequence[PastCase], verdicts: Verdicts, index: IssueIndex | None = None) -> bool:
    """Judge every case within the budget. Return False if the budget ended it."""
    from bot import app
    from bot.cli.calibrate.cases import judge
    from bot.features.services import NoIndex

    environment = trial.environment
    remaining = None if trial.max_cost is None else max(0.0, trial.max_cost - (verdicts.cost_usd or 0.0))
    model = app.build_model(environment, budget=app.total_budget(remaining))

    def services(forge: ReplayForge) -> Services:
        offline = app.offline_services(environment, forge, trial.config, model)
        return replace(offline, issue_index=index or NoIndex())

    return judge(cases, services, verdicts, trial.workers)


def _findings(cases: Sequence[PastCase], verdicts: Verdicts, harm: float) -> tuple[Findings, ...]:
    """Return a threshold per bouncer. Raises OperatorError if nothing was judged."""
    from bot.calibration.findings import draw_line
    from bot.cli.calibrate.cases import past_verdicts

    bouncers: tuple[Bouncer, ...] = ("triage", "verify")
    by_bouncer = {bouncer: past_verdicts(cases, verdicts, bouncer) for bouncer in bouncers}
    findings = tuple(
        draw_line(bouncer, rows, harm) for bouncer, rows in by_bouncer.items() if any(row.label for row in rows)
    )
    if not findings:
        why = next((row["problem"] for case in cases if (row := verdicts.find(case))), "--max-cost leaves no room")
        raise OperatorError(f"none of the {len(cases)} cases was judged: {why}")
    return findings


def _show(calibration: Calibration, out: str, *, as_json: bool) -> None:
    from bot.calibration.page import as_html, as_text

    write_text(out, as_html(calibration))
    if as_json:
        print_json({**_as_object(calibration), "page": out})
    else:
        show_card(as_text(calibration))
        click.echo(f"\n{out} has the curves, and the mistakes with links.")


def _as_object(calibration: Calibration) -> dict[str, Any]:
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
