"""Read an untrusted git repository: no configuration, no hooks, no writes, no network.

A clone under study can carry a configuration that runs programs (pagers, textconv drivers, a file-system
monitor, a partial clone's remote helper) or changes answers (``blame.ignoreRevsFile``, replace refs,
grafts). So git is never started in it: it runs in an empty repository of our own that only borrows the
clone's object store. The one exception lists refs. The reader's own configuration is not read either.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
import threading
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from bot.core.errors import BouncerError, OperatorError

#: What GitHub allows; a name from a data set must not lead out of the folder of clones.
_FULL_NAME = re.compile(r"(?!\.)[\w.-]+/(?!\.)[\w.-]+")
_IN_URL = re.compile(r"[:/](?P<name>[\w.-]+/[\w.-]+?)(?:\.git)?/?$")
#: Seconds that one git process may take before it counts as failed.
TIMEOUT = 600.0


class GitError(BouncerError):
    """Git could not answer: an object is missing or damaged, or it took too long."""


class GitRepository:
    """A local clone, bare or not, opened read-only; use it as a context manager.

    Safe to share between threads.
    """

    def __init__(self, folder: Path, *, shallow: bool = False) -> None:
        """Raises OperatorError if ``folder`` is not a git repository, or is shallow and must not be."""
        self.folder = folder
        self._git_dir = self._common = git_dir(folder)
        pointer = self._git_dir / "commondir"
        if pointer.is_file():
            self._common = (self._git_dir / pointer.read_text(encoding="utf-8").strip()).resolve()
        grafts = self._common / "shallow"
        if not shallow and grafts.is_file() and grafts.stat().st_size:
            raise OperatorError(
                f"{folder} is a shallow clone: blame would name the wrong commits; "
                "fetch its whole history (git fetch --unshallow)"
            )
        self._view = tempfile.TemporaryDirectory(prefix="bouncer-git-")
        self._environment = _environment(Path(self._view.name), self._common / "objects")
        _write_view(Path(self._view.name))
        self._blobs = _BlobReader(self._environment)

    def __enter__(self) -> GitRepository:
        return self

    def __exit__(self, *_: object) -> None:
        """Stop git's processes and remove what was written for them."""
        self._blobs.close()
        self._view.cleanup()

    def run(self, *arguments: str, stdin: bytes = b"", index: Path | None = None) -> bytes:
        """Standard output of one git command. Raises GitError with git's own last line.

        ``index`` is a file of the caller's that serves as the index; there is none otherwise.
        """
        indexed = {} if index is None else {"GIT_INDEX_FILE": str(index)}
        return _run([*arguments], self._environment | indexed, stdin)

    def diff(self, old: str, new: str, *paths: str) -> str:
        """The unified diff between two commits, as GitHub shows it; of all files if no path is given."""
        options = ("--no-color", "--no-ext-diff", "--no-textconv", "-M")
        return self.run("diff", *options, old, new, "--", *paths).decode("utf-8", "replace")

    def blob(self, commit: str, path: str) -> bytes | None:
        """A file's bytes at a commit; None if that commit has no such file."""
        return self._blobs.read(f"{commit}:{path}", "blob")

    def has_commit(self, commit: str) -> bool:
        """Return True if the commit is in the object store."""
        return self._blobs.read(f"{commit}^{{commit}}", "commit") is not None

    def commit(self, sha: str) -> bytes:
        """A commit object as git stores it: headers, an empty line, the message. Raises GitError if missing."""
        content = self._blobs.read(f"{sha}^{{commit}}", "commit")
        if content is None:
            raise GitError(f"commit {sha} is not in {self.folder}")
        return content

    def refs(self, *prefixes: str) -> dict[str, str]:
        """Full ref name -> object id, as the clone itself records them."""
        listing = _run(
            ["--no-pager", "for-each-ref", "--format=%(objectname) %(refname)", *prefixes],
            self._environment | {"GIT_DIR": str(self._git_dir)},
        )
        pairs = (line.split(" ", 1) for line in listing.decode("utf-8", "surrogateescape").splitlines())
        return {name: sha for sha, name in pairs}

    def head(self) -> str:
        """The commit that the clone's HEAD names. Raises GitError for an empty repository."""
        environment = self._environment | {"GIT_DIR": str(self._git_dir)}
        return _run(["rev-parse", "--verify", "HEAD^{commit}"], environment).decode("ascii").strip()

    def full_name(self) -> str:
        """``owner/name`` as its origin says, else its folder's name ``owner+name``. Raises OperatorError."""
        config = self._common / "config"
        origin = ""
        if config.is_file():  # read as data
            command = ["config", "--no-includes", "--file", str(config), "--default", "", "remote.origin.url"]
            origin = _run(command, self._environment).decode("utf-8", "replace").strip()
        match = _IN_URL.search(origin)
        name = match["name"] if match else self.folder.resolve().name.replace("+", "/")
        if not _FULL_NAME.fullmatch(name):
            raise OperatorError(f"{self.folder}: neither its origin nor its folder says owner/name; give --name")
        return name


