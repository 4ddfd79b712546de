"""SQL over a table: queries that are too long or never end. What a process parses first is in `tests/e2e/test_bad_inputs`."""

import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from akrunner import codec
from akrunner.errors import SourceError
from akrunner.io import sql
from akrunner.io.sources import open_source
from akrunner.io.sql import columns_read, heard, interrupting

TABLE = pa.table({"x": [1.0, 2.0]})
ENDLESS = "SELECT sum(a.range * b.range) FROM range(100000000) a, range(10000000) b, input"


def selected(select: str, **given: Any) -> Any:
    return open_source(TABLE, read_examples=codec.read_examples, select=select, **given)


def test_a_query_that_is_too_long_is_not_parsed() -> None:
    with pytest.raises(SourceError, match="select: the query has 1,200,018 characters; 1,048,576 are allowed"):
        selected("x+" * 600_000)


@pytest.mark.slow
def test_a_query_that_gives_nothing_in_time() -> None:
    with pytest.raises(SourceError, match=r"select: the query had given no row after 0.2 s \(timeout=\)"):
        selected(ENDLESS, select_left=lambda: 0.2)


@pytest.mark.slow
def test_ctrl_c_ends_a_query_as_itself() -> None:
    import polars  # its handler of SIGINT wakes nobody who waits

    assert polars.__name__ in sys.modules
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        selected(ENDLESS)
    # of a relation, too, if it is of DuckDB's own connection
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        open_source(duckdb.sql(ENDLESS.replace(", input", "")), read_examples=codec.read_examples)
    assert not [thread for thread in threading.enumerate() if thread.name == "akrunner-query"]


def test_looking_whose_a_relation_is_leaves_what_is_read_alone() -> None:
    rows = duckdb.sql("SELECT range AS x FROM range(100000)").to_arrow_reader(1000)
    first = rows.read_next_batch().num_rows
    with duckdb.connect() as other:
        assert interrupting(other.sql("SELECT 2")) is None
    assert interrupting(duckdb.sql("SELECT 2")) is not None
    assert first + sum(batch.num_rows for batch in rows) == 100_000


def test_a_query_is_stopped_while_another_thread_reads_it() -> None:
    table = selected("SELECT range AS s FROM range(1000000000000)")
    raised = threading.Event()

    def read() -> None:
        with pytest.raises(SourceError, match="select: .*[Ii]nterrupt"):
            for _ in table.batches():
                pass
        raised.set()

    thread = threading.Thread(target=read)
    thread.start()
    while thread.is_alive():
        table.stop()
        time.sleep(0.05)
    assert raised.is_set()
    table.stop()


def test_what_a_thread_raises_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        heard(lambda: 1 / 0)
    assert heard(lambda: 3) == 3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("select", "words"),
    [
        ("SELEC x FROM input", 'near "SELEC"\n\nLINE 1: SELEC x FROM input\n        ^^^^^\ndid you mean SELECT?\n(the table'),
        ("WHIT a AS (SELECT 1) SELECT * FROM a", "did you mean WITH?"),
        ("x, x FROM input", "LINE 1: x, x FROM input\n        ^\na query begins with SELECT; expressions alone"),
        ("DELETE FROM input", "select: 'DELETE FROM input' is not a query that returns rows"),
        ("x,, x", 'near ","\n\nLINE 1: x,, x\n          ^\n(the table'),
        ("(x", "syntax error at its end\n\nLINE 1: (x\n          ^\n(the table"),
        ("x, nosuch", '"nosuch" not found'),
    ],
)
def test_an_error_is_about_what_the_user_has_written(select: str, words: str) -> None:
    """Expressions are made a query, and nobody has to know how."""
    with pytest.raises(SourceError) as caught:
        selected(select)
    assert words in str(caught.value) and "FROM input FROM" not in str(caught.value)


COLUMNS = pa.schema([("path", pa.string()), ("bytes", pa.binary()), ("width", pa.int64())])


