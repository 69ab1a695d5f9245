"""A diff put together from GitHub's list of changed files, where the whole is too large to be shown."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from bot.forge.protocol import PullDiff

_PLAIN = re.compile(r'[^"\\\x00-\x1f\x7f-\U0010ffff]*')


def assemble(files: Sequence[Mapping[str, Any]], changed: int) -> PullDiff:
    """``changed`` is the number of changed files that GitHub counts; it lists 3,000 of them at most."""
    shown = "".join(_file(each) for each in files if _is_shown(each))
    omitted = tuple(str(each["filename"]) for each in files if not _is_shown(each))
    return PullDiff(text=shown, omitted=omitted, unlisted=max(changed - len(files), 0))


def _is_shown(file: Mapping[str, Any]) -> bool:
    """A file without a patch is binary or too large, unless it was only renamed."""
    return "patch" in file or (file["status"] == "renamed" and not file.get("changes"))


def _file(file: Mapping[str, Any]) -> str:
    path, status = str(file["filename"]), file["status"]
    before = str(file.get("previous_filename") or path)
    old, new = quoted(f"a/{before}"), quoted(f"b/{path}")
    lines = [f"diff --git {old} {new}"]
    if status == "added":
        lines.append("new file mode 100644")
    elif status == "removed":
        lines.append("deleted file mode 100644")
    elif status in ("renamed", "copied"):
        word = "rename" if status == "renamed" else "copy"
        lines += [f"{word} from {quoted(before)}", f"{word} to {quoted(path)}"]
    if patch := file.get("patch"):
        lines.append(f"--- {'/dev/null' if status == 'added' else old}")
        lines.append(f"+++ {'/dev/null' if status == 'removed' else new}")
        lines.append(str(patch))
    return "\n".join(lines) + "\n"


def quoted(path: str) -> str:
    """A path as git writes it: in quotes, with escapes, where it holds anything unusual."""
    if _PLAIN.fullmatch(path):
        return path
    named = {"\n": "\\n", "\t": "\\t", "\r": "\\r", '"': '\\"', "\\": "\\\\"}

    def escape(char: str) -> str:
        if char in named:
            return named[char]
        if " " <= char <= "~":
            return char
        return "".join(f"\\{byte:03o}" for byte in char.encode("utf-8", "surrogatepass"))

    return '"' + "".join(map(escape, path)) + '"'
