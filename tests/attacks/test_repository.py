"""Whatever a repository holds, unpacking and running it touch nothing else and come to an end."""

from __future__ import annotations

import io
import os
import socket
import tarfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from pytest_httpserver import HTTPServer

from bot.core.errors import ForgeError
from bot.github import archive
from bot.sandbox.bubblewrap import Bubblewrap
from bot.sandbox.protocol import Limits, ProgramRun
from tests.attacks.corpus import cases, named, params

TOP = "octo-demo-1234567"
#: Name, content, target of a link, kind.
Entry = tuple[str, bytes, str, bytes]


def plain(name: str, content: bytes = b"x") -> Entry:
    return f"{TOP}/{name}", content, "", tarfile.REGTYPE


def link(name: str, target: str) -> Entry:
    return f"{TOP}/{name}", b"", target, tarfile.SYMTYPE


def _special(name: str, kind: bytes) -> Entry:
    return f"{TOP}/{name}", b"", "", kind


#: Archives are unpacked over HTTP, each with a README.md before these entries.
ARCHIVES: dict[str, dict[str, list[Entry]]] = {
    "an archive writes or leads outside its folder": {
        "two folders up": [plain("../../escaped")],
        "up behind its top folder": [(f"{TOP}/../../../escaped", b"x", "", tarfile.REGTYPE)],
        "an absolute name": [("/etc/escaped", b"x", "", tarfile.REGTYPE)],
        "an absolute name behind slashes": [("//tmp/escaped", b"x", "", tarfile.REGTYPE)],
        "a name of dots alone": [("..", b"x", "", tarfile.REGTYPE), (f"{TOP}/..", b"", "", tarfile.DIRTYPE)],
        "through a link that is absolute": [link("out", "/tmp"), plain("out/escaped")],
        "through a link up": [link("out", "../.."), plain("out/escaped")],
        "through a link in a folder": [link("a/out", "../../../.."), plain("a/out/escaped")],
        "through a link that comes later": [plain("out/file"), link("out", "../..")],
        "links that lead on to each other": [link("out", "in/../.."), link("in", ".")],
        "links in the other order": [link("in", "."), link("out", "in/..")],
        "three links": [link("one", "two"), link("two", "three"), link("three", "../..")],
        "a link over a folder": [_special("a", tarfile.DIRTYPE), link("a", "/etc")],
        "a link to the machine's processes": [link("out", "/proc/self/root")],
        "a hard link": [(f"{TOP}/hard", b"", "../../secret", tarfile.LNKTYPE)],
        "a hard link to an absolute name": [(f"{TOP}/hard", b"", "/etc/passwd", tarfile.LNKTYPE)],
    },
    "an archive makes what is no file": {
        "a device and a pipe": [_special("device", tarfile.CHRTYPE), _special("pipe", tarfile.FIFOTYPE)],
        "a disk": [_special("disk", tarfile.BLKTYPE)],
        "a link to itself": [link("self", "self"), link("a", "b"), link("b", "a")],
        "a sparse file of a terabyte": [_special("sparse", tarfile.GNUTYPE_SPARSE)],
    },
    "an archive stops the job that reads it": {
        "a link with a null character in it": [link("a", "b\0c" + "é" * 120)],
        "a link to nowhere": [link("a", "")],
        "a link longer than a path": [link("a", "é" * 9_000)],
        "a name with a null character in it": [plain("a\0b" + "é" * 120)],
        "a name that is no UTF-8": [plain("a\udcff")],
        "a file and a folder of one name": [plain("a"), plain("a/b")],
        "a folder and a file of one name": [plain("a/b"), plain("a")],
        "a name longer than any": [plain("a" * 300)],
        "a file over the README": [_special("README.md", tarfile.DIRTYPE)],
        "two thousand links, each to the next": [link(f"l{number}", f"l{number + 1}") for number in range(2_000)],
        "folders in folders, one after the other": [
            plain(f"{'d/' * (number + 1)}f") for number in range(0, 1_900, 90)
        ],
        "headers of headers": [("x", b"13 comment=a\n", "", tarfile.XHDTYPE)] * 2_000 + [plain("a")],
    },
}

#: A header that is larger than memory should be: refused as a whole.
BOMBS: dict[str, dict[str, list[Entry]]] = {
    "an archive fills the memory": {
        "a link's target of many megabytes": [link("a", "é" * (8 << 20))],
        "a name of many megabytes": [plain("é" * (8 << 20))],
        "more links than any repository has": [link(f"l{number}", "README.md") for number in range(20_001)],
    }
}


def _socket(folder: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        # A socket's path is short; the folder's need not be.
        os.chdir(folder)
        server.bind("socket")


def _deep(folder: Path) -> None:
    for _ in range(300):
        folder /= "d"
        folder.mkdir()


#: What stands in a checkout when a test runs on it in the sandbox: how it is made, what must not come of it.
CHECKOUTS: dict[str, dict[str, tuple[Callable[[Path, Path], object], str]]] = {
    "a file of a checkout is a door to the host": {
        "a link to the operator's file": (lambda at, key: (at / "key").symlink_to(key), "cat key"),
        "a link to the operator's folder": (lambda at, key: (at / "dir").symlink_to(key.parent), "cat dir/*"),
        "a link to the accounts": (lambda at, key: (at / "shadow").symlink_to("/etc/shadow"), "cat shadow"),
        "a link through the processes": (
            lambda at, key: (at / "root").symlink_to(f"/proc/1/root{key}"),
            "cat root",
        ),
        "a link of relative steps": (lambda at, key: (at / "up").symlink_to("../" * 30 + str(key)[1:]), "cat up"),
    },
    "a file of a checkout stops the run": {
        "a pipe": (lambda at, key: os.mkfifo(at / "pipe"), "true"),
        "a socket": (lambda at, key: _socket(at), "true"),
        "folders in folders": (lambda at, key: _deep(at), "true"),
        "a name with a line break": (lambda at, key: (at / "a\nb").write_text("x"), "true"),
        "a name that is no UTF-8": (lambda at, key: (at / "a\udcff").write_text("x"), "true"),
        "a name that is a device's elsewhere": (lambda at, key: (at / "NUL").write_text("x"), "true"),
        "names that differ in case": (
            lambda at, key: [(at / name).write_text(name) for name in ("Makefile", "makefile")],
            "true",
        ),
    },
    "the name of a file is an option of a program": {
        "a checkpoint of tar": (
            lambda at, key: [
                (at / name).write_text("x") for name in ("--checkpoint=1", "--checkpoint-action=exec=id")
            ],
            "true",
        ),
        "an exclusion of tar": (lambda at, key: (at / "--exclude=*").write_text("x"), "cat ./--exclude=*"),
    },
}

TABLES = (ARCHIVES, BOMBS, CHECKOUTS)


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
    for number, (_, _, (make, look)) in enumerate(cases(CHECKOUTS)):
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
    names = [name for _, name, _ in cases(CHECKOUTS)]
    return {name: (int(part.split("\n")[-2]), part) for name, part in zip(names, parts, strict=True)}


@pytest.mark.debian("bubblewrap")
@pytest.mark.parametrize(("never", "name"), named(CHECKOUTS))
def test_checkout(results: dict[str, tuple[int, str]], never: str, name: str) -> None:
    code, output = results[name]
    assert SECRET not in output, never
    assert "uid=" not in output, never
    assert (code == 0) is ("door" not in never), (never, output)
