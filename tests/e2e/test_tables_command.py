"""`akrunner tables`, and tables as input and output of jobs, as a person uses them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import akrunner
from akrunner.cli.main import main
from tests.conftest import Script

pytestmark = pytest.mark.slow

Command = Callable[..., tuple[int, str, str]]
DOUBLES = """
def main(task_config):
    for batch in task_config.batches(2):
        task_config.output_writer.write_batch({"id": batch["id"], "p": batch["x"] * 2})
"""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, leaves_nothing: Path) -> Path:
    monkeypatch.setenv("AKRUNNER_TABLES", str(tmp_path / "tables"))
    monkeypatch.setenv("AKRUNNER_PROJECT", "demo")
    return tmp_path / "tables"


@pytest.fixture
def command(root: Path, capfd: pytest.CaptureFixture[str]) -> Command:
    """Run a command line in this process: its exit code, stdout and stderr."""

    def run(*arguments: str) -> tuple[int, str, str]:
        code = main(arguments)
        return code, *capfd.readouterr()

    return run


@pytest.fixture
def told(command: Command) -> Callable[..., Any]:
    """What a command says to machines."""

    def run(*arguments: str) -> Any:
        code, out, _ = command(*arguments, "--json")
        body = json.loads(out)
        assert body["exit_code"] == code and body["ok"] == (code == 0)
        return body

    return run


def test_a_job_from_table_to_table(
    root: Path, command: Command, told: Callable[..., Any], script: Script, tmp_path: Path
) -> None:
    (tmp_path / "in.csv").write_text("id,x\n1,0.5\n2,1.5\n3,2.5\n")
    assert "the project demo has no tables in" in command("tables", "ls")[1]
    put = command("tables", "put", str(tmp_path / "in.csv"), "odps://demo/tables/t")
    assert put[0] == 0 and "CREATE TABLE demo.t" in put[1] and "added 3 rows" in put[1]
    job = [
        "run",
        script(DOUBLES),
        "-i",
        "odps://demo/tables/t",
        "--output-schema",
        "id bigint, p double",
        "--data-format",
        "columns",
    ]
    job += ["-o", "odps://demo/tables/out/pt=a", "--num-workers", "2", "-q"]
    missing = command(*job)
    assert missing[0] == 2
    sql = missing[2].split('akrunner tables sql "')[1].split('"')[0]
    assert sql == "CREATE TABLE demo.out (id BIGINT, p DOUBLE) PARTITIONED BY (pt STRING);"
    assert command("tables", "sql", sql)[0] == 0
    for more in ([], [], ["--overwrite"]):
        assert command(*job, *more)[2] == ""
    assert told("tables", "show", "out")["first"] == [
        {"id": 1, "p": 1.0, "pt": "a"},
        {"id": 3, "p": 5.0, "pt": "a"},
        {"id": 2, "p": 3.0, "pt": "a"},
    ]
    failed = script(
        "def main(c):\n    c.output_writer.write_batch({'id': [1], 'p': [1.0]})\n    raise ValueError('no')\n", "fails.py"
    )
    with pytest.raises(akrunner.ScriptFailedError):
        akrunner.run(
            failed,
            "odps://demo/tables/t/",
            output_schema="id bigint, p double",
            output="odps://demo/tables/out/pt=a",
            overwrite=True,
        )
    assert told("tables", "ls")["tables"][0]["rows"] == 3
    assert not list(root.rglob("*.partial"))
    assert [json.loads(line)["id"] for line in command("tables", "get", "out?start=1", "-")[1].splitlines()] == [3, 2]


def test_statements_say_what_they_did(command: Command, told: Callable[..., Any], tmp_path: Path) -> None:
    text = "create table t (a bigint, b string); insert into t values (1, 'x[red]'), (2, null); select * from t where a > 0"
    (tmp_path / "job.sql").write_text(text)
    done = command("tables", "sql", "-f", str(tmp_path / "job.sql"))
    assert done[0] == 0, done[2]
    assert [line.split() for line in done[1].splitlines()] == [
        ["created", "demo.t"],
        ["added", "2", "rows", "to", "demo.t"],
        ["a", "b"],
        ["1", "x[red]"],
        ["2", "NULL"],
    ]
    results = told("tables", "sql", "desc t; select b from t")["results"]
    assert results[0]["message"] == "demo.t: 2 rows, 2 columns" and results[1]["rows"] == [{"b": "x[red]"}, {"b": None}]
    wrong = command("tables", "sql", "drop table t; drop table t; create table u (a bigint)")
    assert wrong[0] == 4 and "StatementError: line 1: there is no table odps://demo/tables/t" in wrong[2]
    assert told("tables", "ls")["tables"] == []
    assert told("tables", "drop", "t", "--if-exists")["dropped"] is False
    assert told("tables", "put", "nope.csv", "t")["error"] == "SourceError"
    assert told("tables", "show", "odps://demo/t")["message"].startswith("invalid odps table path")
    assert command("tables", "put", "t")[0] == 2
    command("tables", "sql", "create table v (a bigint, b string, c string); insert into v values (1, ':smile: [/]', '[red]x')")
    assert 'there is no nope; there are "a", "b", "c"' in command("tables", "sql", "select nope from v")[2]
    assert "1  :smile: [/]  [red]x" in command("tables", "show", "v")[1]
    assert "no project demmo" in (wrong := command("tables", "ls", "demmo"))[2] and wrong[0] == 2


def test_a_file_whose_name_says_no_format_gets_the_one_that_is_said(command: Command, tmp_path: Path) -> None:
    command("tables", "sql", "create table t (a bigint); insert into t values (7)")
    file = str(tmp_path / "out.dat")
    assert "give output_format= (--output-format)" in command("tables", "get", "t", file)[2]
    assert command("tables", "get", "t", file, "--output-format", "csv")[0] == 0
    assert Path(file).read_text().split() == ['"a"', "7"]
    assert command("tables", "get", "t", "-", "--output-format", "csv")[1].split() == ['"a"', "7"]
    assert command("tables", "get", "t", "-")[1] == '{"a":7}\n'


def test_what_is_called_as_no_table_can_be_is_listed(
    root: Path, command: Command, told: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    command("tables", "sql", "create table t (a bigint)")
    (root / "demo" / "my-backup").mkdir()
    (root / "demo.old" / "t").mkdir(parents=True)
    monkeypatch.delenv("AKRUNNER_PROJECT")
    listed = told("tables", "ls")
    assert [row["uri"] for row in listed["tables"]] == ["demo/my-backup", "odps://demo/tables/t", "demo.old"]
    code, out, _ = command("tables", "ls", "demo")
    assert code == 0 and "'my-backup' is no name of a table" in out and "odps://demo/tables/t" in out
