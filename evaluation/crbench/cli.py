"""CR-Bench on the command line; each command lives in a module of its own."""

from evaluation.crbench.build_cli import build_command, build_own_command
from evaluation.crbench.golden_cli import build_golden_command
from evaluation.crbench.replay_cli import replay_command
from evaluation.crbench.score_cli import score_command

__all__ = ["build_command", "build_golden_command", "build_own_command", "replay_command", "score_command"]
