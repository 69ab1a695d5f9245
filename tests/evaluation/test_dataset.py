"""Task files come from strangers: whatever is wrong with one is said with file and line."""

from __future__ import annotations

import csv
import gzip
import io
import json
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from bot.core.errors import OperatorError
from bot.core.frozen import Frozen
from evaluation import dataset
from evaluation.dataset import choose, fingerprint, read_json, read_rows, shaped, task_id, unique


def written(path: Path, text: str | bytes) -> str:
    data = text.encode() if isinstance(text, str) else text
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return str(path)


def rows(source: str) -> list[dict[str, Any]]:
    return [row.data for row in read_rows(source)]


def as_csv(table: list[dict[str, str]]) -> str:
    out = io.StringIO()
    writer = csv.DictWriter(out, fieldnames=list(table[0]))
    writer.writeheader()
    writer.writerows(table)
    return out.getvalue()


@pytest.mark.parametrize("name", ["t.jsonl", "t.jsonl.gz", "t.json", "t.json.gz", "t.csv", "t.csv.gz"])
def test_every_format_gives_the_same_rows(tmp_path: Path, name: str) -> None:
    table = [{"instance_id": "a", "text": 'line\n"two", é'}, {"instance_id": "b", "text": "x" * 200_000}]
    texts = {"csv": as_csv(table), "json": json.dumps(table), "jsonl": "\n".join(map(json.dumps, table)) + "\n\n"}
    assert rows(written(tmp_path / name, texts[name.split(".")[1]])) == table


@pytest.mark.parametrize("name", ["tasks", "tasks.gz", "tasks.json", "tasks.json.gz"])
def test_lines_under_another_name_are_lines(tmp_path: Path, name: str) -> None:
    table = [{"instance_id": "a"}, {"instance_id": "b"}]
    assert rows(written(tmp_path / name, "\n".join(map(json.dumps, table)))) == table


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.jsonl", '{"a": 1}\n{"a": \n', r"t\.jsonl:2: not JSON"),
        ("t.jsonl", '{"a": 1}\n[1]\n', r"t\.jsonl:2: a JSON object is needed, not list"),
        ("t.jsonl", '{"a": NaN}\n', r"t\.jsonl:1: not JSON: NaN"),
        ("t.jsonl", "[" * 200_000 + "\n", r"t\.jsonl:1: not JSON"),
        ("t.jsonl", '{"a": ' + "9" * 5000 + "}\n", r"t\.jsonl:1: not JSON"),
        ("t.jsonl", b'{"a": "\xff"}\n', r"t\.jsonl:1: not JSON"),
        ("t.jsonl", '{"a": 1}\n'.encode("utf-16"), r"t\.jsonl:1: not JSON: 'utf-8' codec"),
        ("t.json", "3", r"t\.json: a JSON array"),
        ("t.json", '{"a": 1}\n{"a": \n', r"t\.json:2: not JSON"),
        ("tasks", '{"a": 1}\n{"a": \n', r"tasks:2: not JSON"),
        ("t.csv", "a,b\n1,2\n1,2,3\n", r"t\.csv:3: the row has more or fewer columns"),
        ("t.csv", "a,b\n1\n", r"t\.csv:2: the row has more or fewer columns"),
        ("t.csv", 'a,b\n1,"2\n', r"t\.csv:2: cannot be read"),
        ("t.csv", "a,b\n1,\0\n", r"t\.csv:2: a NUL"),
        ("t.csv", b"a,b\n1,\xff\n", r"t\.csv:\d: cannot be read"),
        ("t.parquet", "PAR1", r"t\.parquet: neither \.jsonl"),
        ("t.pkl", b"\x80\x04", r"t\.pkl: neither \.jsonl"),
    ],
)
def test_a_bad_row_is_named_with_file_and_line(
    tmp_path: Path, name: str, content: str | bytes, message: str
) -> None:
    with pytest.raises(OperatorError, match=message) as caught:
        rows(written(tmp_path / name, content))
    assert "\n" not in str(caught.value)


