"""README and documentation say what is so."""

import json
import re
from pathlib import Path

import jsonschema
import pytest
import yaml

from bot.cli import COMMANDS
from bot.core.config_file import load
from tests.settings_reference import PAGES as GENERATED
from tests.settings_reference import SCHEMA, filled, json_schema, schema_text

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
CONFIGURE = ROOT / "docs/configure.md"
PAGES = (README, ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md")))


def test_its_references_are_up_to_date() -> None:
    for page in GENERATED:
        text = page.read_text("utf-8")
        assert filled(text) == text, "run: python -m tests.settings_reference"
    assert SCHEMA.read_text("utf-8") == schema_text(), "run: python -m tests.settings_reference"


def test_its_example_configuration_is_right() -> None:
    (example,) = re.findall(r"```yaml\n(triage:.*?)```", CONFIGURE.read_text("utf-8"), re.DOTALL)
    assert load(example)[1] == ()
    jsonschema.validate(yaml.safe_load(example), json_schema())


def test_editors_and_the_program_refuse_the_same() -> None:
    for wrong in ({"triage": {"mode": "loud"}}, {"reviews": {}}, {"review": {"max_findings": 900}}):
        assert load(json.dumps(wrong))[1]
        assert list(jsonschema.Draft202012Validator(json_schema()).iter_errors(wrong))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_and_pictures_of_a_page_are_there(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text("utf-8")):
        if not target.startswith(("http:", "https:", "#")):
            assert (page.parent / target.partition("#")[0]).stat().st_size > 0, target


def test_every_page_is_in_the_navigation() -> None:
    pages = {next(iter(entry.values())) for entry in yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]}
    assert pages == {page.name for page in (ROOT / "docs").glob("*.md")}


def test_commands_on_its_pages_exist() -> None:
    words = {*COMMANDS, "--help", "--version"}
    for page in PAGES:
        for word in re.findall(r"(?:^|`)bouncer ([a-z-]+)", page.read_text("utf-8"), re.MULTILINE):
            assert word in words, f"{page.name}: bouncer {word}"


def test_its_set_up_commands_are_one_line_each() -> None:
    lines = [line for line in README.read_text("utf-8").splitlines() if line.startswith("python3 -m venv")]
    assert [line.rpartition(" && ")[2] for line in lines] == [
        ".venv/bin/bouncer demo",
        ".venv/bin/python -m pytest -n 4 --dist loadfile",
    ]
