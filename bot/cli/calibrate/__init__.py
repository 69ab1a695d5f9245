"""``bouncer calibrate``: choose the threshold from a repository's own history, with a promise."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from bot.cli.files import Harm, Judging, data_folder, judging_options, print_json, progress, show_card, write_text
from bot.cli.remote import reached
from bot.cli.remote import repository as named
from bot.core.errors import OperatorError
from bot.core.io_limits import read_file

if TYPE_CHECKING:
    from bot.calibration.findings import Bouncer, DuplicateFindings, Findings
    from bot.calibration.page import Calibration
    from bot.cli.calibrate.judging import PastCase, Verdicts
    from bot.core.config import RepoConfig
    from bot.core.subjects import Repository
    from bot.features.services import IssueIndex
    from bot.github.protocol import Past
    from bot.settings import Settings

#: The largest export, bytes.
MAX_EXPORT = 512 << 20
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
@click.option("--max-cost", type=click.FloatRange(min=0), metavar="USD", help="Most that the model may cost.")
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
    from bot.calibration.page import Calibration
    from bot.cli.calibrate.judging import cases

    environment = judging.settings()
    shadow = app.repo_config(judging.config, judging.forcing(_IN_SHADOW).overrides)
    name = named(repository, environment)
    folder = data_folder(environment, "calibration", name.replace("/", "+"))
    asking = (shadow.triage.label, *needs_info)
    past = _past(environment, name, source, folder / "export.json", limit, asking, fresh=fresh)
    if target:
        write_text(target, past.model_dump_json(exclude_defaults=True))
    past_cases = cases(past, asking, limit)
    verdicts = _verdicts(environment, _bouncers_question(environment, shadow), folder / "judged.jsonl")
    done = _judge(environment, shadow, past_cases, verdicts, max_cost, workers)
    remaining = None if max_cost is None else max_cost - (verdicts.cost_usd or 0.0)
    duplicates = DuplicatesResult()
    if app.repo_config(judging.config, judging.overrides).duplicates.mode != "off":
        file = folder / "duplicates.jsonl"
        duplicates = _duplicates(environment, shadow, past.repository, file, limit, remaining, workers, harm)
    costs = [cost for cost in (verdicts.cost_usd, duplicates.cost_usd) if cost is not None]
    calibration = Calibration(
        repository=past.repository.full_name,
        model=environment.bouncer_model,
        created=app.now().date(),
        exported=past.exported_at.date(),
        requests=past.requests,
        cost_usd=sum(costs) if costs else None,
        unfinished=sum(verdicts.find(case) is None for case in past_cases),
        findings=_findings(past_cases, verdicts, harm),
        duplicates=duplicates.findings,
    )
    _show(calibration, out, as_json=as_json)
    return 0 if done and duplicates.finished else 1


def _past(
    environment: Settings,
    name: str,
    source: str | None,
    export_file: Path,
    limit: int,
    asking: tuple[str, ...],
    *,
    fresh: bool,
) -> Past:
    """Return the export: from a file, from a command of the last 24 hours, or from GitHub."""
    from bot import app
    from bot.calibration.export import FRESH

    if source is not None:
        past = _read(Path(source))
        if past.repository.full_name.lower() != name.lower():
            raise OperatorError(f"{source} is an export of {past.repository.full_name}, not of {name}")
        return past
    if export_file.is_file() and not fresh:
        past = _read(export_file)
        if app.now() - past.exported_at < FRESH and past.limit >= limit:
            click.echo(f"using the export of {past.exported_at:%H:%M} UTC; --fresh makes a new one", err=True)
            return past
    if environment.github_token is None and environment.needs_setup:
        raise OperatorError(
            f"{name}: set GITHUB_TOKEN or the App's credentials: GitHub shows the original texts of issues only "
            "to a signed-in user"
        )
    return _exported(environment, name, export_file, limit, asking)


def _exported(environment: Settings, name: str, file: Path, limit: int, asking: tuple[str, ...]) -> Past:
    """Read an export from GitHub and store it. A killed command leaves its progress to the next one."""
    from bot import app
    from bot.calibration.export import Journal, SteadyChronicle, export
    from bot.github.history import GitHubChronicle

    calls: list[object] = []
    journal = Journal(file.with_suffix(".partial.jsonl"))
    with reached(environment, name, calls.append) as access, progress() as advance:
        chronicle = SteadyChronicle(
            GitHubChronicle(access.forge),
            journal,
            app.now(),
            lambda why: click.echo(why, err=True),
            lambda: len(calls),
        )
        past = export(chronicle, limit, asking, advance)
    write_text(file, past.model_dump_json(exclude_defaults=True))
    journal.clear()
    return past


def _read(file: Path) -> Past:
    from pydantic import ValidationError

    from bot.github.protocol import Past

    try:
        return Past.model_validate_json(read_file(file, MAX_EXPORT))
    except OSError as error:
        raise OperatorError(f"{file}: {error.strerror}") from None
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        key = ".".join(map(str, first["loc"])) or "file"
        raise OperatorError(f"{file}: not an export of bouncer calibrate: {key}: {first['msg']}") from None


def _bouncers_question(environment: Settings, config: RepoConfig) -> str:
    """Return what both bouncers are asked. The threshold is not part of the question."""
    from bot import app
    from bot.features.verify.judgement import prompt_names

    prompts = app.prompts(environment)
    hashes = [prompts.hash(f"triage.{config.triage.prompt}"), prompts.hash(*prompt_names(config.verify))]
    return "\n".join([*hashes, f"{config.triage.investigate} {config.verify.investigate}"])


def _verdicts(environment: Settings, question: str, file: Path) -> Verdicts:
    """Return earlier verdicts of the model on the same question."""
    from bot.calibration.export import Journal
    from bot.cli.calibrate.judging import Verdicts

    text = f"{environment.bouncer_model}\n{question}"
    return Verdicts(Journal(file), hashlib.sha256(text.encode()).hexdigest()[:16])


class DuplicatesResult(NamedTuple):
    """The threshold for duplicates, its cost, and False if the budget ended the judging."""

    findings: DuplicateFindings | None = None
    cost_usd: float | None = None
    finished: bool = True


def _duplicates(
    environment: Settings,
    config: RepoConfig,
    repository: Repository,
    file: Path,
    limit: int,
    max_cost: float | None,
    workers: int,
    harm: float,
) -> DuplicatesResult:
    """Judge closed issues for duplicates."""
    from bot import app
    from bot.cli.calibrate.judging import duplicate_findings, index_of, past_duplicates

    name = repository.full_name
    with index_of(environment) as index:
        history = index.history(name) if index else None
        if index is None or history is None:
            click.echo(
                f"duplicates are not judged: DATABASE_URL has no index; bouncer index {name} makes it", err=True
            )
            return DuplicatesResult()
        cases = past_duplicates(history, repository, limit)
        verdicts = _verdicts(environment, app.prompts(environment).hash("duplicates.compare"), file)
        done = _judge(environment, config, cases, verdicts, max_cost, workers, index)
        return DuplicatesResult(duplicate_findings(cases, history, verdicts, harm), verdicts.cost_usd, done)


def _judge(
    environment: Settings,
    config: RepoConfig,
    cases: Sequence[PastCase],
    verdicts: Verdicts,
    max_cost: float | None,
    workers: int,
    index: IssueIndex | None = None,
) -> bool:
    """Judge every case within the budget. Return False if the budget ended it."""
    from bot import app
    from bot.cli.calibrate.judging import judge
    from bot.features.services import NoIndex

    if max_cost is None:
        model = app.build_model(environment)
    else:
        budget = app.total_budget(max(0.0, max_cost - (verdicts.cost_usd or 0.0)))
        model = app.build_models(environment).build(environment.bouncer_model, budget, attempts=3)
    issue_index = index or NoIndex()
    with progress() as advance:
        return judge(
            cases,
            lambda forge: replace(
                app.offline_services(environment, forge, config, model), issue_index=issue_index
            ),
            verdicts,
            workers,
            lambda done: advance("judged", done, len(cases)),
        )


def _findings(cases: Sequence[PastCase], verdicts: Verdicts, harm: float) -> tuple[Findings, ...]:
    """Return a threshold per bouncer. Raises OperatorError if nothing was judged."""
    from bot.calibration.findings import draw_line
    from bot.cli.calibrate.judging import past_verdicts

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
