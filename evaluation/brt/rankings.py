"""Rankings of generated tests, one bug a row, as LIBRO's replication package stores them."""

from __future__ import annotations

import csv
from pathlib import Path

from pydantic import Field, ValidationError

from bot.core.frozen import Frozen
from bot.errors import OperatorError

#: What stands in the column ``first_success_rank`` of a bug that no test reproduces.
NEVER = 100_000


class Ranking(Frozen):
    """How the ranked tests of one bug turned out: where the first that reproduces it stands."""

    bug_id: str
    first_success_rank: int | None = Field(
        ge=1, description="rank, from 1, of the first bug-reproducing test; None where there is none"
    )
    total_success_fibs: int = Field(ge=0, description="distinct failing tests that reproduce the bug")
    num_clusters: int = Field(
        ge=0,
        description="length of the ranked list: the syntactically distinct tests that fail on the buggy "
        "version. (The column's name notwithstanding it does not count clusters of failure output.)",
    )

    @property
    def reproducible(self) -> bool:
        """Whether any test of the list reproduces the bug."""
        return self.first_success_rank is not None


def read_rankings(path: Path) -> tuple[Ranking, ...]:
    """Read a CSV with the columns bug_id, first_success_rank, total_success_fibs and num_clusters.

    Raises OperatorError, naming file and line, where a column is missing, a value is no whole number, a bug
    is listed twice, or nothing is listed at all.
    """
    try:
        with path.open(newline="", encoding="utf-8-sig") as stream:
            reader = csv.DictReader(stream)
            missing = set(Ranking.model_fields) - set(reader.fieldnames or ())
            if missing:
                raise OperatorError(f"{path}: no column {', '.join(sorted(missing))}")
            rankings = tuple(_ranking(row, f"{path}, line {reader.line_num}") for row in reader)
    except OSError as error:
        raise OperatorError(f"{path}: {error.strerror}") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise OperatorError(f"{path}: no CSV text: {error}") from error
    return _distinct(rankings, path)


def _ranking(row: dict[str, str | None], where: str) -> Ranking:
    values = {name: row[name] for name in Ranking.model_fields}
    rank = values["first_success_rank"]
    if rank is not None and rank.strip() == str(NEVER):
        values["first_success_rank"] = None
    elif rank is None or not rank.strip():
        raise OperatorError(f"{where}: first_success_rank: empty (write {NEVER} for never)")
    try:
        ranking = Ranking.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        raise OperatorError(f"{where}: {first['loc'][0]}: {first['msg']}") from error
    if ranking.first_success_rank is not None and ranking.first_success_rank > ranking.num_clusters:
        raise OperatorError(f"{where}: first_success_rank lies behind the end of the list (num_clusters)")
    return ranking


def _distinct(rankings: tuple[Ranking, ...], path: Path) -> tuple[Ranking, ...]:
    if not rankings:
        raise OperatorError(f"{path}: no bug is listed")
    seen: set[str] = set()
    for ranking in rankings:
        if ranking.bug_id in seen:
            raise OperatorError(f"{path}: {ranking.bug_id} is listed twice")
        seen.add(ranking.bug_id)
    return rankings
