"""A query of MaxCompute's gives the rows of its tables, by DuckDB, which can open nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from akrunner.errors import ConfigError, SourceError
from akrunner.tables import sql
from akrunner.tables.local import LocalTables
from akrunner.tables.names import TableName
from akrunner.tables.sql import Queries, column_names, duckdb_type
from akrunner.tables.sqltext import tokens
from akrunner.tables.store import Reading, TableInfo
from akrunner.tables.types import field
from tests.unit.tables.conftest import made


def queries(store: Any, project: str | None = "demo", readings: Any = None) -> Queries:
    return Queries(lambda project: store, project, readings)


def rows(asked: Queries, query: str) -> list[tuple[Any, ...]]:
    return [row for batch in asked.draw(asked.rows(query)) for row in zip(*batch.to_pydict().values())]


@pytest.fixture
def filled(plain: LocalTables) -> LocalTables:
    """A table with two partitions that have rows, and one that has none; its files are put there by hand."""
    folder = Path(plain.place, "demo", "t")
    for partition in ("dt=1/n=1", "dt=2/n=7", "dt=3/n=9"):
        (folder / partition).mkdir(parents=True)
    (folder / "_table.sql").write_text("CREATE TABLE t (id bigint, s1 string, s2 string) PARTITIONED BY (dt string, n bigint);")
    pq.write_table(pa.table({"id": [1, 2], "s1": ["a", None], "s2": ["x", "y"]}), folder / "dt=1" / "n=1" / "x.parquet")
    pq.write_table(pa.table({"id": [3], "s1": ["c"], "s2": ["z"]}), folder / "dt=2" / "n=7" / "x.parquet")
    return plain


def test_tables_are_read_by_their_names_in_the_project_or_with_one(filled: LocalTables) -> None:
    with queries(filled) as asked:
        found = rows(
            asked, "with v as (select id, n from DEMO.T) select t.id, s1, dt, v.n from v join t on t.id = v.id order by 1"
        )
    assert found == [(1, "a", "1", 1), (2, None, "1", 1), (3, "c", "2", 7)]


def test_a_name_in_front_is_the_table_or_its_alias(filled: LocalTables) -> None:
    with queries(filled, None) as asked:
        found = rows(asked, "select t.id, y.s2 from demo.t join `demo`.`t` y on t.id = y.id + 1 order by t.id")
    assert found == [(2, "x"), (3, "y")]


@pytest.mark.slow
@pytest.mark.parametrize(
    "pattern, names",
    [("`(dt|n)?+.+`", ["id", "s1", "s2"]), ("`s[0-9]`", ["s1", "s2"]), ("t.`S.+`", ["s1", "s2"])],
)
def test_columns_are_those_whose_names_fit_a_pattern(pattern: str, names: list[str], filled: LocalTables) -> None:
    with queries(filled) as asked:
        assert asked.rows(f"select {pattern} from t").schema.names == names


REFUSED = [
    ("", "sql: "),
    ("insert into t values (1)", "sql: it is no query: insert into t values (1)"),
    ("select (1", "sql: Expecting ) (line 1, column 9): select (1"),
    ("select `x.*` from t", "sql: `x.*`, which stands for the columns whose names fit, fits none of id, s1, s2, dt, n"),
    ("select `x.*` from (select 1 a) v", "is known over tables, and not over a subquery"),
    ("select `(` from t", "sql: '(' in backticks is no column, and no pattern of columns"),
    ("select * from read_csv('/etc/passwd')", "sql: read_csv is no function of MaxCompute's that gives rows"),
    ("select to_char(id, 'yyyy Q') from t", "the format 'yyyy Q' of a date: letters that are known are yyyy, mm, dd"),
    ("select to_char(id, s1) from t", "the format of a date must be a text, like 'yyyymmdd'"),
    ("select * from t where dt = max_pt('demo.u')", "there is no table odps://demo/tables/u"),
    ("select * from nope", "there is no table odps://demo/tables/nope"),
    ("select * from other.t.x", "no name of a project"),
    ("select * from `t/dt=1`", "sql: t/dt=1 is a part of a table; name the table"),
]


def test_what_is_refused_names_what_is_wrong(filled: LocalTables) -> None:
    """Before DuckDB is given anything, so that another query may follow."""
    with queries(filled) as asked:
        for query, why in REFUSED:
            with pytest.raises(ConfigError) as told:
                asked.rows(query)
            assert why in str(told.value) and "odps_" not in str(told.value)
        with pytest.raises(ConfigError, match='sql: there is no nope; there are "id", "s1", "s2", "dt", "n"'):
            asked.rows("select nope from t")


def test_a_query_cannot_let_duckdb_out_again(filled: LocalTables, tmp_path: Path) -> None:
    (tmp_path / "secret.csv").write_text("a\n1\n")
    with queries(filled) as asked:
        rows(asked, "select 1")
        for text in (
            f"select * from read_csv('{tmp_path}/secret.csv')",
            "set enable_external_access = true",
            f"copy (select 1) to '{tmp_path}/out.csv'",
            f"attach '{tmp_path}/x.db'",
        ):
            with pytest.raises(ConfigError):
                asked.execute(text).fetchall()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["plain", "secret.csv", "state", "temp"]


def test_the_last_partition_with_rows(filled: LocalTables) -> None:
    with queries(filled) as asked:
        assert rows(asked, "select id from t where dt = max_pt('t')") == [(3,)]
    made(filled, "create table u (a bigint) partitioned by (dt string)")
    with queries(filled) as asked, pytest.raises(ConfigError, match="max_pt: odps://demo/tables/u has no partition with rows"):
        asked.rows("select a from u where dt = max_pt('u')")


def test_columns_may_be_chosen_of_what_the_query_gives(filled: LocalTables) -> None:
    seen: list[Any] = []

    def selection(names: list[str], kinds: list[str]) -> list[str]:
        seen.append((names, kinds))
        return ["c1 AS s", "c0 * 2 AS twice"]

    with queries(filled) as asked:
        reader = asked.rows("select id, s1, count(*) over () from t where id = 3", selection)
        assert [batch.to_pydict() for batch in asked.draw(reader)] == [{"s": ["c"], "twice": [6]}]
        assert asked.named == [True, True, False]
    assert seen[0][0][:2] == ["id", "s1"] and seen[0][1] == ["BIGINT", "VARCHAR", "BIGINT"]


def test_sums_and_times_have_types_a_table_can_have(filled: LocalTables) -> None:
    with queries(filled) as asked:
        schema = asked.rows("select sum(id) a, cast('2026-01-31' as datetime) b, cast(1.5 as double) c from t").schema
    assert schema.types == [pa.int64(), pa.timestamp("ms"), pa.float64()]


def test_a_value_that_cannot_be_computed_is_the_querys(filled: LocalTables) -> None:
    with queries(filled) as asked:
        with pytest.raises(ConfigError, match="sql: no"):
            list(asked.draw(asked.reader("select error('no') from range(3)")))


class Elsewhere(Reading):
    """A table that DuckDB cannot read itself. Attributes: asked: columns."""

    def __init__(self, drawn: bool = True) -> None:
        self.info = TableInfo(pa.schema([field("a", "bigint", "a comment")]), ("dt",))
        self.rows, self.drawn, self.closed = 2, drawn, 0

    def read(self, columns: Any = None, start: int = 0, rows: int | None = None) -> Iterator[pa.RecordBatch]:
        assert columns == ["a", "dt"]
        yield pa.record_batch({"a": [1, 2], "dt": ["x", "y"]})

    def close(self) -> None:
        self.closed += 1


class Store:
    def __init__(self, reading: Reading) -> None:
        self.asked: list[str] = []
        self._reading = reading

    def reading(self, name: TableName) -> Reading:
        self.asked.append(str(name))
        if name.table == "nope":
            raise SourceError("source: gone")
        return self._reading


def test_rows_of_a_table_elsewhere_are_copied_once_and_it_is_closed(unguarded: Path) -> None:
    reading = Elsewhere()
    store = Store(reading)
    with queries(store) as asked:
        assert rows(asked, "select x.a + y.a, x.dt from t x, T y where y.dt = 'y' order by 1") == [(3, "x"), (4, "y")]
        assert reading.closed == 0
    assert store.asked == ["t"] and reading.closed == 1


def test_a_reading_that_several_share_is_not_closed_by_one(unguarded: Path) -> None:
    reading, readings = Elsewhere(), {}  # type: ignore[var-annotated]
    for _ in range(2):
        with queries(Store(reading), readings=readings) as asked:
            assert rows(asked, "select a from t") == [(1,), (2,)]
    assert list(readings) == [("demo", "t")] and reading.closed == 0


def test_a_table_whose_rows_are_not_to_be_looked_at_is_checked_and_gives_none(unguarded: Path) -> None:
    with queries(Store(Elsewhere(drawn=False))) as asked:
        assert rows(asked, "select a from t") == []


def test_nothing_is_left_where_a_table_is_gone(unguarded: Path) -> None:
    with pytest.raises(SourceError, match="gone"), queries(Store(Elsewhere())) as asked:
        asked.rows("select * from nope")
    assert list(unguarded.iterdir()) == []


@pytest.mark.parametrize(
    "text, count",
    [("f()", 0), ("f(a)", 1), ("f(a, b)", 2), ("f(g(a, b), (c, d), 'e,f')", 3), ("f(a", 0)],
)
def test_arguments_are_counted_in_their_own_parentheses(text: str, count: int) -> None:
    assert sql._arguments(list(tokens(text)), 1) == count


@pytest.mark.parametrize(
    "query, renamed",
    [
        ("select isnull(a), a isnull", "select odps_isnull(a), a isnull"),
        ("select DateDiff(a, b, 'dd'), datediff(a, b)", "select odps_datediff(a, b, 'dd'), datediff(a, b)"),
        ("select 'isnull(a)', `isnull`(a)", "select 'isnull(a)', `isnull`(a)"),
        ("select ceil(floor(a))", "select odps_ceil(odps_floor(a))"),
    ],
)
def test_functions_that_hive_would_take_for_its_own_have_other_names(query: str, renamed: str) -> None:
    assert sql._renamed(query) == renamed


@pytest.mark.parametrize(
    "named, names, expected",
    [
        ([True, False, True], ["a", "count_star()", "A"], ["a", "_c1", "_c2"]),
        ([], ["a", "sum(x)", "b"], ["a", "_c1", "b"]),
        ([True], ["a", "b b"], ["a", "_c1"]),
        ([], [], []),
    ],
)
def test_columns_without_a_name_of_their_own_are_called_by_their_place(
    named: list[bool], names: list[str], expected: list[str]
) -> None:
    asked = Queries(lambda project: None, None)  # type: ignore[arg-type, return-value]
    asked.named = named
    assert column_names(asked, names) == expected


def test_types_as_duckdb_calls_them() -> None:
    assert [duckdb_type(field("a", words)) for words in ("bigint", "datetime", "string", "map<string,array<int>>")] == [
        "BIGINT",
        "TIMESTAMP_MS",
        "VARCHAR",
        "MAP(VARCHAR, INT[])",
    ]
