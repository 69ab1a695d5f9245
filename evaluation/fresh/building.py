"""``bouncer-eval build fresh``: finds fixes, has each run, and writes tasks of the lines that came of it.

``fixes.jsonl`` in the folder is the record: a kill loses the fixes under way and nothing else. The task files
beside it are written anew from it at the end of every call.
"""

from __future__ import annotations

import hashlib
import shlex
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Any

import click

from bot import settings
from bot.cli.files import print_json
from bot.core.errors import OperatorError
from bot.sandbox.protocol import Limits
from bot.settings import Settings
from evaluation.brt.cases import Candidate, read_candidates
from evaluation.brt.drafting import working_sandbox
from evaluation.brt.patching import is_inside
from evaluation.crbench.build import build_tasks, histories
from evaluation.crbench.mapping import Instance
from evaluation.crbench.task import Known, ReviewTask
from evaluation.dataset import fingerprint
from evaluation.fresh.bench import Bench, Examined, environments
from evaluation.fresh.history import Export, Fix, fixes, read_export
from evaluation.git.repository import GitError, GitRepository
from evaluation.report.terminal import say
from evaluation.run.lines import LineFile, replace_rows
from evaluation.run.runner import in_order

REPRODUCTION, OUTPUT, REVIEW = "reproduction.jsonl", "output.jsonl", "review.jsonl"


@dataclass(frozen=True)
class Options:
    """The options of a build. A call with equal options continues in the same folder."""

    since: datetime
    test_command: str
    environment: Path | None
    setup: tuple[str, ...]
    env: tuple[str, ...]
    add_file: tuple[str, ...]
    export: str | None
    patches: str | None
    narrow: bool
    seconds: int

    def __post_init__(self) -> None:
        if self.environment is not None and self.setup:
            raise click.UsageError("give --environment or --setup")

    @property
    def variables(self) -> dict[str, str]:
        return dict(_pair(text, "--env") for text in self.env)

    @property
    def files(self) -> dict[str, bytes]:
        contents: dict[str, bytes] = {}
        for text in self.add_file:
            path, source = _pair(text, "--add-file")
            if not is_inside(path):
                raise click.UsageError(f"--add-file {text}: {path} is no path inside of the repository")
            try:
                contents[path] = Path(source).read_bytes()
            except OSError as error:
                raise OperatorError(f"--add-file {source}: {error.strerror}") from None
        return contents

    def question(self, full_name: str) -> dict[str, Any]:
        """The same as JSON, what files hold as hashes."""
        return {
            "repo": full_name,
            "since": self.since.date().isoformat(),
            "command": self.test_command,
            "environment": None if self.environment is None else str(self.environment.absolute()),
            "setup": self.setup,
            "env": self.variables,
            "files": {path: hashlib.sha256(content).hexdigest() for path, content in self.files.items()},
            "export": self.export and fingerprint(self.export),
            "patches": self.patches and fingerprint(self.patches),
            "narrow": self.narrow,
            "seconds": self.seconds,
        }

    def bench(self, out: Path, clone: GitRepository, environment: Settings) -> Bench:
        sandbox = working_sandbox(environment)
        return Bench(
            out=out,
            clone=clone,
            sandbox=sandbox,
            command=tuple(shlex.split(self.test_command)),
            environment=environments(out, sandbox, self.environment, self.setup),
            env=self.variables,
            limits=Limits(seconds=self.seconds, cpu_seconds=self.seconds),
            patches=_patches(self.patches),
            added=self.files,
            narrow=self.narrow,
        )


