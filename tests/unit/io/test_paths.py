"""Which files a path stands for; and tables, pipes and outputs that are none."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from aiohttp import ClientTimeout

from akrunner.codec import read_examples
from akrunner.errors import SinkError, SourceError
from akrunner.io import paths
from akrunner.io.paths import filesystem_of
from akrunner.io.sources import open_source
from akrunner.schema import Schema

TABLE = pa.table({"a": [1, 2, 3]})


def read(source: Any, **options: Any) -> pa.Table:
    table = open_source(source, read_examples=read_examples, **options)
    return pa.Table.from_batches(list(table.batches()), table.schema)


def read_files(source: str) -> Any:
    """As a whole, a table of Delta or Iceberg is read by its system, and does not come here."""
    return paths.expand(source, None)


@pytest.mark.parametrize("given", ["t", "t/", "t/*.parquet", "t/y=1/x.parquet", ".", "t/y=1"])
@pytest.mark.parametrize(
    ("kind", "line"), [("_delta_log", "Give the table itself, as a whole: {} (pip"), (".hoodie", "from_base_uri('{}')")]
)
def test_a_lakehouse_table_is_never_read_as_files(tmp_path: Path, given: str, kind: str, line: str) -> None:
    root = tmp_path / "t"
    (root / kind).mkdir(parents=True)
    (root / "y=1").mkdir()
    pq.write_table(TABLE, root / "x.parquet")
    pq.write_table(TABLE, root / "y=1" / "x.parquet")
    with pytest.raises(SourceError) as failed:
        read_files(f"{tmp_path}/{given}")
    assert line.format(root) in str(failed.value)


@pytest.mark.parametrize("given", ["t", "t/data", "t/data/*.parquet"])
def test_an_iceberg_table_neither(tmp_path: Path, given: str) -> None:
    root = tmp_path / "t"
    for folder in ("metadata", "data"):
        (root / folder).mkdir(parents=True)
    pq.write_table(TABLE, root / "data" / "x.parquet")
    for number in range(2):
        (root / "metadata" / f"0000{number}-x.metadata.json").write_text("{}")
    with pytest.raises(SourceError) as failed:
        read_files(f"{tmp_path}/{given}")
    assert f"belongs to the Iceberg table {root}, " in str(failed.value)


@pytest.mark.parametrize("given", ["", "year=*/*.parquet", "*/x.parquet"])
def test_columns_in_the_names_of_directories(tmp_path: Path, given: str) -> None:
    for year in ("2023", "2024", "__HIVE_DEFAULT_PARTITION__"):
        (tmp_path / f"year={year}").mkdir()
        pq.write_table(TABLE.slice(0, 1), tmp_path / f"year={year}" / "x.parquet")
    table = read(f"{tmp_path}/{given}")
    assert table["year"].to_pylist() == [2023, 2024, None] and table.schema.field("year").type == pa.int32()
    assert read(tmp_path, input_schema=Schema.parse("year bigint")).to_pylist()[0] == {"year": 2023}
    assert read(tmp_path / "year=2023" / "x.parquet").schema.names == ["a"]


def test_pipes_devices_and_links(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "p.csv")
    for given in (tmp_path / "p.csv", tmp_path):
        with pytest.raises(SourceError, match="p.csv is a pipe, not a file"):
            read(given)
    with pytest.raises(SourceError, match="/dev/zero is a device"):
        read("/dev/zero", input_format="csv")
    folder = tmp_path / "d"
    folder.mkdir()
    (folder / "a.csv").write_text("a\n1\n")
    (folder / "up").symlink_to("..")
    with pytest.raises(SourceError, match=r"is a pipe|is a link to .*, whose files are read already"):
        read(folder)
    (tmp_path / "p.csv").unlink()
    with pytest.raises(SourceError, match="up is a link|d is a link"):
        read(folder)
    (folder / "up").unlink()
    (folder / "b.csv").symlink_to("nowhere")
    with pytest.raises(SourceError, match="b.csv is a link to nothing"):
        read(folder)


def test_files_whose_types_or_columns_differ(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": pa.array([1.5], pa.float32())}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"a": pa.array([0.1], pa.float64())}), tmp_path / "2.parquet")
    with pytest.raises(
        SourceError, match="column 'a' of .*2.parquet is double, and cannot become float.*0.1 would be 0.10000000149"
    ):
        read(tmp_path)
    pq.write_table(pa.table({"a": pa.array([0.5], pa.float64()), "z": [1]}), tmp_path / "2.parquet")
    with pytest.raises(SourceError, match="1.parquet has no column 'z', which .*2.parquet has; input_schema="):
        read(tmp_path)
    assert read(tmp_path, input_schema=Schema.parse("a double"))["a"].to_pylist() == [1.5, 0.5]


@pytest.mark.parametrize("given", ["in.csv", ".", "*.csv", "sub/../in.csv", "link.csv"])
@pytest.mark.parametrize("output", ["in.csv", "./sub/../in.csv", "link.csv", "hard.csv", "file://{}/in.csv"])
def test_the_output_is_not_the_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str, output: str) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sub").mkdir()
    (tmp_path / "in.csv").write_text("a\n1\n")
    (tmp_path / "link.csv").symlink_to("in.csv")
    os.link(tmp_path / "in.csv", tmp_path / "hard.csv")
    files = paths.expand(given, "csv")
    with pytest.raises(SinkError, match="output: "):
        paths.check_apart(files, output.format(tmp_path))
    paths.check_apart(paths.expand("in.csv", None), "out.csv")
    paths.check_apart(paths.expand("*.csv", None), "out.parquet")


def test_the_output_is_not_around_the_input(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "in.csv").write_text("a\n1\n")
    for given, output in (("d/in.csv", "d/"), ("d", "d"), ("d", "d/out.parquet"), ("d/*.csv", "d/new.csv")):
        with pytest.raises(SinkError, match="output: "):
            paths.check_apart(paths.expand(f"{tmp_path}/{given}", None), f"{tmp_path}/{output}")


@pytest.mark.parametrize("data", [b"", b"ARROW1\0\0", b"junk" * 9])
def test_arrow_files_that_are_none(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "x.arrow").write_bytes(data)
    with pytest.raises(SourceError, match="cannot read .*x.arrow as arrow"):
        read(tmp_path / "x.arrow")


def test_arrow_streams_are_whole(tmp_path: Path) -> None:
    with pa.ipc.new_stream(tmp_path / "x.arrow", TABLE.schema) as writer:
        writer.write_table(TABLE)
    data = (tmp_path / "x.arrow").read_bytes()
    assert read(tmp_path / "x.arrow") == TABLE
    for other, words in ((data[:-8], "is cut short"), (data + data, "holds more behind the end")):
        (tmp_path / "x.arrow").write_bytes(other)
        with pytest.raises(SourceError, match=words):
            read(tmp_path / "x.arrow")


def test_a_damaged_arrow_file_is_an_error(tmp_path: Path) -> None:
    table = pa.table({"s": ["ab", "cd", "ef"] * 50, "i": range(150)})
    with pa.ipc.new_file(tmp_path / "x.arrow", table.schema) as writer:
        writer.write_table(table)
    data = bytearray((tmp_path / "x.arrow").read_bytes())
    # the offsets of the strings
    at = data.index(b"\0\0\0\0\2\0\0\0\4\0\0\0")
    data[at + 8 : at + 12] = b"\xff\xff\xff\x7f"
    (tmp_path / "x.arrow").write_bytes(data)
    with pytest.raises(SourceError, match="x.arrow"):
        read(tmp_path / "x.arrow")


def test_a_directory_that_a_pattern_leads_into_and_nobody_may_read_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A glob finds nothing there: the table would be without its rows, or without any."""
    for folder in ("open", "shut", "shut/y=1", "link"):
        (tmp_path / folder).mkdir()
    for folder in ("open", "shut", "shut/y=1"):
        (tmp_path / folder / "t.csv").write_text("a\n1\n")
    # around in a circle
    (tmp_path / "link" / "up").symlink_to(tmp_path)
    there, shut = os.scandir, str(tmp_path / "shut")

    def scandir(path: Any = ".") -> Any:
        if os.fspath(path) == shut:
            # the root user reads everything
            raise PermissionError(13, "Permission denied", shut)
        return there(path)

    monkeypatch.setattr(os, "scandir", scandir)
    for pattern in ("shut/*.csv", "*/*.csv", "s*/y=1/*.csv", "**/t.csv"):
        with pytest.raises(SourceError, match=f"source: cannot look into {shut}: Permission denied"):
            paths.expand(f"{tmp_path}/{pattern}", None)
    assert paths.expand(f"{tmp_path}/o*/*.csv", None).paths == [f"{tmp_path}/open/t.csv"]
    for pattern, words in (
        ("open/*.json", r": in .*/open there is t\.csv$"),
        ("nowhere/*.csv", ": there is no directory .*/nowhere$"),
        ("opne/*.csv", "/opne; did you mean 'open'"),
        ("open/t.csv/*.csv", r"/t\.csv is no directory$"),
    ):
        with pytest.raises(SourceError, match=f"source: no file matches .*{words}"):
            paths.expand(f"{tmp_path}/{pattern}", None)


