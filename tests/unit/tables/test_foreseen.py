"""What is said of statements that are not run: what running them says, and never more."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest

from akrunner.errors import AkrunnerError
from akrunner.tables import foreseen, statements
from akrunner.tables.chosen import store_for
from akrunner.tables.local import LocalTables
from akrunner.tables.statements import split
from akrunner.tables.store import TableStore
from tests.unit.tables.conftest import Laid

SETUP = """create table t (id bigint, name string) partitioned by (pt string);
create table n (id bigint, v double, s string);
create table k (x bigint) partitioned by (dt bigint, hh string);
create table big (id bigint, s string);
insert into t partition (pt='1') values (1, 'a'), (2, 'b');
insert into n values (1, 0.5, 'x'), (2, 1.5, 'y');
insert into k partition (dt=2, hh='a') values (7);
insert into big select col, 'z' from (select 1) q lateral view explode(sequence(1, 3000)) e as col"""
#: statements the last of which, and no other, is refused
REFUSED = [
    "truncate table t partition (pt='x')",
    "alter table t drop partition (pt='x')",
    "alter table t drop partition (pt='1'); truncate table t partition (pt='1')",
    "alter table t add partition (pt='1')",
    "alter table k add partition (dt=2)",
    "alter table k drop partition (dt > 1); alter table k drop partition (dt > 1)",
    "insert into k partition (dt='02', hh='a') values (1); alter table k drop partition (dt=2); count k partition (dt=2)",
    "insert overwrite table t partition (dt='1') select id, name from t",
    "insert overwrite table t select id, s from n",
    "insert overwrite table t partition (pt) select id, s, 'q' from n; truncate table t partition (pt='r')",
    "insert into n values ('abc', 1, 'x')",
    "insert into big select id, s from n; select nope from big",
    "tunnel upload missing.csv n",
    "tunnel upload rows.csv missing",
    "tunnel upload rows.csv t/pt=7",
    "tunnel upload rows.csv n",
    "tunnel download n rows.csv",
    "tunnel download n out.csv; tunnel upload out.csv missing",
    "tunnel download n out.csv; tunnel upload missing.csv n",
    "select nope from n",
    "create table m (a bigint); create table m (a bigint)",
    "create table m as select id, s from n; drop table n; select v from m",
    "create table m as select id, count(*) c from big group by id; alter table m add columns (q string); select w from m",
    "drop table n; select * from n",
    "drop table n; drop table if exists n; drop table n",
    "alter table n rename to m; insert into n values (1, 1, 'a')",
    "alter table n rename to t",
    "alter table n add columns (v string)",
    "use q; select * from n",
    "select * from t where pt = max_pt('t'); truncate table t; select max_pt('t')",
]  # fmt: skip
ACCEPTED = [
    "alter table t drop if exists partition (pt='x'); alter table t add partition (pt='3'); truncate table t partition (pt='3')",
    "insert overwrite table t partition (pt) select id, s, s from big; truncate table t partition (pt='z')",
    "insert overwrite table k partition (dt, hh) select id, id % 20, 'x' from big; alter table k drop partition (dt=17); select max_pt('k')",
    "tunnel upload rows.csv t/pt=7 -acp true; alter table t drop partition (pt='7')",
    "tunnel download n out.csv; tunnel upload out.csv n; count n",
    "create table m as select id, s from big; insert into m select id, s from big; count m; read m 3; desc m; drop table m",
    "create table m like t; drop table t; alter table m rename to t; insert into t partition (pt='9') select id, s from n; read t partition (pt='9')",
    "alter table n add columns (z string); insert into n values (1, 2, 'x', 'z'); insert into big select id, z from n where z is null",
    "from n insert overwrite table t partition (pt='5') select id, s insert into n select id, v, s; select * from t where pt = '5'",
    "drop table n; create table n (a string); insert into n values ('q'); use q; create table n (a bigint); use p; select a from q.n",
    "insert overwrite table n select n.* from n; truncate table big; select s from big; alter table t touch partition (pt='1')",
]  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path, laid: Laid, monkeypatch: pytest.MonkeyPatch) -> Path:
    laid(SETUP, "p")
    (tmp_path / "rows.csv").write_text("1,a\n2,b\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _local(project: str) -> TableStore:
    return store_for(project)


def refused(text: str, project: str | None, store: Callable[[str], TableStore] = _local) -> list[AkrunnerError | None]:
    rehearsal = foreseen.Rehearsal(store, project)
    return [rehearsal.problem(one) for one in split(text)]


@pytest.mark.slow
def test_what_a_run_would_refuse(folder: Path) -> None:
    for text in REFUSED:
        before = sorted(folder.rglob("*"))
        *others, last = refused(text, "p")
        assert last is not None and not any(others), (text, others, last)
        assert sorted(folder.rglob("*")) == before


@pytest.mark.slow
@pytest.mark.parametrize("text", ACCEPTED)
def test_what_a_run_would_take(folder: Path, text: str) -> None:
    assert not any(refused(text, "p"))
    assert len(statements.run(text, _local, "p")) == len(split(text))


@pytest.mark.slow
@pytest.mark.parametrize("text", REFUSED[2::5])
def test_it_is_the_run_that_refuses_it(folder: Path, text: str) -> None:
    with pytest.raises(AkrunnerError) as run:
        statements.run(text, _local, "p")
    assert run.value.statement == len(split(text))


@pytest.mark.slow
def test_what_hangs_on_a_statement_that_is_wrong_is_not_refused_for_it(folder: Path) -> None:
    found = refused("create table m as select s.* from missing s; insert into n select a, b, c from m; select nope from n", "p")
    assert [one is not None for one in found] == [True, False, True]
    assert [one is not None for one in refused("create table m (a frob); drop table m; select id from m; drop table o", "p")] == [
        True, False, False, True,
    ]  # fmt: skip


def test_a_job_writes_files_and_the_tables_it_names(folder: Path) -> None:
    rehearsal = foreseen.Rehearsal(_local, "p")
    rehearsal.job(["t/pt=8", "missing"], "p")
    for text in (
        "tunnel upload made.csv n",
        "alter table t drop partition (pt='8')",
        "count t partition (pt='8')",
        "drop table missing",
    ):
        assert rehearsal.problem(split(text)[0]) is None, text
    assert rehearsal.problem(split("tunnel upload made.csv n")[0]) is None
    assert rehearsal.unchecked == "the file made.csv: a script runs before it, which may make or change it"
    for text in ("tunnel download n rows.csv", "tunnel download t rows.csv", "select nope from t"):
        assert rehearsal.problem(split(text)[0]) is not None and not rehearsal.unchecked, text
    assert rehearsal.problem(split("tunnel download n rows.csv -ow true")[0]) is None and not rehearsal.unchecked


def test_programs_between_statements_take_files_away(folder: Path) -> None:
    rehearsal = foreseen.Rehearsal(_local, "p", files=True)
    for text in ("tunnel download n rows.csv", "tunnel upload made.csv n"):
        assert rehearsal.problem(split(text)[0]) is None and "programs run before it" in rehearsal.unchecked, text
    assert rehearsal.problem(split("tunnel download n other.csv")[0]) is None and not rehearsal.unchecked


def test_a_job_makes_none_of_the_tables_it_does_not_name(folder: Path) -> None:
    rehearsal = foreseen.Rehearsal(_local, "p")
    rehearsal.job(["t/pt=8"], "p")
    assert rehearsal.problem(split("tunnel upload made.csv away")[0]) is not None


def test_a_store_of_others_is_never_asked_to_change_anything() -> None:
    def store(project: str) -> TableStore:
        return cast(TableStore, object())

    for project in (None, "p"):
        assert not any(refused("drop table p.t; insert into p.t values (1); select * from p.t", project, store))
        assert "there is no file x.csv" in str(refused("tunnel upload x.csv p.t", project, store)[0])


@pytest.mark.parametrize(
    "text",
    [
        "create table t (x bigint)", "drop table if exists t", "insert into t values (1)", "select * from t", "desc t", "show tables",
        "create table p.a as select * from t", "alter table t add partition (a='1')", "tunnel upload x.csv t", "with a as (select * from t) select * from a",
        "frob x", "set a", "create view v as select 1", "delete from t",
    ],
)  # fmt: skip
def test_tables_without_a_project_and_what_is_no_statement_are_refused(text: str, store: LocalTables) -> None:
    assert refused(text, None, lambda project: store)[0] is not None
