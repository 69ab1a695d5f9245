"""``bouncer calibrate``: export, judge, draw the line, show it."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bot.cli.files import Share, model_options, print_json, show_card, write_text
from bot.cli.remote import reached
from bot.core.bounded import read_file
from bot.errors import OperatorError

if TYPE_CHECKING:
    from bot.calibration.findings import Bouncer, Findings
    from bot.calibration.page import Calibration
    from bot.cli.calibrate.judging import Kept, PastCase
    from bot.core.config import RepoConfig
    from bot.forge.past import Past
    from bot.models.protocol import Model
    from bot.ops.settings import Settings

#: The largest export, bytes.
MAX_EXPORT = 512 << 20

Advance = Callable[[str, int, int], None]


@click.command()
@click.argument("repository", metavar="OWNER/REPO")
@click.option("--harm", type=Share(), default="5%", show_default=True, help="Actionable issues bounced, at most.")
@click.option(
    "--limit", type=click.IntRange(1, 1000), default=200, show_default=True, help="Issues, and pull requests."
)
@click.option("--max-cost", type=click.FloatRange(min=0), metavar="USD", help="What the model may cost.")
@click.option("--from", "source", metavar="FILE", help="An export instead of GitHub.")
@click.option("--export", "target", metavar="FILE", help="Write the export there, for --from.")
@click.option("--out", default="calibration.html", show_default=True, metavar="FILE", help="The page.")
@click.option("--needs-info", multiple=True, metavar="LABEL", help="One more label that asks the author for more.")
@click.option("--workers", type=click.IntRange(1, 64), default=4, show_default=True, help="Questions at a time.")
@model_options
def command(
    repository: str,
    harm: float,
    limit: int,
    max_cost: float | None,
    source: str | None,
    target: str | None,
    out: str,
    needs_info: tuple[str, ...],
    workers: int,
    model: str | None,
    prompts: str | None,
    config: str | None,
    as_json: bool,
) -> int:
    """Judge the last issues and pull requests of OWNER/REPO without posting, and choose the line with a promise.

    Nothing is written to GitHub, and bouncer.yml is not changed: the lines for it are printed. What was exported
    and judged is kept below BOUNCER_DATA_DIR; the same command goes on where it stopped.
    """
    from bot import app
    from bot.calibration.page import as_html, as_text
    from bot.ops import settings

    environment = settings.load(bouncer_model=model, bouncer_prompts_dir=prompts)
    shadow = app.repo_config(
        config,
        {"triage": {"mode": "shadow"}, "verify": {"mode": "shadow", "execute": False}, "pulls": {"drafts": True}},
    )
    folder = _folder(environment, repository)
    asking = (shadow.triage.label, *needs_info)
    past = _past(environment, repository, source, folder / "export.json", limit, asking)
    if target:
        write_text(target, past.model_dump_json(exclude_defaults=True))
    found, done = _judged(environment, past, shadow, asking, limit, harm, max_cost, workers, folder)
    write_text(out, as_html(found))
    if as_json:
        print_json({**_as_object(found), "page": out})
    else:
        show_card(as_text(found))
        click.echo(f"\n{out} has the curves, and the mistakes with links.")
    return 0 if done else 1


def _folder(environment: Settings, repository: str) -> Path:
    owner, slash, name = repository.partition("/")
    if not (owner and slash and name) or "/" in name or {owner, name} & {".", ".."}:
        raise OperatorError(f"{repository!r} is not of the form OWNER/REPO")
    folder = environment.bouncer_data_dir / "calibration" / f"{owner}+{name}"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise OperatorError(f"BOUNCER_DATA_DIR: {folder}: {error.strerror}") from None
    return folder


def _past(
    environment: Settings, repository: str, source: str | None, kept: Path, limit: int, asking: tuple[str, ...]
) -> Past:
    """The export: from a file, from an earlier command of today, or from GitHub."""
    from bot import app
    from bot.calibration.export import export
    from bot.calibration.journal import Journal
    from bot.calibration.steady import FRESH, SteadyChronicle
    from bot.forge.github.past import GitHubChronicle

    if source is not None:
        past = _read(Path(source))
        if past.repository.full_name.lower() != repository.lower():
            raise OperatorError(f"{source} is an export of {past.repository.full_name}, not of {repository}")
        return past
    now = app.now()
    if kept.is_file():
        past = _read(kept)
        if now - past.exported_at < FRESH and past.limit >= limit:
            click.echo(f"taking the export of {past.exported_at:%H:%M} UTC; delete {kept} for a new one", err=True)
            return past
    calls: list[object] = []
    if environment.github_token is None and environment.needs_setup:
        raise OperatorError(
            f"{repository}: set GITHUB_TOKEN, or the App's credentials: GitHub tells nobody else how texts stood "
            "when they were opened"
        )
    journal = Journal(kept.with_suffix(".partial.jsonl"))
    with reached(environment, repository, calls.append) as access, progress() as advance:
        chronicle = SteadyChronicle(
            GitHubChronicle(access.forge),
            journal,
            now,
            lambda why: click.echo(why, err=True),
            lambda: len(calls),
        )
        past = export(chronicle, limit, chronicle.began, asking, advance, lambda: chronicle.requests)
    write_text(str(kept), past.model_dump_json(exclude_defaults=True))
    journal.clear()
    return past


def _read(file: Path) -> Past:
    from pydantic import ValidationError

    from bot.forge.past import Past

    try:
        return Past.model_validate_json(read_file(file, MAX_EXPORT))
    except OSError as error:
        raise OperatorError(f"{file}: {error.strerror}") from None
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise OperatorError(f"{file}: not an export of bouncer calibrate: {where}: {first['msg']}") from None


def _judged(
    environment: Settings,
    past: Past,
    config: RepoConfig,
    asking: tuple[str, ...],
    limit: int,
    harm: float,
    max_cost: float | None,
    workers: int,
    folder: Path,
) -> tuple[Calibration, bool]:
    """Every case judged as far as the money goes, and what follows; False where it did not suffice."""
    from bot import app
    from bot.calibration.journal import Journal
    from bot.calibration.page import Calibration
    from bot.cli.calibrate.judging import Kept, cases, judge

    chosen = cases(past, asking, limit)
    if not chosen:
        raise OperatorError(
            f"{past.repository.full_name} has no closed issue or merged pull request that tells anything"
        )
    kept = Kept(Journal(folder / "judged.jsonl"), _question(environment, config))
    model = _model(environment, max_cost, kept.cost_usd or 0.0)
    with progress() as advance:
        complete = judge(
            chosen,
            lambda forge, watched: app.offline_services(environment, forge, config, watched),
            model,
            kept,
            workers,
            lambda done: advance("judged", done, len(chosen)),
        )
    result = Calibration(
        repository=past.repository.full_name,
        model=environment.bouncer_model,
        made=app.now().date(),
        exported=past.exported_at.date(),
        requests=past.requests,
        cost_usd=kept.cost_usd,
        unfinished=sum(kept.find(case) is None for case in chosen),
        findings=_findings(chosen, kept, harm),
    )
    return result, complete


def _question(environment: Settings, config: RepoConfig) -> str:
    """Identifies what the model is asked; where the line lies changes no answer."""
    from bot import app

    named = app.prompts(environment)
    hashes = [named.hash(f"triage.{config.triage.prompt}"), named.hash(f"verify.{config.verify.prompt}")]
    looks = f"{config.triage.investigate} {config.verify.investigate}"
    return hashlib.sha256("\n".join([environment.bouncer_model, *hashes, looks]).encode()).hexdigest()[:16]


def _findings(chosen: Sequence[PastCase], kept: Kept, harm: float) -> tuple[Findings, ...]:
    """What the verdicts say about the line of each bouncer. Raises OperatorError where nothing was judged."""
    from bot.calibration.findings import found
    from bot.cli.calibrate.judging import verdicts

    bouncers: tuple[Bouncer, ...] = ("triage", "verify")
    told = [(bouncer, verdicts(chosen, kept, bouncer)) for bouncer in bouncers]
    findings = tuple(found(bouncer, each, harm) for bouncer, each in told if any(one.label for one in each))
    if not findings:
        why = next((row["problem"] for case in chosen if (row := kept.find(case))), "--max-cost leaves no room")
        raise OperatorError(f"none of the {len(chosen)} cases was judged: {why}")
    return findings


def _model(environment: Settings, max_cost: float | None, spent: float) -> Model:
    from bot import app
    from bot.models.budget import Budget, Limit, MemoryBudget

    if max_cost is None:
        return app.build_model(environment)
    # A command that passes midnight is still one command: its budget's day never ends.
    started = app.now()
    limit = Limit(scope="--max-cost", usd=max(0.0, max_cost - spent))
    budget = Budget(MemoryBudget(), (limit,), lambda: started)
    return app.build_models(environment).build(environment.bouncer_model, budget, attempts=3)


def _as_object(found: Calibration) -> dict[str, Any]:
    keys = {"repository", "model", "requests", "cost_usd", "unfinished"}
    return {
        **found.model_dump(mode="json", include=keys),
        "settings": found.settings,
        **{
            each.bouncer: {
                **each.promise.model_dump(mode="json"),
                **each.model_dump(
                    mode="json", include={"by_label", "calibration_error", "brier", "unjudged", "curve"}
                ),
                "good": sum(case.good for case in each.cases),
                "cases": len(each.cases),
                "bounced": each.bounced,
                "mistakes": [case.model_dump(mode="json") for case in each.mistakes()],
            }
            for each in found.findings
        },
    }


@contextmanager
def progress() -> Iterator[Advance]:
    """A bar a step on stderr; nothing where that is no terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(file=sys.stderr), disable=not sys.stderr.isatty()) as bar:
        rows: dict[str, Any] = {}

        def advance(step: str, done: int, total: int) -> None:
            if step not in rows:
                rows[step] = bar.add_task(step, total=total)
            bar.update(rows[step], completed=done)

        yield advance
