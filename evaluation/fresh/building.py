"""``bouncer-eval build fresh``: each fix is run, what came of it is a line, and tasks are made of the lines.

``fixes.jsonl`` in the folder is the record: a kill loses the fixes under way and nothing else. The task files
beside it are written anew from it at the end of every call.
"""

from __future__ import annotations

import hashlib
import json
import shlex
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Any

import click
from pydantic import Field

from bot.core.frozen import Frozen
from bot.errors import NotRecorded, OperatorError, SandboxError
from bot.ops import settings
from bot.reproduce.command import TestCommand
from bot.reproduce.execution import Harness
from bot.reproduce.interpreter import typed
from bot.reproduce.setup import Environment, Environments, Recipe, SetupFailed
from bot.sandbox.protocol import Limits, Sandbox
from evaluation.bouncerbench.tasks import OutputTask
from evaluation.brt.cases import Candidate, Case, read_candidates
from evaluation.brt.drafting import working_sandbox
from evaluation.brt.patching import PatchRejected, apply, difference, read_text
from evaluation.crbench.build import Histories, MappingOptions, build_tasks
from evaluation.crbench.mapping import Instance
from evaluation.crbench.task import Judged, Known
from evaluation.dataset import fingerprint
from evaluation.fresh.history import Export, Fix, Stated, fixes, read_export
from evaluation.fresh.running import NotProven, Proof, Truth, prove
from evaluation.fresh.variants import variants
from evaluation.git.clones import checkout
from evaluation.git.repository import GitError, GitRepository
from evaluation.report.terminal import print_json, say
from evaluation.run.lines import LineFile, replace

REPRODUCTION, OUTPUT, REVIEW = "reproduction.jsonl", "output.jsonl", "review.jsonl"


class Examined(Frozen):
    """One fix after it was run: a line of ``fixes.jsonl``."""

    instance_id: str
    commit: str
    instance: Instance
    fixed_at: datetime
    stated: Stated
    kept: bool
    reason: str = Field("", description="why it was not kept; its kind comes before the first colon")
    unfinished: bool = Field(False, description="looked at again by the next call")
    case: dict[str, Any] | None = None
    tests: tuple[str, ...] = ()
    outputs: tuple[dict[str, Any], ...] = ()
    seconds: float = 0.0


@dataclass(frozen=True)
class Bench:
    """Runs fixes of one clone, each in two trees below ``out``."""

    out: Path
    clone: GitRepository
    sandbox: Sandbox
    command: tuple[str, ...]
    environment: Callable[[Path], Any]
    env: dict[str, str]
    limits: Limits
    patches: dict[str, list[Candidate]]
    added: dict[str, bytes]
    """Files that every tree gets, by path: what a build would write and the tests need."""
    narrow: bool

    def examine(self, fix: Fix) -> Examined:
        """Run a fix. Raises OperatorError where the sandbox breaks."""
        began = time.monotonic()
        place = self.out / "trees" / fix.instance.instance_id
        shutil.rmtree(place, ignore_errors=True)  # what a kill left of it
        told = Examined(
            instance_id=fix.instance.instance_id,
            commit=fix.commit,
            instance=fix.instance,
            fixed_at=fix.fixed_at,
            stated=fix.stated,
            kept=False,
        )
        try:
            found = self._run(fix, place)
        except (NotProven, NotRecorded, PatchRejected) as refusal:
            found = {"reason": str(refusal)}
        except SetupFailed as error:
            found = {"reason": f"no environment: {error}", "unfinished": True}
        except SandboxError as broken:
            raise OperatorError(f"{told.instance_id}: its tests cannot be run: {broken}") from None
        if not found.get("kept"):
            shutil.rmtree(place, ignore_errors=True)
        return told.model_copy(update={**found, "seconds": round(time.monotonic() - began, 1)})

    def _run(self, fix: Fix, place: Path) -> dict[str, Any]:
        base, fixed = place / "base", place / "fixed"
        checkout(self.clone, fix.instance.base_commit, base)
        checkout(self.clone, fix.commit, fixed)
        for path, content in self.added.items():
            for tree in (base, fixed):
                (tree / path).parent.mkdir(parents=True, exist_ok=True)
                (tree / path).write_bytes(content)
        files = {path: text for path in fix.tests if (text := _text(fixed, path)) is not None}
        with self.environment(base) as made:
            case = Case(
                instance_id=fix.instance.instance_id,
                problem_statement=fix.instance.problem_statement,
                base=base,
                fixed=fixed,
                command=_placed(self.command, made),
                env={**made.env, **self.env},
                test_patch="".join(difference(path, read_text(base, path), text) for path, text in files.items()),
            )
            harness = Harness(
                self.sandbox,
                TestCommand(argv=case.command),
                case.env,
                made.readable,
                self.limits,
                by_operator=True,
            )
            proof = prove(case, harness, files, fix.named, narrow=self.narrow)
            outputs = tuple(self._outputs(fix, proof))
        plain = case.model_dump(mode="json")
        plain |= {"base": f"trees/{place.name}/base", "fixed": f"trees/{place.name}/fixed"}
        return {"kept": True, "case": plain, "tests": proof.tests, "outputs": outputs}

    def _outputs(self, fix: Fix, proof: Proof) -> Iterator[dict[str, Any]]:
        """The fix, its wrong variants, and the patches that were given."""

        def read(path: str) -> str | None:
            return read_text(proof.case.base, path)

        yield _output(
            fix, "fix", "the fix", fix.instance.patch, Truth(wrong=False, pass_fraction=1.0, failing=None)
        )
        for number, variant in enumerate(variants(fix.instance.patch, read), 1):
            truth = proof.of(variant.texts, only_wrong=True)
            if truth is not None:
                patch = "".join(difference(path, read(path), text) for path, text in variant.texts.items())
                yield _output(fix, f"variant{number}", variant.made, patch, truth)
        for given in self.patches.get(fix.instance.instance_id, ()):
            assert given.patch is not None, "checked when they were read"
            try:
                truth = proof.of(apply(given.patch, read))
            except PatchRejected as error:
                say(f"{given.task}: {error}")
                continue
            if truth is not None:
                yield _output(fix, given.candidate_id, "a given patch", given.patch, truth)


