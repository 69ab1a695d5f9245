"""``bouncer-eval`` where only the base package is installed, and what ``--help`` costs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.evaluation.running import refusal

ROOT = Path(__file__).parents[2]
#: Makes a package look as if it were not installed.
WITHOUT = """
import sys
class Nothing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "numpy":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Nothing())
from evaluation.cli import main
main(["score", "brt", "--rankings", "r.csv"])
"""


def test_a_package_of_the_extra_that_is_missing_is_named(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", WITHOUT],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(ROOT)},
    )
    remedy = "run pip install '.[evaluation]' in a checkout of Bouncer"
    message = f"bouncer-eval: the package 'numpy' is missing: {remedy}\n"
    assert (ended.returncode, ended.stdout, ended.stderr) == (2, "", message)


#: What takes a while to import, and what no --help needs.
HEAVY = ("numpy", "scipy", "sklearn", "matplotlib", "libcst", "openai", "anthropic", "dbos", "github", "flask")
EVERY_HELP = f"""
import sys, click
from {{program}} import main
def walk(group, names):
    for name in group.list_commands(None):
        command = group.get_command(None, name)
        if isinstance(command, click.Group):
            walk(command, [*names, name])
            continue
        try:
            main([*names, name, "--help"])
        except SystemExit as end:
            assert not end.code, (names, name)
        loaded = [each for each in {HEAVY!r} if each in sys.modules]
        assert not loaded, (names, name, loaded)
walk({{group}}, [])
"""


EVERY_IMPORT = """
import importlib, pkgutil, sys
import bot.features.shared as shared
names = [f"bot.features.shared.{module.name}" for module in pkgutil.iter_modules(shared.__path__)]
for name in [*names, "evaluation.statistics"]:
    for loaded in [module for module in sys.modules if module.startswith(("bot", "evaluation"))]:
        del sys.modules[loaded]
    importlib.import_module(name)
"""


def test_modules_that_features_share_can_be_imported_in_any_order(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", EVERY_IMPORT],
        cwd=tmp_path, capture_output=True, text=True, env={"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr


@pytest.mark.parametrize(
    ("program", "group"),
    [
        ("bot.cli", "__import__('bot.cli').cli.LazyGroup('', '', __import__('bot.cli').cli.COMMANDS)"),
        (
            "evaluation.cli",
            "__import__('evaluation.cli').cli.Table('', '', __import__('evaluation.cli').cli.COMMANDS)",
        ),
    ],
)
def test_no_help_loads_what_a_command_may_need(tmp_path: Path, program: str, group: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", EVERY_HELP.format(program=program, group=group)],
        cwd=tmp_path, capture_output=True, text=True, env={"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.count("Usage: ") >= 12


@pytest.mark.parametrize("content", [b"", b"\xff", b"gitdir: \0", b"gitdir: " + b"a" * 3000, b"a" * 10_000])
def test_a_file_in_place_of_a_clone_or_a_run_is_refused(content: bytes) -> None:
    Path("file").write_bytes(content)
    assert "file is not a git repository" in refusal("score golden --martian file")
    assert "file is not a run: no run.json in it" in refusal("score brt --run file")


def test_an_empty_file_is_named() -> None:
    Path("empty.jsonl").touch()
    Path("clones").mkdir()
    assert "empty.jsonl holds no report" in refusal("score bloom --reports empty.jsonl")
    out = "--repos clones --out out.jsonl"
    assert "empty.jsonl holds no instance" in refusal(f"build crbench --instances empty.jsonl {out}")
    assert "empty.jsonl holds no pull request" in refusal(f"build golden --set aacr --source empty.jsonl {out}")


@pytest.mark.parametrize("seed", ["-1", "4294967296", "x"])
def test_a_seed_that_no_generator_takes_is_refused(seed: str) -> None:
    assert "Invalid value for '--seed'" in refusal(f"score brt --rankings r.csv --seed {seed}")
    assert "Invalid value for '--seed'" in refusal(f"replay bouncerbench-input --tasks t --out r --seed {seed}")


def test_a_full_disk_behind_standard_output_is_one_line() -> None:
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(
            [sys.executable, "-m", "evaluation", "list"],
            stdout=full, stderr=subprocess.PIPE, text=True, env={"PYTHONPATH": str(ROOT)},
        )  # fmt: skip
    assert (ended.returncode, ended.stderr) == (2, "bouncer-eval: No space left on device\n")
