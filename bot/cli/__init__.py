"""The ``bouncer`` command: a lazy group, so that ``--help`` imports none of what a command needs."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import click

from bot import __version__
from bot.errors import BouncerError, OperatorError, UserError

#: Command name -> module that defines ``command``, and its line in ``--help``.
COMMANDS: dict[str, tuple[str, str]] = {
    "demo": ("bot.cli.demo", "Watch it work on a simulated GitHub; needs no credentials."),
    "serve": ("bot.cli.serve", "Run the web server and a worker."),
    "web": ("bot.cli.web", "Run the web server alone."),
    "worker": ("bot.cli.worker", "Run a worker alone."),
    "triage": ("bot.cli.triage", "Is this issue specified well enough to act on?"),
    "verify": ("bot.cli.verify", "Does this patch solve this issue?"),
    "review": ("bot.cli.review", "Does this diff introduce a defect?"),
    "reproduce": ("bot.cli.reproduce", "Draft a test that fails the way an issue reports."),
    "calibrate": ("bot.cli.calibrate", "Choose where to bounce from a repository's own history."),
    "backlog": ("bot.cli.backlog", "Judge a repository's open issues; print one table."),
    "action": ("bot.cli.action", "Handle the event of a GitHub workflow (for action.yml)."),
    "jobs": ("bot.cli.jobs", "List, show, retry and cancel jobs."),
    "export": ("bot.cli.export", "Print the decisions on record as CSV or JSON."),
    "doctor": ("bot.cli.doctor.command", "Check settings, database, GitHub, model and sandbox."),
}


class LazyGroup(click.Group):
    """A group that knows its commands' names and help lines without importing them."""

    def __init__(self, commands: dict[str, tuple[str, str]], **settings: object) -> None:
        super().__init__(**settings)  # type: ignore[arg-type]
        self._lazy = commands

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._lazy)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._lazy:
            return None
        command = import_module(self._lazy[cmd_name][0]).command
        assert isinstance(command, click.Command)
        return with_env_file(command)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in self._lazy.items()])


def with_env_file(command: click.Command) -> click.Command:
    """The command, or each one of a group, with the option that names a file of variables to read."""
    if isinstance(command, click.Group):
        for each in command.commands.values():
            with_env_file(each)
    elif not any(option.name == "env_file" for option in command.params):
        command.params.append(
            click.Option(
                ["--env-file"],
                metavar="FILE",
                expose_value=False,
                is_eager=True,
                callback=_export,
                help="Read variables that are not set from this file.",
            )
        )
    return command


def _export(_context: click.Context, _option: click.Parameter, file: str | None) -> None:
    if file is not None:
        from bot.ops import settings

        settings.export(Path(file))


def run(group: click.Group, arguments: list[str] | None, program: str) -> None:
    """Run a command; errors meant for a person become one line on stderr and exit code 2 (1: it failed)."""
    try:
        code = group.main(args=arguments, prog_name=program, standalone_mode=False)
    except click.exceptions.Abort:
        sys.exit(130)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        sys.exit(2)
    except click.ClickException as error:
        _complain(_line(error, program))
        sys.exit(2)
    except (OperatorError, UserError) as error:
        _complain(f"{program}: {error}")
        sys.exit(2)
    except BouncerError as error:
        # Nothing was wrong with what was asked for; it could not be had.
        _complain(f"{program}: {error}")
        sys.exit(1)
    sys.exit(code if isinstance(code, int) else 0)


def _complain(text: str) -> None:
    """Print what is wrong; names of files and keys in it are strangers', and must not steer a terminal."""
    from bot.core.text import show

    click.echo("\n".join(show(line) for line in text.split("\n")), err=True)


def _line(error: click.ClickException, program: str) -> str:
    """Wrong usage in one line: the command, what is wrong with it, and where to read on."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    where = context.command_path if context else program
    what = " ".join(error.format_message().split()).rstrip(".")
    return f"{where}: {what}. See `{where} --help`."


def main(arguments: list[str] | None = None) -> None:
    """Entry point of ``bouncer`` and ``python -m bot``."""
    group = LazyGroup(
        COMMANDS, name="bouncer", help="A GitHub App that knows when not to act.", no_args_is_help=True
    )
    run(click.version_option(__version__, prog_name="bouncer")(group), arguments, "bouncer")
