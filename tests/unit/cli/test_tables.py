"""`akrunner tables` over Parquet files that are there: what is listed, shown, asked and written to stdout."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from akrunner.cli import tables
from akrunner.cli.main import main
from akrunner.errors import ConfigError

IRIS = pa.table({"id": [1, 2, 3], "name": ["a", None, "grün"]})


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of the tables, with demo.iris, of three rows, in it."""
    monkeypatch.setenv("AKRUNNER_TABLES", str(tmp_path / "tables"))
    monkeypatch.delenv("AKRUNNER_PROJECT", raising=False)
    lay(tmp_path / "tables", "demo/iris", IRIS)
    return tmp_path / "tables"


def lay(root: Path, place: str, rows: pa.Table) -> None:
    (root / place).mkdir(parents=True)
    pq.write_table(rows, root / place / "part.parquet")


def told(line: str | list[str], capsys: pytest.CaptureFixture[str], code: int = 0) -> Any:
    """Run a command with --json. Returns: its object."""
    words = line.split() if isinstance(line, str) else line
    assert main(["tables", *words, "--json"]) == code
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("line", ["ls", "ls demo", "ls DEMO", "ls --project demo"])
def test_tables_are_listed_with_their_rows(line: str, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = told(line, capsys)
    row = {"uri": "odps://demo/tables/iris", "rows": 3, "columns": 2, "partitioned_by": [], "partitions": 0, "error": ""}
    assert found["place"] == str(root) and found["tables"] == [row]
    assert main(["tables", *line.split()]) == 0
    assert capsys.readouterr().out.split() == ["table", "rows", "columns", "partitions", "odps://demo/tables/iris", "3", "2"]


def test_that_there_are_no_tables_is_said_with_how_to_make_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (root / "empty").mkdir()
    assert main(["tables", "ls", "empty"]) == 0
    assert capsys.readouterr().out.startswith(
        f"the project empty has no tables in {root} (AKRUNNER_TABLES); `akrunner tables put"
    )
    monkeypatch.setenv("AKRUNNER_TABLES", str(tmp_path / "nowhere"))
    assert main(["tables", "ls"]) == 0
    assert capsys.readouterr().out.startswith("there are no tables in ")


def test_a_table_that_cannot_be_read_is_listed_with_its_error_and_the_others_are_too(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (root / "demo" / "broken").mkdir()
    (root / "demo" / "broken" / "x.parquet").write_bytes(b"no parquet")
    (root / "demo" / "no-name").mkdir()
    lay(root, "demo/no-name/deep", IRIS)
    found = {row["uri"]: row for row in told("ls", capsys)["tables"]}
    assert found["odps://demo/tables/iris"]["rows"] == 3
    broken = found["odps://demo/tables/broken"]
    assert broken["rows"] is None and broken["error"]
    assert main(["tables", "ls"]) == 0
    assert f"odps://demo/tables/broken: {broken['error']}" in capsys.readouterr().out


def test_a_table_is_shown_with_its_first_rows(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert told("show demo.iris", capsys)["uri"] == "odps://demo/tables/iris", "as ls has it"
    found = told("show odps://demo/tables/iris --rows 2", capsys)
    assert (found["uri"], found["rows"], found["partitions"]) == ("odps://demo/tables/iris", 3, [])
    assert found["first"] == [{"id": 1, "name": "a"}, {"id": 2, "name": None}]
    assert [(row["column"], row["type"]) for row in found["columns"]] == [("id", "bigint"), ("name", "string")]
    assert main(["tables", "show", "iris", "-p", "demo", "--rows", "0"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "demo.iris: 3 rows, 2 columns", "column  type    comment", "id      bigint", "name    string",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("get demo.iris -", '{"id":1,"name":"a"}\n{"id":2,"name":null}\n{"id":3,"name":"grün"}\n'),
        ("get demo.iris - --columns id", '{"id":1}\n{"id":2}\n{"id":3}\n'),
        (["get", "demo.iris", "-", "--columns", " name , id", "--output-format", "csv"], '"name","id"\n"a",1\n,2\n"grün",3\n'),
        ("get demo.iris?start=1&end=2 - --columns id", '{"id":2}\n'),
    ],
)
def test_rows_go_to_stdout_as_lines(line: Any, text: str, root: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["tables", *(line.split() if isinstance(line, str) else line)]) == 0
    assert capfd.readouterr().out == text


@pytest.mark.slow
def test_statements_tell_their_rows_and_where_they_stand(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (root.parent / "a.sql").write_text("\nSELECT id FROM iris WHERE id > ${LEAST};\nSELECT count(*) AS n FROM iris;\n")
    found = told(["sql", "-p", "demo", "-f", str(root.parent / "a.sql"), "--var", "LEAST=1"], capsys)["results"]
    assert [(one["line"], one["rows"]) for one in found] == [(2, [{"id": 2}, {"id": 3}]), (3, [{"n": 3}])]
    assert main(["tables", "sql", "-p", "demo", "SELECT id FROM iris WHERE id > 5"]) == 0
    assert capsys.readouterr().out.splitlines() == ["id", "(no rows)"]


def test_results_of_statements_before_an_error_are_told(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = told(["sql", "-p", "demo", "SELECT 1 AS a; SELECT * FROM nowhere"], capsys, 2)
    assert [one["rows"] for one in found["results"]] == [[{"a": 1}]] and "nowhere" in found["message"]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("sql", "tables sql: give statements, or --file with a file of them"),
        ("sql SELECT -f a.sql", "tables sql: give statements, or --file"),
        ("sql -f nowhere.sql", "--file: cannot read nowhere.sql: No such file or directory"),
        ("put a.csv", "tables put: give a file and a table"),
        ("show iris", "iris"),
        ("show demo.nowhere", "nowhere"),
        ("drop demo.nowhere", "nowhere"),
        ("get demo.iris o.docx", "o.docx"),
    ],
)
def test_what_is_wrong_is_said(line: str, said: str, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = told(line, capsys, 2)
    assert said in found["message"] and not found["ok"]


def test_a_file_of_statements_is_utf8(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (root.parent / "a.sql").write_bytes("SELECT 'grün'".encode("latin-1"))
    assert "--file: cannot read" in told(["sql", "-p", "demo", "-f", str(root.parent / "a.sql")], capsys, 2)["message"]


def test_a_table_that_need_not_be_there_is_no_error(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert told("drop demo.nowhere --if-exists", capsys)["dropped"] is False
    assert main(["tables", "drop", "demo.nowhere", "--if-exists"]) == 0
    assert capsys.readouterr().out == "demo.nowhere is not there\n"


def test_a_printed_table_has_all_rows_and_long_values_are_cut(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = pa.table({"n": range(50), "text": ["x" * 60, "y" * 61, *["z"] * 48]})
    tables.print_table(rows)
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert len(lines) == 51 and lines[1].endswith("x" * 60) and lines[2].endswith(" " + "y" * 57 + "...") and err == ""
    tables.print_table(rows.slice(0, 0))
    assert capsys.readouterr().out.splitlines()[-1] == "(no rows)"


def test_values_that_json_has_not_are_plain(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lay(root, "demo/odd", pa.table({"day": [datetime.date(2026, 11, 26)], "b": [b"\x00\xff"], "x": [float("nan")]}))
    (row,) = told("show demo.odd", capsys)["first"]
    assert row["day"] == "2026-11-26" and isinstance(row["b"], str)


class _Cloud:
    """A store that is not on this machine."""

    kind, place = "maxcompute", "https://service.odps.example/api"


def test_where_tables_are_is_said_once_and_only_if_it_is_not_here(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tables._say_once.cache_clear()
    tables.say_stores(["t.csv", None, "odps://demo/tables/iris"])
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr(tables, "store_for", lambda project: _Cloud())
    monkeypatch.setattr(tables, "told_of", lambda project, store: f"{project} is in {store.place}")
    tables.say_stores(["t.csv", None, "odps://shop/tables/a", "odps://shop/tables/b"])
    tables.say_asked(["iris"], "shop")
    tables.say_asked([], "other")
    assert capsys.readouterr() == ("", "shop is in https://service.odps.example/api\n")
    tables.say_asked(["iris"], "third")
    assert capsys.readouterr().err == "third is in https://service.odps.example/api\n"
    with pytest.raises(ConfigError, match="^tables ls: of which project of https://service.odps.example/api[?] give one"):
        tables.ls(project=None, of=None, as_json=False)
    tables._say_once.cache_clear()
