"""Repositories with a known history, made by git itself a commit at a time."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

ADA = ("Ada", "ada@example.org")
GITHUB = ("GitHub", "noreply@github.com")


class Scratch:
    """A repository under construction, new or taken up again; what commits returns the new commit's SHA."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._clock = 1_600_000_000
        if not folder.exists():
            folder.mkdir(parents=True)
            self.git("init", "-q", "-b", "main")

    def git(self, *arguments: str, **environment: str) -> str:
        """Return the output of git without surrounding white space."""
        return self.raw(*arguments, **environment).strip()

    def raw(self, *arguments: str, **environment: str) -> str:
        """Return the output of git to the byte."""
        done = subprocess.run(
            ["git", *arguments],
            cwd=self.folder,
            env={
                "PATH": os.environ["PATH"],
                "GIT_CONFIG_GLOBAL": os.devnull,
                "GIT_CONFIG_NOSYSTEM": "1",
                **_person(ADA, ADA, self._clock),
                **environment,
            },
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise AssertionError(f"git {' '.join(arguments)}: {done.stderr}")
        return done.stdout

    def write(self, path: str, *lines: str) -> None:
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes("".join(f"{line}\n" for line in lines).encode("utf-8"))

    def commit(
        self,
        message: str,
        path: str | None = None,
        *lines: str,
        author: tuple[str, str] = ADA,
        committer: tuple[str, str] = ADA,
    ) -> str:
        """Write one file if it is given, then commit everything."""
        if path is not None:
            self.write(path, *lines)
        self._clock += 60
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message, **_person(author, committer, self._clock))
        return self.head()

    def branch(self, name: str, start: str = "HEAD") -> None:
        """Create a branch and go there."""
        self.git("checkout", "-q", "-b", name, start)

    def go(self, name: str) -> None:
        self.git("checkout", "-q", name)

    def merge(self, branch: str, message: str) -> str:
        """A merge commit of ``branch`` into the current one."""
        self._clock += 60
        self.git("merge", "-q", "--no-ff", "-m", message, branch, **_person(ADA, GITHUB, self._clock))
        return self.head()

    def merge_pull(self, number: int, branch: str) -> str:
        """Merge as GitHub's button does."""
        return self.merge(branch, f"Merge pull request #{number} from ada/{branch}\n\nTitle of {number}\n\nWhy.")

    def head(self) -> str:
        return self.git("rev-parse", "HEAD")

    def fix(self, path: str, *lines: str) -> str:
        """The patch that would turn ``path`` into ``lines``; the work tree is left as it was."""
        before = (self.folder / path).read_bytes()
        self.write(path, *lines)
        patch = self.raw("diff", "--no-color", "--", path)
        (self.folder / path).write_bytes(before)
        return patch


def _person(author: tuple[str, str], committer: tuple[str, str], clock: int) -> dict[str, str]:
    return {
        "GIT_AUTHOR_NAME": author[0],
        "GIT_AUTHOR_EMAIL": author[1],
        "GIT_AUTHOR_DATE": f"{clock} +0000",
        "GIT_COMMITTER_NAME": committer[0],
        "GIT_COMMITTER_EMAIL": committer[1],
        "GIT_COMMITTER_DATE": f"{clock} +0000",
    }
