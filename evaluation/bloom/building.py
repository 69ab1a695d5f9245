"""The same bugs, told or named otherwise, as cases for ``replay brt``."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from bot import app
from bot.errors import ModelError, OperatorError
from bot.models.protocol import Model
from bot.ops import settings
from evaluation.bloom.apply import Namer, mask_case
from evaluation.bloom.create import Clarifier
from evaluation.bloom.understand import Rewriter
from evaluation.brt.cases import Case, read_cases
from evaluation.dataset import choose, read_rows, task_id
from evaluation.prompts import benchmark_prompts
from evaluation.report.terminal import print_json, say
from evaluation.run.model import Account


@dataclass(frozen=True)
class Built:
    """A changed case, and what is to be recorded about the change."""

    case: Case
    about: dict[str, Any]


@dataclass(frozen=True)
class Workshop:
    """What the changes work with. Models are built once, when the first change asks for one."""

    model: Callable[[], Model]
    judge: Callable[[], Model]
    language: str
    known: dict[str, str]
    """What was found out about each bug later: for the author's answers."""

    def apply(self, change: str, case: Case, folder: Path) -> Built:
        """One change to one case; copies of checkouts go below ``folder``. Raises ModelError."""
        if change in ("rephrased", "translated"):
            rewriter = Rewriter(self.model(), self.judge(), benchmark_prompts(), self.language)
            text = rewriter.rewrite(
                case.problem_statement, "rephrased" if change == "rephrased" else "translated", case.instance_id
            )
            return Built(case.model_copy(update={"problem_statement": text}), {change: True})
        if change == "clarified":
            return self._clarified(case)
        namer = Namer(self.model(), benchmark_prompts()) if change == "meaningful" else None
        masked = mask_case(case, "hash" if change == "hash" else "meaningful", folder / case.instance_id, namer)
        return Built(masked.case, {"names": masked.names, "kept": masked.kept})

    def _clarified(self, case: Case) -> Built:
        environment = settings.load()
        clarifier = Clarifier(self.model(), self.judge(), app.prompts(environment), benchmark_prompts())
        found = clarifier.clarify(case.problem_statement, self.known.get(case.instance_id, ""), case.instance_id)
        about = found.model_dump(mode="json", exclude={"report"})
        return Built(case.model_copy(update={"problem_statement": found.report}), about)


def build_command(
    cases: str,
    changes: tuple[str, ...],
    out: Path,
    model: str | None,
    judge: str | None,
    language: str,
    known: str | None,
    limit: int | None,
    seed: int | None,
    max_cost: float | None,
    as_json: bool,
) -> int:
    """Change reports and method names of known bugs, layer by layer, to see what a model's success rests on."""
    environment = settings.load()
    writer = model or environment.bouncer_model
    out = out.absolute()
    account = Account(environment, out / "cache", max_cost)
    workshop = Workshop(
        model=cache(lambda: account.model(writer)),
        judge=cache(lambda: account.model(judge or writer)),
        language=language,
        known={} if known is None else _known(known),
    )
    found = read_cases(cases)
    chosen = choose(found, limit, seed)
    if out.exists() and any(each.name != "cache" for each in out.iterdir()):
        raise OperatorError(f"{out}: not empty")
    out.mkdir(parents=True, exist_ok=True)
    built, failed = _all(
        [case for name, case in found.items() if chosen is None or name in chosen], changes, workshop, out
    )
    _write(out / "cases.jsonl", [_row(each) for each in built])
    _write(out / "failed.jsonl", failed)
    summary = {"cases": str(out / "cases.jsonl"), "built": len(built), "failed": len(failed)}
    if as_json:
        print_json(summary)
    else:
        say(f"{len(built)} cases in {summary['cases']}; {len(failed)} could not be changed (failed.jsonl)")
    return 0


def _all(
    cases: list[Case], changes: tuple[str, ...], workshop: Workshop, out: Path
) -> tuple[list[Built], list[dict[str, str]]]:
    """Every case with all changes; one that a change fails on is listed, never passed on half changed."""
    built: list[Built] = []
    failed: list[dict[str, str]] = []
    for case in cases:
        about: dict[str, Any] = {}
        current = case
        try:
            for number, change in enumerate(changes, 1):
                step = workshop.apply(change, current, out / f"{number}-{change}")
                current, about = step.case, {**about, change: step.about}
        except ModelError as error:
            failed.append({"instance_id": case.instance_id, "why": str(error)})
            continue
        built.append(Built(current, about))
    return built, failed


def _row(built: Built) -> dict[str, Any]:
    return {**built.case.model_dump(mode="json"), "changes": built.about}


def _write(path: Path, rows: list[Any]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def _known(source: str) -> dict[str, str]:
    return {
        task_id(row): "\n\n".join(str(row.data[name]) for name in ("hints_text", "patch") if row.data.get(name))
        for row in read_rows(source)
    }
