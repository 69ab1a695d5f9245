"""The code before a change: the head's files with the change, or a part of it, reverted."""

from __future__ import annotations

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


def revert(diff: Diff, head: Path, before: Path) -> None:
    """Copy ``head`` to ``before`` and revert the change there. Raises NotReversible if the two do not match."""
    if diff.flaws:
        raise NotReversible("the change cannot be read in full")
    shutil.copytree(head, before, symlinks=True)
    for file in diff.files:
        old = None if file.change == "added" else inside(before, file.old_path or file.path)
        text = _reversed(file, before)
        if file.change != "copied" and file.change != "deleted":
            inside(before, file.path).unlink(missing_ok=True)
        if old is not None and file.change != "copied":
            old.parent.mkdir(parents=True, exist_ok=True)
            old.write_bytes(text)


def _reversed(file: FileDiff, folder: Path) -> bytes:
    """Return the file's bytes before the change."""
    if file.change == "added":
        return b""
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
    """Return a path below the folder. Raises NotReversible if its name or a link leads outside."""
    place = folder / path
    if not place.parent.resolve().is_relative_to(folder.resolve()) or place.is_symlink():
        raise NotReversible(f"{path} leads outside")
    return place
