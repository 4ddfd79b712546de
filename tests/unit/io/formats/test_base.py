"""What all formats share: which columns are read, files that are closed in time, and what a format without anything can do."""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pytest

from akrunner.errors import SinkError, SourceError
from akrunner.io.formats.base import Format, Reading, closed_on_failure, closing, pieces_of
from akrunner.io.paths import Files

AB = pa.schema([("a", pa.int64()), ("b", pa.string())])


def files(*paths: Path, scheme: str = "file") -> Files:
    return Files(fsspec.filesystem(scheme), [str(path) for path in paths], "csv", None)


@pytest.mark.parametrize(
    ("only", "within"),
    [
        (None, None),
        (["b"], ["b"]),
        (["b", "a"], ["b", "a"]),
        (["b", "of the directories"], ["b"]),
        (["other"], None),
        ([], None),
    ],
)
def test_only_columns_that_a_file_has_are_asked_of_it(only: Any, within: Any) -> None:
    assert Reading(files(), None, only).within(AB) == within


def test_bytes_of_a_file_here_and_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(b"a,b\n", mtime=0))
    here = Reading(files(tmp_path / "t.csv.gz"), None)
    with here.stream(str(tmp_path / "t.csv.gz")) as stream:
        assert stream.read() == b"a,b\n"
    fsspec.filesystem("memory").pipe_file("/formats/t", b"0123456789")
    for reading, path in ((here, tmp_path / "t.csv.gz"), (Reading(files(scheme="memory"), None), "/formats/t")):
        with reading.seekable(str(path)) as source:
            size = source.seek(0, 2)
            source.seek(1)
            assert len(source.read()) == size - 1
    fsspec.filesystem("memory").rm("/formats", recursive=True)


@pytest.mark.parametrize("scheme", ["file", "memory"])
def test_text_is_unpacked_and_translated_on_the_way(scheme: str, tmp_path: Path) -> None:
    path = tmp_path / "t.csv.gz"
    fsspec.filesystem(scheme).pipe_file(str(path), gzip.compress(b"a\x01b\n1\x012\n", mtime=0))
    there, back = bytes.maketrans(b"\x01", b","), bytes.maketrans(b",", b"\x01")
    pieces, close = pieces_of(files(path, scheme=scheme), str(path), True, there, back)
    piece = pieces.next()
    assert piece is not None and piece.data == b"a,b\n1,2\n" and piece.back == back
    close()
    plain, close = pieces_of(files(path, scheme=scheme), str(path), True)
    piece = plain.next()
    assert piece is not None and piece.data == b"a\x01b\n1\x012\n" and piece.back is None
    close()
    fsspec.filesystem(scheme).rm(str(path))


def test_a_file_is_closed_at_once_where_opening_it_fails() -> None:
    closed: list[str] = []
    with pytest.raises(KeyboardInterrupt), closed_on_failure(lambda: closed.append("closed")):
        raise KeyboardInterrupt
    assert closed == ["closed"]
    with closed_on_failure(lambda: closed.append("again")):
        pass
    assert closed == ["closed"]


@pytest.mark.parametrize("drawn", [1, 2, 3])
def test_a_file_is_closed_when_its_batches_end_or_are_given_up(drawn: int) -> None:
    closed: list[str] = []

    def batches() -> Iterator[Any]:
        yield 1
        yield 2

    rest = closing(batches(), lambda: closed.append("closed"))
    assert [next(rest, None) for _ in range(drawn)] == [1, 2, None][:drawn]
    assert bool(closed) == (drawn == 3)
    rest.close()  # type: ignore[attr-defined]
    assert closed == ["closed"]


def test_a_format_that_overrides_nothing_says_what_it_cannot_do() -> None:
    class Bare(Format):
        name = "bare"

    bare = Bare()
    with pytest.raises(SourceError, match="source: akrunner does not read bare files"):
        bare.opener(Reading(files(), None))("t.bare", None)
    with pytest.raises(SinkError, match="output: akrunner does not write bare files"):
        bare.writer(io.BytesIO(), AB)
    with pytest.raises(pa.ArrowInvalid, match="files of bare have no blocks"):
        bare.rows("t.bare", 0, AB)
    bare.check(AB)


def test_a_column_that_a_format_cannot_hold_is_named_with_its_title() -> None:
    class Whole(Format):
        name = "whole"
        title = "a file of whole numbers"

        def holds(self, data_type: pa.DataType) -> bool:
            return bool(pa.types.is_integer(data_type))

    with pytest.raises(SinkError, match=r"output: a file of whole numbers cannot hold column 'b' \(string\); write parquet"):
        Whole().check(AB)
