"""One report on one folder: what the handler, the command line and the evaluation all do."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bot.models.protocol import Model
from bot.prompts import Prompts
from bot.reproduce import examples
from bot.reproduce.attempt import Reproduction
from bot.reproduce.checkout import read_checkout
from bot.reproduce.command import TestCommand
from bot.reproduce.context import context
from bot.reproduce.drafting import Drafting
from bot.reproduce.examples import Example
from bot.reproduce.execution import Harness
from bot.reproduce.language import Language
from bot.reproduce.machine import machine
from bot.reproduce.pipeline import Bench, Options, reproduce
from bot.reproduce.report import Report, facts

_JAVA_BUILDS = ("pom.xml", "build.gradle", "build.gradle.kts", "build.xml")

#: The report behind an issue number of the repository; None where it is no issue that can be read.
Fetch = Callable[[int], Report | None]


@dataclass(frozen=True)
class Author:
    """Who drafts, and under which name the questions are recorded."""

    model: Model
    prompts: Prompts
    subject: str = ""


def reproduce_in(
    folder: Path,
    report: Report,
    author: Author,
    harness: Harness,
    options: Options,
    *,
    fetch: Fetch | None = None,
    shown: Sequence[Example] | None = None,
    language: Language | None = None,
) -> Reproduction:
    """Draft tests for ``report``, run them on the files in ``folder`` (which is not changed), and choose.

    Examples are ``shown`` where given, else the repository's own where ``fetch`` can read its issues, else two
    fixed ones. Raises ModelError, TransientError and SandboxError as ``pipeline.reproduce`` does.
    """
    language = language or language_of(folder, harness.command)
    checkout = read_checkout(folder, language)
    known = facts(report)
    around = context(known, checkout, language).model_copy(
        update={"command": shlex.join(harness.command.argv), "machine": machine(harness, folder)}
    )
    if shown is None:
        own = examples.from_repository(report, checkout.tests, language, fetch) if fetch else ()
        shown = own or examples.fixed(language.name)
    drafting = Drafting(
        model=author.model,
        prompts=author.prompts,
        report=report,
        context=around,
        examples=shown,
        language=language.name,
        subject=author.subject,
    )
    bench = Bench(checkout=checkout, language=language, harness=harness, context=around)
    return reproduce(bench, known, drafting, options)


def language_of(folder: Path, command: TestCommand) -> Language:
    """The language that tests are written in: what the test command runs, else what the build files say."""
    # Each takes a third of a second to import, which only this needs.
    if command.runs_java or (
        command.naming == "files" and any((folder / name).is_file() for name in _JAVA_BUILDS)
    ):
        from bot.reproduce.java.language import Java

        return Java()
    from bot.reproduce.python import Python

    return Python()
