"""The code before a change: the head's files with the change, or a part of it, reverted."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from bot.code.change.diff import Diff, FileDiff, apply_hunks
from bot.core.errors import ForgeError, NotRecorded, SandboxError
from bot.core.subjects import PullRequest
from bot.features.services import Services
from bot.reproduction.protocol import Harness, SetupFailed, TestCommand

#: The text of a submodule in a diff.
_SUBMODULE = re.compile(r"Subproject commit [0-9a-f]{40,64}(?:-dirty)?")


class NotReversible(Exception):
    """The merge base cannot be computed from the head and the change."""


class NotRunnable(Exception):
    """Tests cannot be run on both sides of a change, for this reason."""


class BothSides(NamedTuple):
    """Checkouts of the head and of the head without a change, and a harness that runs tests on them."""

    head: Path
    before: Path
    harness: Harness


@contextmanager
def both_sides(pull: PullRequest, change: Diff, services: Services) -> Iterator[BothSides]:
    """Yield both sides of a change, for the repository's test command. Raises NotRunnable, in its block too."""
    with TemporaryDirectory(prefix="bouncer-") as temporary:
        folder = Path(temporary)
        head, before = folder / "head", folder / "before"
        try:
            checkouts(pull, services, folder)
            revert(change, head, before)
            command = TestCommand.of_repository(services.config.reproduce.command)
            with services.prepared(folder / "base", command) as harness:
                yield BothSides(head, before, harness)
        except (ForgeError, SandboxError, SetupFailed, NotReversible, ValueError) as error:
            raise NotRunnable(str(error)[:300] or "nothing could be run") from error


def checkouts(pull: PullRequest, services: Services, folder: Path) -> None:
    """Check out the base branch and the head of a pull request to ``base`` and ``head``. Raises ForgeError.

    The environment of tests is set up from the base branch, never from the head. A developer's checkout is the
    head only, and needs no set-up.
    """
    for name, sha in (("base", pull.base_sha), ("head", pull.head_sha)):
        (folder / name).mkdir()
        try:
            services.forge.checkout(sha, folder / name)
        except NotRecorded:
            if name == "head":
                raise


def is_submodule(file: FileDiff) -> bool:
    """Return True for a submodule: a checkout has an empty folder in its place, or nothing."""
    lines = [line for hunk in file.hunks for line in hunk.lines]
    return bool(lines) and all(_SUBMODULE.fullmatch(line.text) for line in lines)


def revert(diff: Diff, head: Path, before: Path) -> None:
    """Copy ``head`` to ``before`` and revert the change there. Submodules, which have no files, stay.

    Raises NotReversible if head and change do not match, or if nothing but submodules changed.
    """
    if diff.flaws:
        raise NotReversible("the change cannot be read in full")
    files = [file for file in diff.files if not is_submodule(file)]
    if diff.files and not files:
        names = ", ".join(file.path for file in diff.files)
        raise NotReversible(f"the code changes in submodules alone ({names}), which are not checked out")
    shutil.copytree(head, before, symlinks=True)
    # Read all files before the first is written: two may have swapped their names.
    old_files = [
        (file, inside(before, file.old_path or file.path), _reversed(file, before))
        for file in files
        if file.change not in ("added", "copied")
    ]
    try:
        for file in files:
            if file.change in ("added", "copied", "renamed"):
                inside(before, file.path).unlink(missing_ok=True)
        for file, path, content in old_files:
            if path.is_dir() and not any(entry.is_file() for entry in path.rglob("*")):
                shutil.rmtree(path)  # what is left of a folder that took the file's place
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            if file.change == "renamed":
                shutil.copymode(head / file.path, path)
    except OSError as error:
        raise NotReversible(f"head and change do not match: {error.strerror}") from error


def _reversed(file: FileDiff, folder: Path) -> bytes:
    """Return the file's bytes before the change."""
    if file.binary:
        raise NotReversible(f"{file.path} is no text")
    try:
        data = b"" if file.change == "deleted" else inside(folder, file.path).read_bytes()
        if not file.hunks:
            return data
        content = data.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError):
        raise NotReversible(f"{file.path} cannot be read at the head") from None
    text = apply_hunks(content.replace("\r\n", "\n"), file.hunks, reverse=True)
    if text is None:
        raise NotReversible(f"{file.path} at the head is not what the change says")
    text = text if text.endswith("\n") or not text else f"{text}\n"
    return (text.replace("\n", "\r\n") if "\r\n" in content else text).encode()


def inside(folder: Path, path: str) -> Path:
    """Return a path below the folder. Raises NotReversible for a link, and if name or folder lead outside."""
    place = folder / path
    if not place.parent.resolve().is_relative_to(folder.resolve()):
        raise NotReversible(f"{path} leads outside")
    if place.is_symlink():
        raise NotReversible(f"{path} is a symbolic link")
    return place
