"""One state of a local table: any range of its rows, whoever made its files, whatever becomes of their names meanwhile."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from akrunner.errors import SourceError
from akrunner.leftovers import keeper
from akrunner.tables import layout, local_reading
from akrunner.tables.ddl import parse_create
from akrunner.tables.local_reading import LocalReading, fields_of, literal, quoted
from akrunner.tables.names import TableName
from akrunner.tables.store import TableInfo

NAME = TableName.parse("odps://demo/tables/t")


def info_of(columns: str, more: str = "") -> TableInfo:
    info = parse_create(f"create table t ({columns}) {more}").info
    assert info is not None
    return info


def file(path: Path, group: int = 1000, **columns: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path, row_group_size=group)


def opened(root: Path, info: TableInfo) -> LocalReading:
    return LocalReading(str(root), NAME, info, layout.partitions_below(str(root), info.partitions))


def rows(reading: LocalReading, *args: Any) -> list[tuple[Any, ...]]:
    return [row for batch in reading.read(*args) for row in zip(*batch.to_pydict().values())]


def open_files() -> list[str]:
    """Of this process."""
    found = []
    for fd in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):
            found.append(os.readlink(f"/proc/self/fd/{fd}"))
    return found


@pytest.fixture
def hundred(tmp_path: Path) -> Path:
    """Rows 0 to 99: in files of 30, 0, 50 and 20 rows, in row groups of 7."""
    root = tmp_path / "t"
    for number, (first, count) in enumerate([(0, 30), (30, 0), (30, 50), (80, 20)]):
        file(root / f"part-{number}.parquet", 7, a=pa.array(range(first, first + count), pa.int64()))
    return root


@pytest.mark.parametrize(
    "start, most, expected",
    [
        (0, None, range(100)),
        (0, 0, range(0)),
        (0, 1, range(1)),
        (6, 2, range(6, 8)),
        (29, 2, range(29, 31)),
        (30, 50, range(30, 80)),
        (28, 54, range(28, 82)),
        (99, 5, range(99, 100)),
        (100, 5, range(0)),
        (1000, None, range(0)),
        (-3, None, range(100)),
        (50, 10**12, range(50, 100)),
    ],
)
def test_any_range_of_the_rows(hundred: Path, start: int, most: int | None, expected: range) -> None:
    with opened(hundred, info_of("a bigint")) as reading:
        assert reading.rows == 100
        assert [row[0] for row in rows(reading, None, start, most)] == list(expected)


def test_every_range_in_the_middle_is_right(hundred: Path) -> None:
    with opened(hundred, info_of("a bigint")) as reading:
        for start in range(0, 100, 9):
            for most in (1, 7, 8, 51):
                assert [row[0] for row in rows(reading, None, start, most)] == list(range(start, min(100, start + most)))


def test_a_range_reads_the_row_groups_it_lies_in(hundred: Path) -> None:
    with opened(hundred, info_of("a bigint")) as reading:
        first = reading._files[0]
        assert first._groups(8, 20) == ([1, 2], 7) and first._groups(0, 7) == ([0], 0) and first._groups(28, 30) == ([4], 28)


def test_columns_come_as_they_are_asked_for(tmp_path: Path) -> None:
    root = tmp_path / "t"
    file(root / "dt=1" / "x.parquet", A=[1, 2], b=["x", None], other=[1.0, 2.0])
    file(root / "dt=2" / "x.parquet", a=pa.array([3], pa.int16()), dt=["wrong"])
    info = info_of("a bigint, b string, c double", "partitioned by (dt bigint)")
    with opened(root, info) as reading:
        assert rows(reading) == [(1, "x", None), (2, None, None), (3, None, None)]
        batches = list(reading.read(["DT", "c", "a", "a"]))
        assert batches[0].schema.names == ["dt", "c", "a", "a"]
        assert [column.type for column in batches[1].columns] == [pa.int64(), pa.float64(), pa.int64(), pa.int64()]
        assert [column.to_pylist() for column in batches[1].columns] == [[2], [None], [3], [3]]
        assert rows(reading, ["dt"], 1, 2) == [(1,), (2,)], "no column of the files is read"


def test_a_column_that_is_not_there_is_named_with_those_that_are() -> None:
    info = info_of("alpha bigint", "partitioned by (dt string)")
    assert [one.name for one in fields_of(NAME, info, None)] == ["alpha"]
    assert [one.name for one in fields_of(NAME, info, ["DT", "Alpha"])] == ["dt", "alpha"] and fields_of(NAME, info, []) == []
    with pytest.raises(
        SourceError, match=r"odps://demo/tables/t has no column 'alpa' \(it has alpha, dt\); did you mean 'alpha'"
    ):
        fields_of(NAME, info, ["alpa"])


@pytest.mark.parametrize(
    "given, words, kept",
    [
        (pa.array([1, None], pa.int8()), "double", [1.0, None]),
        (pa.array([1.5, float("inf"), None]), "float", [1.5, float("inf"), None]),
        (pa.array(["a", "b"]).dictionary_encode(), "string", ["a", "b"]),
    ],
)
def test_a_file_of_another_type_is_read_where_no_value_changes(tmp_path: Path, given: pa.Array, words: str, kept: Any) -> None:
    file(tmp_path / "t" / "x.parquet", a=given)
    with opened(tmp_path / "t", info_of(f"a {words}")) as reading:
        assert [row[0] for row in rows(reading)] == kept


@pytest.mark.parametrize(
    "given, words",
    [(pa.array(["x"]), "bigint"), (pa.array([2.5]), "bigint"), (pa.array([1e300]), "float"), (pa.array([300]), "tinyint")],
)
def test_a_file_with_a_value_that_does_not_fit_is_named(tmp_path: Path, given: pa.Array, words: str) -> None:
    path = tmp_path / "t" / "x.parquet"
    file(path, a=given)
    with opened(tmp_path / "t", info_of(f"a {words}")) as reading:
        with pytest.raises(SourceError) as told:
            rows(reading)
    assert f"column 'a' of {path} is {given.type}, and the table's is {words}: " in str(told.value)


@pytest.mark.parametrize("damage", [b"", b"PAR1", b"no parquet" * 10], ids=["empty", "cut", "other"])
def test_a_file_that_is_damaged_is_no_table_and_nothing_stays_open(tmp_path: Path, damage: bytes) -> None:
    file(tmp_path / "t" / "a.parquet", a=[1])
    (tmp_path / "t" / "b.parquet").write_bytes(damage)
    with pytest.raises(SourceError, match=r"source: cannot read .*b\.parquet as parquet \(is it whole\?\)"):
        opened(tmp_path / "t", info_of("a bigint"))
    assert str(tmp_path / "t" / "a.parquet") not in open_files()


def test_two_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    file(tmp_path / "t" / "x.parquet", a=[1], A=[2])
    with pytest.raises(SourceError, match="has two columns called 'a'"):
        opened(tmp_path / "t", info_of("a bigint"))


@pytest.mark.parametrize("most", [1, 64])
def test_files_that_are_removed_or_replaced_are_read_as_they_were(
    hundred: Path, most: int, unguarded: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Few are held open; of more, links are made."""
    monkeypatch.setattr(local_reading, "_OPEN", most)
    with opened(hundred, info_of("a bigint")) as reading:
        batches = reading.read(None, 25, 10)
        for path in hundred.glob("part-*"):
            path.unlink()
        file(hundred / "part-0.parquet", a=[-1])
        assert [row for batch in batches for row in batch.column(0).to_pylist()] == list(range(25, 35))
        assert bool(list(hundred.glob(".reading.*.partial"))) is (most == 1) is bool(keeper._keepers[0]._held.paths)
        assert len(rows(reading)) == 100
    assert [path.name for path in hundred.iterdir()] == ["part-0.parquet"]