def test_an_oversized_row_is_refused_before_it_is_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dataset, "MAX_ROW", 1000)
    lines = '{"a": 1}\n' + json.dumps({"a": "x" * 1000}) + "\n"
    with pytest.raises(OperatorError, match=r"t\.jsonl\.gz:2: a row of more than 1000 bytes"):
        rows(written(tmp_path / "t.jsonl.gz", lines))
    with pytest.raises(OperatorError, match=r"t\.csv:2: a row of more than 1000"):
        rows(written(tmp_path / "t.csv", "a\n" + "x" * 2000 + "\n"))
    monkeypatch.setattr(dataset, "MAX_JSON", 10)
    with pytest.raises(OperatorError, match=r"t\.json: larger than 10 bytes"):
        read_json(written(tmp_path / "t.json", "[" + "1," * 20 + "1]"))


def test_a_file_that_is_cut_off_or_missing_is_named(tmp_path: Path) -> None:
    cut = tmp_path / "t.jsonl.gz"
    cut.write_bytes(gzip.compress(b'{"a": 1}\n' * 5000)[:-12])
    with pytest.raises(OperatorError, match=r"t\.jsonl\.gz:\d+: cannot be read"):
        rows(str(cut))
    cut.write_bytes(b"not gzip")
    with pytest.raises(OperatorError, match=r"t\.jsonl\.gz:1: cannot be read"):
        rows(str(cut))
    with pytest.raises(OperatorError, match="No such file"):
        rows(str(tmp_path / "none.jsonl"))


def test_a_hugging_face_id_without_the_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(OperatorError, match=r"hf:uw-swag/input-bouncer: needs the package 'datasets'"):
        rows("hf:uw-swag/input-bouncer")


def test_a_hugging_face_id_is_streamed_from_the_named_split(monkeypatch: pytest.MonkeyPatch) -> None:
    requests: list[tuple[str, str, bool]] = []
    package = types.ModuleType("datasets")

    def load_dataset(name: str, split: str, streaming: bool) -> list[dict[str, Any]]:
        requests.append((name, split, streaming))
        return [{"instance_id": "a"}]

    package.load_dataset = load_dataset  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "datasets", package)
    assert rows("hf:uw-swag/input-bouncer") == [{"instance_id": "a"}]
    assert rows("hf:uw-swag/input-bouncer:dev") == [{"instance_id": "a"}]
    assert requests == [("uw-swag/input-bouncer", "test", True), ("uw-swag/input-bouncer", "dev", True)]


class Shape(Frozen):
    instance_id: str
    level: int


def test_a_row_becomes_a_typed_value_or_names_its_field(tmp_path: Path) -> None:
    source = written(tmp_path / "t.jsonl", '{"instance_id": "a", "level": 2.0, "other": []}\n{"level": "high"}\n')
    first, second = read_rows(source)
    assert shaped(first, Shape) == Shape(instance_id="a", level=2)
    with pytest.raises(OperatorError, match=r"t\.jsonl:2: instance_id: Field required"):
        shaped(second, Shape)


@pytest.mark.parametrize("value", ["", None, 7, "a\nb", "x" * 201])
def test_an_id_that_cannot_name_a_task_is_refused(value: object) -> None:
    with pytest.raises(OperatorError, match=r"t\.jsonl:1: instance_id: a name of 1 to 200"):
        task_id(dataset.Row({"instance_id": value}, "t.jsonl:1"))


def test_a_repeated_id_names_both_places() -> None:
    with pytest.raises(OperatorError, match=r"t:3: a was given before, at t:1"):
        list(unique([("a", "t:1", 1), ("b", "t:2", 2), ("a", "t:3", 3)]))


def test_a_seeded_choice_only_grows_with_its_limit() -> None:
    ids = [f"task-{n}" for n in range(500)]
    assert choose(ids, None, 3) == set(ids)
    assert choose(ids, 2, None) == {"task-0", "task-1"}
    small, large, other = choose(ids, 20, 3), choose(reversed(ids), 40, 3), choose(ids, 20, 4)
    assert len(small) == 20
    assert small < large
    assert small != other


def test_a_fingerprint_changes_with_the_file(tmp_path: Path) -> None:
    first = fingerprint(written(tmp_path / "a.jsonl", "{}\n"))
    assert first != fingerprint(written(tmp_path / "b.jsonl", "{} \n"))
    assert fingerprint("hf:a/b") == ""
