"""Download and unpack a repository's files at a commit: without credentials, capped, inside the folder."""

from __future__ import annotations

import gzip
import os
import shutil
import tarfile
import tempfile
import threading
from collections import defaultdict
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import IO
from urllib.parse import quote, urlsplit

import httpx2

from bot.core.errors import ForgeError, TransientError
from bot.core.http_client import HttpClient, TooLarge, TooSlow, limit_chunks
from bot.core.io_limits import changed_at, leased
from bot.github.answer_errors import raise_for_status
from bot.github.protocol import FolderTree

TIMEOUT = 30
#: Seconds that the whole download may take.
DEADLINE = 600.0
MAX_ARCHIVE = 512 << 20
MAX_UNPACKED = 4 << 30
MAX_FILES = 300_000
MAX_LINKS = 20_000
#: Commits whose files stay on disk.
MAX_ARCHIVES = 8
#: Bytes that are held in memory at once; a header of an archive may claim any size.
MAX_READ = 2 << 20
#: What headers, names and padding add to the files, bytes.
_MAX_HEADERS = 1 << 30
#: Folders in folders; deeper paths, which no git server shows either, are left out.
_MAX_DEPTH = 200
#: Limits on one link, as on Linux: links that it leads through, and path segments.
_MAX_FOLLOWED, _MAX_STEPS = 40, 400


#: The names of a path below the root.
_Parts = tuple[str, ...]


class _Stream(gzip.GzipFile):
    """The uncompressed archive, read in pieces that fit in memory. Raises ForgeError."""

    total = 0

    def read(self, size: int | None = -1) -> bytes:
        if size is None or not 0 <= size <= MAX_READ:
            raise ForgeError("the repository's archive holds a header of more than is accepted")
        self.total += size
        if self.total > MAX_UNPACKED + _MAX_HEADERS:
            raise ForgeError("the repository's archive unpacks to more than is accepted")
        return super().read(size)


def unpack(url: str, folder: Path) -> None:
    """Download the archive at ``url`` and unpack it into ``folder``, without its one top folder.

    ``url`` carries its own short-lived secret; no header of ours is sent. Links that lead outside, and paths that
    are too deep, are left out. Raises TransientError if the download breaks, ForgeError if the
    archive is too large or broken.
    """
    with tempfile.TemporaryFile() as file:
        try:
            _download(url, file)
        except (httpx2.RequestError, httpx2.InvalidURL) as error:
            raise TransientError(f"the archive's download broke ({type(error).__name__})") from None
        file.seek(0)
        try:
            _extract(file, folder)
        # RecursionError: headers that announce headers.
        except (tarfile.TarError, EOFError, OSError, RecursionError) as error:
            raise ForgeError(f"the archive cannot be unpacked: {type(error).__name__}") from None


