"""Pairs of a full issue and its summary, from Ambig-SWE's spreadsheet or any other file of tasks."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from xml.etree.ElementTree import Element, ParseError

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import fromstring
from pydantic import Field

from bot.core.errors import OperatorError
from bot.core.frozen import Frozen
from evaluation.dataset import MAX_JSON, Row, read_rows, shaped, task_id, unique

_MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"


class IssuePair(Frozen):
    """One issue, told in full and told with details left out."""

    instance_id: str
    original_issue: str = Field(min_length=1, description="the full text")
    problem_statement: str = Field(min_length=1, description="the summary")


def read_pairs(source: str) -> Iterator[IssuePair]:
    """The pairs of a file. Raises OperatorError, naming the row."""
    rows = _sheet(source) if source.endswith(".xlsx") else read_rows(source)
    yield from unique((task_id(row), row.where, shaped(row, IssuePair)) for row in rows)


def _sheet(source: str) -> Iterator[Row]:
    """The rows of a workbook's first sheet, by the names in its first row."""
    try:
        with zipfile.ZipFile(source) as book:
            strings = [_text(item) for item in _part(book, "xl/sharedStrings.xml").iter(f"{_MAIN}si")]
            rows = list(_part(book, "xl/worksheets/sheet1.xml").iter(f"{_MAIN}row"))
            cells = [{_column(cell): _value(cell, strings) for cell in row.iter(f"{_MAIN}c")} for row in rows]
    except (
        OSError,
        KeyError,
        ValueError,
        IndexError,
        ParseError,
        zipfile.BadZipFile,
        DefusedXmlException,
    ) as error:
        raise OperatorError(f"{source}: cannot be read as a workbook: {str(error)[:120]}") from None
    header, *lines = cells or [{}]
    for number, line in enumerate(lines, 2):
        yield Row(
            {header[column]: text for column, text in line.items() if column in header}, f"{source}:{number}"
        )


def _part(book: zipfile.ZipFile, name: str) -> Element:
    if book.getinfo(name).file_size > MAX_JSON:
        raise ValueError(f"{name} is larger than {MAX_JSON} bytes")
    root: Element = fromstring(book.read(name))
    return root


def _column(cell: Element) -> str:
    return "".join(letter for letter in cell.get("r", "") if letter.isalpha())


def _value(cell: Element, strings: list[str]) -> str:
    if cell.get("t") == "inlineStr":
        return _text(cell)
    value = cell.findtext(f"{_MAIN}v") or ""
    return strings[int(value)] if cell.get("t") == "s" else value


def _text(element: Element) -> str:
    # A carriage return is written as an escape.
    return "".join(part.text or "" for part in element.iter(f"{_MAIN}t")).replace("_x000D_", "")
