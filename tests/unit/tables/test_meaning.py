"""What MaxCompute means by a query, where DuckDB would take the same words for something else."""

from __future__ import annotations

import datetime
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from akrunner.errors import AkrunnerError, ConfigError, ReadError, SinkError, SourceError
from akrunner.tables import meaning
from akrunner.tables.local import LocalTables
from akrunner.tables.names import TableName
from akrunner.tables.statements import run

pytestmark = pytest.mark.slow

_MADE = """create table t (k string, v bigint, d double, s string);
    insert into t values ('a', 1, 1.5, 'abc'), ('a', 2, -2.5, null), ('b', -7, 3.5, 'x,y'), (null, 4, null, '')"""


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> LocalTables:
    store = LocalTables(str(tmp_path_factory.mktemp("tables")))
    run(_MADE, lambda project: store, "demo")
    return store


def rows(store: LocalTables, text: str) -> list[tuple[Any, ...]]:
    found = run(text, lambda project: store, "demo")[-1].rows
    assert found is not None
    return list(zip(*(column.to_pylist() for column in found.columns)))


@pytest.mark.parametrize(
    "query, expected",
    [
        # GROUP BY
        ("select k, sum(v) from t group by k grouping sets ((k), ())", [("a", 3), ("b", -7), (None, 4), (None, 0)]),
        ("select k, sum(v) from t group by k, grouping sets ((k), ())", [*[("a", 3), ("b", -7), (None, 4)] * 2]),
        ("select k, sum(v) from t group by k with rollup", [("a", 3), ("b", -7), (None, 4), (None, 0)]),
        ("select k, count(*) from t where k = 'a' group by k, v with cube", [("a", 1), ("a", 1), ("a", 2), *[(None, 1)] * 2, (None, 2)]),
        (
            "select grouping__id, grouping(v), count(*) from t group by k, v grouping sets ((k), ())",
            [(1, 1, 1), (1, 1, 1), (1, 1, 2), (3, 1, 4)],
        ),
        ("select k from t group by k having count(*) > 1 and max(s) > 'a'", [("a",)]),
        # numbers
        ("select 7 / 2, -7 div 2, -7 % 3, 7 / 0, 7 % 0, 7 div 0, pmod(-7, 3)", [(3.5, -3, -1, None, None, None, 2)]),
        ("select round(2.5), round(-2.5), round(2), ceil(1.2), floor(-1.2), least(1, null), greatest(1, null)", [(3, -3, 2, 2, -2, None, 1)]),
        ("select stddev(v), percentile(v, 0.5), median(v) from t where v in (1, 2)", [(0.5, 1.5, 1.5)]),
        ("select cast('abc' as bigint), cast('1.9' as bigint), cast(-1.9 as int), cast(300 as tinyint)", [(None, 1, -1, None)]),
        ("select cast(0.1 + 0.2 as string), concat('a', 1.5), cast(1.0 as string)", [("0.30000000000000004", "a1.5", "1.0")]),
        # texts beside numbers
        ("select '1.5' = 2, '10' > 9, 'abc' = 0, '10' < '9', 2 = '1.5', '1.5' in (1, 2)", [(False, True, None, True, False, False)]),
        ("select '1.5' + 1, case '1.5' when 2 then 'y' else 'n' end, '1.6' between 1 and 1.7", [(2.5, "n", True)]),
        ("select sum(x) from (select '1.5' x union all select 'w' x) q", [(1.5,)]),
        ("select max(v) - min(v), max(k) from t having max(k) > 'a' and max(v) = '4'", [(11, "b")]),
        # arrays
        ("select collect_list(v), collect_set(v) from t where v > 100", [([], [])]),
        ("select k, collect_set(d) from t group by k having count(d) = 0", [(None, [])]),
        ("select size(collect_list(v) over (partition by k)) from t where k = 'b'", [(1,)]),
        ("select size(array(1, 2)), size(map('a', 1)), sort_array(collect_list(v)) from t", [(2, 1, [-7, 1, 2, 4])]),
        ("select slice(array(1, 2, null), 2, 5), slice(array(1, 2, 3), -2, 1), slice(array(1), 3, 1), slice(array(1), 1, 0)", [([2, None], [2], [], [])]),
        ("select get_json_object(x, '$.a[1]'), get_json_object('bad', '$.a'), get_json_object('', '$.a') from (select '{\"a\":[1,2]}' x) q", [("2", None, None)]),
        ("select trunc(1.99, 1), trunc(125.8, -1), trunc(-1.9), sign(-2), named_struct('a', 1).a + 1", [(1.9, 120.0, -1.0, -1.0, 2)]),
        ("select url_encode('a b~*'), url_decode('a+b%2B'), regexp_substr('I love', 'l..e'), regexp_substr('a', 'x')", [("a+b%7E*", "a b+", "love", None)]),
        # texts
        ("select substr('abc', 0), substr('abc', -2), substr('abc', -5, 3), substring('abc', 0, 2), substr(null, 0)", [("", "bc", "", "", None)]),
        ("select concat('a', null), concat_ws(',', 'a', null, 'b'), lpad('a', 3, '0'), lpad('abc', 2, '0')", [(None, "a,b", "00a", "ab")]),
        ("select split('a,b,,', ','), split(',a', ',')[0], split('a', ',')[5], split('a,,', ',', false)", [(["a", "b"], "", None, ["a", "", ""])]),
        ("select split('a,b,c', ',')[v], map('a', 1, 'b', 2)[k] from t where v = 1", [("b", 1)]),
        ("select instr('hello', 'l'), instr('hello', 'l', 4), instr('hello', 'l', 1, 2), instr('hello', 'z')", [(3, 4, 4, 0)]),
        ("select regexp_extract('foothebar', 'foo(.*?)(bar)'), regexp_replace('aba', 'a', 'x', 0)", [("the", "xbx")]),
        ("select 'a_b' like 'a\\\\_b', 'axb' like 'a\\\\_b', split_part('a,b,c', ',', 1, 2)", [(True, False, "a,b")]),
        ("select wm_concat(distinct '-', k) from t where k = 'a' having wm_concat('-', k) = 'a-a'", [("a",)]),
        ("select K, nvl(S, 'n') from T where V = 2", [("a", "n")]),
        # dates
        ("select to_char(to_date('20260101', 'yyyymmdd'), 'yyyymmdd')", [("20260101",)]),
        ("select to_char(dateadd(to_date('20260101', 'yyyymmdd'), -1, 'dd'), 'yyyymmdd')", [("20251231",)]),
        ("select datediff('2020-01-03', '2020-01-01'), datediff('2020-01-03 00:00:00', '2020-01-01 23:00:00', 'hh')", [(2, 25)]),
        ("select date_format('2020-01-02 03:04:05', 'yyyyMMdd HH:mm'), concat(date_add('2020-01-01', 3), '')", [("20200102 03:04", "2020-01-04")]),
        ("select weekofyear('2021-01-01'), dayofweek('2020-05-03'), weekday('2020-05-03 00:00:00'), quarter('2020-05-06')", [(53, 1, 6, 2)]),
        ("select unix_timestamp(from_unixtime(86400)), unix_timestamp('20200102', 'yyyyMMdd') - unix_timestamp('2020-01-01 00:00:00')", [(86400, 86400)]),
        ("select next_day('2021-11-29', 'MO'), next_day('2021-11-29', 'TUE'), next_day('2021-11-28', 'Sunday'), next_day('x', 'MO'), next_day('2021-11-29', "
        "null)", [("2021-12-06", "2021-11-30", "2021-12-05", None, None)]),
        ("select next_day('2021-11-27 10:00:00', 'su'), next_day('2021-11-29', 'XX'), next_day('2021-11-29', 'm')", [("2021-11-28", None, None)]),
        ("select isdate('20200230', 'yyyymmdd'), isdate('20200229', 'yyyymmdd'), add_months('2020-01-31', 1)", [(False, True, "2020-02-29")]),
        # rows out of rows
        ("select k, x from t lateral view explode(split(s, ',')) e as x where k = 'a'", [("a", "abc")]),
        ("select k, x from t lateral view outer explode(split(s, ',')) e as x where k = 'a'", [("a", "abc"), ("a", None)]),
        ("select e.p, x from t lateral view outer posexplode(split(s, ',')) e as p, x where k is not null", [(0, "abc"), (None, None), (0, "x"), (1, "y")]),
        ("select a, b from t lateral view explode(map('q', v)) m as a, b where v = 1", [("q", 1)]),
        # order
        ("select v from t distribute by k sort by v desc limit 2", [(4,), (2,)]),
        ("select sum(v) over (order by k) from t where k = 'a'", [(1,), (3,)]),
        ("select k, v from (select *, row_number() over (partition by k order by rand()) n from t) q where n = 1 and k = 'b'", [("b", -7)]),
        ("select count(*) from (select row_number() over (order by rand()) n from t) q where n < 4", [(3,)]),
    ],
)  # fmt: skip
def test_rows_are_those_of_maxcompute(filled: LocalTables, query: str, expected: list[tuple[Any, ...]]) -> None:
    found = rows(filled, query)
    ordered = " sort by " in query
    assert (found if ordered else sorted(found, key=repr)) == (expected if ordered else sorted(expected, key=repr))


