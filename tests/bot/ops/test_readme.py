"""The README says what is so."""

import json
import re
from pathlib import Path

import jsonschema
import yaml

from bot.core.config_file import load
from bot.ops.reference import SCHEMA, filled, json_schema, schema_text

README = Path(__file__).resolve().parents[3] / "README.md"


def test_its_references_are_up_to_date() -> None:
    text = README.read_text("utf-8")
    assert filled(text) == text, "run: python -m bot.ops.reference"
    assert SCHEMA.read_text("utf-8") == schema_text(), "run: python -m bot.ops.reference"


def test_its_example_configuration_is_right() -> None:
    (example,) = re.findall(r"```yaml\n(triage:.*?)```", README.read_text("utf-8"), re.DOTALL)
    assert load(example)[1] == ()
    jsonschema.validate(yaml.safe_load(example), json_schema())


def test_editors_and_the_program_refuse_the_same() -> None:
    for wrong in ({"triage": {"mode": "loud"}}, {"reviews": {}}, {"review": {"max_findings": 900}}):
        assert load(json.dumps(wrong))[1]
        assert list(jsonschema.Draft202012Validator(json_schema()).iter_errors(wrong))


def test_its_pictures_are_there() -> None:
    for picture in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", README.read_text("utf-8")):
        assert (README.parent / picture).stat().st_size > 1_000


def test_its_set_up_commands_are_one_line_each() -> None:
    lines = [line for line in README.read_text("utf-8").splitlines() if line.startswith("python3 -m venv")]
    assert [line.rpartition(" && ")[2] for line in lines] == [
        ".venv/bin/bouncer demo",
        ".venv/bin/python -m pytest",
    ]