def test_a_bucket_that_is_not_there_and_a_slash_too_few_are_told() -> None:
    class Store:
        protocol = ("s3", "s3a")

        def info(self, path: str) -> None:
            raise FileNotFoundError(path)

        def isdir(self, path: str) -> bool:
            return False

        def exists(self, path: str) -> bool:
            return path == "there"

    store: Any = Store()
    assert str(paths._not_there(store, "no/x.csv", "s3://no/x.csv")).endswith("no file s3://no/x.csv: there is no bucket no")
    assert str(paths._not_there(store, "there/x.csv", "s3://there/x.csv")).endswith("there is no file s3://there/x.csv")
    with pytest.raises(SourceError, match="there is no file s3:/b/x.csv: write s3:// with two slashes"):
        paths.expand("s3:/b/x.csv", None)


def test_a_pattern_that_matches_directories_only_says_so(tmp_path: Path) -> None:
    for name in "abcd":
        (tmp_path / "photos" / name).mkdir(parents=True)
    above = f"{tmp_path}/photos"
    words = rf"no file matches {above}/\*, but 4 directories \({above}/a, {above}/b, {above}/c, ...\): give {above} itself"
    with pytest.raises(SourceError, match=words):
        paths.expand(f"{above}/*", None)
    with pytest.raises(SourceError, match=rf"but a directory \({above}/a\)"):
        paths.expand(f"{above}/a*", None)