def test_what_is_closed_is_read_to_the_end_by_who_has_begun_and_by_nobody_else(hundred: Path) -> None:
    reading = opened(hundred, info_of("a bigint"))
    batches = reading.read()
    first = next(batches).num_rows
    reading.close()
    reading.close()
    with pytest.raises(SourceError, match="the reading of odps://demo/tables/t is closed"):
        next(reading.read())
    assert first + sum(batch.num_rows for batch in batches) == 100
    assert not [path for path in open_files() if path.startswith(str(hundred))]


def test_duckdb_reads_the_same_rows(tmp_path: Path) -> None:
    root = tmp_path / "it's t"
    file(root / "dt=a%27b" / "x.parquet", A=[1, 2], b=["x", None])
    file(root / "dt=c" / "x.parquet", a=[3])
    info = info_of("a bigint, b string, `c` double", "partitioned by (dt string)")
    with opened(root, info) as reading, duckdb.connect() as connection:
        found = connection.execute(f"SELECT * FROM ({reading.query()}) ORDER BY a").fetchall()
        assert found == [(1, "x", None, "a'b"), (2, None, None, "a'b"), (3, None, None, "c")]
        assert connection.description is not None
        assert [one[0] for one in connection.description] == ["a", "b", "c", "dt"] and len(reading.paths) == 2


def test_duckdb_reads_no_rows_of_a_table_without_files(tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    with opened(tmp_path / "t", info_of("a bigint, b datetime")) as reading, duckdb.connect() as connection:
        found = connection.execute(reading.query())
        assert found.fetchall() == [] and [str(one[1]) for one in found.description or ()] == ["BIGINT", "TIMESTAMP_MS"]
        assert reading.rows == 0 and rows(reading) == []


def test_names_and_texts_in_duckdbs_quotes() -> None:
    assert quoted('a"b') == '"a""b"' and literal("it's") == "'it''s'"
