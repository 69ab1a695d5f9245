"""``bouncer calibrate``: the line with a promise, from a repository's own history."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bot.cli.files import Share, data_folder, model_options, print_json, show_card, write_text
from bot.cli.remote import reached
from bot.cli.remote import repository as named
from bot.core.errors import OperatorError
from bot.core.io_limits import read_file

if TYPE_CHECKING:
    from bot.calibration.export import Advance
    from bot.calibration.findings import Bouncer, Findings
    from bot.calibration.page import Calibration
    from bot.cli.calibrate.judging import Kept, PastCase
    from bot.core.config import RepoConfig
    from bot.github.protocol import Past
    from bot.settings import Settings

#: The largest export, bytes.
MAX_EXPORT = 512 << 20
#: Everything is judged, and nothing is written or executed.
_IN_SHADOW: Mapping[str, Mapping[str, Any]] = {
    "triage": {"mode": "shadow"},
    "verify": {"mode": "shadow", "execute": False},
    "pulls": {"drafts": True},
}


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
    from bot import app, settings
    from bot.cli.calibrate.judging import cases

    environment = settings.load(bouncer_model=model, bouncer_prompts_dir=prompts)
    shadow = app.repo_config(config, _IN_SHADOW)
    name = named(repository, environment)
    folder = data_folder(environment, "calibration", name.replace("/", "+"))
    asking = (shadow.triage.label, *needs_info)
    past = _past(environment, name, source, folder / "export.json", limit, asking)
    if target:
        write_text(target, past.model_dump_json(exclude_defaults=True))
    chosen = cases(past, asking, limit)
    kept = _kept(environment, shadow, folder / "judged.jsonl")
    done = _judge(environment, shadow, chosen, kept, max_cost, workers)
    _show(_found(environment, past, chosen, kept, harm), out, as_json=as_json)
    return 0 if done else 1


def _past(
    environment: Settings, name: str, source: str | None, kept: Path, limit: int, asking: tuple[str, ...]
) -> Past:
    """The export: from a file, from an earlier command of today, or from GitHub."""
    from bot import app
    from bot.calibration.export import FRESH

    if source is not None:
        past = _read(Path(source))
        if past.repository.full_name.lower() != name.lower():
            raise OperatorError(f"{source} is an export of {past.repository.full_name}, not of {name}")
        return past
    if kept.is_file():
        past = _read(kept)
        if app.now() - past.exported_at < FRESH and past.limit >= limit:
            click.echo(f"taking the export of {past.exported_at:%H:%M} UTC; delete {kept} for a new one", err=True)
            return past
    if environment.github_token is None and environment.needs_setup:
        raise OperatorError(
            f"{name}: set GITHUB_TOKEN, or the App's credentials: GitHub tells nobody else how texts stood "
            "when they were opened"
        )
    return _exported(environment, name, kept, limit, asking)


def _exported(environment: Settings, name: str, kept: Path, limit: int, asking: tuple[str, ...]) -> Past:
    """Read from GitHub, and kept; a command that is killed leaves what it has read to the next one."""
    from bot import app
    from bot.calibration.export import Journal, SteadyChronicle, export
    from bot.github.history import GitHubChronicle

    calls: list[object] = []
    journal = Journal(kept.with_suffix(".partial.jsonl"))
    with reached(environment, name, calls.append) as access, progress() as advance:
        chronicle = SteadyChronicle(
            GitHubChronicle(access.forge),
            journal,
            app.now(),
            lambda why: click.echo(why, err=True),
            lambda: len(calls),
        )
        past = export(chronicle, limit, asking, advance)
    write_text(kept, past.model_dump_json(exclude_defaults=True))
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
        where = ".".join(map(str, first["loc"]))
        raise OperatorError(f"{file}: not an export of bouncer calibrate: {where}: {first['msg']}") from None


def _kept(environment: Settings, config: RepoConfig, file: Path) -> Kept:
    """Earlier verdicts on the very same question; where the line lies changes no answer."""
    from bot import app
    from bot.calibration.export import Journal
    from bot.cli.calibrate.judging import Kept

    prompts = app.prompts(environment)
    hashes = [prompts.hash(f"triage.{config.triage.prompt}"), prompts.hash(f"verify.{config.verify.prompt}")]
    looks = f"{config.triage.investigate} {config.verify.investigate}"
    asked = "\n".join([environment.bouncer_model, *hashes, looks])
    return Kept(Journal(file), hashlib.sha256(asked.encode()).hexdigest()[:16])


def _judge(
    environment: Settings,
    config: RepoConfig,
    chosen: Sequence[PastCase],
    kept: Kept,
    max_cost: float | None,
    workers: int,
) -> bool:
    """Every case judged as far as the money goes; False where it did not suffice."""
    from bot import app
    from bot.cli.calibrate.judging import judge

    if max_cost is None:
        model = app.build_model(environment)
    else:
        budget = app.total_budget(max(0.0, max_cost - (kept.cost_usd or 0.0)))
        model = app.build_models(environment).build(environment.bouncer_model, budget, attempts=3)
    with progress() as advance:
        return judge(
            chosen,
            lambda forge: app.offline_services(environment, forge, config, model),
            kept,
            workers,
            lambda done: advance("judged", done, len(chosen)),
        )


def _found(environment: Settings, past: Past, chosen: Sequence[PastCase], kept: Kept, harm: float) -> Calibration:
    """What follows from the verdicts."""
    from bot import app
    from bot.calibration.page import Calibration

    return Calibration(
        repository=past.repository.full_name,
        model=environment.bouncer_model,
        created=app.now().date(),
        exported=past.exported_at.date(),
        requests=past.requests,
        cost_usd=kept.cost_usd,
        unfinished=sum(kept.find(case) is None for case in chosen),
        findings=_findings(chosen, kept, harm),
    )


def _findings(chosen: Sequence[PastCase], kept: Kept, harm: float) -> tuple[Findings, ...]:
    """What the verdicts say about the line of each bouncer. Raises OperatorError where nothing was judged."""
    from bot.calibration.findings import draw_line
    from bot.cli.calibrate.judging import verdicts

    bouncers: tuple[Bouncer, ...] = ("triage", "verify")
    told = [(bouncer, verdicts(chosen, kept, bouncer)) for bouncer in bouncers]
    findings = tuple(draw_line(bouncer, each, harm) for bouncer, each in told if any(one.label for one in each))
    if not findings:
        why = next((row["problem"] for case in chosen if (row := kept.find(case))), "--max-cost leaves no room")
        raise OperatorError(f"none of the {len(chosen)} cases was judged: {why}")
    return findings


def _show(found: Calibration, out: str, *, as_json: bool) -> None:
    from bot.calibration.page import as_html, as_text

    write_text(out, as_html(found))
    if as_json:
        print_json({**_as_object(found), "page": out})
    else:
        show_card(as_text(found))
        click.echo(f"\n{out} has the curves, and the mistakes with links.")


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
