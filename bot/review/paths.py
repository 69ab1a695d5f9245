r"""The names in the header of a file's diff, as ``git apply`` reads them.

Git quotes names with control characters, quotes or (by default) any byte beyond ASCII like C strings, ends a name
with spaces by a tab, and puts ``a/`` and ``b/`` (or ``i/ w/ c/ o/ 1/ 2/``) before it, or nothing at all.
"""

from __future__ import annotations

import re

NULL = "/dev/null"

_PREFIX = re.compile(r"^[abciow12]/")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
_ESCAPE = re.compile(rb"\\([0-7]{3}|.)")
_SINGLE = {b"a": b"\a", b"b": b"\b", b"t": b"\t", b"n": b"\n", b"v": b"\v", b"f": b"\f", b"r": b"\r"}


def read_names(header: list[str]) -> tuple[str | None, str | None]:
    """Old and new name; None on the side where the file does not exist. Both None where no name can be told."""
    old, new = _from_pair(header)
    if old is None and new is None:
        old, new = _from_git_line(header[0])
    old = _field(header, "rename from ", "copy from ") or old
    new = _field(header, "rename to ", "copy to ") or new
    if any(line.startswith("new file mode ") for line in header):
        old = None
    if any(line.startswith("deleted file mode ") for line in header):
        new = None
    return old, new


def _from_pair(header: list[str]) -> tuple[str | None, str | None]:
    """Names in the lines ``--- old`` and ``+++ new``."""
    names = [_name(line[4:]) for line in header if line.startswith(("--- ", "+++ "))][:2]
    return _bare(names[0], names[1]) if len(names) == 2 else (None, None)


def _from_git_line(line: str) -> tuple[str | None, str | None]:
    """Names in ``diff --git a/x b/x``: with spaces in them, only equal halves tell where the second begins."""
    rest = line.rstrip("\r").split(" ", 2)[-1]
    if (quoted := _QUOTED.match(rest)) is not None:
        return _bare(_unquote(quoted[0]), _unquote(rest[quoted.end() + 1 :]))
    if rest.endswith('"') and ' "' in rest:
        old, _, new = rest.partition(' "')
        return _bare(old, _unquote(f'"{new}'))
    middle = (len(rest) - 1) // 2
    # Where one half alone has a prefix, the space is off the middle by one.
    for space in range(max(0, middle - 1), middle + 3):
        pair = _bare(rest[:space], rest[space + 1 :])
        if rest[space : space + 1] == " " and pair[0] == pair[1]:
            return pair
    old, _, new = rest.partition(" ")
    return _bare(old, new or old)


def _bare(old: str, new: str) -> tuple[str | None, str | None]:
    """Both names without git's prefixes; two equal prefixes are no prefixes, but a folder called so."""
    if _PREFIX.match(old) and old[:2] == new[:2]:
        return old, new
    return _strip(old), _strip(new)


def _field(header: list[str], *keys: str) -> str | None:
    for line in header:
        for key in keys:
            if line.startswith(key):
                return _unquote(line[len(key) :].rstrip("\r"))
    return None


def _name(text: str) -> str:
    """A name as ``---`` and ``+++`` show it: without the tab and time that may follow it."""
    if (quoted := _QUOTED.match(text)) is not None:
        return _unquote(quoted[0])
    return text.split("\t")[0].rstrip("\r")


def _strip(name: str) -> str | None:
    return None if name == NULL else _PREFIX.sub("", name)


def _unquote(text: str) -> str:
    """Undo C quoting; bytes that are not UTF-8 become U+FFFD. Unquoted text is returned as it is."""
    match = _QUOTED.fullmatch(text)
    if match is None:
        return text
    return _ESCAPE.sub(_unescape, match[1].encode("utf-8", "replace")).decode("utf-8", "replace")


def _unescape(match: re.Match[bytes]) -> bytes:
    code = match[1]
    return bytes([int(code, 8) & 0xFF]) if len(code) == 3 else _SINGLE.get(code, code)
