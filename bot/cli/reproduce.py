"""``bouncer reproduce``: draft a test that fails as a bug report says, on a local checkout."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bot.cli.files import print_json, read_text, show_card
from bot.cli.judging import Judging, judging_options, operator_harness, runner_option
from bot.core.errors import ModelError, OperatorError, SandboxError, TransientError
from bot.core.text import amount

if TYPE_CHECKING:
    from bot.reproduction.protocol import OfferedTest, Reproduction


@click.command()
@click.option(
    "--issue", "issue_file", metavar="FILE", required=True, help="Markdown; its first line is the title."
)
@click.option(
    "--repo", metavar="DIR", required=True, type=click.Path(path_type=Path), help="A checkout; it is not changed."
)
@runner_option("Runs tests", required=True)
@click.option("--samples", type=click.IntRange(1, 50), help="Drafts to ask for.  [default: reproduce.samples]")
@click.option(
    "--fail-on",
    type=click.Choice(["not-reproduced", "not-run"]),
    multiple=True,
    help="Exit with 1 in this state (repeatable).",
)
@judging_options
def command(
    issue_file: str,
    repo: Path,
    test_command: str,
    samples: int | None,
    fail_on: tuple[str, ...],
    judging: Judging,
    as_json: bool,
) -> int:
    """Draft tests for a bug report, run them on a checkout in a sandbox, print the best that fails as reported."""
    from bot import app
    from bot.github.offline import REPOSITORY
    from bot.reproduction.protocol import Author, Options
    from bot.reproduction.report import parse_report

    report = parse_report(read_text(issue_file))
    if not report.title:
        raise OperatorError(f"{issue_file}: its first line, the title, is empty")
    if samples is not None:
        judging = judging.forcing({"reproduce": {"samples": samples}})
    config, environment = app.repo_config(judging.config, judging.overrides).reproduce, judging.settings()
    subject = f"{REPOSITORY.full_name}#1"
    author = Author(app.build_model(environment), app.prompts(environment), subject)
    harness = operator_harness(app.build_sandbox(environment), test_command, config.seconds)
    options = Options.configured(config)
    try:
        result = harness.reproduce(repo, report, author, options)
    except (ModelError, SandboxError, TransientError) as error:
        raise OperatorError(" ".join(str(error).split())) from None
    if as_json:
        print_json(_as_object(result))
    else:
        show_card(_text(result))
    return 1 if result.state.replace(" ", "-") in fail_on else 0


def _as_object(result: Reproduction) -> dict[str, Any]:
    plain = result.model_dump(mode="json", exclude={"tests", "attempts"})
    attempts = [
        {
            **attempt.model_dump(mode="json", exclude={"candidate"}),
            "code": attempt.candidate and attempt.candidate.code,
        }
        for attempt in result.attempts
    ]
    return {**plain, "test": result.best and _test(result.best), "attempts": attempts}


def _test(best: OfferedTest) -> dict[str, Any]:
    return {
        "path": best.candidate.path,
        "name": best.candidate.name,
        "code": best.candidate.code,
        "content": best.candidate.content,
        "new_file": best.candidate.new_file,
        "command": best.command,
        "failure": {"type": best.outcome.exception_type, "message": best.outcome.message},
        "output": best.outcome.output,
        "agreeing": best.agreeing,
        "match": best.grade,
    }


def _text(result: Reproduction) -> str:
    from bot.features.reproduce.texts import failure_line

    best = result.best
    if best is None:
        lines = [f"{result.state.capitalize()}: {result.reason}"]
        lines += [
            f"- draft {attempt.number + 1}: {attempt.fate}. {attempt.why}".rstrip() for attempt in result.attempts
        ]
        return "\n".join(lines)
    calls = amount(result.usage.calls, "call")
    return "\n".join(
        [
            f"Reproduced: {best.command} fails with {failure_line(best.outcome)} "
            f"({best.agreeing} of {result.drafts} drafts agree).",
            f"{'New file' if best.candidate.new_file else 'Add to'} {best.candidate.path}:",
            "",
            best.candidate.code.rstrip(),
            "",
            best.outcome.output,
            "",
            f"{result.model}, {calls}, {result.usage.seconds:.1f} s, run in {result.sandbox}",
        ]
    )
