"""Submissions to BouncerBench's leaderboard, in its authors' format.

A submission is a ``config.yaml`` (name, oss, site, icon, entries) and up to three files under ``data/``:
``input``, ``output`` and ``lite``, each a JSON object of instance ids. An entry has ``input_bounce`` and/or
``output_bounce`` as booleans and ``trace``, the reasoning behind the decision.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, StrictBool, ValidationError

from bot.core.errors import OperatorError
from bot.core.io_limits import read_file
from bot.core.text import amount
from evaluation.bouncerbench.answers import Answer
from evaluation.dataset import read_json
from evaluation.run.lines import write_file

Board = Literal["input", "output", "lite"]
FIELDS: dict[Board, tuple[str, ...]] = {
    "input": ("input_bounce",),
    "output": ("output_bounce",),
    "lite": ("input_bounce", "output_bounce"),
}
#: The largest config that is read, bytes.
MAX_CONFIG = 100_000


class Config(BaseModel):
    """``config.yaml``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(min_length=1)
    oss: StrictBool
    site: str = Field(min_length=1)
    icon: str = Field(min_length=1, pattern=r"^[^/\\]+$", description="a file name under static/images")
    entries: dict[Board, str | None]


@dataclass(frozen=True)
class Checked:
    """The result of a validation: entries per board, and one line per problem."""

    entries: dict[str, int]
    problems: tuple[str, ...]
    warnings: tuple[str, ...]


def slug(name: str) -> str:
    """The name in the form that file names take there: lower case, words joined by dashes."""
    return re.sub(r"[\s_-]+", "-", re.sub(r"[^\w\s-]", "", name.lower().strip())).strip("-")


def export(
    folder: Path,
    config: Config,
    inputs: Mapping[str, Answer] | None,
    outputs: Mapping[str, Answer] | None,
    accept_missing: bool = False,
) -> dict[Board, int]:
    """Write a submission; returns the number of entries per board.

    Lite is written if both bouncers' answers are given: the instances that both were asked about. Raises
    OperatorError if an answer is missing and ``accept_missing`` does not turn it into a pass.
    """
    answers = {"input_bounce": inputs, "output_bounce": outputs}
    boards: dict[Board, dict[str, dict[str, Any]]] = {}
    for board, fields in FIELDS.items():
        columns = {field: column for field in fields if (column := answers[field]) is not None}
        if len(columns) == len(fields):
            *_, last = columns.values()
            common = [identity for identity in last if all(identity in column for column in columns.values())]
            boards[board] = {
                identity: _entry({field: column[identity] for field, column in columns.items()}, accept_missing)
                for identity in common
            }
    names: dict[Board, str | None] = {board: f"{slug(config.name)}_{board}.json" for board in boards}
    for board, entries in boards.items():
        write_file(folder / "data" / str(names[board]), json.dumps(entries, indent=1) + "\n")
    content = config.model_copy(update={"entries": names}).model_dump()
    write_file(folder / "config.yaml", yaml.safe_dump(content, sort_keys=False))
    return {board: len(entries) for board, entries in boards.items()}


def _entry(answers: Mapping[str, Answer], accept_missing: bool) -> dict[str, Any]:
    entry: dict[str, Any] = {}
    for field, answer in answers.items():
        if answer.bounce is None and not accept_missing:
            raise OperatorError(
                f"{answer.instance_id} has no answer ({answer.error or 'none came'}): retry, or --missing accept"
            )
        entry[field] = answer.bounce is True
    traces = {field.removesuffix("_bounce"): answer.explanation for field, answer in answers.items()}
    return {**entry, "trace": next(iter(traces.values())) if len(traces) == 1 else traces}


def validate(folder: Path, tasks: Mapping[Board, Iterable[str]] | None = None) -> Checked:
    """Check a submission as the leaderboard does, and more strictly: coverage of ``tasks``, if given.

    Raises OperatorError if there is no readable config.
    """
    config, problems = read_config(folder / "config.yaml")
    warnings: list[str] = []
    entries: dict[str, int] = {}
    if config is None:
        return Checked({}, tuple(problems), ())
    if not config.oss:
        warnings.append("config.yaml: the leaderboard's own check takes 'oss: false' for a missing field")
    files = {board: name for board, name in config.entries.items() if name}
    if not files:
        problems.append("config.yaml: entries: name at least one of lite, input, output")
    for board, name in files.items():
        if Path(name).name != name:
            problems.append(f"config.yaml: entries: {board}: a file name under data/ is needed, not {name!r}")
            continue
        content = read_json(str(folder / "data" / name))
        entries[board] = len(content) if isinstance(content, dict) else 0
        problems += _entry_problems(f"data/{name}", content, FIELDS[board])
        warnings += _coverage(f"data/{name}", content, set((tasks or {}).get(board, ())))
    return Checked(entries, tuple(problems), tuple(warnings))


def read_config(file: Path) -> tuple[Config | None, list[str]]:
    """The config, or why it is none. Raises OperatorError if the file cannot be read as YAML."""
    try:
        return Config.model_validate(yaml.safe_load(read_file(file, MAX_CONFIG))), []
    except OSError as error:
        raise OperatorError(f"{file}: {error.strerror}") from None
    except ValidationError as error:
        return None, [
            f"config.yaml: {'.'.join(map(str, problem['loc']))}: {problem['msg']}"
            for problem in error.errors(include_url=False, include_input=False)
        ]
    # PyYAML's constructors raise whatever a tag's wrong value makes of them: ``!!bool x``, ``!!timestamp x``.
    except (yaml.YAMLError, RecursionError, ValueError, LookupError, AttributeError, TypeError) as error:
        raise OperatorError(f"{file}: not YAML: {' '.join(str(error).split())[:160]}") from None


def _entry_problems(file: str, content: Any, fields: Sequence[str]) -> list[str]:
    if not isinstance(content, dict) or not content:
        return [f"{file}: a JSON object keyed by instance id is needed, with at least one entry"]
    problems: list[str] = []
    for identity, entry in content.items():
        if not isinstance(entry, dict):
            problems.append(f"{file}: {identity}: an object is needed")
            continue
        problems += [
            f"{file}: {identity}: {field} must be true or false"
            for field in fields
            if not isinstance(entry.get(field), bool)
        ]
        if "trace" not in entry:
            problems.append(f"{file}: {identity}: trace is missing")
        if "/" in identity or identity in (".", ".."):
            problems.append(f"{file}: {identity[:80]!r}: not a name that a folder of traces can have")
    return problems


def _coverage(file: str, content: Any, tasks: set[str]) -> list[str]:
    if not isinstance(content, dict):
        return []
    warnings = []
    empty = sum(isinstance(entry, dict) and not entry.get("trace") for entry in content.values())
    if empty:
        count = amount(empty, "entry has", "entries have")
        warnings.append(f"{file}: {count} an empty trace; the leaderboard wants one for each")
    if tasks:
        missing, unknown = len(tasks - content.keys()), len(content.keys() - tasks)
        if missing:
            warnings.append(
                f"{file}: {missing} of {len(tasks)} tasks have no entry: the leaderboard leaves them out"
            )
        if unknown:
            warnings.append(
                f"{file}: {amount(unknown, 'entry is no task', 'entries are no tasks')} of this benchmark"
            )
    return warnings
