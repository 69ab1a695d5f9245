"""Prompts are files: ``NAME.md.jinja`` in a ``prompts`` folder of the package, or in the operator's folder.

A file holds the system part, then one line that reads exactly ``=== user ===``, then the user part. The line
is searched in the file, never in the filled-in text. Files whose name starts with ``_`` are pieces for
``{% include %}``; ours stand together in ``_pieces``, each below a line with its name. A missing
variable is an error. Untrusted text goes through ``untrusted`` if the piece ``_untrusted`` is included, or through
the shorter ``fenced`` if ``_fences`` is:

    {{ issue.body | untrusted("issue body") }}

Values are data: template syntax inside them is not evaluated.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, TemplateError, TemplateNotFound
from jinja2.sandbox import ImmutableSandboxedEnvironment

from bot.core.errors import SettingsError
from bot.core.text import fenced, untrusted
from bot.models.protocol import Messages

SUFFIX = ".md.jinja"
SEPARATOR = re.compile(r"^=== user ===[ \t]*\r?\n", re.MULTILINE)
_PIECES = "_pieces"
_PIECE = re.compile(r"^=== (_\w+) ===\n", re.MULTILINE)
_INCLUDED = re.compile(r"{%-? include \"([^\"]+)\.md\.jinja\"")
_PACKAGE = Path(__file__).parents[1]
#: Each feature keeps its own prompts beside its code.
_PACKAGED = tuple(sorted((*_PACKAGE.glob("features/*/prompts"), *_PACKAGE.glob("*/prompts"))))


class Prompts:
    """The packaged prompts; files of the same name in the operator's ``folder`` replace them.

    ``packaged`` are another package's folders of prompts; the pieces here can be included there too.
    Raises SettingsError for a folder that is not there, holds no prompt, or holds an unknown one.
    """

    def __init__(self, folder: Path | None = None, packaged: tuple[Path, ...] = _PACKAGED) -> None:
        self.folder = folder
        self._packaged = packaged
        if folder is not None:
            _check(folder, packaged)
        packaged_folders = (*packaged, *_PACKAGED)
        self._environment = (
            _compiled(packaged_folders) if folder is None else _environment(folder, *packaged_folders)
        )

    def render(self, name: str, **values: object) -> Messages:
        """Fill in the prompt ``name``; raises SettingsError that names the file and what is wrong with it."""
        return Messages(self._half(name, "system", values), self._half(name, "user", values))

    def names(self) -> tuple[str, ...]:
        """Return the names of all prompts, sorted, without pieces."""
        return tuple(sorted(_names(*self._packaged, self.folder)))

    def hash(self, *names: str) -> str:
        """Identifies the texts of prompts' files and of their pieces, before they are filled in: 16 hex digits."""
        texts = {name: self._text(name) for name in names}
        parts = [*names]
        for part in parts:
            for piece in _INCLUDED.findall(texts[part]):
                if piece not in texts:
                    texts[piece] = self._text(piece)
                    parts.append(piece)
        content = "".join(f"{part}\0{texts[part]}\0" for part in (*names, *sorted(parts[len(names) :])))
        return hashlib.sha256(content.encode()).hexdigest()[:16]

    def _half(self, name: str, half: str, values: dict[str, Any]) -> str:
        try:
            return self._environment.get_template(f"{name}{SUFFIX}#{half}").render(values).strip()
        except TemplateNotFound as error:
            raise SettingsError(f"prompt {name!r}: there is no file {error.name}") from error
        except TemplateError as error:
            raise SettingsError(f"prompt {name!r}, {half} part: {error.message}") from error

    def _text(self, name: str) -> str:
        assert self._environment.loader is not None
        return self._environment.loader.get_source(self._environment, f"{name}{SUFFIX}")[0]


def _environment(*folders: Path) -> Environment:
    environment = ImmutableSandboxedEnvironment(
        loader=_Halves(folders), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"untrusted": untrusted, "fenced": fenced}
    return environment


@cache
def _compiled(packaged: tuple[Path, ...]) -> Environment:
    """Return the environment of packaged prompts, which are compiled once in a process."""
    return _environment(*packaged)


class _Halves(FileSystemLoader):
    """Loads ``FILE#system`` and ``FILE#user``: a file's parts are templates of their own."""

    def get_source(self, environment: Environment, template: str) -> tuple[str, str, Callable[[], bool]]:
        name, _, half = template.partition("#")
        source, filename, fresh = self._source(environment, name)
        if not half:
            return source, filename, fresh
        parts = SEPARATOR.split(source)
        if len(parts) != 2:
            raise TemplateError(f"{filename} needs exactly one line '=== user ===', it has {len(parts) - 1}")
        return parts[0 if half == "system" else 1], filename, fresh

    def _source(self, environment: Environment, name: str) -> tuple[str, str, Callable[[], bool]]:
        """Return a file, or a piece of the shared file if there is no file of that name."""
        try:
            return super().get_source(environment, name)
        except TemplateNotFound:
            text, filename, fresh = super().get_source(environment, f"{_PIECES}{SUFFIX}")
            _, *pieces = _PIECE.split(text)
            texts = dict(zip(pieces[::2], pieces[1::2], strict=True))
            if (piece := texts.get(name.removesuffix(SUFFIX))) is None:
                raise
            return piece, filename, fresh


def _names(*folders: Path | None) -> set[str]:
    """Return the names of the prompts in these folders, without pieces."""
    files = [file for folder in folders if folder for file in folder.glob(f"[!_]*{SUFFIX}")]
    return {file.name.removesuffix(SUFFIX) for file in files}


def _check(folder: Path, packaged: tuple[Path, ...]) -> None:
    if not folder.is_dir():
        raise SettingsError(f"prompts (BOUNCER_PROMPTS_DIR): {folder} is not a folder")
    names = ", ".join(sorted(_names(*packaged)))
    if not any(folder.glob(f"*{SUFFIX}")):
        raise SettingsError(f"prompts (BOUNCER_PROMPTS_DIR): {folder} holds no *{SUFFIX} file; names are {names}")
    if strangers := ", ".join(sorted(_names(folder) - _names(*packaged))):
        raise SettingsError(
            f"prompts (BOUNCER_PROMPTS_DIR): {folder} holds {strangers}, which are no prompts; names are {names}"
        )
