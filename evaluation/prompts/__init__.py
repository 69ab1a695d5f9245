"""Prompts of the benchmarks: construction, judging, test generation. Packaged beside the live ones."""

from __future__ import annotations

from pathlib import Path

from bot.models.prompts import Prompts

FOLDER = Path(__file__).parent


def benchmark_prompts(folder: Path | None = None) -> Prompts:
    """The benchmarks' own prompts, or files of the same name in ``folder``. Raises SettingsError."""
    return Prompts(folder, (FOLDER,))