def build_command(
    repo: Path, out: Path, name: str | None, limit: int | None, workers: int, as_json: bool, **values: Any
) -> int:
    """Find, run and write; returns the exit code: 1 if no fix was finished, though some were tried."""
    options, environment = Options(**values), settings.load()
    began, out, steps = time.monotonic(), out.absolute(), Counter[str]()
    with GitRepository(repo) as clone:
        full_name = name or clone.full_name()
        export = Export() if options.export is None else read_export(options.export)
        try:
            candidates = list(fixes(clone, full_name, options.since, environment.github_web_url, export, steps))[
                :limit
            ]
        except GitError as error:
            raise OperatorError(f"{repo}: its history cannot be read: {error}") from None
        bench = options.bench(out, clone, environment)
        with LineFile(out / "fixes.jsonl", options.question(full_name)) as lines:
            rows = _examined(candidates, bench, lines, workers)
    _write(out, repo, rows, steps)
    minutes = (time.monotonic() - began) / 60
    if as_json:
        print_json({"out": str(out), "steps": dict(steps), "minutes": round(minutes, 2)})
    else:
        width = max(map(len, steps))
        for step, number in steps.items():
            click.echo(f"{step:<{width}} {number:>6,}")
        click.echo(f"{minutes:.1f} minutes; {out}")
    return 1 if rows and all(row.unfinished for row in rows) else 0


def _examined(candidates: Sequence[Fix], bench: Bench, lines: LineFile, workers: int) -> list[Examined]:
    """Every fix after it was run, now or by an earlier call."""
    lines.forget(lambda row: bool(row.get("unfinished")))
    finished_ids = {row["instance_id"] for row in lines.rows()}
    waiting = [fix for fix in candidates if fix.instance.instance_id not in finished_ids]
    number = count(len(candidates) - len(waiting) + 1)

    def examine(fix: Fix) -> None:
        row = bench.examine(fix)
        lines.append(row)
        came = f"kept, {len(row.outputs)} output tasks" if row.kept else row.reason.partition("\n")[0]
        say(f"{next(number)} of {len(candidates)}: {row.instance_id}, {row.seconds:.0f} s: {came}")

    for _ in in_order(examine, waiting, workers):
        pass
    identities = {fix.instance.instance_id for fix in candidates}
    return [Examined.model_validate(row) for row in lines.rows() if row["instance_id"] in identities]


def _patches(source: str | None) -> dict[str, list[Candidate]]:
    by_instance: dict[str, list[Candidate]] = {}
    for candidate in read_candidates(source) if source else ():
        if candidate.patch is None:
            raise OperatorError(f"{source}: {candidate.task}: patch: a unified diff is needed")
        by_instance.setdefault(candidate.instance_id, []).append(candidate)
    return by_instance


def _pair(text: str, option: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not separator or not name:
        raise click.UsageError(f"{option} {text}: two parts with = between them are needed")
    return name, value


def _write(out: Path, repo: Path, rows: Sequence[Examined], steps: Counter[str]) -> None:
    """The task files of the fixes that were kept; ``steps`` goes on counting."""
    kept_rows = [row for row in rows if row.kept]
    steps["run"] = len(rows)
    steps.update(f"not kept: {row.reason.partition(':')[0]}" for row in rows if not row.kept)
    steps["reproduction cases"] = len(kept_rows)
    dated = {row.instance_id: {"fixed_at": row.fixed_at.isoformat(), "stated": row.stated} for row in kept_rows}
    cases = [{**(row.case or {}), **dated[row.instance_id]} for row in kept_rows]
    outputs = [{**output, **dated[row.instance_id]} for row in kept_rows for output in row.outputs]
    steps["output tasks"] = len(outputs)
    steps["of these wrong"] = sum(output["output_bounce"] for output in outputs)
    run = {row.instance_id: {key: (row.case or {})[key] for key in ("command", "env")} for row in kept_rows}
    found_in = _reviews(repo, [row.instance for row in kept_rows])
    reviews = [{**task, **run[task["instance_id"]], **dated[task["instance_id"]]} for task in found_in]
    steps["review tasks"] = len(reviews)
    for file, content in ((REPRODUCTION, cases), (OUTPUT, outputs), (REVIEW, reviews)):
        replace_rows(out / file, content)


def _reviews(repo: Path, instances: Sequence[Instance]) -> Iterator[dict[str, Any]]:
    """The pull requests that brought these bugs in, as far as the clone tells; the report describes the bug."""
    if not instances:
        return

    def described(fix: Instance, task: ReviewTask) -> ReviewTask:
        return task.model_copy(update={"bugs": (Known(description=fix.problem_statement),)})

    with histories(lambda name: repo, instances) as clones:
        for task in build_tasks(instances, clones, described):
            if task.kept:
                yield task.model_dump(mode="json")
