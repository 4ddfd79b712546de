"""What the outputs of all systems share: names in SQL, and a table that has all rows of a job or none."""

from __future__ import annotations

import datetime
from typing import Any

import pyarrow as pa
import pytest

from akrunner.errors import ConfigError, SinkError, SourceError, WriteError
from akrunner.io.systems import base
from akrunner.io.systems.base import (
    TableSink,
    Transaction,
    Url,
    check_columns,
    check_days,
    check_hours,
    check_reads,
    dotted,
    quoted,
    slices,
)
from akrunner.spec import TaskSpec

X = pa.schema([("x", pa.int64())])
CHIEF = TaskSpec("chief", 0)


class Table(Transaction):
    """A table in memory. Attributes: told: what was done, in order; fails: what raises, and what it raises."""

    def __init__(self, **fails: Exception) -> None:
        self.told: list[Any] = []
        self.fails = fails

    def _do(self, name: str, what: Any) -> None:
        self.told.append(what)
        if name in self.fails:
            raise self.fails[name]

    def append(self, rows: pa.Table) -> None:
        self._do("append", rows["x"].to_pylist())

    def commit(self) -> None:
        self._do("commit", "commit")

    def close(self) -> None:
        self._do("close", "close")


def sink(table: Table) -> TableSink:
    return TableSink("sqlite:///f?table=t", X, lambda: table)


def batch(*values: int) -> pa.RecordBatch:
    return pa.record_batch({"x": list(values)}, schema=X)


@pytest.mark.parametrize(
    ("table", "name"),
    [("t", '"t"'), ("s.t", '"s"."t"'), ("s.t.u", '"s"."t.u"'), ("s.", '"s."'), ('a"b.c', '"a""b"."c"')],
)
def test_names_in_sql(table: str, name: str) -> None:
    assert dotted(table) == name
    assert quoted(table) == '"' + table.replace('"', '""') + '"'


def test_parts_of_a_url() -> None:
    url = Url.parse("postgresql://me@h/d?table=a%2Eb&sslmode=&x=1%202")
    assert url.base == "postgresql://me@h/d" and url.options == {"table": "a.b", "sslmode": "", "x": "1 2"}
    assert Url.parse("sqlite:///f").table is None
    with pytest.raises(ConfigError, match="there is no option 'x' here .there are table, and those of the database's driver."):
        url.check(["table"], ["sslmode"])
    url.check(["table"], ["sslmode", "x"])


@pytest.mark.parametrize("options", ["passwrod=s3cret", "passwrod=s3cret&passwrod=s3cret"])
def test_an_option_that_is_misspelt_is_shown_without_its_value(options: str) -> None:
    with pytest.raises(ConfigError, match="^kafka://h/t: .*passwrod") as caught:
        Url.parse(f"kafka://h/t?table=a&{options}").check(["table", "password_file"])
    assert "s3cret" not in str(caught.value)


def test_a_column_that_the_table_lacks_is_named() -> None:
    there = pa.schema([("id", pa.int64()), ("score", pa.float64())])
    check_columns(there, pa.schema([("score", pa.string())]), "t")
    with pytest.raises(SinkError, match=r"output: t has no column 'scores' \(it has id, score\).*'score'"):
        check_columns(there, pa.schema([("id", pa.int64()), ("scores", pa.int64())]), "t")


def test_large_batches_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "BATCH_ROWS", 2)
    found = [one.column(0).to_pylist() for one in slices(iter([batch(1, 2, 3, 4, 5), batch(), batch(6)]))]
    assert found == [[1, 2], [3, 4], [5], [6]]


def test_rows_are_sent_together_and_nothing_is_opened_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "_SENT_ROWS", 3)
    opened: list[Table] = []

    def begin() -> Table:
        opened.append(Table())
        return opened[-1]

    out = TableSink("t", X, begin)
    out.write(CHIEF, batch(1))
    out.write_rows(batch(2))
    assert not opened
    out.write(CHIEF, batch(3, 4))
    out.write(CHIEF, batch(5))
    assert opened[0].told == [[1, 2, 3, 4]]
    out.commit()
    out.commit()
    out.abort()
    assert len(opened) == 1 and opened[0].told == [[1, 2, 3, 4], [5], "commit", "close"]


def test_rows_of_many_bytes_are_sent_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "_SENT_BYTES", 16)
    table = Table()
    out = sink(table)
    out.write_rows(batch(1))
    assert not table.told
    out.write_rows(batch(2))
    assert table.told == [[1, 2]]


def test_a_job_without_rows_makes_the_table_all_the_same() -> None:
    table = Table()
    sink(table).commit()
    assert table.told == ["commit", "close"]


def test_a_job_that_failed_or_starts_again_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "_SENT_ROWS", 2)
    tables: list[Table] = []

    def begin() -> Table:
        tables.append(Table())
        return tables[-1]

    out = TableSink("t", X, begin)
    out.write_rows(batch(1, 2))
    out.write_rows(batch(3))
    out.restart()
    out.write_rows(batch(4))
    out.commit()
    assert [table.told for table in tables] == [[[1, 2], "close"], [[4], "commit", "close"]]
    given_up = Table(close=OSError("gone"))
    other = TableSink("t", X, lambda: given_up)
    other.abort()
    other.write_rows(batch(1, 2))
    other.abort()
    other.abort()
    assert given_up.told == [[1, 2], "close"]


