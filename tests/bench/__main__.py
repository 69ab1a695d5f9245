"""``python -m tests.bench NAME``: run the benchmark of that name and print what it measured."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path


def main() -> None:
    """Run ``tests.bench.NAME.main()``."""
    files = Path(__file__).parent.glob("[a-z]*.py")
    names = sorted(file.stem for file in files if "\ndef main(" in file.read_text())
    if len(sys.argv) < 2 or sys.argv[1] not in names:
        sys.exit(f"usage: python -m tests.bench NAME [ARGUMENTS]; benchmarks: {', '.join(names)}")
    module = import_module(f"tests.bench.{sys.argv[1]}")
    sys.argv = [f"tests.bench.{sys.argv[1]}", *sys.argv[2:]]
    module.main()


if __name__ == "__main__":
    main()
