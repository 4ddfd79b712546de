"""URLs of systems, and what is said of wrong ones."""

from __future__ import annotations

import pytest

from akrunner.errors import ConfigError, SinkError, SourceError
from akrunner.io import systems
from akrunner.io.systems.base import System, Url, quoted


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://h/d?table=t",
        "postgres://h/d",
        "SQLite:///f.db",
        "duckdb:////a/b.duckdb",
        "delta:///lake/t",
        "delta+s3://b/t?version=3",
        "iceberg://c/ns.t",
    ],
)
def test_what_is_a_system(url: str) -> None:
    assert systems.is_system(url) and hasattr(systems.system_of(url), "open")


@pytest.mark.parametrize("given", ["a.parquet", "s3://b/a.csv", "odps://p/tables/t", None, 3, ["sqlite:///f.db"]])
def test_what_is_none(given: object) -> None:
    assert not systems.is_system(given)


def test_a_path_that_says_table_names_none() -> None:
    assert systems.names_table("sqlite:///f.db?table=t")
    assert not systems.names_table("postgresql://h/d?password_file=/my/table.txt")
    assert systems.names_table("iceberg://c/ns.t") and systems.names_table("delta:///t?version=3")


def test_which_tables_are_in_files_of_this_machine() -> None:
    for url, here in {
        "sqlite:///f.db": True,
        "duckdb:///f.db": True,
        "delta:///t": True,
        "postgresql://h/d": False,
        "delta+s3://b/t": False,
        "iceberg://c/ns.t": False,
    }.items():
        assert systems.system_of(url).in_files(url) is here


def test_one_table_is_one_input() -> None:
    assert systems.one_system(["sqlite:///f.db"], None) == "sqlite:///f.db"
    assert systems.one_system("a.csv", "csv") is None
    with pytest.raises(SourceError, match="there are 2 inputs; .*UNION ALL"):
        systems.one_system(["sqlite:///f.db", "sqlite:///g.db"], None)
    with pytest.raises(SourceError, match="input_format= .* is for files"):
        systems.one_system("sqlite:///f.db", "csv")
    with pytest.raises(
        SourceError, match="is a table in a lakehouse, and there are 2 inputs; one table of a lakehouse is one input$"
    ):
        systems.one_system(["delta:///t", "a.csv"], None)
    with pytest.raises(SourceError, match="the source is a table in a lakehouse"):
        systems.one_system("iceberg://c/ns.t", "csv")
    with pytest.raises(SinkError, match="output_format= .* is for files"):
        systems.check_no_format("sqlite:///f.db?table=t", "csv")


def test_a_url_in_parts_shows_no_password() -> None:
    url = Url.parse("postgresql://me:s3cret@h/d?table=a%20b&password_file=x")
    assert (url.base, url.table) == ("postgresql://me:s3cret@h/d", "a b") and "s3cret" not in url.shown
    url.check(["table", "password_file"])
    with pytest.raises(ConfigError, match="there is no option 'password_file' here .*did you mean 'passfile'") as caught:
        url.check(["table"], ["passfile"])
    assert "s3cret" not in str(caught.value)
    for wrong, words in (("sqlite:///f?table=", "table= is empty"), ("sqlite:///f?table=a&table=b", "stands there twice")):
        with pytest.raises(ConfigError, match=words):
            _ = Url.parse(wrong).table
    assert quoted('a"b') == '"a""b"'


@pytest.mark.parametrize(
    ("url", "words"),
    [
        (
            "mysql://me:s3cret@h/d?table=t",
            r"mysql://me:\*\*\*@h/d\?table=t: of databases akrunner opens postgresql://, .*, no mysql",
        ),
        ("mysql+pymysql://h/d", "no mysql"),
        ("jdbc:mysql://h/d", "no mysql"),
        ("Redshift://h/d", "no redshift"),
        ("postgresql+psycopg2://h/d?table=t", r"write postgresql://, without \+psycopg2"),
        ("jdbc:postgresql://h/d?table=t", "write postgresql://, without jdbc:"),
        ("delta:lake/t", "write delta:///lake/t"),
        ("iceberg:c/ns.t", "write iceberg://c/ns.t"),
        ("postgres:d?table=t", r"write postgres://d\?table=t"),
        ("flightsql:h/d", "write flightsql://h/d"),
        ("snowflake:me@a/d", "write snowflake://me@a/d"),
        ("sqlite:f.db", "write sqlite:///f.db"),
        ("duckdb:f.db?table=a", r"write duckdb:///f.db\?table=a"),
        ("lance:a", "write lance:///a"),
        ("datasets:a", "write datasets:///a"),
    ],
)
def test_another_database_is_not_taken_for_a_file_system(url: str, words: str) -> None:
    with pytest.raises(SourceError, match=f"source: .*{words}"):
        systems.one_system(url, None)
    with pytest.raises(SinkError, match=f"output: .*{words}"):
        systems.check_output(url)


def test_every_system_declares_what_the_protocol_has() -> None:
    wanted = {*System.__annotations__, *(name for name in vars(System) if not name.startswith("_"))}
    assert {"queries", "decimals", "open"} <= wanted
    for scheme, module in systems._MODULES.items():
        assert [name for name in wanted if not hasattr(systems.system_of(f"{scheme}://"), name)] == [], module


def test_no_scheme_is_both_ours_and_unknown() -> None:
    assert sorted(systems._OTHERS & (systems._MODULES.keys() | systems.STREAMS)) == []


def test_what_is_no_database_is_left_to_the_file_systems() -> None:
    assert systems.one_system("foo://h/d", None) is None
    systems.check_output("s3://mysql/a.parquet")
