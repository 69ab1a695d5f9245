"""An archive is unpacked inside its folder, even a hostile one."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from bot.core.errors import ForgeError, NotFound, TransientError
from bot.github import archive
from tests.attacks.test_repository import TOP, folder, link, packed, plain

__all__ = ["folder"]


def unpacked(server: HTTPServer, data: bytes, folder: Path) -> set[str]:
    server.expect_request("/archive").respond_with_data(data, content_type="application/x-gzip")
    archive.unpack(server.url_for("/archive"), folder)
    for path in folder.rglob("*"):
        assert path.resolve().is_relative_to(folder.resolve())
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()}


def test_the_top_folder_is_removed_from_paths(httpserver: HTTPServer, folder: Path) -> None:
    data = packed([plain("README.md"), plain("src/a.py"), link("src/b.py", "a.py"), link("docs", "src")])
    assert unpacked(httpserver, data, folder) == {"README.md", "src/a.py", "src/b.py"}
    assert (folder / "docs" / "a.py").read_bytes() == b"x"


def test_a_broken_archive_is_refused(httpserver: HTTPServer, folder: Path) -> None:
    with pytest.raises(ForgeError, match="cannot be unpacked"):
        unpacked(httpserver, packed([plain("a", b"x" * 10_000)])[:-40], folder)
    httpserver.clear()
    with pytest.raises(ForgeError, match="cannot be unpacked"):
        unpacked(httpserver, b"<html>", folder)


def test_an_archive_that_is_too_large_is_refused(
    httpserver: HTTPServer, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "MAX_FILES", 3)
    with pytest.raises(ForgeError, match="more than is accepted"):
        unpacked(httpserver, packed([plain(f"{number}") for number in range(5)]), folder)
    monkeypatch.setattr(archive, "MAX_ARCHIVE", 100)
    with pytest.raises(ForgeError, match="archive is larger"):
        unpacked(httpserver, packed([plain(f"{number}") for number in range(500)]), folder)


@pytest.mark.parametrize(("status", "error"), [(404, NotFound), (403, ForgeError), (503, TransientError)])
def test_a_refused_download_has_the_error_of_its_status(
    httpserver: HTTPServer, folder: Path, status: int, error: type[Exception]
) -> None:
    httpserver.expect_request("/archive").respond_with_data("no", status=status)
    with pytest.raises(error):
        archive.unpack(httpserver.url_for("/archive"), folder)


def test_a_download_sends_no_credentials_of_this_machine(
    httpserver: HTTPServer, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    netrc = folder / "netrc"
    netrc.write_text("machine localhost login me password secret\n")
    monkeypatch.setenv("NETRC", str(netrc))
    headers: list[str | None] = []

    def answer(request: Request) -> Response:
        headers.append(request.headers.get("Authorization"))
        return Response(packed([plain("a")]))

    httpserver.expect_request("/archive").respond_with_handler(answer)
    archive.unpack(httpserver.url_for("/archive"), folder)
    assert headers == [None]


def test_a_program_stays_executable(httpserver: HTTPServer, folder: Path) -> None:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as file:
        info = tarfile.TarInfo(f"{TOP}/run.sh")
        info.mode, info.size = 0o4777, 1
        file.addfile(info, io.BytesIO(b"x"))
    unpacked(httpserver, stream.getvalue(), folder)
    assert (folder / "run.sh").stat().st_mode & 0o7777 == 0o755


def test_leftovers_of_a_killed_process_are_removed(tmp_path: Path) -> None:
    script = (
        "import sys, time; from pathlib import Path\n"
        "from bot.github.archive import Archives\n"
        "def fetch(folder):\n"
        "    (folder / 'half').write_text('x'); print('fetching', flush=True); time.sleep(60)\n"
        "Archives(Path(sys.argv[1])).tree('o/r', 'a', fetch)\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=Path(__file__).parents[3]) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"fetching\n"
        (folder,) = tmp_path.iterdir()
        long_ago = time.time() - 3_600
        os.utime(folder, (long_ago, long_ago))
        archives = archive.Archives(tmp_path)
        archives.tree("o/r", "b", lambda folder: None)
        assert folder.exists()  # its process is alive
        process.kill()
        process.wait()
    os.utime(folder, (long_ago, long_ago))
    archives.tree("o/r", "c", lambda folder: None)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["o%2Fr@b", "o%2Fr@c"]
