"""Files for MaxCompute's client: statements, one after the other."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest

from akrunner.errors import ConfigError, ReadError, SinkError, SourceError, StatementError, WriteError
from akrunner.tables.local import LocalTables
from akrunner.tables.names import TableName
from akrunner.tables.sql import Queries
from akrunner.tables.statements import Statement, run, split

pytestmark = pytest.mark.slow


def done(store: LocalTables, text: str, **more: Any) -> list[Any]:
    """What each statement said, or its rows."""
    results = run(text, lambda project: store, "demo", **more)
    return [one.message if one.rows is None else one.rows.to_pylist() for one in results]


def test_a_file_is_split_where_its_statements_end() -> None:
    text = """-- a comment; no end
set odps.x=true;; # another; one's
create table t (a string comment 'x;y', `b;c` string); /* a; b */
tunnel upload 'a;b.csv' t -fd ';' ;
PAI -name tensorflow1150
    -Dscript= 'oss://b/x.tar.gz'
    -- -Dleft=out
    # -Dleft=out
    -DuserDefinedParameters="--a=1 --b='x;y'"
    -Dcluster='{"ps": {"count": 1}}' -Dx=a--b;
pai -name y"""
    statements = split(text)
    assert [(one.kind, one.line) for one in statements] == [("set", 2), ("sql", 3), ("tunnel", 4), ("pai", 5), ("pai", 11)]
    assert statements[0].text == "set odps.x=true"
    assert statements[1].text.endswith("`b;c` string)")
    pai = statements[3].text
    assert "left" not in pai and "-Dx=a--b" in pai and "--b='x;y'\"" in pai and "-Dscript= 'oss" in pai
    assert split("") == split(" -- x\n;;") == []
    assert split("select 1") == [Statement("sql", "select 1", 1)]


@pytest.mark.parametrize("text", ["select 1;\nselect 'a", 'select 1;\nselect "a', "select 1;\nselect `a", "select 1;\n/* a"])
def test_what_is_never_closed_is_named_with_its_line(text: str) -> None:
    with pytest.raises(ConfigError, match="line 2: a .* is opened here and never closed"):
        split(text)


def test_tables_are_made_filled_and_looked_at(store: LocalTables, tmp_path: Path) -> None:
    (tmp_path / "iris.txt").write_text("f1\tf2\n1.5\ta;b\n2.5\t\nx\ty\n")
    said = done(
        store,
        f"""drop table if exists iris;
        create table iris (f1 DOUBLE, `F2` String) LIFECYCLE 7;
        tunnel upload {tmp_path}/iris.txt iris -fd '\\t' -h true -dbr true;
        SELECT * FROM demo.iris WHERE f2 == "a;b" or nvl(f2, 'x') = 'x';
        create table p like iris; show tables; desc p; show create table p;
        create table q as select count(*), cast(f1 as string) s, cast(f1 as bigint) b from iris group by f1 order by s;
        select * from q; alter table q rename to r; truncate table r; select count(*) n from r; drop table r""",
    )
    assert said[3] == [{"f1": 1.5, "f2": "a;b"}, {"f1": 2.5, "f2": None}]
    assert said[5] == [{"table": "iris"}, {"table": "p"}]
    assert said[6][0] == {"column": "f1", "type": "double", "comment": ""}
    assert said[7] == "CREATE TABLE p (\n    f1 DOUBLE,\n    f2 STRING\n);"
    # a fraction is cut off, and not rounded
    assert said[9] == [{"_c0": 1, "s": "1.5", "b": 1}, {"_c0": 1, "s": "2.5", "b": 2}]
    assert said[12] == [{"n": 0}] and store.tables("demo") == ["iris", "p"]


def test_a_table_that_is_there_is_not_said_to_be_made(store: LocalTables) -> None:
    said = done(
        store,
        """create table if not exists t (a bigint); create table if not exists t (a bigint); create table if not exists t like t;
        create table if not exists t as select 1 a""",
    )
    assert "created" in said[0] and all("is there already, and stays as it is" in one for one in said[1:])


def test_an_error_does_not_list_all_tables(store: LocalTables) -> None:
    done(store, "; ".join(f"create table table_{number} (a bigint)" for number in range(9)))
    with pytest.raises(
        SourceError, match="did you mean 'table_7' or .* the project demo has table_7, .* and 4 more in "
    ) as told:
        done(store, "select * from table_77")
    assert "table_5" not in str(told.value)


def test_rows_go_to_partitions(store: LocalTables) -> None:
    said = done(
        store,
        """create table t (id bigint, s string) partitioned by (dt string, hh string);
        alter table t add if not exists partition (dt='1', hh="a/b") partition (dt=2,hh='x');
        insert overwrite table t partition (dt='1', hh='a/b') values (1,'x'),(2,null);
        insert into table t partition (dt='9', hh) select id + 0.9, 7, s from t where s is not null;
        insert into t partition (dt, hh) select 5, 'five', '9', 'x';
        insert overwrite table t partition (dt='1', hh='a/b') (s) select s from t where dt = max_pt('t');
        select * from t order by dt, id; show partitions t;
        alter table t drop partition (dt='9'); alter table t drop if exists partition (dt='9'); select count(*) n from t""",
    )
    assert said[6] == [
        {"id": None, "s": "7", "dt": "1", "hh": "a/b"},
        {"id": None, "s": "five", "dt": "1", "hh": "a/b"},
        {"id": 1, "s": "7", "dt": "9", "hh": "x"},
        {"id": 5, "s": "five", "dt": "9", "hh": "x"},
    ]
    assert [one["partition"] for one in said[7]] == ["dt=1/hh=a/b", "dt=2/hh=x", "dt=9/hh=x"]
    assert said[-1] == [{"n": 2}]


def test_a_table_may_be_read_and_replaced_by_one_statement(store: LocalTables) -> None:
    said = done(
        store,
        """create table t (a bigint); insert into t values (1),(2);
        insert overwrite table t select x.a + y.a from t x join t y on x.a = y.a; select * from t order by a""",
    )
    assert said[-1] == [{"a": 2}, {"a": 4}]


def test_functions_and_comparisons_mean_what_they_mean_in_maxcompute(store: LocalTables) -> None:
    said = done(
        store,
        """create table t (a bigint, b string) partitioned by (dt string); insert into t partition (dt=20200101) values (7, '8');
        with x as (select a + 1 a from t) insert into table t partition (dt='2') select a, 'w' from x;
        select a, a, a + 1, count(*) `n n`, cast(b as bigint) from t where dt >= 20200101 group by a, b;
        select datediff(cast('2020-01-03' as datetime), cast('2020-01-01' as datetime), 'hh') hours, datediff('2020-01-03', '2020-01-01') days,
            cast(dateadd(cast('2020-01-31' as datetime), 1, 'mm') as string) later, cast(to_date('20200203', 'yyyymmdd') as string) day,
            to_char(cast('2020-01-31 10:11:12' as datetime), 'yyyymmdd hh:mi:ss') shown, isnull(null) none, concat('a', null) nothing;
        select cast(1.7 as bigint) a, cast('-1.7' as int) b, cast('x' as bigint) c, cast(9007199254740993 as bigint) d, 7 / 2 e, 7 div 2 f""",
    )
    assert said[3] == [{"a": 7, "_c1": 7, "_c2": 8, "n n": 1, "_c4": 8}]
    (dates,) = said[4]
    assert (dates["hours"], dates["days"], dates["later"][:10], dates["day"][:10]) == (48, 2, "2020-02-29", "2020-02-03")
    assert (dates["shown"], dates["none"], dates["nothing"]) == ("20200131 10:11:12", True, None)
    assert said[5] == [{"a": 1, "b": -1, "c": None, "d": 9007199254740993, "e": 3.5, "f": 3}]


@pytest.mark.parametrize(
    "text, kind, why",
    [
        ("frobnicate x", ConfigError, "begins no statement that is known here; known are CREATE TABLE"),
        ("select * from nope", SourceError, "there is no table odps://demo/tables/nope: the project demo has pt, t"),
        ("select nope from t", ConfigError, "nope"),
        ("select * from t where", ConfigError, "sql: .*line 1"),
        ("insert into t values (1, 2)", ConfigError, "takes 1 columns \\(a\\), and the query has 2"),
        ("insert into t values ('x')", ConfigError, "column a: the text 'x' is no BIGINT"),
        ("insert into t partition (b='1') select 1", ConfigError, "partitioned by nothing, not by b"),
        ("insert overwrite table pt select 1, 'x'", ConfigError, "PARTITION \\(p\\)"),
        ("insert into pt partition (p) select 1, null", ConfigError, "no value of the partition column p"),
        ("create table t (a bigint)", SinkError, "exists; CREATE TABLE IF NOT EXISTS"),
        ("drop table nope", SinkError, "there is no table"),
        ("alter table t add partition (p='1')", SinkError, "is not partitioned"),
        ("desc pt partition (p='7')", SourceError, "the table has no partition"),
        ("pai -name x", ConfigError, "akrunner pai"),
        ("set x", ConfigError, "SET key=value"),
        ("tunnel upload nope t", SourceError, "there is no file nope"),
        ("tunnel download t out.csv -limit ten", ConfigError, "-limit 'ten' is no number of rows"),
        (f"tunnel download t out.csv -limit {'9' * 5000}", ConfigError, "is no number of rows, of 18 digits at most"),
        (f"read t {'9' * 5000}", ConfigError, "was expected .18 digits at most"),
        ("tunnel upload nope t -fx ','", ConfigError, "-fx is no option"),
        ("use ../x", ConfigError, "the name of a project was expected"),
        ("use `..`", ConfigError, "'..' is no name of a project"),
        ("alter table t rename to other.t2", ConfigError, "cannot be renamed into another project"),
        ("insert into pt partition (p='x', p='y') select 1", ConfigError, "the partition column p is there twice"),
        ("alter table pt add partition (p='x', P='y')", ConfigError, "the partition column p is there twice"),
        ("insert into pt partition (p=null) select 1", ConfigError, "p cannot be null"),
        ("create table u (a bigint) partitioned by (pt double)", ConfigError, "write pt STRING"),
        ("select * from `t?start=1`", ConfigError, "is a part of a table"),
        ("drop table `odps://demo/tables/pt/p=1`", ConfigError, "is a part of a table"),
        ("tunnel upload nope t?start=1", SinkError, "leave out \\?start= and end="),
        ("select * from t; select * from ../x", ConfigError, "line 1: sql:"),
    ],
)
def test_what_cannot_be_done_is_said(store: LocalTables, text: str, kind: type, why: str) -> None:
    done(store, "create table t (a bigint); create table pt (a bigint) partitioned by (p string)")
    before = sorted(path for path in Path(store.place).rglob("*"))
    with pytest.raises(kind, match=why):
        done(store, text)
    assert sorted(path for path in Path(store.place).rglob("*")) == before


def test_pais_commands_are_handed_back(store: LocalTables) -> None:
    given: list[Statement] = []
    done(store, "create table t (a bigint); PAI -name tensorflow1150 -Dtables=odps://demo/tables/t; desc t", pai=given.append)
    assert [one.text for one in given] == ["PAI -name tensorflow1150 -Dtables=odps://demo/tables/t"]


def test_tunnel_reads_and_writes_files_as_maxcomputes_client(store: LocalTables, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('1,"x,y"\n2,NA\n')
    said = done(
        store,
        f"""create table t (id bigint, s string) partitioned by (p string, q string);
        tunnel upload {tmp_path}/a.csv t/p=1,q='b c' -acp true -ni NA;
        tunnel upload file://{tmp_path}/a.csv demo.t/p=1/q='b c' -ni NA;
        tunnel download t/p=1 {tmp_path}/out.txt -fd '|' -h true -ni nil; select count(*) n from t where q = 'b c'""",
    )
    assert said[-1] == [{"n": 4}]
    assert (tmp_path / "out.txt").read_text() == "id|s\n1|x,y\n2|nil\n1|x,y\n2|nil\n"
    with pytest.raises(SinkError, match="does not exist; ALTER TABLE demo.t ADD PARTITION"):
        done(store, f"tunnel upload {tmp_path}/a.csv t/p=2,q=x")
    (tmp_path / "bad.txt").write_text("1,a\nx,b\n")
    with pytest.raises(SourceError, match='bad.txt: .*"x".*-dbr true'):
        done(store, f"tunnel upload {tmp_path}/bad.txt t/p=1,q='b c'")
    assert done(store, "select count(*) n from t") == [[{"n": 4}]]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM read_text('{0}')",
        "SELECT * FROM t, LATERAL read_text('{0}')",
        "SELECT * FROM t LATERAL VIEW read_text('{0}') q AS a",
        "SELECT * FROM t WHERE a IN (SELECT content FROM read_text('{0}'))",
        "SELECT * FROM read_csv('http://127.0.0.1:1/x')",
        "SELECT * FROM sniff_csv('{0}')",
        "SELECT * FROM parquet_metadata('{0}')",
        "SELECT * FROM duckdb_settings()",
        "SELECT * FROM query('SELECT 1')",
        "INSERT INTO t SELECT 1 FROM read_blob('{0}')",
        "CREATE TABLE u AS SELECT * FROM read_json('{0}')",
        "SELECT * FROM `{0}`, (WITH `{0}` AS (SELECT 1) SELECT * FROM `{0}`) q",
        "SELECT * FROM '{0}'",
    ],
)
def test_sql_reads_tables_and_no_files(store: LocalTables, tmp_path: Path, query: str) -> None:
    (tmp_path / "x.csv").write_text("secret\n1\n")
    done(store, "create table t (a bigint)")
    with pytest.raises(ConfigError, match="gives rows; SQL reads tables|is no name of a table|invalid odps table path"):
        done(store, query.format(tmp_path / "x.csv"))
    assert store.tables("demo") == ["t"] and not store.count(TableName.parse("demo.t"))


def test_a_query_opens_the_files_of_its_tables_alone(
    store: LocalTables, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done(store, "create table t (a bigint) partitioned by (pt string); insert into t partition (pt) values (1, 'x'), (2, 'y')")
    # the directory for what does not fit into memory is one that DuckDB may read
    probe = tmp_path / "probe"
    probe.write_text("secret")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with Queries(lambda project: store, "demo") as queries:
        assert queries.rows("SELECT a FROM t ORDER BY a").read_all().to_pydict() == {"a": [1, 2]}
        for text in (f"SELECT * FROM read_text('{probe}')", "SET enable_external_access = true", "INSTALL httpfs"):
            with pytest.raises(ConfigError, match="sql: .*(disabled|locked)"):
                queries.execute(text)


def test_a_download_replaces_a_file_only_where_that_is_said(store: LocalTables, tmp_path: Path) -> None:
    done(store, "create table t (a bigint); insert into t values (1)")
    for name in ("out.csv", "out.jsonl"):
        file = tmp_path / name
        file.write_text("kept")
        with pytest.raises(SinkError, match=f"{name} exists; .*--overwrite"):
            done(store, f"tunnel download t {file}")
        assert file.read_text() == "kept"
        done(store, f"tunnel download --overwrite t {file}")
        assert "1" in file.read_text()
        done(store, f"tunnel download t {file} -ow true")
        with pytest.raises(SinkError, match="exists"):
            done(store, f"tunnel download t {file} -ow false")
        with pytest.raises(SinkError, match=f"there is no directory {tmp_path}/none"):
            done(store, f"tunnel download t {tmp_path}/none/{name}")
    assert sorted(one.name for one in tmp_path.iterdir() if one.is_file()) == ["out.csv", "out.jsonl"]


@pytest.mark.parametrize(
    "text, kind, number",
    [
        ("create table u (a bigint); select * from nope", ReadError, 2),
        ("set a=b; create table u (a bigint); create table u (a bigint); drop table u", StatementError, 3),
        ("select * from t; show tables; drop table nope", SinkError, 3),
        ("with x as (select 1 a) select * from x; drop table nope", SinkError, 2),
        ("( select * from t); drop table nope", SinkError, 2),
        ("with x as (select 1 a) insert into t select a from x; drop table nope", StatementError, 2),
        ("with x as (select 1 a) from x insert into t select a; drop table nope", StatementError, 2),
        ("drop table t; selct 1", StatementError, 2),
        ("select * from nope", SourceError, 1),
    ],
)
def test_a_failure_behind_what_was_done_does_not_say_that_nothing_was(
    store: LocalTables, text: str, kind: type, number: int
) -> None:
    done(store, "create table t (a bigint)")
    with pytest.raises(kind) as told:
        done(store, text)
    assert told.value.statement == number
    assert ("line 1: " in str(told.value)) == (number > 1)


def test_text_that_is_a_number_is_cut_as_a_number_is(store: LocalTables) -> None:
    done(store, "create table t (a bigint, b int); create table s (x string)")
    done(store, "insert into s values ('1.5'), ('-2.7'), (null), (' 9223372036854775807 '), ('2e3')")
    done(store, "insert into t select x, null from s; insert into t (b) select 1.9; insert into t (b) values ('1.9')")
    assert [row["a"] for row in done(store, "select a from t where b is null")[0]] == [1, -2, None, 2**63 - 1, 2000]
    assert [row["b"] for row in done(store, "select b from t where b is not null")[0]] == [1, 1]
    for text in ("abc", "", "9223372036854775808"):
        with pytest.raises(ConfigError, match="column a: the text .* is no BIGINT"):
            done(store, f"insert into t (a) values ('{text}')")


def test_what_is_uploaded_lies_in_the_current_directory_or_beside_the_statements(
    store: LocalTables, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, folder in enumerate(("here", "beside")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "both.csv").write_text(f"{number}\n")
    (tmp_path / "beside" / "one.csv").write_text("2\n")
    monkeypatch.chdir(tmp_path / "here")
    folder = str(tmp_path / "beside")
    done(store, "create table t (a bigint); tunnel upload both.csv t; tunnel upload one.csv t", folder=folder)
    assert done(store, "select a from t order by a") == [[{"a": 0}, {"a": 2}]]
    with pytest.raises(SourceError, match="no file non.csv, neither .*/here/non.csv nor .*/beside/non.csv"):
        done(store, "tunnel upload non.csv t", folder=folder)


def test_columns_are_chosen_by_a_pattern(store: LocalTables) -> None:
    """As every MaxCompute script copies a table without its partition column."""
    done(store, "create table t (id string, vec string, ds2 bigint) partitioned by (ds string); create table u like t")
    done(store, "insert into t partition (ds='1') values ('a', 'x', 1)")
    done(store, "insert overwrite table u partition (ds='1') select `(ds)?+.+` from t where ds=1")
    assert done(store, "select u.`(ds|vec)?+.+`, 1 n, T.`V.*` from u join t on u.id=t.id") == [
        [{"id": "a", "ds2": 1, "n": 1, "vec": "x"}]
    ]
    for text, words in (
        ("select `(ds` from t", "no pattern of columns"),
        (
            "select `x.+` from t",
            r"`x\.\+`, which stands for the columns whose names fit, fits none of id, vec, ds2, ds; write their names",
        ),
        ("select `(ds)?+.+` from (select * from t) q", r"is known over tables, and not over a subquery; write their names"),
        ("with c as (select * from t) select `(ds)?+.+` from c", "and not over a subquery"),
    ):
        with pytest.raises(ConfigError, match=words) as told:
            done(store, text)
        assert "Binder" not in str(told.value)
    assert done(store, "select `f(x)` from (select id as `f(x)` from t) q") == [[{"f(x)": "a"}]]


def test_one_source_for_several_inserts(store: LocalTables) -> None:
    done(
        store,
        "create table s (id bigint, k string); insert into s values (1, 'a'), (2, 'b'); create table t (id bigint) partitioned by (p string)",
    )
    text = (
        "from (select id, k from s where id > 0) q insert overwrite table t partition (p='1') select id where k = 'a' "
        "insert into t partition (p='2') select max(id) group by k order by 1 limit 1"
    )
    assert done(store, text) == ["wrote 1 row to demo.t; added 1 row to demo.t"]
    assert done(store, "select * from t order by p") == [[{"id": 1, "p": "1"}, {"id": 1, "p": "2"}]]
    done(
        store,
        "with a as (select * from s) from a insert into t partition (p='3') select id insert into t partition (p='4') select id",
    )
    assert done(store, "select count(*) n from t where p > '2'") == [[{"n": 4}]]
    with pytest.raises(ConfigError, match="no table"):
        done(store, "from s insert overwrite table t partition (p='5') select id insert into nope select id")
    assert done(store, "select count(*) n from t where p = '5'") == [[{"n": 0}]]
    for twice in ("insert into t partition (p='1') select id", "insert into t partition (p) select id, '1'"):
        with pytest.raises(ConfigError, match="demo/tables/t/p=1 is written by several INSERTs of one statement"):
            done(store, f"from s insert overwrite table t partition (p='1') select id {twice}")
    with pytest.raises(ConfigError, match="INSERT was expected"):
        done(store, "from s select id")


def test_several_inserts_read_what_was_there_before_all_of_them(store: LocalTables) -> None:
    done(
        store,
        "create table t (x bigint); insert into t values (1), (2), (-3); create table bad like t; create table last like t",
    )
    split_up = "insert overwrite table t select x where x > 0 insert overwrite table bad select x where x < 0"
    assert done(store, f"from t {split_up} insert into last select count(*) where x in (select x from bad)") == [
        "wrote 2 rows to demo.t; wrote 1 row to demo.bad; added 1 row to demo.last"
    ]
    assert done(store, "select x from t order by x; select x from bad; select x from last") == [
        [{"x": 1}, {"x": 2}],
        [{"x": -3}],
        [{"x": 0}],
    ]


def test_columns_are_added_and_what_means_nothing_here_is_accepted(store: LocalTables) -> None:
    done(store, "create table t (a bigint) partitioned by (p string); insert into t partition (p='1') values (1)")
    done(
        store,
        "alter table t add columns (b string comment 'x', c array<bigint>); alter table t add columns if not exists (b string)",
    )
    done(store, "insert into t partition (p='1') values (2, 'y', array(3))")
    assert done(store, "read t (a, b) 5") == [[{"a": 1, "b": None}, {"a": 2, "b": "y"}]]
    assert done(store, "count t; count t partition (p='1')") == [[{"_c0": 2}]] * 2
    assert done(store, "select b from t where c[0] = 3") == [[{"b": "y"}]]
    for text, words in (
        ("alter table t add columns (P string)", "called 'p'"),
        ("alter table t add columns (d bigint not null)", "cannot be NOT NULL"),
        ("alter table nope add columns (d bigint)", "no table"),
        ("alter table t partition (p='2') touch", "does not exist"),
        ("alter table t partition (p='1') rename to partition (p='2')", "a partition can be touched"),
        ("merge into t using s on 1=1 when matched then delete", "transactional"),
        ("delete from t", "DELETE: the tables of this machine are non-transactional"),
    ):
        with pytest.raises(ConfigError, match=words):
            done(store, text)
    harmless = "disable lifecycle; alter table t changeowner to 'x'; alter table t merge smallfiles; alter table t set tblproperties ('a'='b')"
    done(store, f"alter table t {harmless}; analyze table t partition (p='1') compute statistics")
    assert store.count(TableName.parse("demo.t")) == 2


@pytest.mark.parametrize(
    "sql, value",
    [
        ("keyvalue('a:1;b:2', 'b')", "2"),
        ("keyvalue('a=1,ab=2', ',', '=', 'ab')", "2"),
        ("keyvalue('a:1', 'b')", None),
        ("datepart(cast('2020-01-05 01:00:00' as datetime), 'yyyy')", 2020),
        ("to_char(datetrunc('2020-01-05 01:00:00', 'mm'), 'yyyymmdd')", "20200101"),
        ("to_char(lastday('2020-02-05 00:00:00'), 'yyyymmdd')", "20200229"),
        ("weekday('2020-01-05 00:00:00')", 6),
        ("hour('2020-01-02 03:04:05') * 100 + minute('2020-01-02 03:04:05')", 304),
        ("find_in_set('b', 'a,b') + find_in_set('c', 'a,b')", 2),
        ("nvl(find_in_set(null, 'a'), -1) + nvl(find_in_set('a', null), -1)", -2),
        ("concat(substring_index('a.b.c', '.', 2), substring_index('a.b.c', '.', -1))", "a.bc"),
        (
            "concat('(', substring_index('a.b', '.', 0), substring_index('ab', '', 1), substring_index('c.d', '.', -5), ')')",
            "(c.d)",
        ),
        ("substring_index(null, '.', 0)", None),
        ("lengthb('甲')", 3),
    ],
)
def test_functions_of_maxcompute(store: LocalTables, sql: str, value: object) -> None:
    assert done(store, f"select {sql} v") == [[{"v": value}]]


def test_the_place_of_an_element_has_its_tables_name(store: LocalTables) -> None:
    done(store, "create table t (n bigint); insert into t values (1)")
    text = "select e.p, e.v, t.n from t lateral view posexplode(split('a,b', ',')) e as p, v order by e.p"
    assert done(store, text) == [[{"p": 0, "v": "a", "n": 1}, {"p": 1, "v": "b", "n": 1}]]


def test_a_table_cannot_be_made_on_a_full_disk(store: LocalTables, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*given: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(store, "write_sql", full)
    with pytest.raises(WriteError, match="cannot write t: the disk is full"):
        done(store, "create table t (a bigint)")
    assert not store.exists(TableName.parse("demo.t"))


def test_a_partition_is_named_by_a_constant(store: LocalTables) -> None:
    done(store, "create table t (v bigint) partitioned by (k bigint, d date)")
    said = done(
        store,
        """insert into t partition (k=-6, d=date '2026-01-03') values (1);
        alter table t add partition (k=-7, d='2026-01-04');
        alter table t add partition (k=+8, d='2026-01-04');
        alter table t drop partition (k=-7, d='2026-01-04');
        select v from t where k = -6""",
    )
    assert said[-1] == [{"v": 1}] and "k=-7" in said[1] and "k=8" in said[2]
    for spec in ("k=cast('4' as bigint), d='2026-01-01'", "k=1 + 1, d='2026-01-01'"):
        with pytest.raises(
            ConfigError, match="the value of the partition column k is a constant: a number, or a text in quotes"
        ):
            done(store, f"alter table t add partition ({spec})")


def test_a_partition_that_is_not_there_is_not_emptied(store: LocalTables) -> None:
    done(store, "create table t (v bigint) partitioned by (k bigint); insert into t partition (k=1) values (1)")
    with pytest.raises(SinkError, match="truncate: demo.t has no partition k=2"):
        done(store, "truncate table t partition (k=2)")
    with pytest.raises(SourceError, match="does not exist: the table has the partitions k=1"):
        done(store, "alter table t touch partition (k=2)")
    assert done(store, "truncate table t partition (k=1); select v from t") == ["emptied k=1 of demo.t", []]
