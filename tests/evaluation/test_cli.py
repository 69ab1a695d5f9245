"""``bouncer-eval`` where only the base package is installed, and what ``--help`` costs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
#: Makes a package look as if it were not installed.
WITHOUT = """
import sys
class Nothing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {missing!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Nothing())
from evaluation.cli import main
main({arguments!r})
"""


@pytest.mark.parametrize(
    ("missing", "arguments"),
    [
        ("numpy", ["score", "brt", "--rankings", "r.csv"]),
        ("matplotlib", ["report", "run"]),
    ],
)
def test_a_package_of_the_extra_that_is_missing_is_named(
    tmp_path: Path, missing: str, arguments: list[str]
) -> None:
    facts = '{"benchmark": "brt", "model": "m", "version": "0", "tasks": {"source": "t"}, '
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "run.json").write_text(facts + '"started_at": "2026-01-01T00:00:00Z"}')
    script = WITHOUT.format(missing=[missing], arguments=arguments)
    ended = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, env={"PYTHONPATH": str(ROOT)}
    )
    said = f"bouncer-eval: the package '{missing}' is missing: pip install 'bouncer-bot[evaluation]'\n"
    assert (ended.returncode, ended.stdout, ended.stderr) == (2, "", said)
