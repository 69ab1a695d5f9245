"""CR-Bench on the command line; each command lives in a module of its own."""

from evaluation.crbench.build_cli import build_command, build_own_command

__all__ = ["build_command", "build_own_command"]