def _output(fix: Fix, name: str, made: str, patch: str, truth: Truth) -> dict[str, Any]:
    """A row of an output task. No id ends in the issue's number, which would tell the fix from the others."""
    task = OutputTask(
        instance_id=f"{fix.instance.instance_id}.{name}",
        repo=fix.instance.repo,
        problem_statement=fix.instance.problem_statement,
        patch=patch,
        base_commit=fix.instance.base_commit,
        bounce=truth.wrong,
        pass_fraction=truth.pass_fraction,
        failing=truth.failing,
    )
    plain = task.model_dump(mode="json", exclude={"bounce", "pass_fraction", "quality"})
    return {**plain, "output_bounce": truth.wrong, "pass_frac": truth.pass_fraction, "made": made}


def _text(tree: Path, path: str) -> str | None:
    """A test file as the fix left it; None where it took it away. Raises NotProven for one that is no text."""
    try:
        text = read_text(tree, path)
        if text is not None:
            text.encode("utf-8")
    except (PatchRejected, UnicodeEncodeError):
        raise NotProven(f"no test to name: {path} is no text") from None
    return text


def _placed(command: Sequence[str], made: Environment) -> tuple[str, ...]:
    """The command with its program where the environment has it, so that a case needs nothing else."""
    home = made.env.get("VIRTUAL_ENV")
    program = Path(home, "bin", command[0]) if home else None
    return (str(program), *command[1:]) if program is not None and program.is_file() else tuple(command)


def _environments(
    out: Path, sandbox: Sandbox, folder: Path | None, commands: tuple[str, ...]
) -> Callable[[Path], Any]:
    """What makes the environment of a tree: a folder that is there, or commands, once for equal dependencies."""
    made = Environments(out / "environments")

    @contextmanager
    def prepared(tree: Path) -> Iterator[Environment]:
        if folder is not None:
            home = folder.absolute()
            path = {"PATH": f"{home}/bin:{sandbox.path}", "VIRTUAL_ENV": str(home)}
            yield Environment(path, typed((f"{home}/bin/python",), tree).readable)
            return
        with made.prepared(sandbox, tree, Recipe(repository=0, commands=commands)) as found:
            yield found

    return prepared


def build_command(
    repo: Path,
    since: datetime,
    out: Path,
    name: str | None,
    test_command: str,
    environment: Path | None,
    setup: tuple[str, ...],
    env: tuple[str, ...],
    add_file: tuple[str, ...],
    export: str | None,
    patches: str | None,
    narrow: bool,
    limit: int | None,
    seconds: int,
    workers: int,
    as_json: bool,
) -> int:
    """Find, run and write; returns the exit code."""
    if environment is not None and setup:
        raise click.UsageError("give --environment or --setup")
    began = time.monotonic()
    wanted = settings.load()
    out = out.absolute()
    variables = dict(_pair(each, "--env") for each in env)
    added = dict(_placed_file(each) for each in add_file)
    steps: Counter[str] = Counter()
    question = {
        "since": since.date().isoformat(),
        "command": test_command,
        "environment": None if environment is None else str(environment.absolute()),
        "setup": setup,
        "env": variables,
        "files": {path: hashlib.sha256(content).hexdigest() for path, content in added.items()},
        "export": export and fingerprint(export),
        "patches": patches and fingerprint(patches),
        "narrow": narrow,
        "seconds": seconds,
    }
    with GitRepository(repo) as clone:
        full_name = name or clone.full_name()
        if full_name is None:
            raise OperatorError(f"{repo}: neither its origin nor its folder says owner/name; give --name")
        known = Export() if export is None else read_export(export)
        try:
            found = list(fixes(clone, full_name, since, wanted.github_web_url, known, steps))[:limit]
        except GitError as error:
            raise OperatorError(f"{repo}: its history cannot be read: {error}") from None
        sandbox = working_sandbox(wanted)
        bench = Bench(
            out=out,
            clone=clone,
            sandbox=sandbox,
            command=tuple(shlex.split(test_command)),
            environment=_environments(out, sandbox, environment, setup),
            env=variables,
            limits=Limits(seconds=seconds, cpu_seconds=seconds),
            patches=_patches(patches),
            added=added,
            narrow=narrow,
        )
        with LineFile(out / "fixes.jsonl", {"repo": full_name, **question}) as lines:
            lines.forget(lambda row: bool(row.get("unfinished")))
            done = {row["instance_id"] for row in lines.rows()}
            waiting = [fix for fix in found if fix.instance.instance_id not in done]
            _each(waiting, lambda fix: lines.append(bench.examine(fix)), workers)
            chosen = {fix.instance.instance_id for fix in found}
            rows = [Examined.model_validate(row) for row in lines.rows() if row["instance_id"] in chosen]
    _write(out, repo, rows, steps)
    _report(out, steps, time.monotonic() - began, as_json)
    return 0


