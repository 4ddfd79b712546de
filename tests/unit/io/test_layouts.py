"""How outputs are laid out: what is refused before anything starts, with the option to change."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from akrunner.errors import SinkError
from akrunner.io.formats.base import Compression
from akrunner.io.layouts import PLAIN, Layout, compression_of

SCHEMA = pa.schema(
    [("day", pa.date32()), ("s", pa.string()), ("x", pa.float64()), ("l", pa.list_(pa.int64())), ("_h", pa.int32())]
)


@pytest.mark.parametrize(
    ("given", "want"),
    [
        ("snappy", Compression("snappy")),
        (" ZSTD:3 ", Compression("zstd", 3)),
        ("gzip:9", Compression("gzip", 9)),
        ("none", Compression("none")),
    ],
)
def test_a_compression_and_its_level(given: str, want: Compression) -> None:
    assert compression_of(given) == want and str(want) == given.strip().lower()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("zsdt", "give zstd, snappy, gzip, brotli, lz4, none, with a level as in zstd:3.*zstd"),
        ("zstd:99", "the levels of zstd are 1 to 22"),
        ("zstd:", "the levels of zstd are 1 to 22"),
        ("gzip:0", "the levels of gzip are 1 to 9"),
        ("snappy:3", "snappy has no levels; zstd, gzip, brotli have"),
    ],
)
def test_no_compression(given: str, words: str) -> None:
    with pytest.raises(SinkError, match=f"^output_compression='{given}': {words}"):
        compression_of(given)


@pytest.mark.parametrize(
    ("layout", "form", "words"),
    [
        (Layout(partition_by=("dya",)), "parquet", r"partition_by= \(--partition-by\): the rows have no column 'dya' .*day"),
        (
            Layout(sort_by=(("day down", False),)),
            "parquet",
            r"sort_by= .*no column 'day down' .*asc or desc, as in 'day desc'$",
        ),
        (Layout(sort_by=(("t", True),)), "parquet", r"sort_by= \(--sort-by\): the rows have no column 't'"),
        (Layout(sort_by=(("l", True),)), "parquet", "lists have no order"),
        (Layout(partition_by=("x",)), "parquet", "column 'x' is double, which makes no names of directories"),
        (Layout(partition_by=("_h",)), "parquet", "readers skip directories like _h="),
        (Layout(compression=Compression("gzip")), "arrow", "arrow knows zstd, lz4, none"),
        (Layout(compression=Compression("gzip")), "csv", "csv files are compressed as a whole, if their names say so .*csv.gz"),
    ],
)
def test_what_rows_cannot_be_laid_out_like(layout: Layout, form: str, words: str) -> None:
    with pytest.raises(SinkError, match=words):
        layout.check(form, SCHEMA)
    if layout.compression is None:
        # the columns are not known yet
        layout.check(form, pa.schema([]))


def test_a_file_has_a_column_left() -> None:
    with pytest.raises(SinkError, match="all columns would be in the names of directories"):
        Layout(partition_by=("s",)).check("parquet", SCHEMA.remove(0).remove(1).remove(1).remove(1))
    assert Layout(partition_by=("day", "_h")).files_schema(SCHEMA).names == ["s", "x", "l"]


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"partition_by": ("day",)}, "partition_by="),
        ({"max_rows": 3}, "max_rows_per_file="),
        ({"max_bytes": 3000}, "max_bytes_per_file="),
        ({"append": True}, "append="),
        ({"manifest": True}, "manifest="),
    ],
)
def test_what_is_only_for_directories(options: dict[str, Any], name: str) -> None:
    with pytest.raises(SinkError, match=f"^{name} .* is for a directory of files; end the output in /: o.parquet/"):
        Layout(**options).check_one_file("o.parquet")
    with pytest.raises(SinkError, match=f"^{name} .* is for files; odps://p/tables/t is a table"):
        Layout(**options).check_files("odps://p/tables/t")


def test_what_files_have_too() -> None:
    layout = Layout(sort_by=(("s", True),), compression=Compression("zstd"))
    layout.check_one_file("o.parquet")
    layout.check("parquet", SCHEMA)
    PLAIN.check_files("t")
    assert PLAIN.given() == "" and layout.given().startswith("sort_by=")
    assert PLAIN.order == () == Layout(partition_by=("day",)).order
    assert Layout(partition_by=("day",), sort_by=(("s", True),)).order == (("day", False), ("s", True))
