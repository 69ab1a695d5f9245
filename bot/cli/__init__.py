"""The ``bouncer`` command: a lazy group, so that ``--help`` imports none of what a command needs."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path
from pkgutil import resolve_name

import click

from bot import __version__
from bot.core.errors import BouncerError

#: ``name -> (module:attribute, line in --help)``.
COMMANDS: dict[str, tuple[str, str]] = {
    "demo": ("bot.cli.demo:command", "Watch it work on a simulated GitHub; needs no credentials."),
    "serve": ("bot.cli.serve:command", "Run the web server and a worker."),
    "web": ("bot.cli.web:command", "Run the web server alone."),
    "worker": ("bot.cli.worker:command", "Run a worker alone."),
    "triage": ("bot.cli.bouncers:triage", "Is this issue specified well enough to act on?"),
    "verify": ("bot.cli.bouncers:verify", "Does this patch solve this issue?"),
    "review": ("bot.cli.review:command", "Does this diff introduce a defect?"),
    "reproduce": ("bot.cli.reproduce:command", "Draft a test that fails the way an issue reports."),
    "calibrate": ("bot.cli.calibrate:command", "Choose where to bounce from a repository's own history."),
    "backlog": ("bot.cli.backlog:command", "Judge a repository's open issues; print one table."),
    "queue": ("bot.cli.queue:command", "List open pull requests in the order in which to look at them."),
    "index": ("bot.cli.index:command", "Index a repository's issues, to name duplicates of new ones."),
    "action": ("bot.cli.action:command", "Handle the event of a GitHub workflow (for action.yml)."),
    "jobs": ("bot.cli.records:jobs_command", "List, show, retry, rejudge and cancel jobs."),
    "export": ("bot.cli.records:export_command", "Print the decisions on record as CSV or JSON."),
    "doctor": ("bot.cli.doctor:command", "Check settings, database, GitHub, model and sandbox."),
}
#: Those that run for months.
_SERVERS = ("serve", "web", "worker")
#: The variable by which a program knows that it was started again. That of glibc does not tell: glibc shortens it.
_STARTED_AGAIN = "_BOUNCER_STARTED_AGAIN"
#: Settings of glibc's allocator, which it reads when a program starts.
_GLIBC = ":".join(
    f"glibc.malloc.{setting}"
    for setting in ("arena_max=1", "tcache_count=0", "trim_threshold=131072", "mmap_threshold=131072")
)


class LazyGroup(click.Group):
    """A group that knows its commands' names and help lines without importing them."""

    def __init__(self, name: str, line: str, commands: dict[str, tuple[str, str]]) -> None:
        super().__init__(name=name, help=line, no_args_is_help=True)
        self._lazy = commands

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._lazy)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._lazy:
            return None
        command = resolve_name(self._lazy[cmd_name][0])
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in self._lazy.items()])


class BouncerGroup(LazyGroup):
    """All commands; each accepts ``--env-file``."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        command = super().get_command(ctx, cmd_name)
        return command and _with_env_file(command)


def _with_env_file(command: click.Command) -> click.Command:
    """Add ``--env-file`` to a command, or to every command of a group."""
    if isinstance(command, click.Group):
        for subcommand in command.commands.values():
            _with_env_file(subcommand)
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
        from bot import settings

        settings.export(Path(file))


def run(group: click.Group, arguments: list[str] | None, program: str) -> None:
    """Run a command; errors meant for a person become one line on stderr and exit code 2."""
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
    except BouncerError as error:
        # Not 1: to a caller with --fail-on that is a verdict.
        _complain(f"{program}: {error}")
        sys.exit(2)
    except OSError as error:
        # A folder in place of a file, a full disk behind standard output: the caller's to mend, and no verdict.
        place = f"{error.filename}: " if error.filename else ""
        _complain(f"{program}: {place}{error.strerror or error}")
        sys.stdout = io.StringIO()  # at exit, what is left in its buffer would fail again
        sys.exit(2)
    sys.exit(code if isinstance(code, int) else 0)


def _complain(text: str) -> None:
    """Print an error. File names and keys in it are untrusted and must not control the terminal."""
    from bot.cli.files import show_card

    show_card(text, err=True)


def _line(error: click.ClickException, program: str) -> str:
    """Return wrong usage in one line: the command, the mistake, and where to read more."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    path = context.command_path if context else program
    mistake = " ".join(error.format_message().split()).rstrip(".")
    return f"{path}: {mistake}. See `{path} --help`."


def main(arguments: list[str] | None = None) -> None:
    """Entry point of ``bouncer`` and ``python -m bot``."""
    if arguments is None and not set(_SERVERS).isdisjoint(sys.argv[1:2]):
        share_heap()
    group = BouncerGroup("bouncer", "A GitHub App that knows when not to act.", COMMANDS)
    run(click.version_option(__version__, prog_name="bouncer")(group), arguments, "bouncer")


def share_heap() -> None:
    """Start this program again, with settings of glibc that keep its memory small for months.

    By default each thread allocates from an arena of its own and keeps some of the blocks that it frees. The
    threads of a worker come and go: what is free in one place is not used by another and seldom returned to the
    system, so the process grows.
    """
    if sys.platform == "linux" and os.environ.pop(_STARTED_AGAIN, None) is None:
        environment = {**os.environ, "GLIBC_TUNABLES": _GLIBC, _STARTED_AGAIN: "1"}
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environment)  # noqa: S606 - the same program
