"""Names of tables a script asks for itself are checked, and the tables are there."""

from __future__ import annotations

from typing import Any

import pytest

from akrunner.errors import ConfigError, SinkError, SourceError
from akrunner.tables.asked import names_of, tables_spec
from akrunner.tables.local import LocalTables
from akrunner.tables.names import TableName
from tests.unit.tables.conftest import made


@pytest.mark.parametrize(
    "given, names",
    [
        ("a", ["a"]),
        (" a, p.b ,,c/dt=1 ", ["a", "p.b", "c/dt=1"]),
        ("", []),
        ([], []),
        (["a,b", " c "], ["a,b", "c"]),
        (("a", "", " "), ["a"]),
    ],
)
def test_names_are_a_list_or_a_text_with_commas(given: Any, names: list[str]) -> None:
    assert names_of("tables", given) == names


@pytest.mark.parametrize("given", [None, 3, {"a": 1}, ["a", 3], [None], b"a"])
def test_what_is_no_names_is_refused_by_its_parameter(given: Any) -> None:
    with pytest.raises(ConfigError, match="output_tables must be names of tables, not "):
        names_of("output_tables", given)


def test_what_a_script_may_read_and_write_is_there(plain: LocalTables) -> None:
    made(plain, "create table t (a bigint) partitioned by (dt string)")
    made(plain, "create table u (a bigint)")
    spec = tables_spec(["t", "odps://demo/tables/u"], "t/dt=1,u", "demo", store=plain)
    assert spec.inputs == ("t", "odps://demo/tables/u") and spec.outputs == ("t/dt=1", "u")
    assert spec.store is plain and spec.project == "demo"
    assert plain.partitions(TableName.parse("t", "demo")) == [], "it was only looked at"


def test_the_project_may_come_from_the_environment(plain: LocalTables, monkeypatch: pytest.MonkeyPatch) -> None:
    made(plain, "create table t (a bigint)")
    monkeypatch.setenv("AKRUNNER_PROJECT", "demo")
    assert tables_spec(["t"], [], store=plain).project == "demo"
    monkeypatch.delenv("AKRUNNER_PROJECT")
    with pytest.raises(ConfigError, match="invalid odps table path 't': it says no project"):
        tables_spec(["t"], [], store=plain)


def test_nothing_that_is_asked_for_is_nothing_that_is_there(plain: LocalTables) -> None:
    spec = tables_spec([], [], store=plain)
    assert (spec.inputs, spec.outputs) == ((), ())


@pytest.mark.parametrize(
    "inputs, outputs, kind, why",
    [
        (["nope"], [], SourceError, "there is no table odps://demo/tables/nope"),
        (["t/dt=9"], [], SourceError, "t/dt=9 does not exist"),
        ([], ["nope"], SinkError, "there is no table odps://demo/tables/nope"),
        ([], ["t"], SinkError, "name one partition of it"),
        (["t"], ["t/x=1"], SinkError, "partitioned by dt, not by x"),
        (["t"], ["a b"], ConfigError, "no name of a table"),
    ],
)
def test_what_is_not_there_is_an_error_of_its_kind(
    plain: LocalTables, inputs: list[str], outputs: list[str], kind: type, why: str
) -> None:
    made(plain, "create table t (a bigint) partitioned by (dt string)")
    with pytest.raises(kind, match=why) as told:
        tables_spec(inputs, outputs, "demo", store=plain)
    assert type(told.value) is kind
