"""TUNNEL UPLOAD and DOWNLOAD: the words of the command, which files it means, and rows from a table to a file and back."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from akrunner.errors import ConfigError, SinkError, SourceError, WriteError
from akrunner.io.compression import Unpacked
from akrunner.tables.local import LocalTables
from akrunner.tables.names import TableName
from akrunner.tables.store import TableStore
from akrunner.tables.tunnel import (
    as_file,
    bare_csv,
    check_download,
    check_files,
    check_target,
    command_words,
    file_path,
    parsed,
    rows_of,
    tunnel,
)
from tests.unit.tables.conftest import made, put, rows


def store_of(store: LocalTables) -> Callable[[str], TableStore]:
    return lambda project: store


@pytest.mark.parametrize(
    "text, words",
    [
        ("tunnel upload a t", ["tunnel", "upload", "a", "t"]),
        ("tunnel upload 'a b'c\"d e\" t", ["tunnel", "upload", "a bcd e", "t"]),
        ("x -fd '\\t' -rd \"\\n\"", ["x", "-fd", "\t", "-rd", "\n"]),
        ("x -fd='' y", ["x", "-fd=", "y"]),
        ("", []),
    ],
)
def test_words_come_without_their_quotes(text: str, words: list[str]) -> None:
    assert command_words(text) == words


@pytest.mark.parametrize(
    "text, upload, file, table, partition, options",
    [
        ("upload 'a;b.csv' t -fd ';' -h true", True, "a;b.csv", "demo.t", (), {"field-delimiter": ";", "header": "true"}),
        ("U a p.t/dt=1,hh=2 -acp=true", True, "a", "p.t", (("dt", "1"), ("hh", "2")), {"auto-create-partition": "true"}),
        ("upload -h true a t/dt=x,y", True, "a", "demo.t", (("dt", "x,y"),), {"header": "true"}),
        ("upload a 't/dt=x y, hh=1'", True, "a", "demo.t", (("dt", "x y"), ("hh", "1")), {}),
        ("upload a odps://p/tables/t/dt=a,hh=1", True, "a", "p.t", (("dt", "a,hh=1"),), {}),
        ("d t/dt=1 out.csv -limit 5", False, "out.csv", "demo.t", (("dt", "1"),), {"limit": "5"}),
        ("download t out -ow", False, "out", "demo.t", (), {"overwrite": "true"}),
        ("download t out -ow false", False, "out", "demo.t", (), {"overwrite": "false"}),
        ("download -ow t out", False, "out", "demo.t", (), {"overwrite": "true"}),
        ("upload - t --Header=true", True, "-", "demo.t", (), {"header": "true"}),
    ],
)
def test_a_command_is_a_file_a_table_and_options_by_their_longer_names(
    text: str, upload: bool, file: str, table: str, partition: object, options: dict[str, str]
) -> None:
    found = parsed(f"tunnel {text}", "demo")
    assert (found.upload, found.file, found.name.sql, found.name.partition) == (upload, file, table, partition)
    assert found.options == options


@pytest.mark.parametrize(
    "text, why",
    [
        ("tunnel", "write TUNNEL UPLOAD file table"),
        ("tunnel resume x", "write TUNNEL UPLOAD file table"),
        ("tunnel upload", "tunnel upload: it takes a file and a table, not nothing"),
        ("tunnel d a b c", "tunnel d: it takes a file and a table, not a b c"),
        ("tunnel upload a t -hedder true", "-hedder is no option of it; did you mean 'header'"),
        ("tunnel upload a 't/dt'", "invalid odps table path"),
        ("tunnel upload 'a t", "never closed"),
    ],
)
def test_what_is_no_command_of_the_tunnels(text: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        parsed(text, "demo")


def test_a_table_goes_to_a_file_and_comes_back(plain: LocalTables, tmp_path: Path) -> None:
    """Texts keep the delimiter, quotes and ends of lines that are in them; a null is no text."""
    data: dict[str, list[Any]] = {"a": [1, None, 3], "b": ['x,"y"', "a\nb", None], "c": [0.5, None, -1.0]}
    name, file = made(plain, "create table t (a bigint, b string, c double)", **data), tmp_path / "out.csv"
    assert tunnel(f"tunnel download t {file} -h true", store_of(plain), "demo") == f"downloaded 3 rows of t to {file}"
    assert file.read_text().startswith("a,b,c\n1,")
    other = made(plain, "create table u (a bigint, b string, c double)")
    assert tunnel(f"tunnel upload {file} u -h true", store_of(plain), "demo") == "uploaded 3 rows to odps://demo/tables/u"
    assert rows(plain, other) == rows(plain, name)


def test_what_is_downloaded_may_be_chosen(plain: LocalTables, tmp_path: Path) -> None:
    name = made(plain, "create table t (a bigint, b string) partitioned by (dt string)")
    put(plain, name.at((("dt", "1"),)), a=[1, 2, 3], b=["x", "y", None])
    file = tmp_path / "out.txt"
    said = tunnel(f"tunnel download 't/dt=1?start=1' {file} -cn 'DT, b' -limit 5 -fd '\\t' -ni NULL", store_of(plain), "demo")
    assert said == f"downloaded 2 rows of t/dt=1?start=1 to {file}" and file.read_text() == "1\ty\n1\tNULL\n"
    with pytest.raises(SinkError, match="exists"):
        tunnel(f"tunnel download t {file}", store_of(plain), "demo")
    tunnel(f"tunnel download t {file} -ow -limit 1", store_of(plain), "demo")
    assert file.read_text() == "1,x\n"
    with pytest.raises(SourceError, match="has no column 'nope'"):
        tunnel(f"tunnel download t {file} -ow -cn nope", store_of(plain), "demo")
    tunnel(f"tunnel download t {tmp_path}/out.parquet -cn dt,A", store_of(plain), "demo")
    assert pq.read_table(tmp_path / "out.parquet").to_pydict() == {"dt": ["1"] * 3, "a": [1, 2, 3]}
    assert sorted(os.listdir(tmp_path)) == ["out.parquet", "out.txt", "plain", "state", "temp"]


def test_a_file_is_uploaded_as_its_options_say(plain: LocalTables, tmp_path: Path) -> None:
    name, file = made(plain, "create table t (a bigint, b string, c datetime)"), tmp_path / "in.txt"
    file.write_text('7|it"s|2026-01-31 10:11:12\n-|-|-\nx|y|z\n')
    text = f"tunnel upload {file} t -fd '|' -ni -"
    with pytest.raises(SourceError, match=rf"tunnel upload: {file}: .*\(-dbr true leaves such rows out\)"):
        tunnel(text, store_of(plain), "demo")
    assert rows(plain, name) == []
    assert tunnel(f"{text} -dbr true", store_of(plain), "demo") == "uploaded 2 rows to odps://demo/tables/t"
    found = rows(plain, name)
    assert found[0][:2] == (7, 'it"s') and str(found[0][2]) == "2026-01-31 10:11:12" and found[1] == (None,) * 3


@pytest.mark.slow
@pytest.mark.parametrize(
    "pattern, given",
    [
        ("dd/MM/yyyy HH:mm:ss", "31/01/2026 10:11:12"),
        ("yyyyMMddHHmmss", "20260131101112"),
        ("yyyyMMddHHmmssSSS", "20260131101112000"),
    ],
)
def test_a_moment_is_read_by_the_pattern_that_is_given(pattern: str, given: str, plain: LocalTables, tmp_path: Path) -> None:
    name, file = made(plain, "create table t (`a b` datetime, b timestamp, c bigint)"), tmp_path / "in.csv"
    file.write_text(f"{given},{given},1\nx,{given},2\n{given},,3\n")
    text = f"tunnel upload {file} t -dfp '{pattern}'"
    with pytest.raises(SourceError, match=r"\(-dbr true leaves such rows out\)"):
        tunnel(text, store_of(plain), "demo")
    assert tunnel(f"{text} -dbr true", store_of(plain), "demo").startswith("uploaded 2 rows")
    assert [[str(one) for one in row] for row in rows(plain, name)] == [
        ["2026-01-31 10:11:12", "2026-01-31 10:11:12", "1"],
        ["2026-01-31 10:11:12", "None", "3"],
    ]


def test_a_partition_is_made_where_that_is_said(plain: LocalTables, tmp_path: Path) -> None:
    name, file = made(plain, "create table t (a bigint) partitioned by (dt string)"), tmp_path / "in.csv"
    file.write_text("1\n")
    with pytest.raises(SinkError, match=r"tunnel upload: t/dt=1 does not exist; ALTER TABLE demo.t ADD PARTITION .* -acp true"):
        tunnel(f"tunnel upload {file} t/dt=1", store_of(plain), "demo")
    assert plain.partitions(name) == []
    assert tunnel(f"tunnel upload {file} t/dt=1 -acp true", store_of(plain), "demo") == "uploaded 1 row to t/dt=1"
    file.write_text("2\n3\n")
    tunnel(f"tunnel upload {file} t/dt=1 -ow", store_of(plain), "demo")
    assert rows(plain, name) == [(2,), (3,)]


def test_a_charset_that_is_not_read_says_what_to_do(plain: LocalTables, tmp_path: Path) -> None:
    made(plain, "create table t (a string)")
    (tmp_path / "in.txt").write_bytes("é\n".encode("gbk"))
    with pytest.raises(ConfigError, match=r"-c gbk: files are read as UTF-8; .*iconv -f gbk"):
        tunnel(f"tunnel upload {tmp_path}/in.txt t -c GBK", store_of(plain), "demo")


def test_files_are_those_of_a_directory_or_beside_the_statements(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here, beside = tmp_path / "here", tmp_path / "beside"
    for folder in (here, beside):
        (folder / "none").mkdir(parents=True)
    monkeypatch.chdir(here)
    (beside / "in.csv").write_text("1\n")
    (here / "in.tsv").touch()
    asked = parsed("tunnel upload in.csv t", "demo")
    check_files(asked, str(beside))
    with pytest.raises(SourceError, match=f"there is no file in.csv: {here}/in.csv"):
        check_files(asked, "")
    with pytest.raises(SourceError, match=f"there is no file in.tvs, neither {here}/in.tvs nor {beside}/in.tvs.*'in.tsv'"):
        check_files(parsed("tunnel upload in.tvs t", "demo"), str(beside))
    with pytest.raises(SourceError, match="tunnel upload: none is a directory without files"):
        check_files(parsed("tunnel upload none t", "demo"), str(beside))


def test_all_files_of_a_directory_are_uploaded_in_their_order(plain: LocalTables, tmp_path: Path) -> None:
    name, folder = made(plain, "create table t (a bigint)"), tmp_path / "in [1]"
    (folder / "below").mkdir(parents=True)
    (folder / "b.csv").write_text("2\n")
    with gzip.open(folder / "a.csv.gz", "wt") as file:
        file.write("1\n")
    assert tunnel(f"tunnel upload 'file://{folder}' t", store_of(plain), "demo").startswith("uploaded 2 rows")
    assert rows(plain, name) == [(1,), (2,)]


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["csv.gz", "csv.zst", "jsonl.bz2"])
def test_compressed_files_are_written_and_read_whole_or_not_at_all(ending: str, plain: LocalTables, tmp_path: Path) -> None:
    name = made(plain, "create table t (a bigint, s string)", a=list(range(999)), s=["x"] * 999)
    file = tmp_path / f"new.{ending}"
    tunnel(f"tunnel download t {file}", store_of(plain), "demo")
    with Unpacked(pa.OSFile(str(file)), str(file)) as stream:
        assert stream.codec is not None and stream.read().count(b"\n") == 999
    if ending.startswith("csv"):
        assert tunnel(f"tunnel upload {file} t", store_of(plain), "demo").startswith("uploaded 999 rows")
        file.write_bytes(file.read_bytes()[:-9])
        with pytest.raises(SourceError, match="cannot be unpacked: it is cut short"):
            tunnel(f"tunnel upload {file} t", store_of(plain), "demo")
        assert len(rows(plain, name)) == 2 * 999
        with pytest.raises(SinkError, match=r"a CSV is written compressed with gzip or zstd"):
            tunnel(f"tunnel download t {tmp_path}/new.csv.xz", store_of(plain), "demo")
        assert not (tmp_path / "new.csv.xz").exists()


def test_what_a_download_would_refuse_is_known_before(plain: LocalTables, tmp_path: Path) -> None:
    made(plain, "create table t (a bigint)", a=[1])
    file = tmp_path / "there.csv"
    file.touch()
    check_download(parsed(f"tunnel download t {tmp_path}/new.csv", "demo"), store_of(plain))
    check_download(parsed(f"tunnel download t {file} -ow", "demo"), store_of(plain))
    check_download(parsed(f"tunnel download t {file}", "demo"), store_of(plain), gone=True)
    for text, why in ((f"t {file}", "exists"), (f"t {file} -ow -cn b", "has no column 'b'"), ("u x", "there is no table")):
        with pytest.raises(ConfigError, match=why):
            check_download(parsed(f"tunnel download {text}", "demo"), store_of(plain))
    with pytest.raises(SinkError, match="exists"):
        check_target(parsed(f"tunnel download t {file}", "demo"))
    assert sorted(os.listdir(tmp_path)) == ["plain", "state", "temp", "there.csv"] and file.stat().st_size == 0


def test_a_download_goes_where_its_name_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/me")
    assert [file_path(one) for one in ("a", "~/a", "file:///x/a")] == [str(tmp_path / "a"), "/home/me/a", "/x/a"]


def test_the_first_rows_of_a_table_with_names_as_the_table_has_them(plain: LocalTables) -> None:
    name = made(plain, "create table t (a bigint, b string)", a=[1, 2, 3], b=["x", "y", "z"])
    with plain.reading(name) as reading:
        assert rows_of(reading).read_all().to_pydict() == {"a": [1, 2, 3], "b": ["x", "y", "z"]}
        ranged = TableName.parse("t?start=1&end=2", "demo")
        assert rows_of(reading, ["B"], 9, ranged).read_all().to_pydict() == {"b": ["y"]}
        assert rows_of(reading, ["B"], 2).read_all().to_pydict() == {"b": ["x", "y"]}
        assert rows_of(reading, [], 0).read_all().num_rows == 0


def test_a_file_that_cannot_be_written_is_not_there(tmp_path: Path, unguarded: Path) -> None:
    reader = pa.RecordBatchReader.from_batches(pa.schema([("a", pa.int64())]), iter([pa.record_batch({"a": [1, 2]})]))
    assert as_file(reader, str(tmp_path / "out.jsonl"), False) == 2
    assert (tmp_path / "out.jsonl").read_text() == '{"a":1}\n{"a":2}\n'

    def broken() -> Any:
        yield pa.record_batch({"a": [3]})
        raise WriteError("broken")

    with pytest.raises(WriteError, match="broken"):
        as_file(pa.RecordBatchReader.from_batches(reader.schema, broken()), str(tmp_path / "other.csv"), False)
    assert not (tmp_path / "other.csv").exists()


def test_a_csv_without_names_has_its_columns_by_their_places() -> None:
    sql = bare_csv("/it's.csv", pa.schema([("a", pa.int64()), ("it's", pa.string())]))
    assert sql.startswith("SELECT * FROM read_csv('/it''s.csv', delim = ',', header = false")
    assert "columns = {'a': 'BIGINT', 'it''s': 'VARCHAR'}" in sql and "quote = '\"'" in sql
