"""The issue forms ask for what Bouncer itself needs: issues that are filled in with them are not bounced.

The answers in ``forms/replies.jsonl`` are a capable language model's, recorded on 2026-11-24 for these two issues.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import forked

FORMS = Path(__file__).parent / "forms"
TEMPLATES = Path(__file__).resolve().parents[2] / ".github/ISSUE_TEMPLATE"


def form(name: str) -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load((TEMPLATES / f"{name}.yml").read_text())
    return content


def rendered(name: str) -> str:
    """Return the issue as GitHub renders a form that was filled in: a heading and the text for each field."""
    values = json.loads((FORMS / f"{name}.json").read_text())
    body = [
        f"### {field['attributes']['label']}\n\n{values[field['id']]}"
        for field in form(name)["body"]
        if field["id"] in values
    ]
    return "\n\n".join([f"# {values['title']}", *body])


@pytest.mark.parametrize("name", ["bug", "feature"])
def test_filled_in_form_is_not_bounced(name: str, tmp_path: Path) -> None:
    file = tmp_path / f"{name}.md"
    file.write_text(rendered(name))
    model = f"recorded:{FORMS / 'replies.jsonl'}#{name}"
    words = ("triage", str(file), "--model", model, "--json")
    done = forked.run(*words, environment=os.environ, folder=tmp_path)
    assert done.code == 0, done.err
    decision = json.loads(done.out)
    assert decision["verdict"] in ("WELL_SPECIFIED", "REASONABLY_SPECIFIED")
    assert not decision["bounced"]
    assert decision["p_bounce"] < 50


@pytest.mark.parametrize("name", ["bug", "feature"])
def test_form_requires_what_a_judgement_needs(name: str) -> None:
    required = {
        field["id"] for field in form(name)["body"] if field.get("validations", {}).get("required") is True
    }
    needed = {"bug": {"happened", "expected", "steps", "version"}, "feature": {"situation", "behaviour", "limits"}}
    assert required == needed[name]
    assert all(field["attributes"].get("description") for field in form(name)["body"])
