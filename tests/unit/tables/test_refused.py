"""What DuckDB and sqlglot say of a query is said in our words: without their names, and without what they were given in place of the query."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest
import sqlglot

from akrunner.errors import ConfigError, SourceError
from akrunner.tables.refused import plain, told, unparsed


def refused(query: str, *columns: str) -> str:
    """What is said of a query of DuckDB's."""
    with duckdb.connect() as connection, pytest.raises(ConfigError) as error:
        connection.execute("create table t (alpha bigint, beta varchar)")
        with told(columns):
            connection.execute(query).fetchall()
    return str(error.value)


@pytest.mark.parametrize(
    "query, said",
    [
        ("select nope(1)", "sql: there is no function nope here"),
        ("select alpa from t", 'sql: there is no alpa; there is "alpha"'),
        ("select nope.x from t", 'sql: there is no nope; there is "t"'),
        ("select cast('x' as bigint)", "sql: Could not convert string 'x' to BIGINT"),
        ("select strlen(alpha, beta) from t", "sql: no function takes this: strlen(BIGINT, STRING); CAST what it is given"),
    ],
)
def test_what_duckdb_refuses_is_said_without_its_names(query: str, said: str) -> None:
    assert refused(query).startswith(said)


def test_the_columns_of_the_tables_are_named_in_place_of_duckdbs_guesses() -> None:
    assert refused("select nope from t", "alpha", "beta") == 'sql: there is no nope; there are "alpha", "beta"'
    assert refused("select nope from t", "alpha") == 'sql: there is no nope; there is "alpha"'
    assert refused("select t.nope from t", "alpha", "beta") == 'sql: there is no nope; there are "alpha", "beta"'
    many = [f"c{number}" for number in range(53)]
    said = refused("select nope from t", *many)
    assert said.endswith('"c49" and 3 more') and "c50" not in said


@pytest.mark.parametrize(
    "said, words",
    [
        ("Binder Error: odps_whole of ODPS_x", "whole of x"),
        ("Conversion Error: VARCHAR to TIMESTAMP_MS\nLINE 1: select odps_secret\n   ^", "STRING to DATETIME"),
        ("INT64 and BLOB", "BIGINT and BINARY"),
        ("Conversion Error: cannot when casting from source column c12", "cannot"),
        ("Out of range. Use TRY_CAST instead", "Out of range."),
        ("one\ntwo\nthree\nfour", "one two three"),
        ("Not implemented Error: x", "Not implemented Error: x"),
        ("", ""),
    ],
)
def test_types_have_maxcomputes_names_and_the_query_is_not_shown(said: str, words: str) -> None:
    assert plain(said) == words


def test_errors_of_ours_and_an_end_by_the_user_pass_as_they_are() -> None:
    for error in (SourceError("source: gone"), duckdb.InterruptException("stop"), KeyError("a"), KeyboardInterrupt()):
        with pytest.raises(type(error)) as passed:
            with told():
                raise error
        assert passed.value is error


@pytest.mark.parametrize("error", [pa.ArrowInvalid("odd"), OSError(5, "broken")])
def test_what_arrow_and_the_disk_say_is_about_the_query(error: Exception) -> None:
    with pytest.raises(ConfigError, match=r"sql: .*(odd|[Ii]nput/output|broken)"):
        with told():
            raise error


@pytest.mark.parametrize(
    "query, said",
    [
        ("select (1", "Expecting ) (line 1, column 9)"),
        ("select 1\nfrom t where", "something is missing in WHERE (line 2, column 12)"),
    ],
)
def test_what_sqlglot_cannot_read_is_said_with_its_place(query: str, said: str) -> None:
    with pytest.raises(sqlglot.errors.SqlglotError) as error:
        sqlglot.parse_one(query, read="hive", error_level=sqlglot.ErrorLevel.IMMEDIATE)
    assert unparsed(error.value) == said


def test_an_error_without_a_place_is_its_first_line_without_colours() -> None:
    assert unparsed(ValueError("\x1b[4mbad\x1b[0m token\nselect ...")) == "bad token"
    assert unparsed(ValueError("")) == "it cannot be parsed"
