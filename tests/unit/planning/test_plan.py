"""How a plan reads: each line, what is cut short, and where there is nothing to say."""

from __future__ import annotations

import dataclasses
import os
import shutil
from typing import Any

import pyarrow as pa
import pytest

from akrunner.planning.plan import FIRST_BATCH, UNREAD, Plan, PlannedColumn
from akrunner.planning.tasks import PlannedTask
from akrunner.trial import Trial

COLUMN = PlannedColumn("a", "int64", "int64, one value", 1200, "NaN")
ALONE = PlannedTask("chief:0", True, (), {}, None)
PLAN = Plan(
    verb="run", engine="local", script="jobs/s.py", entry="main(task_config)", files=(("jobs/s.py", "s.py"),), python="/py", python_version="3.11.7",
    tensorflow="2.20.0", keras="3", requirements=None, source="t.csv", rows=None, columns=(COLUMN,), data_format="examples", split="", tasks=(ALONE,),
    output="none", output_schema="", user_params={}, env={}, script_args=(), limits={"timeout": None, "start_timeout": 60.0}, warnings=(),
)  # fmt: skip


def told(**fields: Any) -> dict[str, str]:
    """Name -> what a line says, of the lines that have one."""
    lines = str(dataclasses.replace(PLAN, **fields)).splitlines()
    return {line[:14].strip().rstrip(":"): line[14:] for line in lines if line[:14].strip().endswith(":")}


def test_the_least_that_a_plan_says() -> None:
    assert str(PLAN).splitlines()[0] == "run on engine local; nothing was started"
    assert told() == {
        "script": "jobs/s.py: main(task_config)", "interpreter": "/py (Python 3.11.7, TensorFlow 2.20.0, Keras 3)",
        "input": "t.csv: rows are counted as they are read, 1 column as examples", "tasks": "1", "TF_CONFIG": "not set: one worker alone",
        "output": "none", "limits": "start_timeout=60.0",
    }  # fmt: skip
    assert repr(PLAN) == str(PLAN), "a notebook shows it as print does"


@pytest.mark.parametrize("rows, said", [(0, "0 rows"), (1, "1 row"), (12345, "12,345 rows")])
def test_rows_that_are_known_are_counted(rows: int, said: str) -> None:
    assert told(rows=rows)["input"] == f"t.csv: {said}, 1 column as examples"


def test_columns_are_a_table_with_what_becomes_of_their_nulls() -> None:
    unknown = PlannedColumn("b", "string", "bytes, one value", None, "there is none")
    heading, one, other = (line.split() for line in str(dataclasses.replace(PLAN, columns=(COLUMN, unknown))).splitlines()[4:7])
    assert heading == ["column", "type", "the", "script", "gets", "nulls", "a", "null", "becomes"]
    assert one == ["a", "int64", "int64,", "one", "value", "1,200", "NaN"] and other[-4:] == ["?", "there", "is", "none"]


def test_the_name_of_a_column_forges_no_line() -> None:
    named = dataclasses.replace(COLUMN, name="a\nproblem: x\x1b[2J")
    text = str(dataclasses.replace(PLAN, columns=(named,)))
    assert "a\\nproblem: x\\x1b[2J" in text and "\nproblem" not in text


@pytest.mark.parametrize(
    "count, more",
    [
        (40, ""),
        (41, "and 1 more column: --dry-run --json has them all"),
        (2040, "and 2,000 more columns: --dry-run --json has them all"),
    ],
)
def test_of_many_columns_the_first_are_shown(count: int, more: str) -> None:
    text = str(dataclasses.replace(PLAN, columns=tuple(dataclasses.replace(COLUMN, name=f"c{i}") for i in range(count))))
    assert "c39" in text and "c40" not in text and (more in text) and (" more column" in text) == bool(more)


def test_the_table_of_columns_fits_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    unread = PlannedColumn("customer_lifetime_value", "list<item: float>", "float32, any number of values", 2, UNREAD)
    plan = dataclasses.replace(PLAN, columns=(COLUMN, unread))
    monkeypatch.setenv("COLUMNS", "80")
    lines = [line for line in str(plan).splitlines() if line.startswith(" ")]
    assert max(map(len, lines)) <= 80 and "list<item: float>" not in str(plan) and "--default" in "".join(lines)
    # where there is no terminal, each column has one line
    monkeypatch.setattr(shutil, "get_terminal_size", lambda fallback: os.terminal_size(fallback))
    assert any(
        "customer_lifetime_value  list<item: float>  float32, any number of values  2" in line
        for line in str(plan).splitlines()
    )
    assert "--default" not in str(PLAN)


