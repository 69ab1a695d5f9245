"""Reading and choosing tasks. Every row comes from outside: it is bounded, parsed strictly, and named in errors.

Formats by name: ``.jsonl`` (also without an ending), ``.json`` (an array, or lines after all), ``.csv``, each
optionally ``.gz``; ``hf:owner/name`` is a Hugging Face data set, optionally ``hf:owner/name:split`` (default
``test``). Nothing is evaluated or unpickled. Rows are
streamed, so a data set may be larger than memory.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import heapq
import io
import json
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, TypeVar, cast

from pydantic import BaseModel, ValidationError

from bot.core.errors import OperatorError
from bot.core.frozen import first_fault

#: The largest row that is read, bytes. The longest of the public data sets' rows are near 2 MB.
MAX_ROW = 16 * 1024 * 1024
#: The largest file that holds a single JSON value, bytes, unpacked.
MAX_JSON = 512 * 1024 * 1024
#: The largest id of a task, characters.
MAX_ID = 200

Shape = TypeVar("Shape", bound=BaseModel)
T = TypeVar("T")


@dataclass(frozen=True)
class Row:
    """One row and where it stands: ``file:line``."""

    data: dict[str, Any]
    where: str


def read_rows(source: str) -> Iterator[Row]:
    """The rows of a data set. Raises OperatorError with file and line for the first bad one."""
    if source.startswith("hf:"):
        yield from _hugging_face(source)
        return
    ending = Path(source.removesuffix(".gz")).suffix
    is_object = False
    if ending == ".json":
        with _opened(source) as stream:
            try:
                is_object = stream.read(64).removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{")
            except (OSError, EOFError, zlib.error) as error:
                _unreadable(source, error)
    if ending in (".jsonl", "") or is_object:
        yield from _json_lines(source)
    elif ending == ".csv":
        yield from read_csv(source)
    elif ending == ".json":
        rows = read_json(source)
        if not isinstance(rows, list):
            raise OperatorError(f"{source}: a JSON array of rows is needed")
        for number, data in enumerate(rows, 1):
            yield _row(data, f"{source}: element {number}")
    else:
        raise OperatorError(f"{source}: neither .jsonl, .json, .csv (each may end in .gz) nor hf:owner/name")


def read_json(source: str) -> Any:
    """The one JSON value of a file. Raises OperatorError."""
    with _opened(source) as stream:
        try:
            text = stream.read(MAX_JSON + 1)
        except (OSError, EOFError, zlib.error) as error:
            _unreadable(source, error)
    if len(text) > MAX_JSON:
        raise OperatorError(f"{source}: larger than {MAX_JSON} bytes")
    return _parse(text, source)


def read_shaped(source: str, shape: type[Shape]) -> Iterator[Shape]:
    """The rows of a data set as typed values with different ids. Raises OperatorError with file and line."""
    return unique((task_id(row), row.where, shaped(row, shape)) for row in read_rows(source))


def shaped(row: Row, shape: type[Shape]) -> Shape:
    """The row as a typed value, columns that ``shape`` does not know left out. Raises OperatorError."""
    values = {name: row.data[name] for name in shape.model_fields if name in row.data}
    return validated(shape.model_validate, values, row.where)


def validated(validate: Callable[[Any], T], value: Any, where: str) -> T:
    """A value from outside in its shape. Raises OperatorError that names the first field that does not fit."""
    try:
        return validate(value)
    except ValidationError as error:
        place, message = first_fault(error, "row")
        raise OperatorError(f"{where}: {place}: {message}") from None


def task_id(row: Row, field: str = "instance_id") -> str:
    """The row's id. Raises OperatorError if it has none that can name a task."""
    value = row.data.get(field)
    if not isinstance(value, str) or not value or len(value) > MAX_ID or not value.isprintable():
        raise OperatorError(f"{row.where}: {field}: a name of 1 to {MAX_ID} printable characters is needed")
    return value


def unique(items: Iterable[tuple[str, str, T]]) -> Iterator[T]:
    """The values of ``(id, where, value)``; raises OperatorError, naming both places, for a repeated id."""
    places: dict[str, str] = {}
    for key, where, value in items:
        if key in places:
            raise OperatorError(f"{where}: {key} was given before, at {places[key]}")
        places[key] = where
        yield value


