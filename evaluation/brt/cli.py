"""``bouncer-eval replay brt``: are these tests bug-reproducing?"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from bot import settings, wiring
from bot.errors import OperatorError
from bot.sandbox.protocol import Limits, Sandbox
from evaluation.brt.judge import Judge
from evaluation.brt.replay import candidate_tasks, judged, run_facts
from evaluation.cli.options import json_option
from evaluation.cli.running import report_result, run_shown
from evaluation.run_folder import RunFolder


@click.command("brt")
@click.option("--cases", required=True, metavar="FILE", help="JSON Lines: instance_id, base, fixed, command, env.")
@click.option("--candidates", required=True, metavar="FILE", help="JSON Lines: tests to judge; no model is asked.")
@click.option("--out", required=True, metavar="DIR", help="Folder of the run; continued where it exists.")
@click.option(
    "--seconds", default=300, show_default=True, type=click.IntRange(1, 7200), help="Limit of a test run."
)
@click.option("--memory", default=2048, show_default=True, type=click.IntRange(64), help="Limit of a run, MiB.")
@click.option("--workers", default=2, show_default=True, type=click.IntRange(1, 64), help="Candidates at a time.")
@click.option("--retry-failed", is_flag=True, help="Judge those again on which the sandbox failed.")
@json_option
def replay_command(
    cases: str,
    candidates: str,
    out: str,
    seconds: int,
    memory: int,
    workers: int,
    retry_failed: bool,
    as_json: bool,
) -> int:
    """Run candidate tests on a buggy and on a fixed checkout, in a sandbox, and say which reproduce the bug."""
    limits = Limits(seconds=seconds, cpu_seconds=seconds, memory_bytes=memory << 20)
    sandbox = _sandbox()
    tasks = candidate_tasks(cases, candidates)
    folder = RunFolder.resume(Path(out), run_facts(cases, candidates, sandbox, limits))
    if retry_failed:
        folder.forget_failed()
    result = run_shown(tasks, len(tasks), partial(judged, Judge(sandbox, limits)), folder, workers)
    return report_result(folder, result, as_json)


def _sandbox() -> Sandbox:
    sandbox = wiring.build_sandbox(settings.load())
    if sandbox is None:
        raise OperatorError("the sandbox is switched off (BOUNCER_SANDBOX): candidates are run nowhere else")
    return sandbox
