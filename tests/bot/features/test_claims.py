"""Files, names, options and versions of an issue, looked up in the code without a model."""

from __future__ import annotations

import time

import pytest

from bot.features.triage.claims import MAX_CLAIMS, absent, files_in
from bot.github.offline import RecordedTree

TREE = RecordedTree(
    {
        "rocket/engine.py": b"class Engine:\n    def burn_fuel(self, keep_rest=False):\n        ...\n",
        "rocket/cli.py": b"parser.add_argument('--dry-run')\nconfig = {'quietMode': True}\n",
        "src/orbit/path.py": b"def next_step():\n    ...\n",
        "tests/test_engine.py": b"",
        "logo.png": b"\0",
    }
)
TAGS = ("v1.9.2", "v2022.03.0", "release-3_1", "nightly")


def named(text: str, tags: tuple[str, ...] = TAGS) -> list[str]:
    return [claim.text for claim in absent(text, "rocket", TREE, lambda: tags)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # Files
        ("See rocket/engine.py and orbit/path.py and rocket/gone.py:12.", ["rocket/gone.py"]),
        ('File "/usr/lib/python3/site-packages/rocket/old.py", line 3', ["rocket/old.py"]),
        ("My own /home/me/rocket/mine.py, app/models.py and tests/test_mine.py", []),
        ("https://github.example/acme/rocket/blob/main/rocket/gone.py", []),
        ("rocket/logo.svg is no kind of file that is here, rocket/_version.py is written by a build", []),
        # Names
        ("`burn_fuel` works, `burn_water()` does not", ["burn_water"]),
        ("rocket.engine.Engine.launch fails", ["rocket.engine.Engine.launch"]),
        ("```python\nimport rocket.engine as re_\nre_.Motor()\n```", ["re_.Motor"]),
        ("```python\nfrom rocket import Motor\ndef my_helper(): ...\n```\n`my_helper` fails", []),
        ("```python\nimport pandas as pd\n```\n`pd.read_csv` and `isinstance` work", []),
        ("`Engine` in prose, a `word`, and `x = 1`", []),
        # Options
        ("`--dry-run`, `--quiet-mode` and --keep-rest exist, --keep-all does not", ["--keep-all"]),
        ("pip install --upgrade rocket", []),
        # Versions
        ("With version 1.9 and v1.9.2, but not in version 1.8 of it", ["1.8"]),
        ("rocket: 2022.3.0\nrocket 2022.4.0\nPython version: 3.8\nnumpy 1.1.1", ["2022.4.0"]),
        ("in v3.1.0 and since v3.2", ["3.2"]),
        ("in v4.0.dev1 and version 4.1rc1 and with version 4.0-beta", []),
        ("<!-- in version 9.9 and `never_there()` -->", []),
        ("", []),
    ],
)
def test_only_the_project_s_own_and_missing_things_are_named(text: str, expected: list[str]) -> None:
    assert named(text) == expected


def test_few_or_many_tags_tell_nothing_about_versions() -> None:
    assert named("in version 9.9", ("nightly",)) == []
    assert named("in version 9.9", tuple(f"v1.{number}" for number in range(300))) == []


def test_tags_are_read_only_if_a_version_is_named() -> None:
    def refuse() -> tuple[str, ...]:
        raise AssertionError("tags cost a request")

    assert absent("`burn_water` fails with Python 3.8", "rocket", TREE, refuse)


@pytest.mark.parametrize(
    "unit",
    [
        "<!--",
        "1.",
        "a/",
        "a.",
        "\n;",
        "`",
        "--a",
        ", ",
        "from a import ",
        "```\n",
        "version 1.1",
        "import",
        "(a=",
        "~~~",
    ],
)
def test_hostile_texts_are_read_in_time(unit: str) -> None:
    start = time.monotonic()
    assert len(named(unit * (60_000 // len(unit)))) <= MAX_CLAIMS
    assert time.monotonic() - start < 2


def test_control_characters_are_shown_and_long_names_left_out() -> None:
    long = "x_" * 60
    (claim,) = absent(f"`{long}()` and rocket/a\u202eb.py and `a_b()`", "rocket", TREE, tuple)
    assert claim.sentence == "No file of the repository contains the name a_b."


def test_files_are_those_of_the_tree() -> None:
    texts = ("rocket/engine.py", "Read ./rocket/cli.py:2, engine.py and /etc/passwd, then rocket/engine.py.")
    assert files_in(texts, TREE) == ("rocket/engine.py", "rocket/cli.py")
