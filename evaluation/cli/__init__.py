"""The ``bouncer-eval`` command: lazy groups, so that a command imports what it needs and nothing else."""

from __future__ import annotations

from importlib import import_module

import click

from bot import __version__
from bot.cli import run, with_env_file
from bot.errors import OperatorError

#: ``verb -> name -> (module:attribute, line in --help)``; a benchmark is mounted by adding its lines.
VERBS: dict[str, dict[str, tuple[str, str]]] = {
    "replay": {
        "bouncerbench-input": ("evaluation.bouncerbench.replay_cli:replay_input", "Open every issue."),
        "bouncerbench-output": ("evaluation.bouncerbench.replay_cli:replay_output", "Open every pull request."),
        "crbench": (
            "evaluation.crbench.replay_cli:replay_command",
            "Open every pull request that brought a bug in.",
        ),
        "brt": ("evaluation.brt.cli:replay_command", "Draft tests from bug reports, or judge given ones."),
    },
    "score": {
        "bouncerbench-input": (
            "evaluation.bouncerbench.score_cli:score_input",
            "Which issues were turned away?",
        ),
        "bouncerbench-output": (
            "evaluation.bouncerbench.score_cli:score_output",
            "Which patches were held back?",
        ),
        "bouncerbench-chain": ("evaluation.bouncerbench.chain_cli:command", "Both bouncers in a row."),
        "crbench": ("evaluation.crbench.score_cli:score_command", "Are the bugs found, and with how much noise?"),
        "brt": (
            "evaluation.brt.score_cli:score_command",
            "Do the tests reproduce the bugs; are they ranked first?",
        ),
        "bloom": ("evaluation.bloom.score_cli:score_command", "What does success rest on, layer by layer?"),
    },
    "build": {
        "bouncerbench": ("evaluation.bouncerbench.build_cli:command", "Tasks from annotations, issues, patches."),
        "crbench": ("evaluation.crbench.build_cli:build_command", "Bug-bringing pull requests from bug fixes."),
        "golden": (
            "evaluation.crbench.golden_cli:build_golden_command",
            "From AACR-Bench's or Martian's comments.",
        ),
        "bloom": ("evaluation.bloom.build_cli:build_command", "Known bugs, told or named otherwise, for brt."),
        "own": ("evaluation.crbench.build_cli:build_own_command", "The same from a repository of your own."),
    },
    "batch": {
        "export": ("evaluation.cli.batching:export_command", "Write the requests that the cache cannot answer."),
        "import": ("evaluation.cli.batching:import_command", "Put a provider's answers into the cache."),
    },
    "leaderboard": {
        "export": ("evaluation.bouncerbench.leaderboard_cli:export_command", "Write a submission."),
        "validate": ("evaluation.bouncerbench.leaderboard_cli:validate_command", "Check a submission."),
    },
}

COMMANDS: dict[str, tuple[str, str]] = {
    "list": ("evaluation.cli.listing:command", "The benchmarks, and what can be done with each."),
    "replay": ("evaluation.cli:replay", "Run a benchmark through the live handlers."),
    "score": ("evaluation.cli:score", "Score a run, or answers from elsewhere."),
    "report": ("evaluation.cli.report:command", "One page about one or more runs."),
    "build": ("evaluation.cli:build", "Construct a benchmark from raw material."),
    "batch": ("evaluation.cli:batch", "The providers' batch APIs at half the price; needs no network."),
    "leaderboard": ("evaluation.cli:leaderboard", "Submissions in the format of BouncerBench's authors."),
}


class Table(click.Group):
    """A group that knows its commands' names and help lines without importing them."""

    def __init__(self, name: str, line: str, commands: dict[str, tuple[str, str]]) -> None:
        super().__init__(name=name, help=line, no_args_is_help=True)
        self._table = commands

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._table:
            return None
        module, _, attribute = self._table[cmd_name][0].partition(":")
        command = getattr(import_module(module), attribute)
        assert isinstance(command, click.Command)
        return with_env_file(command)

    def invoke(self, ctx: click.Context) -> object:
        """Run the command; a package of the extra ``evaluation`` that is not installed is named in one line."""
        try:
            return super().invoke(ctx)
        except ModuleNotFoundError as error:
            if error.name is None or error.name.partition(".")[0] in ("bot", "evaluation"):
                raise
            raise OperatorError(
                f"the package {error.name!r} is missing: pip install 'bouncer-bot[evaluation]'"
            ) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in self._table.items()])


replay, score, build, batch, leaderboard = (
    Table(verb, COMMANDS[verb][1], VERBS[verb]) for verb in ("replay", "score", "build", "batch", "leaderboard")
)


def main(arguments: list[str] | None = None) -> None:
    """Entry point of ``bouncer-eval`` and ``python -m evaluation``."""
    group = Table("bouncer-eval", "Benchmarks, replayed through the handlers that maintainers run.", COMMANDS)
    run(click.version_option(__version__, prog_name="bouncer-eval")(group), arguments, "bouncer-eval")
