"""Compressed files: unpacked whole or not at all, whatever their names say, in little memory; and packed as others read them."""

from __future__ import annotations

import bz2
import functools
import gzip
import io
import lzma
import resource
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pytest

from akrunner.codec import read_examples, write_examples
from akrunner.errors import SourceError
from akrunner.io import compression
from akrunner.io.compression import (
    BZIP2,
    CODECS,
    GZIP,
    XZ,
    ZSTD,
    Codec,
    Packed,
    Unpacked,
    check_whole,
    codec_named,
    endings,
    packing,
)
from akrunner.io.sinks import sink_to
from akrunner.io.sources import open_source
from akrunner.spec import TaskSpec

TEXT = b"".join(b"%d,%f\n" % (number, number * 1.7) for number in range(20_000))
OTHERS: dict[Codec, Callable[[bytes], bytes]] = {
    GZIP: gzip.compress,
    BZIP2: bz2.compress,
    ZSTD: lambda data: pa.Codec("zstd").compress(data, asbytes=True),
    # a tenth of the time of what is usual
    XZ: functools.partial(lzma.compress, preset=1),
}
BY_NAME = pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.name)


def packed(codec: Codec, data: bytes = TEXT) -> bytes:
    to = io.BytesIO()
    stream = packing(to, codec)
    for start in range(0, len(data), 50_000):
        stream.write(data[start : start + 50_000])
    stream.close()
    return to.getvalue()


def unpacked(data: bytes, path: str) -> bytes:
    with Unpacked(io.BytesIO(data), path) as stream:
        return stream.read()


def rows(source: Any, **options: Any) -> list[Any]:
    table = open_source(source, read_examples=read_examples, **options)
    return [row for batch in table.batches() for row in batch.to_pylist()]


class Slow(io.BytesIO):
    """A connection, which gives what has arrived and cannot go back."""

    def read(self, size: int | None = -1) -> bytes:
        return super().read(min(3, size if size is not None and size >= 0 else 3))

    def seek(self, *where: int) -> int:
        raise OSError("no way back")


@pytest.mark.slow
@BY_NAME
def test_unpacked_and_packed_as_other_programs_do(codec: Codec) -> None:
    name = f"t.csv{codec.ending}"
    assert codec_named(name.upper()) is codec
    assert unpacked(OTHERS[codec](TEXT), name) == unpacked(packed(codec), name) == TEXT
    assert unpacked(packed(codec, b""), name) == b""
    assert packed(codec) == packed(codec)
    reader = io.BufferedReader(Unpacked(Slow(OTHERS[codec](b"a\nb\n")), name))
    assert [reader.readline() for _ in range(3)] == [b"a\n", b"b\n", b""]


def test_a_file_of_several_archives() -> None:
    for codec in CODECS:
        assert unpacked(OTHERS[codec](b"a\n") + OTHERS[codec](b"") + OTHERS[codec](b"b\n"), "t" + codec.ending) == b"a\nb\n"
    assert unpacked(lzma.compress(b"a\n") + bytes(8) + lzma.compress(b"b\n") + bytes(1 << 17), "t.xz") == b"a\nb\n"