@pytest.mark.parametrize(
    ("select", "columns"),
    [
        ("path", {"path"}),
        ("count(*)", set()),
        ("*", {"path", "bytes", "width"}),
        ("FROM input WHERE width > 3", {"path", "bytes", "width"}),
        ("SELECT * EXCLUDE (bytes) FROM input", {"path", "width"}),
        ("SELECT input FROM input", {"path", "bytes", "width"}),
        ("SELECT #1 FROM input WHERE width IS NULL", {"path", "width"}),
        (
            "WITH a AS (SELECT *, row_number() OVER (ORDER BY width) AS r FROM input) SELECT path FROM a WHERE r < 3",
            {"path", "width"},
        ),
        ("SELECT a.path FROM input a JOIN input b ON a.width = b.width", {"path", "width"}),
        ("SELECT * FROM (PIVOT input ON path USING sum(width))", {"path", "bytes", "width"}),
        # what has no plan, or none with the table in it, needs all
        ("nonsense", {"path", "bytes", "width"}),
        ("SELECT 1", {"path", "bytes", "width"}),
        ("SELECT path FROM input WHERE false", {"path", "bytes", "width"}),
    ],
)
def test_the_columns_that_a_query_needs_are_those_of_its_plan(select: str, columns: set[str]) -> None:
    assert columns_read(select, COLUMNS) == columns


def test_a_query_that_is_too_long_has_no_plan() -> None:
    with pytest.raises(SourceError, match="select: the query has"):
        columns_read("x+" * 600_000, COLUMNS)


def test_tables_of_duckdbs_own_are_not_proposed() -> None:
    with pytest.raises(SourceError, match="Table with name sales does not exist!\n(?!Did you mean)"):
        selected("SELECT * FROM sales")


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("SELECT i.x, j.x AS y FROM input i JOIN input j ON i.x < j.x", [{"x": 1.0, "y": 2.0}]),
        ("SELECT x FROM input WHERE x = (SELECT max(x) FROM input)", [{"x": 2.0}]),
        ("SELECT x FROM input UNION ALL (SELECT -x FROM INPUT) ORDER BY x", [{"x": -2.0}, {"x": -1.0}, {"x": 1.0}, {"x": 2.0}]),
        ("x, (SELECT count(*) FROM input) AS n", [{"x": 1.0, "n": 2}, {"x": 2.0, "n": 2}]),
        ("SELECT input.x FROM input WHERE input.x > 1", [{"x": 2.0}]),
    ],
)
def test_a_query_may_read_its_table_more_than_once(query: str, rows: list[dict[str, Any]]) -> None:
    table = selected(query)
    assert [row for batch in table.batches() for row in batch.to_pylist()] == rows
    assert [row for batch in table.batches() for row in batch.to_pylist()] == rows, "and once more"


RECURSIVE = (
    "WITH RECURSIVE w(n, v) AS (SELECT 0, 0.0 UNION ALL SELECT n + 1, i.x FROM w JOIN input i ON i.x = w.v + 1 WHERE n < 10) "
    "SELECT v FROM w ORDER BY v"
)


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("SELECT * FROM (PIVOT input ON x USING count(*))", [{"1.0": 1, "2.0": 1}]),
        ("SELECT * FROM (pivot_wider input ON x USING count(*))", [{"1.0": 1, "2.0": 1}]),
        (RECURSIVE, [{"v": 0.0}, {"v": 1.0}, {"v": 2.0}]),
        ("SELECT i.x FROM input i JOIN input j USING (x) JOIN '{file}' o ON o.b = i.x", [{"x": 2.0}]),
    ],
)
def test_a_table_that_is_read_again_though_no_plan_says_so_is_kept(query: str, rows: list[Any], tmp_path: Path) -> None:
    file = tmp_path / "other.csv"
    file.write_text("b\n2\n")
    table = selected(query.replace("{file}", str(file)))
    assert [row for batch in table.batches() for row in batch.to_pylist()] == rows


