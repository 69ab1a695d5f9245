"""Collected files arrive in an archive that the program may have written."""

from __future__ import annotations

import io
import tarfile
import tracemalloc

import pytest

from bot.sandbox.launch import unpack


def packed(*entries: tuple[str, bytes, bytes]) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for name, kind, content in entries:
            info = tarfile.TarInfo(name)
            info.type, info.size = kind, len(content)
            archive.addfile(info, io.BytesIO(content))
    return stream.getvalue()


def sparse(name: str, size: int) -> bytes:
    """Return an entry that claims ``size`` bytes, nearly all of them holes."""
    header = bytearray(tarfile.TarInfo(name).tobuf(tarfile.GNU_FORMAT))
    header[156:157] = tarfile.GNUTYPE_SPARSE
    header[386:410] = b"%011o\0%011o\0" % (size - 1, 0)
    header[483:495] = b"%011o\0" % size
    header[148:156] = b"%06o\0 " % tarfile.calc_chksums(bytes(header))[0]
    return bytes(header)


def test_only_regular_files_are_collected() -> None:
    data = packed(("./a.xml", tarfile.REGTYPE, b"x"), ("b", tarfile.SYMTYPE, b""), ("c", tarfile.REGTYPE, b"x"))
    assert unpack(data, ["a.xml", "b"]) == {"a.xml": "x"}


@pytest.mark.parametrize(
    "data",
    [packed(*[("x", tarfile.XHDTYPE, b"13 comment=a\n")] * 2_000), sparse("a", 4 << 30) + bytes(1024)],
    ids=["headers of headers", "holes"],
)
def test_a_hostile_archive_gives_no_files(data: bytes) -> None:
    tracemalloc.start()
    try:
        assert unpack(data, ["a"]).get("a", "") == ""
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
    finally:
        tracemalloc.stop()