@pytest.mark.parametrize(
    "given, meant",
    [
        ("data/trian.csv", "data/train.csv"),
        ("trian.csv", "train.csv"),
        ("file://{}/data/trian.csv", "file://{}/data/train.csv"),
    ],
)
def test_a_misspelt_file_is_suggested_with_its_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str, meant: str
) -> None:
    (tmp_path / "data").mkdir()
    for folder in (tmp_path, tmp_path / "data"):
        (folder / "train.csv").write_text("a\n1\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SourceError, match="there is no file") as caught:
        open_source(given.format(tmp_path), read_examples=read_examples)
    assert str(caught.value).endswith(f"; did you mean '{meant.format(tmp_path)}'?")


def test_a_web_server_is_waited_for_as_long_as_something_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    def timeout_of(url: str) -> Any:
        fs, _ = filesystem_of(url)
        return getattr(fs, "fs", fs).client_kwargs["timeout"]

    for url in ("http://127.0.0.1/t.csv", "https://127.0.0.1/t.csv", "simplecache::https://127.0.0.1/t.csv"):
        told = timeout_of(url)
        assert (told.total, told.sock_connect, told.sock_read) == (None, 30.0, 60.0), url
    monkeypatch.setitem(fsspec.config.conf, "https", {"client_kwargs": {"timeout": ClientTimeout(7.0), "trust_env": True}})
    assert timeout_of("https://127.0.0.1/t.csv").total == 7.0