def test_a_query_that_reads_its_table_again_unseen_is_told_what_helps() -> None:
    hidden = RECURSIVE.replace("'", "''")
    with pytest.raises(SourceError, match="rows come once: name `input` once, in WITH t AS MATERIALIZED") as caught:
        list(selected(f"SELECT * FROM query('{hidden}')").batches())
    assert "RecordBatchReader" not in str(caught.value)


@pytest.mark.parametrize(
    "query", ["SELECT 'pivot' AS a FROM input", 'SELECT x AS "recursive" FROM input -- pivot', "x /* pivot */"]
)
def test_a_table_that_is_read_once_is_not_kept(query: str) -> None:
    assert not sql._reads_again(query, TABLE.schema)


def test_columns_whose_names_differ_only_in_case_are_not_mixed_up() -> None:
    table = pa.table({"a": [1], "A": [2], "b": [3]})
    for wrong in ('"A" AS y', "*", "a + b AS c"):
        with pytest.raises(SourceError, match="the columns 'a' and 'A' differ only in case"):
            open_source(table, read_examples=codec.read_examples, select=wrong)
    right = open_source(table, read_examples=codec.read_examples, select="b")
    assert [batch.to_pylist() for batch in right.batches()] == [[{"b": 3}]]


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("SELECT nope FROM input", 'column "nope" not found'),
        ("nope", 'column "nope" not found'),
        ("SELECT b FROM inputs", "Table with name inputs does not exist"),
        ("SELECT 1 FROM input WHERE", "syntax error"),
        # DuckDB refuses the plan of the first, but not the query
        ("SELECT * FROM (PIVOT (SELECT a, b FROM input) ON b USING sum(a))", "the columns 'a' and 'A' differ only in case"),
        ("SELECT * FROM (PIVOT input ON b USING sum(a))", "the columns 'a' and 'A' differ only in case"),
    ],
)
def test_a_query_that_duckdb_refuses_is_told_with_its_reason(query: str, words: str) -> None:
    """Whatever columns the table has."""
    table = pa.table({"a": [1], "A": [2], "b": [3]})
    with pytest.raises(SourceError, match=words) as caught:
        open_source(table, read_examples=codec.read_examples, select=query)
    assert ("differ only in case" in str(caught.value)) == ("differ" in words)


@pytest.mark.parametrize(
    ("query", "columns"),
    [
        ('SELECT "x y" FROM input', {"x y"}),
        ('SELECT "x y" FROM input WHERE "x y" > 3', {"x y"}),
        ('SELECT "x y" FROM input WHERE "x y" <> 3 AND t = \'x\'', {"x y", "t"}),
        ('SELECT "x y" FROM input WHERE x > 3', {"x", "x y"}),
        ('SELECT 1 FROM input WHERE "x%" > 3', {"x%"}),
        ("SELECT s.x FROM input", {"s"}),
        ('SELECT "z\ny", t FROM input', {"z\ny", "t"}),
        ('SELECT " x", t FROM input', {" x", "t"}),
    ],
)
def test_a_column_is_read_by_its_whole_name(query: str, columns: set[str]) -> None:
    names = ("x", "x y", "t", "x%", "z\ny", " x")
    schema = pa.schema(
        [*((name, pa.string() if name == "t" else pa.int64()) for name in names), ("s", pa.struct([("x", pa.int64())]))]
    )
    assert columns_read(query, schema) == columns


def test_a_longer_name_is_not_one_that_differs_in_case() -> None:
    table = pa.table({"x": [1], "X": [2], "x y": [3]})
    right = open_source(table, read_examples=codec.read_examples, select='SELECT "x y" FROM input WHERE "x y" > 2')
    assert [batch.to_pylist() for batch in right.batches()] == [[{"x y": 3}]]