class Archives:
    """A few unpacked archives by commit, so that the handlers of one event fetch it once.

    Processes may share the folder: an archive appears there complete. If it is removed during a read, the
    remaining files cannot be read.
    """

    def __init__(self, folder: Path | None = None) -> None:
        """``folder`` is made when it is needed; None: a temporary one."""
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        if folder is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="bouncer-archives-")
            folder = Path(self._temporary.name)
        self._folder = folder
        self._lock = threading.Lock()
        self._fetching: defaultdict[Path, threading.Lock] = defaultdict(threading.Lock)

    def tree(self, repository: str, sha: str, fetch: Callable[[Path], None]) -> FolderTree:
        """Return the files at a commit; ``fetch`` fills an empty folder with them, and its errors pass through."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        folder = self._folder / f"{quote(repository, safe='')}@{sha}"
        with self._lock:
            fetching = self._fetching[folder]
        with fetching:
            if not folder.is_dir():
                self._add(folder, fetch)
        with self._lock:
            self._fetching.pop(folder, None)
        # The least recently used folders are removed first.
        with suppress(OSError):
            os.utime(folder)
        return FolderTree(folder)

    def close(self) -> None:
        """Remove a temporary folder."""
        if self._temporary:
            self._temporary.cleanup()

    def _add(self, folder: Path, fetch: Callable[[Path], None]) -> None:
        with leased(folder.parent, ".new-") as temporary:
            files = temporary / "files"
            files.mkdir()
            fetch(files)
            with suppress(OSError):  # another process was quicker
                files.rename(folder)
        entries = [entry for entry in folder.parent.iterdir() if not entry.name.startswith(".")]
        for old in sorted(entries, key=changed_at, reverse=True)[MAX_ARCHIVES:]:
            shutil.rmtree(old, ignore_errors=True)


def _download(url: str, file: IO[bytes]) -> None:
    with HttpClient(TIMEOUT) as client, client.stream("GET", url, follow_redirects=True) as response:
        raise_for_status(response.status_code, response.headers, "", f"GET {urlsplit(url).path}")
        try:
            for chunk in limit_chunks(response.iter_bytes(1 << 20), MAX_ARCHIVE, DEADLINE):
                file.write(chunk)
        except TooLarge:
            raise ForgeError(f"the repository's archive is larger than {MAX_ARCHIVE >> 20} MB") from None
        except TooSlow:
            raise TransientError(f"the archive's download took longer than {DEADLINE:.0f} s") from None


def _extract(file: IO[bytes], folder: Path) -> None:
    root = folder.resolve()
    links: dict[_Parts, _Parts] = {}
    count = size = 0
    with _Stream(fileobj=file) as stream, tarfile.open(fileobj=stream, mode="r:") as archive:
        while (member := archive.next()) is not None:
            archive.members.clear()  # type: ignore[attr-defined]  # they would stay in memory to the end
            count, size = count + 1, size + max(member.size, 0)
            if count > MAX_FILES or size > MAX_UNPACKED or len(links) + member.issym() > MAX_LINKS:
                raise ForgeError("the repository's archive unpacks to more than is accepted")
            path = PurePosixPath(member.name).parts[1:]  # without the archive's top folder
            if not path or ".." in path or "\0" in member.name or len(path) > _MAX_DEPTH:
                continue
            if member.issym():
                target = PurePosixPath(member.linkname)
                if not target.is_absolute() and "\0" not in member.linkname:
                    links.setdefault(path, target.parts)
            elif member.isfile():
                _write(archive, member, root.joinpath(*path))
            elif member.isdir():
                root.joinpath(*path).mkdir(parents=True, exist_ok=True)
    _link(root, links)


def _write(archive: tarfile.TarFile, member: tarfile.TarInfo, target: Path) -> None:
    # No link exists while files are written, so no path can lead outside.
    source = archive.extractfile(member)
    assert source is not None
    target.parent.mkdir(parents=True, exist_ok=True)
    with source, target.open("wb") as copy:
        while chunk := source.read(1 << 20):
            copy.write(chunk)
    if member.mode & 0o100:
        target.chmod(0o755)


def _link(root: Path, links: Mapping[_Parts, _Parts]) -> None:
    """Make the links that stay inside, except below folders that are links themselves."""
    for path, target in links.items():
        link = root.joinpath(*path)
        if any(path[:end] in links for end in range(1, len(path))) or os.path.lexists(link):
            continue
        if _stays_inside(path, links):
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(PurePosixPath(*target))


def _stays_inside(path: _Parts, links: Mapping[_Parts, _Parts]) -> bool:
    """Return True if a link stays below the root, through all other links that it leads to."""
    current: _Parts = ()
    remaining, link_count = list(reversed(path)), 0
    for _ in range(_MAX_STEPS):
        if not remaining:
            return True
        name = remaining.pop()
        if name == ".." and not current:
            return False
        current = current[:-1] if name == ".." else (*current, name)
        if current in links:
            link_count += 1
            if link_count > _MAX_FOLLOWED:
                return False
            remaining += reversed(links[current])
            current = current[:-1]
    return False
