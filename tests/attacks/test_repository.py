"""Whatever a repository holds, unpacking and running it touch nothing else and come to an end."""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from pytest_httpserver import HTTPServer

from bot.core.errors import ForgeError
from bot.github import archive
from bot.sandbox.bubblewrap import Bubblewrap
from bot.sandbox.protocol import Limits, ProgramRun
from tests.attacks.corpus import each, named, params
from tests.attacks.repository import ARCHIVES, BOMBS, CHECKOUTS, Entry, plain

SECRET = "ghs_planted_credentials"


def packed(entries: Sequence[Entry]) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz", errors="surrogateescape") as file:
        for name, content, target, kind in entries:
            info = tarfile.TarInfo(name)
            info.type, info.linkname, info.size = kind, target, len(content)
            file.addfile(info, io.BytesIO(content))
    return stream.getvalue()


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    inside = tmp_path / "deep" / "checkout"
    inside.mkdir(parents=True)
    yield inside
    assert [path for path in tmp_path.rglob("*") if not path.is_relative_to(inside) and path.is_file()] == []


def unpack(server: HTTPServer, entries: Sequence[Entry], folder: Path) -> None:
    data = packed([plain("README.md"), *entries])
    server.expect_request("/archive").respond_with_data(data, content_type="application/x-gzip")
    archive.unpack(server.url_for("/archive"), folder)


@pytest.mark.parametrize(("never", "attack"), params(ARCHIVES))
def test_archive(httpserver: HTTPServer, folder: Path, never: str, attack: list[Entry]) -> None:
    try:
        unpack(httpserver, attack, folder)
    except ForgeError:
        # What no file system could hold may be refused; what leads outside must be left out alone.
        assert "stops" in never, never
    paths = list(folder.rglob("*"))
    assert (folder / "README.md") in paths
    assert [path for path in paths if not path.resolve().is_relative_to(folder.resolve())] == [], never
    assert [path for path in paths if not (path.is_file() or path.is_dir() or path.is_symlink())] == [], never
    assert [path for path in paths if path.is_file() and path.lstat().st_nlink > 1] == [], never


@pytest.mark.parametrize(("never", "attack"), params(BOMBS))
def test_bomb(httpserver: HTTPServer, folder: Path, never: str, attack: list[Entry]) -> None:
    with pytest.raises(ForgeError, match="more than is accepted"):
        unpack(httpserver, attack, folder)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[int, str]]:
    """All of them in one checkout, each in a folder of its own, looked at in one run: (exit code, output)."""
    place = tmp_path_factory.mktemp("checkout")
    operator = tmp_path_factory.mktemp("operator")
    (operator / "key.pem").write_text(SECRET)
    before = os.getcwd()  # noqa: PTH109 - where the process stands, whatever it is called
    script = []
    for number, (_, _, (make, look)) in enumerate(each(CHECKOUTS)):
        at = place / str(number)
        at.mkdir()
        make(at, operator / "key.pem")
        os.chdir(before)
        script.append(f"echo '== {number}'; (cd {number} && timeout 5 sh -c '{look}'); printf '\\n%s\\n' $?")
    result = Bubblewrap().run(
        ProgramRun(["sh", "-c", "\n".join(script)], workdir=place, limits=Limits(seconds=60))
    )
    assert result.ending == "exited", result.output
    parts = result.output.split("== ")[1:]
    assert len(parts) == len(script), result.output
    names = [name for _, name, _ in each(CHECKOUTS)]
    return {name: (int(part.split("\n")[-2]), part) for name, part in zip(names, parts, strict=True)}


@pytest.mark.debian("bubblewrap")
@pytest.mark.parametrize(("never", "name"), named(CHECKOUTS))
def test_checkout(results: dict[str, tuple[int, str]], never: str, name: str) -> None:
    code, output = results[name]
    assert SECRET not in output, never
    assert "uid=" not in output, never
    assert (code == 0) is ("door" not in never), (never, output)