@pytest.mark.slow
@BY_NAME
def test_what_is_cut_short_or_damaged_is_never_a_shorter_text(codec: Codec) -> None:
    name, whole = f"t.csv{codec.ending}", OTHERS[codec](TEXT)
    for size in (len(whole) - 1, len(whole) // 2, 7):
        with pytest.raises(
            SourceError, match=rf"^source: t\.csv\{codec.ending} cannot be unpacked: it is cut short: the end of"
        ):
            unpacked(whole[:size], name)
    for more in (whole[:-1], b"\1\2\3\4 of another", whole[:4]):
        with pytest.raises(SourceError, match="cannot be unpacked"):
            unpacked(whole + more, name)
    if codec is not ZSTD:
        # zstd without a checksum cannot tell
        with pytest.raises(SourceError, match=f"its {codec.name} archive is damaged, or something else follows it"):
            unpacked(whole[: len(whole) // 2] + b"~" * 8 + whole[len(whole) // 2 + 8 :], name)


@pytest.mark.parametrize(
    ("path", "data", "words"),
    [
        ("t.csv", gzip.compress(TEXT), r"t\.csv is compressed with gzip by its content; its name should end in \.gz$"),
        ("T.JSON", lzma.compress(TEXT), r"compressed with xz by its content; its name should end in \.xz$"),
        ("t.csv.gz", bz2.compress(TEXT), r"is compressed with bzip2 by its content; its name should end in \.bz2$"),
        ("t.csv.zst", TEXT, "is not compressed with zstd by its content, as its name says: it is damaged, or its name should"),
        ("t.csv.gz", b"\x1f", "is not compressed with gzip"),
        ("t.csv.gz", b"", "is empty, and a file of gzip has some bytes"),
    ],
    ids=["gzip", "xz", "bzip2", "text", "a byte", "nothing"],
)
def test_a_name_that_is_not_true_is_told(path: str, data: bytes, words: str) -> None:
    with pytest.raises(SourceError, match=words):
        Unpacked(io.BytesIO(data), path)


@pytest.mark.parametrize("path", ["part-00000", "https://h/t.csv.gz?signature=abc", "t.log"])
def test_the_first_bytes_decide_where_no_name_does(path: str) -> None:
    assert unpacked(gzip.compress(b"a\n"), path) == unpacked(b"a\n", path) == b"a\n"
    # pzstd begins with a frame that is skipped
    assert unpacked(b"\x50\x2a\x4d\x18\x01\0\0\0x" + OTHERS[ZSTD](b"a\n"), path) == b"a\n"


@pytest.mark.slow
def test_an_error_of_the_disk_is_none_of_the_archive() -> None:
    class Broken(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            if self.tell():
                raise OSError(5, "Input/output error")
            return super().read(size)

    for codec in (GZIP, XZ):
        with pytest.raises(OSError, match="Input/output error"):
            unpacked_of = Unpacked(Broken(OTHERS[codec](TEXT)), "t")
            unpacked_of.read()


@pytest.mark.slow
@pytest.mark.parametrize("codec", [GZIP, BZIP2, XZ], ids=lambda codec: codec.name)
def test_a_bomb_takes_little_memory(codec: Codec) -> None:
    # xz as quickly as it can: by itself it takes a second for this
    bomb = lzma.compress(bytes(64 << 20), preset=0) if codec is XZ else OTHERS[codec](bytes(64 << 20))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    tracemalloc.start()
    size = 0
    with Unpacked(io.BytesIO(bomb), "t" + codec.ending) as stream:
        while data := stream.read(1 << 20):
            assert len(data) <= 1 << 20
            size += len(data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert size == 64 << 20 and peak < 16 << 20
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10 < 48 << 20


@pytest.mark.slow
def test_what_another_program_unpacks_is_checked_first(tmp_path: Path) -> None:
    for codec in CODECS:
        path = tmp_path / f"t.csv{codec.ending}"
        path.write_bytes(OTHERS[codec](TEXT))
        check_whole(str(path))
        path.write_bytes(OTHERS[codec](TEXT)[:-1])
        with pytest.raises(SourceError, match="cannot be unpacked: it is cut short"):
            check_whole(str(path))
    (tmp_path / "t.csv").write_bytes(TEXT)
    check_whole(str(tmp_path / "t.csv"))
    (tmp_path / "t").write_bytes(gzip.compress(TEXT))
    with pytest.raises(SourceError, match=r"its name should end in \.gz$"):
        check_whole(str(tmp_path / "t"))


def test_xz_may_not_take_any_amount_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compression, "_XZ_BYTES", 1 << 20)
    with pytest.raises(SourceError, match=r"it needs more than 1 MiB of memory; compress it again with a smaller dictionary"):
        unpacked(lzma.compress(TEXT), "t.xz")


def test_endings_of_plain_files_come_first() -> None:
    assert endings(".a", ".b")[:3] == (".a", ".b", ".a.gz") and endings(".a")[1:] == (".a.gz", ".a.bz2", ".a.zst", ".a.xz")
    assert codec_named("t.csv") is None and codec_named("gz") is None


def test_the_end_of_the_archive_is_written_even_if_the_rows_have_none() -> None:
    class Failing:
        def __init__(self, stream: Any) -> None:
            self.stream = stream

        def write(self, batch: pa.RecordBatch) -> None:
            self.stream.write(b"a\n")

        def close(self) -> None:
            raise ValueError

    to = io.BytesIO()
    writer = Packed(to, GZIP, Failing)
    writer.write(pa.record_batch({"a": [1]}))
    with pytest.raises(ValueError):
        writer.close()
    assert gzip.decompress(to.getvalue()) == b"a\n" and not to.closed


# -- as tables


@pytest.mark.parametrize("form", ["csv", "jsonl"])
@pytest.mark.parametrize("place", ["file", "memory"])
@BY_NAME
def test_written_as_a_table_and_read_again(form: str, place: str, codec: Codec, tmp_path: Path) -> None:
    base = str(tmp_path) if place == "file" else "memory://akrunner-packed"
    batch = pa.record_batch({"a": [1, 2], "s": ['x",\n', "é"]})
    path = f"{base}/t.{form}{codec.ending}"
    sink = sink_to(path, batch.schema, write_examples)
    for _ in range(3):
        sink.write(TaskSpec("chief", 0), batch)
    fs, at = fsspec.core.url_to_fs(path)
    assert not fs.exists(at)
    sink.commit()
    plain = {GZIP: gzip.decompress, BZIP2: bz2.decompress, XZ: lzma.decompress}.get(codec)
    assert plain is None or plain(fs.cat(at)).count(b"x") == 3
    assert rows(path) == rows(f"{base}/*.{form}{codec.ending}") == rows(f"{base}") == batch.to_pylist() * 3
    again = sink_to(path, batch.schema, write_examples, overwrite=True)
    again.write(TaskSpec("chief", 0), batch)
    again.abort()
    assert rows(path) == batch.to_pylist() * 3
    fs.rm(base.replace("memory:/", ""), recursive=True)


@pytest.mark.slow
def test_lines_are_those_of_the_text_and_an_end_that_is_missing_is_told(tmp_path: Path) -> None:
    text = b"a,b\n" + b"1,2\n" * 1_200_000 + b"1,x\n" + b"1,2\n" * 9
    (tmp_path / "t.csv.zst").write_bytes(OTHERS[ZSTD](text))
    with pytest.raises(SourceError, match=r"cannot read .*t\.csv\.zst as csv: line 1200002: .*column 'b'"):
        for _ in open_source(tmp_path / "t.csv.zst", read_examples=read_examples).batches():
            pass
    for form in ("csv", "jsonl"):
        # what is there ends where a line ends
        text = b"a\n1\n" if form == "csv" else b'{"a": 1}\n'
        path = tmp_path / f"short.{form}.gz"
        path.write_bytes(gzip.compress(text)[:-1])
        with pytest.raises(SourceError, match=r"short.*cannot be unpacked: it is cut short"):
            rows(path)


def test_plain_and_compressed_files_are_one_table(tmp_path: Path) -> None:
    (tmp_path / "0.csv").write_bytes(b"a\n0\n")
    for number, codec in enumerate(CODECS, 1):
        (tmp_path / f"{number}.csv{codec.ending}").write_bytes(OTHERS[codec](b"a\n%d\n" % number))
    (tmp_path / "5").write_bytes(gzip.compress(b"a\n5\n"))
    assert [row["a"] for row in rows(tmp_path, input_format="csv")] == [0, 1, 2, 3, 4, 5]