def _each(waiting: Sequence[Fix], work: Callable[[Fix], None], workers: int) -> None:
    pool = ThreadPoolExecutor(workers, thread_name_prefix="fresh")
    try:
        for _ in pool.map(work, waiting):
            pass
    finally:
        pool.shutdown(cancel_futures=True)


def _patches(source: str | None) -> dict[str, list[Candidate]]:
    found: dict[str, list[Candidate]] = {}
    for each in read_candidates(source) if source else ():
        if each.patch is None:
            raise OperatorError(f"{source}: {each.task}: patch: a unified diff is needed")
        found.setdefault(each.instance_id, []).append(each)
    return found


def _pair(text: str, option: str) -> tuple[str, str]:
    name, found, value = text.partition("=")
    if not found or not name:
        raise click.UsageError(f"{option} {text}: two parts with = between them are needed")
    return name, value


def _placed_file(text: str) -> tuple[str, bytes]:
    path, source = _pair(text, "--add-file")
    if PurePosixPath(path).is_absolute() or {"..", ".git"} & set(PurePosixPath(path).parts):
        raise click.UsageError(f"--add-file {text}: {path} is no path inside of the repository")
    try:
        return path, Path(source).read_bytes()
    except OSError as error:
        raise OperatorError(f"--add-file {source}: {error.strerror}") from None


def _write(out: Path, repo: Path, rows: Sequence[Examined], steps: Counter[str]) -> None:
    """The task files of the fixes that were kept; ``steps`` goes on counting."""
    kept = [row for row in rows if row.kept]
    steps["run"] = len(rows)
    steps.update(f"not kept: {row.reason.partition(':')[0]}" for row in rows if not row.kept)
    steps["reproduction cases"] = len(kept)
    dated = {row.instance_id: {"fixed_at": row.fixed_at.isoformat(), "stated": row.stated} for row in kept}
    cases = [{**(row.case or {}), **dated[row.instance_id]} for row in kept]
    outputs = [{**each, **dated[row.instance_id]} for row in kept for each in row.outputs]
    steps["output tasks"] = len(outputs)
    steps["of these wrong"] = sum(each["output_bounce"] for each in outputs)
    run = {row.instance_id: {key: (row.case or {})[key] for key in ("command", "env")} for row in kept}
    found_in = _reviews(repo, [row.instance for row in kept])
    reviews = [{**task, **run[task["instance_id"]], **dated[task["instance_id"]]} for task in found_in]
    steps["review tasks"] = len(reviews)
    for file, found in ((REPRODUCTION, cases), (OUTPUT, outputs), (REVIEW, reviews)):
        replace(out / file, "".join(json.dumps(each) + "\n" for each in found))


def _reviews(repo: Path, instances: Sequence[Instance]) -> Iterator[dict[str, Any]]:
    """The pull requests that brought these bugs in, as far as the clone tells; the report describes the bug."""
    if not instances:
        return
    with Histories(lambda name: repo, instances) as clones:
        for task in build_tasks(instances, clones, MappingOptions(), _described):
            if task.kept:
                yield task.model_dump(mode="json")


def _described(fix: Instance) -> Judged:
    return Judged(bug=Known(description=fix.problem_statement))


def _report(out: Path, steps: Counter[str], seconds: float, as_json: bool) -> None:
    if as_json:
        print_json({"out": str(out), "steps": dict(steps), "minutes": round(seconds / 60, 2)})
        return
    width = max(map(len, steps))
    for step, count in steps.items():
        click.echo(f"{step:<{width}} {count:>6,}")
    click.echo(f"{seconds / 60:.1f} minutes; {out}")