def test_nulls_are_least(filled: LocalTables) -> None:
    assert [one for (one,) in rows(filled, "select d from t order by d")] == [None, -2.5, 1.5, 3.5]
    assert [one for (one,) in rows(filled, "select d from t order by d desc")] == [3.5, 1.5, -2.5, None]


@pytest.mark.parametrize(
    "query, said",
    [
        ("select grouping__id from t", "GROUPING__ID is of a GROUP BY"),
        ("select hash(k) from t", "hash is not among the functions .* md5"),
        ("select from_json(s, 'array<int>') from t", "from_json is not among .* get_json_object"),
        ("select crc32(s) from t", "crc32 is not among"),
        ("select regexp_replace('aaa', 'a', 'b', 2)", "replaces all"),
        ("select date_format('2020-01-02', 'yy/MMM')", "letters that are known"),
        ("select instr('hello', 'l', -1)", "must be 1 or more"),
        ("select x from t lateral view explode(split(s, ',')) e as p, q, x", "gives 1 columns, and 3 are named"),
    ],
)
def test_what_cannot_be_kept_is_an_error(filled: LocalTables, query: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        rows(filled, query)


def test_a_table_made_by_a_query_has_the_types_of_maxcompute(tmp_path: Path) -> None:
    store = LocalTables(str(tmp_path))
    run(
        f"""{_MADE};
        create table u as select sum(v) a, sum(if(v > 1, 1, 0)) b, sum(1) c, count(*) d, avg(v) e, max(v) - 1 f, sum(d) g, unix_timestamp() h,
            getdate() i, 1 j, 1.5 k, 1.5 * 2 l, sum(v) * 0.1 m, case when max(v) > 1 then 1 else 0 end n, cast(0.1 + 0.2 as string) o,
            round(avg(v), 1) p, max(cast('2020-01-01 00:00:00' as timestamp)) q, collect_list(1) r from t;
        create table w as select v, sum(v) over (partition by k) a, row_number() over (order by v) b, decode(k, 'a', 1, 0) c from t;
        create table x (a bigint, b double, c string); insert into x select sum(v), 0.1 + 0.2, 1.5 * 2 from t""",
        lambda project: store,
        "demo",
    )
    kinds = [kind for _, kind, _ in rows(store, "desc u")]
    assert kinds == (
        "bigint bigint bigint bigint double bigint double bigint datetime bigint double double double bigint string double timestamp array<bigint>".split()
    )
    assert rows(store, "select o from u") == [("0.30000000000000004",)]
    assert [kind for _, kind, _ in rows(store, "desc w")] == ["bigint"] * 4
    assert rows(store, "select * from x") == [(0, 0.30000000000000004, "3.0")]


@pytest.fixture
def far_away(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as changed:
        changed.setenv("TZ", "Asia/Shanghai")
        time.tzset()
        yield
    time.tzset()


def test_seconds_are_of_this_time_zone(filled: LocalTables, far_away: None) -> None:
    asked = "select unix_timestamp('2020-01-01 00:00:00'), from_unixtime(0, 'yyyy-MM-dd HH'), unix_timestamp(from_unixtime(7))"
    assert rows(filled, asked) == [(1577808000, "1970-01-01 08", 7)]


@pytest.mark.parametrize(
    "query, said",
    [
        ("select nosuch(k) from t", "sql: there is no function nosuch here"),
        (f"select {'9' * 39} as a", "sql: '9{39}' has 39 digits, and a BIGINT at most 19: write it in quotes"),
        (f"select k from t where k < {'9' * 5000}", "has 5,000 digits, and a BIGINT at most 19"),
        ("select x from t", 'sql: there is no x; there are "k", "v", "d", "s"'),
        ("select y.x from t y", 'sql: there is no x; there are "k", "v", "d", "s"'),
        ("select x from (select 1 a, d from t) y", 'sql: there is no x; there is "'),
        (
            "select array_contains(map('a', 1), 1)",
            r"sql: no function takes this: array_contains\(MAP\(STRING, BIGINT\), .*\); CAST what it is given",
        ),
        ("select count(*) from t where", "sql: "),
        ("select regexp_extract(s, 'b') from t", "'b' has none; put it in parentheses, or write 0 behind it"),
        ("select regexp_extract(s, '(?:a)b') from t", r"has none; put it in parentheses, or write 0 behind it"),
        (r"select regexp_extract(s, '\\(b') from t", r"has none; put it in parentheses, or write 0 behind it"),
        ("select regexp_extract(s, '[(]b', 1) from t", r"has none; put it in parentheses, or write 0 behind it"),
        ("select json_tuple(s, 'a') from t", "json_tuple is not among .*; get_json_object"),
        ("select get_json_object(s, '$.a[*]') from t", "one value on this machine, by a path without"),
    ],
)
def test_errors_show_nothing_of_the_inside(filled: LocalTables, query: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said) as caught:
        rows(filled, query)
    assert not any(word in str(caught.value) for word in ("DuckDB", "Binder", "Catalog", "odps_", "ODPS_", "sqlglot", "<class"))


@pytest.mark.parametrize(
    "value, said",
    [
        (
            "'2020-02-30', null, null, null",
            r"column d: the text '2020-02-30' is no DATETIME; one is like '2020-01-31 12:00:00'",
        ),
        ("null, '2020-02-30', null, null", "column e: the text '2020-02-30' is no DATE"),
        ("null, null, 'x', null", "column i: the text 'x' is no INT"),
        ("null, null, 3000000000, null", "out of range for the destination type INT "),
        ("null, null, null, '12345.6'", r"the text '12345.6' is no DECIMAL\(5,2\)"),
    ],
)
def test_a_value_that_a_column_does_not_take_is_named(tmp_path: Path, value: str, said: str) -> None:
    store = LocalTables(str(tmp_path))
    with pytest.raises(AkrunnerError, match=said) as told:
        run(
            f"create table t (d datetime, e date, i int, m decimal(5,2)); insert into t values ({value})",
            lambda project: store,
            "demo",
        )
    assert "c0" not in str(told.value) and "INT64" not in str(told.value)


def test_partition_columns_have_their_types(tmp_path: Path) -> None:
    store = LocalTables(str(tmp_path))
    run(
        """create table p (a bigint) partitioned by (dt bigint, d date, v varchar(5));
        insert into p partition (dt='02', d='2020-01-03', v='x') values (1);
        insert into p partition (dt, d, v) select 7, '10', cast('2020-01-04' as date), 'y';
        create table q like p""",
        lambda project: store,
        "demo",
    )
    first, second = (1, 2, datetime.date(2020, 1, 3), "x"), (7, 10, datetime.date(2020, 1, 4), "y")
    # '10' < '2' as texts
    assert rows(store, "select * from p where dt > 1 order by dt") == [first, second]
    assert rows(store, "select dt + 1 from p where d > '2020-01-03' and dt = max_pt('p')") == [(11,)]
    assert rows(store, "show partitions p") == [("dt=2/d=2020-01-03/v=x",), ("dt=10/d=2020-01-04/v=y",)]
    for table in ("p", "q"):
        assert [row[1] for row in rows(store, f"desc {table}")] == ["bigint", "bigint", "date", "varchar(5)"]
    said = run("show create table p", lambda project: store, "demo")[0].message
    assert "PARTITIONED BY (dt BIGINT, d DATE, v VARCHAR(5))" in said
    name = TableName.parse("odps://demo/tables/p/dt=010")
    (batch,) = store.read(name, ["v", "d", "dt"])
    assert [str(one) for one in batch.schema.types] == ["string", "date32[day]", "int64"] and batch["dt"].to_pylist() == [10]
    assert store.count(TableName.parse("odps://demo/tables/p/dt=02/d=2020-01-03/v=x")) == 1
    assert rows(store, "read p (dt) partition (dt='010')") == [(10,)]
    assert run("alter table p drop partition (dt < 10)", lambda project: store, "demo")[0].message.startswith("dropped dt=2/")
    for value in ("dt='x', d='2020-01-03', v='x'", "dt=1, d='20200103', v='x'"):
        with pytest.raises(SinkError, match="the partition column d.? is (bigint|date), and .* is none"):
            run(f"alter table p add partition ({value})", lambda project: store, "demo")
    (tmp_path / "demo/p/dt=abc/d=2020-01-01/v=x").mkdir(parents=True)
    with pytest.raises(SourceError, match="dt=abc.* the partition column dt is bigint, and 'abc' is none; rename or remove"):
        rows(store, "select * from p")


def test_partitions_are_dropped_by_a_condition(tmp_path: Path) -> None:
    store = LocalTables(str(tmp_path))

    def said(text: str) -> str:
        return run(text, lambda project: store, "demo")[-1].message

    said(
        """create table p (a bigint) partitioned by (ds string, hh string);
        alter table p add partition (ds='20260101', hh='1') partition (ds='20260102', hh='1') partition (ds='20260103', hh='2')"""
    )
    assert said("alter table p drop if exists partition (ds<'20260102')") == "dropped ds=20260101/hh=1 of demo.p"
    assert said("alter table p drop if exists partition (ds<'20260102')") == "demo.p has no such partition"
    with pytest.raises(SinkError, match="has no partition with ds<'20260102'"):
        said("alter table p drop partition (ds<'20260102')")
    with pytest.raises(ConfigError, match="there is no dx"):
        said("alter table p drop partition (dx<'20260102')")
    assert said("alter table p drop partition (substr(ds, 8)<>'3' and hh in ('1'))") == "dropped ds=20260102/hh=1 of demo.p"
    assert rows(store, "show partitions p") == [("ds=20260103/hh=2",)]


def test_what_found_nothing_to_do_is_no_change(tmp_path: Path) -> None:
    store = LocalTables(str(tmp_path))
    assert run("drop table if exists nope", lambda project: store, "demo")[0].message == "demo.nope is not there"
    with pytest.raises(ConfigError, match="line 2"):
        run("drop table if exists nope;\nselect * from nope", lambda project: store, "demo")
    run(
        "create table p (a bigint) partitioned by (ds string); alter table p add partition (ds='1')",
        lambda project: store,
        "demo",
    )
    for idle in (
        "create table if not exists p (a bigint)",
        "create table if not exists p as select 1 a",
        "alter table p add if not exists partition (ds='1')",
        "alter table p drop if exists partition (ds='2')",
        "alter table p add columns if not exists (a bigint)",
    ):
        with pytest.raises(ConfigError, match="line 2") as told:
            run(f"{idle};\nselect * from nope", lambda project: store, "demo")
        assert not isinstance(told.value, ReadError), idle
    with pytest.raises(ReadError, match=r"line 2.*\(of the statements before it 1 are done\)"):
        run("create table t (a bigint);\nselect * from nope", lambda project: store, "demo")


@pytest.mark.parametrize(
    "text, said",
    [
        ("create view v as select 1", "have no views; CREATE TABLE v AS SELECT .* known are CREATE TABLE"),
        ("create or replace view v as select 1", "have no views"),
        ("create function f as 'a.B' using 'c.jar'", "have no functions"),
        (
            "delete from t where v = 1",
            "DELETE: the tables of this machine are non-transactional, .* INSERT OVERWRITE TABLE t SELECT",
        ),
        (
            "update t set v = 1",
            "UPDATE: .* non-transactional, on which MaxCompute refuses UPDATE, DELETE and MERGE, too; .* INSERT OVERWRITE",
        ),
        ("merge into t using s on t.k = s.k", "MERGE: .* FULL OUTER JOIN s"),
        ("alter table t change column a b bigint", "keeps its name and type; CREATE TABLE new AS SELECT"),
        ("alter table t drop columns (a)", "are added, and not dropped; CREATE TABLE new AS SELECT"),
    ],
)
def test_statements_that_are_not_there_say_what_to_do(filled: LocalTables, text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        run(text, lambda project: filled, "demo")


@pytest.mark.parametrize(
    "pattern",
    ["(a)", "(?:a)(b)", "(?P<n>a)", "(?<n>a)", r"\\(a)", "[(](a)", "[]](a)", r"[\]](a)", "[[:alpha:](](a)", "(?i)(a)"],
)
def test_a_group_of_a_regular_expression_is_seen(pattern: str) -> None:
    assert meaning._has_group(pattern)


@pytest.mark.parametrize(
    "pattern", ["a", "(?:a)b", r"\(b", "[(]b", "[](]b", r"[\](]b", "[^](]b", "[[:alpha:](]b", "(?i)a", "(?i:a)", r"\Q(a)\E"]
)
def test_what_only_looks_like_a_group_is_none(pattern: str) -> None:
    assert not meaning._has_group(pattern)