def test_files_are_listed_without_the_script_itself() -> None:
    assert "files" not in told()
    assert told(files=(("jobs/s.py", "s.py"), ("/x/helper.py", "lib/helper.py")))["files"] == "lib/helper.py"
    many = tuple((f"/x/{i}", f"{i}.txt") for i in range(43))
    assert told(files=many)["files"].endswith("39.txt and 3 more")


def test_what_is_given_has_a_line_each() -> None:
    said = told(
        requirements="r.txt", split="train 0.8, test 0.2", output="o.csv", output_schema="id bigint", output_format="csv", user_params={"lr": "0.1", "x": "1"},
        env={"A": "b"}, script_args=("--name", "a b"), given=("script: the call",),
    )  # fmt: skip
    wanted = {
        "requirements": "r.txt, installed at the start", "split": "train 0.8, test 0.2", "output": "o.csv: id bigint", "format": "csv", "params": "lr=0.1, x=1",
        "environment": "A=b", "arguments": "--name 'a b'", "given": "script: the call",
    }  # fmt: skip
    assert {name: said[name] for name in wanted} == wanted


@pytest.mark.parametrize("length, shown", [(60, "x" * 60), (61, "x" * 57 + "...")])
def test_a_long_value_is_cut(length: int, shown: str) -> None:
    assert told(user_params={"p": "x" * length})["params"] == f"p={shown}"


@pytest.mark.parametrize(
    "count, shown", [(4, '"0:0", "1:0", "2:0", "3:0"'), (5, '"0:0", "1:0", "2:0", "and 2 more"'), (1200, '"0:0", "1:0", "2:0", "and 1,197 more"')]
)  # fmt: skip
def test_of_many_addresses_the_first_are_shown(count: int, shown: str) -> None:
    config: Any = {"cluster": {"worker": [f"{i}:0" for i in range(count)]}, "task": {"type": "worker", "index": 0}}
    task = dataclasses.replace(ALONE, tf_config=config)
    assert told(tasks=(task,))["TF_CONFIG"].startswith(f'{{"cluster": {{"worker": [{shown}]}}, "task"')
    assert len(config["cluster"]["worker"]) == count, "the plan itself has them all"


def test_warnings_stand_below_the_limits() -> None:
    lines = str(dataclasses.replace(PLAN, warnings=("one", "two"))).splitlines()
    assert lines[-3].startswith("limits:") and lines[-2:] == ["warning: one", "warning: two"]


def test_a_trial_shows_what_the_script_wrote_and_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    written = pa.table({"id": [1, None], "s": ["x", "y"]})
    trial = Trial(5, 2, 1.25, written, "first\nlast\n\n", ("saved_model.pb",), ("it is slow",))
    plan = dataclasses.replace(PLAN, trial=trial, output_schema=FIRST_BATCH)
    lines = str(plan).splitlines()
    assert lines[0].endswith("; nothing was started but the script over the first rows")
    at = lines.index("tried:        5 rows in, 2 rows out, 1.2 s; thrown away")
    assert lines[at + 1] == "decides:      id int64, s string"
    rows = [line.split() for line in lines[at + 2 : -4]]
    assert rows == [["id", "s"], ["1", "x"], ["NULL", "y"]]
    assert lines[-4:] == [
        "exported:     saved_model.pb",
        "warning: it is slow",
        "printed:      first",
        "              last",
    ]


def test_a_trial_decides_no_columns_that_are_declared() -> None:
    trial = Trial(1, 1, 0.1, pa.table({"id": [1]}), "", ())
    assert "decides" not in told(trial=trial, output_schema="id bigint")
    assert "decides" in told(trial=trial, output_schema=FIRST_BATCH)


def test_of_what_a_script_printed_the_last_lines_are_shown() -> None:
    lines = str(dataclasses.replace(PLAN, trial=Trial(1, 0, 0.1, None, "\n".join(map(str, range(100))), ()))).splitlines()
    assert lines[-40] == "printed:      60" and lines[-1].strip() == "99"
