"""Where tests run, as whoever drafts one has to know it: interpreter, system, rights, packages."""

from __future__ import annotations

import json
import re
from pathlib import Path, PurePosixPath

from pydantic import ValidationError

from bot.core.frozen import Frozen
from bot.reproduce.execution import Harness

#: Packages that are named, and characters of a version.
MAX_PACKAGES, MAX_WORDS = 150, 100
#: Written for every Python that still runs anywhere.
_SCRIPT = """\
import json, os, platform
try:
    from importlib.metadata import distributions
    names = sorted({name for each in distributions() for name in (each.read_text("top_level.txt") or
                    (each.metadata["Name"] or "").replace("-", "_")).split()})
except Exception:
    names = []
facts = {"python": platform.python_version(), "system": platform.system() + " " + platform.machine()}
print(json.dumps(dict(facts, root=os.geteuid() == 0, packages=names)))
"""
_NAME = re.compile(r"[A-Za-z]\w{0,40}")


class _Facts(Frozen):
    python: str
    system: str
    root: bool
    packages: tuple[str, ...]


def machine(harness: Harness, folder: Path) -> str:
    """What the interpreter that runs the tests says of itself, in two sentences; empty where none answers.

    Raises SandboxError where the sandbox itself breaks.
    """
    if harness.command.runs_java:
        return ""
    program = PurePosixPath(harness.command.argv[0])
    python = program if program.name.startswith("python") else program.with_name("python3")
    said = harness.execute((str(python), "-c", _SCRIPT), folder).output.strip().rpartition("\n")[2]
    try:
        facts = _Facts.model_validate(json.loads(said))
    except (ValueError, RecursionError, ValidationError):
        return ""
    names = [name for name in facts.packages if _NAME.fullmatch(name)][:MAX_PACKAGES]
    who = "as root" if facts.root else "not as root"
    return (
        f"Python {facts.python[:MAX_WORDS]} on {facts.system[:MAX_WORDS]}, {who}, without a network. Besides the "
        f"standard library and the repository's own, these can be imported: {', '.join(names) or 'none'}."
    )
