"""What is said of statements that are not run."""

from __future__ import annotations

import pytest

from akrunner.tables import foreseen
from akrunner.tables.statements import split


@pytest.mark.parametrize(
    "text",
    [
        "create table t (x bigint)", "drop table if exists t", "insert into t values (1)", "select * from t", "desc t", "show tables",
        "create table p.a as select * from t", "alter table t add partition (a='1')", "tunnel upload x.csv t", "with a as (select * from t) select * from a",
    ],
)  # fmt: skip
def test_tables_without_a_project_are_refused_before_any_is_looked_at(text: str) -> None:
    [one] = split(text)
    assert "project" in str(foreseen.refused(one, None))
    assert foreseen.refused(one, "p") is None


@pytest.mark.parametrize("project", [None, "p"])
def test_what_is_no_statement_is_refused_and_what_asks_for_tables_is_not(project: "str | None") -> None:
    for text in ("frob x", "set a", "create view v as select 1", "delete from t"):
        assert foreseen.refused(split(text)[0], project) is not None
    for text in (
        "set a=b",
        "use q",
        "insert into q.t values (1)",
        "truncate table q.t",
        "count q.t",
        "tunnel upload x.csv q.t",
    ):
        assert foreseen.refused(split(text)[0], project) is None