#: Bytes of a file that names a git directory.
_LONGEST_POINTER = 4096


def git_dir(folder: Path) -> Path:
    """The git directory of a clone: ``folder`` itself, its ``.git``, or its ``repo``'s.

    Raises OperatorError if there is none.
    """
    for candidate in (folder / ".git", folder, folder / "repo" / ".git", folder / "repo"):
        if candidate.is_file():  # of a worktree or submodule
            with candidate.open("rb") as file, suppress(OSError, ValueError):
                mark, _, target = file.read(_LONGEST_POINTER).decode("utf-8").partition(":")
                if mark == "gitdir":
                    return (candidate.parent / target.strip()).resolve(strict=True)
        if (candidate / "HEAD").is_file() and (candidate / "objects").is_dir():
            return candidate.resolve()
    raise OperatorError(f"{folder} is not a git repository")


def find_clone(folder: Path, full_name: str) -> Path | None:
    """The clone of ``owner/name`` under ``folder``, named ``owner+name`` or ``owner/name``, maybe ``.git``."""
    if not _FULL_NAME.fullmatch(full_name):
        return None
    for spelling in (full_name.replace("/", "+"), full_name):
        for candidate in (folder / spelling, folder / f"{spelling}.git"):
            if candidate.is_dir():
                with suppress(OperatorError):
                    git_dir(candidate)
                    return candidate
    return None


def _environment(view: Path, objects: Path) -> dict[str, str]:
    return {
        "PATH": os.pathsep.join(os.get_exec_path()),
        "HOME": str(view),
        "LC_ALL": "C",
        "GIT_DIR": str(view),
        "GIT_OBJECT_DIRECTORY": str(objects),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_SYSTEM": os.devnull,
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_LITERAL_PATHSPECS": "1",
    }


def _write_view(view: Path) -> None:
    """An empty bare repository, just enough of one for git to start in."""
    (view / "refs").mkdir()
    (view / "HEAD").write_text("ref: refs/heads/none\n", encoding="ascii")
    (view / "config").write_text("[core]\n\trepositoryformatversion = 0\n\tbare = true\n", encoding="ascii")


def _run(arguments: Iterable[str], environment: dict[str, str], stdin: bytes = b"") -> bytes:
    command = ["git", *arguments]
    try:
        process = subprocess.run(  # noqa: S603 - fixed program, no shell
            command, env=environment, input=stdin, capture_output=True, timeout=TIMEOUT, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise GitError(f"git {command[1]} took longer than {TIMEOUT:.0f} s") from error
    except FileNotFoundError as error:
        raise OperatorError("git is not installed") from error
    if process.returncode:
        lines = process.stderr.decode("utf-8", "replace").strip().splitlines()
        verb = next((word for word in command[1:] if not word.startswith("-")), "")
        raise GitError(f"git {verb}: {lines[-1] if lines else 'failed without a word'}")
    return process.stdout


class _BlobReader:
    """One ``git cat-file --batch`` process for every file that is read."""

    def __init__(self, environment: dict[str, str]) -> None:
        self._environment = environment
        self._process: subprocess.Popen[bytes] | None = None
        self._mutex = threading.Lock()

    def read(self, name: str, kind: str) -> bytes | None:
        """The object's bytes; None if it is missing or of another kind. ``name`` must not hold a newline."""
        if "\n" in name:
            return None
        with self._mutex:
            if self._process is None:
                self._process = subprocess.Popen(
                    ["git", "cat-file", "--batch"],  # noqa: S607
                    env=self._environment,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                )
            process = self._process
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(name.encode("utf-8", "surrogateescape") + b"\n")
            process.stdin.flush()
            header = process.stdout.readline().split()
            if len(header) != 3 or header[1] not in (b"blob", b"tree", b"commit", b"tag"):
                if not header:
                    raise GitError("git cat-file ended early")
                return None
            content = process.stdout.read(int(header[2]) + 1)[:-1]
            return content if header[1] == kind.encode() else None

    def close(self) -> None:
        with self._mutex:
            if self._process is not None:
                self._process.communicate()
                self._process = None