def choose(ids: Iterable[str], limit: int | None, seed: int | None) -> frozenset[str]:
    """Which tasks to run: all without a limit, else ``limit`` of them.

    Without a seed the first ones. With one, a random sample that only grows when ``limit`` does: the tasks
    whose hash with the seed is smallest.
    """
    if limit is None:
        return frozenset(ids)
    if seed is None:
        return frozenset(identity for identity, _ in zip(ids, range(limit), strict=False))
    return frozenset(
        heapq.nsmallest(limit, ids, key=lambda identity: hashlib.sha256(f"{seed}:{identity}".encode()).digest())
    )


def located(source: str) -> str:
    """A source's name that is valid in every working directory."""
    return source if source.startswith("hf:") else str(Path(source).absolute())


def fingerprint(source: str) -> str:
    """sha256 of a file's bytes as they lie on disk; empty for a data set that is not a file."""
    if source.startswith("hf:"):
        return ""
    digest = hashlib.sha256()
    with _opened(source, unpack=False) as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _opened(source: str, unpack: bool = True) -> BinaryIO:
    try:
        if unpack and source.endswith(".gz"):
            return cast(BinaryIO, gzip.open(source, "rb"))
        return Path(source).open("rb")
    except OSError as error:
        raise OperatorError(f"{source}: {error.strerror}") from None


def _json_lines(source: str) -> Iterator[Row]:
    with _opened(source) as stream:
        number = 0
        while True:
            number += 1
            where = f"{source}:{number}"
            try:
                line = stream.readline(MAX_ROW + 1)
            except (OSError, EOFError, zlib.error) as error:
                _unreadable(where, error)
            if not line:
                return
            if len(line) > MAX_ROW:
                raise OperatorError(f"{where}: a row of more than {MAX_ROW} bytes")
            if line.strip():
                yield json_row(line, where)


def read_csv(source: str) -> Iterator[Row]:
    """The rows of a CSV file, whatever its name. Raises OperatorError with file and line."""
    csv.field_size_limit(MAX_ROW)  # the module's own limit of 128 KB is less than many patches
    with _opened(source) as raw, io.TextIOWrapper(raw, encoding="utf-8-sig", newline="") as stream:
        reader = csv.DictReader(_lines(stream, source), strict=True)
        while True:
            try:
                data = next(reader, None)
            except (csv.Error, UnicodeDecodeError, OSError, EOFError, zlib.error) as error:
                _unreadable(f"{source}:{reader.reader.line_num}", error)
            if data is None:
                return
            where = f"{source}:{reader.line_num}"  # of the row's last line, where a field has several
            if None in data or None in data.values():
                raise OperatorError(f"{where}: the row has more or fewer columns than the header")
            yield Row(data, where)


def _lines(stream: io.TextIOWrapper, source: str) -> Iterator[str]:
    number = 0
    while line := stream.readline(MAX_ROW + 1):
        number += 1
        if len(line) > MAX_ROW:
            raise OperatorError(f"{source}:{number}: a row of more than {MAX_ROW} characters")
        if "\0" in line:
            raise OperatorError(f"{source}:{number}: a NUL character")
        yield line


def _hugging_face(source: str) -> Iterator[Row]:
    _, _, rest = source.partition(":")
    name, _, split = rest.partition(":")
    try:
        datasets = import_module("datasets")
    except ModuleNotFoundError:
        raise OperatorError(f"{source}: needs the package 'datasets' (pip install datasets)") from None
    # Streaming reads the published files themselves; code that a data set ships is never run.
    rows = datasets.load_dataset(name, split=split or "test", streaming=True)
    for number, data in enumerate(rows, 1):
        yield Row(dict(data), f"{source}: row {number}")


def json_row(line: bytes, where: str) -> Row:
    """One line of JSON as a row. Raises OperatorError."""
    return _row(_parse(line, where), where)


def _row(data: Any, where: str) -> Row:
    if not isinstance(data, dict):
        raise OperatorError(f"{where}: a JSON object is needed, not {type(data).__name__}")
    return Row(data, where)


def _parse(text: bytes, where: str) -> Any:
    def refuse(name: str) -> NoReturn:
        raise ValueError(f"{name} is not JSON")

    try:
        # Given bytes, the module would guess UTF-16.
        return json.loads(text.decode("utf-8-sig", "surrogatepass"), parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        raise OperatorError(f"{where}: not JSON: {str(error)[:120]}") from None


def _unreadable(where: str, error: Exception) -> NoReturn:
    raise OperatorError(f"{where}: cannot be read: {str(error)[:120]}") from None