@pytest.mark.parametrize("step", ["append", "commit"])
@pytest.mark.parametrize(
    "error", [OSError("the disk went away"), SinkError("the disk went away"), SourceError("the disk went away")]
)
def test_what_a_system_raises_is_an_error_of_the_write(step: str, error: Exception) -> None:
    table = Table(**{step: error})
    out = sink(table)
    out.write_rows(batch(1))
    with pytest.raises(WriteError, match="the disk went away"):
        out.commit()
    out.abort()
    assert table.told[-1] == "close" and table.told.count("close") == 1


def test_a_commit_with_tables_sends_the_rows_first_and_commits_after_them() -> None:
    table = Table()
    out = sink(table)
    out.write_rows(batch(1))
    out.commit_with(None, lambda more: table.told.append(("tables", tuple(more))))
    assert table.told == [[1], ("tables", ()), "commit", "close"]
    other = Table()
    out = sink(other)

    def fails(more: Any) -> None:
        raise WriteError("the tables cannot be stored")

    with pytest.raises(WriteError, match="the tables cannot be stored"):
        out.commit_with(None, fails)
    out.abort()
    assert other.told == ["close"]


@pytest.mark.parametrize(
    "query",
    [
        "delete from t",
        "  /* all */ -- of them\n UPDATE t SET x = 1",
        "(Insert into t values (1))",
        "TRUNCATE t",
        "DROP TABLE t",
    ],
)
def test_a_query_that_changes_something_is_told(query: str) -> None:
    with pytest.raises(
        SourceError,
        match=r"select= \(--select\): d://h runs only a query that reads, which begins with SELECT or WITH, and no [A-Z]+$",
    ):
        check_reads(query, "d://h")


@pytest.mark.parametrize(
    "query", ["SELECT 1", "with d as (select 1) select * from d", "(SELECT 1)", "VALUES (1)", "TABLE t", "", "deleted"]
)
def test_a_query_that_reads(query: str) -> None:
    check_reads(query, "d://h")


@pytest.mark.parametrize("kind", [pa.timestamp("s"), pa.timestamp("us", "America/New_York"), pa.timestamp("ns")])
def test_moments_that_become_days_are_beginnings_of_days(kind: pa.DataType) -> None:
    day, noon = datetime.datetime(2026, 7, 1), datetime.datetime(1969, 12, 31, 12)
    rows = pa.table({"d": pa.array([day, None, noon], kind), "n": [1, 2, 3], "t": ["a", "b", "c"]})
    check_days(rows[:2], ["d", "n", "t"], 0, "d://h")
    with pytest.raises(WriteError, match="row 12, column 'd': 1969-12-31 12:00:00.* is no beginning of a day"):
        check_days(rows, ["d"], 10, "d://h")
    within = pa.table({"d": pa.array([None, [[day], None], [[], [day, noon]]], pa.list_(pa.large_list(kind)))})
    check_days(within[:2], ["d"], 0, "d://h")
    with pytest.raises(WriteError, match="row 12, column 'd': 1969-12-31 12:00:00.* is no beginning of a day"):
        check_days(within, ["d"], 10, "d://h")


@pytest.mark.parametrize(
    "text",
    [
        "2020-01-01 01:02:03",
        "2020-01-01T00:00:01",
        "2020-01-01 00:00:00.5",
        "20200101t0102",
        "20200101 0102",
        "Jan 1 2020 12:30 PM",
    ],
)
def test_text_that_becomes_a_day_has_no_time(text: str) -> None:
    good = [
        "2020-01-01",
        "2020-01-01 00:00:00+05:30",
        "2020-01-01T00:00",
        "2020-01-01 0:00:00.000Z",
        "20200101 000000",
        "infinity",
        None,
    ]
    check_days(pa.table({"d": good, "l": [good] * 7}), ["d", "l"], 0, "d://h")
    for rows in (pa.table({"d": [*good, text]}), pa.table({"d": [good] * 7 + [[None, text]]})):
        with pytest.raises(
            WriteError, match=r"row 8, column 'd': .* is no beginning of a day, and the table's column is a date"
        ):
            check_days(rows, ["d"], 1, "d://h")


@pytest.mark.parametrize(
    "text", ["2020-01-01 01:02:03", "1/2/2020 01:02", "02-Jan-2020 01:02", "20200101 01:02", "1.2.2020 01:02"]
)
def test_text_that_becomes_a_time_of_a_day_has_no_day(text: str) -> None:
    good = ["01:02:03", "01:02:03.123456", "040506", "04:05:06-08:00", "04:05 PM", "allballs", None]
    check_hours(pa.table({"t": good, "l": [good] * 7, "n": range(7)}), ["t", "l", "n"], 0, "d://h")
    for rows in (pa.table({"t": [*good, text]}), pa.table({"t": [good] * 7 + [[None, text]]})):
        with pytest.raises(WriteError, match="row 8, column 't': .* has a day, and the table's column is a time"):
            check_hours(rows, ["t"], 1, "d://h")
