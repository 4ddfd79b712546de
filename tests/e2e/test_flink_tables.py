"""Tables of a user's own PyFlink program: in, through scripts, and out again; on a real cluster."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from akrunner.engines.flink.host.cluster import Cluster, flink_home
from akrunner.engines.flink.host.java import java_home
from tests import models
from tests.conftest import FLINK, PROGRAM, need_flink, nothing_is_left

ROOT = Path(__file__).parents[2]
SCRIPTS = {
    "doubles": """
        def main(task_config):
            for batch in task_config.batches(64):
                task_config.output_writer.write_batch({"a": batch["a"], "x": batch["x"] * 2})
        """,
    "sees": """
        def main(task_config):
            for batch in task_config.batches(64):
                for name, values in batch.items():
                    seen = repr(values.tolist() if hasattr(values, "tolist") else values)
                    task_config.output_writer.write_batch({"name": [name], "value": [seen]})
        """,
    "writes": """
        import numpy as np

        def main(task_config):
            task_config.output_writer.write_batch({
                "b": [True], "i8": [1], "i16": [2], "i32": [3], "i64": [4], "f": [1.5], "d": [2.5], "s": ["h\\u00e4\\u00df"], "y": [b"\\0\\xff"],
                "ts": [1700000000123456], "dt": [19000], "a": np.array([[1.5, 2.5]], np.float32), "u": np.array([[1, 255]], np.uint8),
                "t": np.array([["x", "yz"]]), "n": ["none"],
            })
        """,
    "moves": """
        def main(task_config):
            for batch in task_config.batches(64):
                task_config.output_writer.write_batch({"z": batch["z"] * 1000})
        """,
    "raises": """
        def main(task_config):
            raise ValueError("bad luck")
        """,
}


@pytest.fixture(scope="module")
def scripts(saved_model: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("scripts")
    for name, text in SCRIPTS.items():
        (folder / f"{name}.py").write_text(textwrap.dedent(text))
    shutil.copytree(saved_model(models.DOUBLE), folder / "double")
    return folder


@pytest.fixture(scope="module")
def programs(flink_cluster: Cluster, scripts: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What each of the programs has printed. They run in one process, so that Java and Flink's planner are started once."""
    need_flink(program=True)
    temp = tmp_path_factory.mktemp("program")
    environ = {
        **os.environ, "JAVA_HOME": java_home(str(FLINK)), "TMPDIR": str(temp), "XDG_STATE_HOME": str(temp / "state"),
        "JAVA_TOOL_OPTIONS": f"-Djava.io.tmpdir={temp} {os.environ['JAVA_TOOL_OPTIONS']}",
    }  # fmt: skip
    program = Path(__file__).parent / "programs" / "all.py"
    names = "tables.py,rows.py,alink_tables.py"
    command = [str(PROGRAM), str(program), names, flink_cluster.address, sys.executable, str(scripts)]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr[-3000:]
    assert not list(temp.glob("akrunner-*")), "the programs have left something"
    nothing_is_left(flink_cluster)
    told: dict[str, dict[str, Any]] = {}
    for name, value in (json.loads(line[5:]) for line in done.stdout.splitlines() if line.startswith("TOLD ")):
        if name == "program":
            latest = told.setdefault(value, {})
        else:
            latest[name] = value
    return told


@pytest.fixture
def told(programs: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """By the first of them."""
    return of(programs, "tables.py")


def of(programs: dict[str, dict[str, Any]], name: str) -> dict[str, Any]:
    """What one of them has printed; it went through to its end."""
    assert "raised" not in programs[name], programs[name]["raised"]
    return programs[name]


def test_rows_come_to_the_tasks_and_to_the_caller(told: dict[str, Any]) -> None:
    complete, shares, rows = told["to the caller"]
    assert complete and rows == 1000 and len(shares) == 2 and min(shares) > 400
    assert told["sum"] == sum(range(1000))


def check_types_in(told: dict[str, Any]) -> None:
    seen = {row["name"]: row["value"] for row in told["types in"]}
    assert seen == {
        "i8": "[1]", "i16": "[2]", "i32": "[3]", "i64": "[4]", "f32": "[1.5]", "f64": "[2.5]", "b": "[True]", "s": "[b'h\\xc3\\xa4\\xc3\\x9f']", "n": "[nan]",
        "y": r"[b'\x00\xff']", "a": "[array([1, 2, 3], dtype=int32)]", "t": "[array([b'x', b'yz'], dtype=object)]", "ts": "[1767323045123456]", "d": "[20455]", "whole": "[12]",
    }  # fmt: skip


def test_every_type_comes_in(told: dict[str, Any]) -> None:
    check_types_in(told)
    assert {row["name"]: row["value"] for row in told["a DataStream, as Examples"]} == {"i": "[1, 2]", "s": "[b'a', b'b']"}


def test_every_type_goes_out(told: dict[str, Any]) -> None:
    check_types_out(told)


def test_a_time_with_a_zone_comes_in_and_goes_out(told: dict[str, Any]) -> None:
    assert told["a moment"] == [[True, True]]


def check_types_out(told: dict[str, Any]) -> None:
    assert told["types out"] == [[
        "True", "1", "2", "3", "4", "1.5", "2.5", "'häß'", r"bytearray(b'\x00\xff')", "'2023-11-14 22:13:20.123456'", "datetime.date(2022, 1, 8)",
        "[1.5, 2.5]", "[1, 255]", "['x', 'yz']", "'none'",
    ]]  # fmt: skip


def test_a_table_goes_on_in_flink(told: dict[str, Any]) -> None:
    assert told["to a table"] == [1000, sum(range(1000)), float(sum(range(1000)))]
    assert told["waited"] == [1000, 1000]


def test_streams(told: dict[str, Any]) -> None:
    assert told["a stream to a table"] == sum(range(1000)) and told["its rows"] == 1000
    assert told["an endless one"] > 600


def test_predictions(told: dict[str, Any]) -> None:
    """Every column of the table beside the model's, whatever its type, nulls included."""
    assert told["predicted"] == [
        ["0", "0.0", "0.00", "None", "0.0"], ["1", "0.5", "1.00", "None", "1.0"], ["2", "1.0", "2.00", "s", "2.0"], ["3", "1.5", "3.00", "s", "3.0"],
    ]  # fmt: skip
    assert told["a stream predicted"] == [1000, sum(range(1000)), ["i", "y"]]


def test_a_failure_is_told_on_both_sides(told: dict[str, Any]) -> None:
    kind, words = told["wait says"]
    assert kind == "ScriptFailedError" and "raised ValueError in main(): bad luck" in words
    assert told["Flink says"] is True
    assert told["FLINK-23020"] is True, "Flink has failed in that thread of Java before akrunner came"


def test_a_job_that_no_subtask_comes_to_is_not_waited_for_without_end(told: dict[str, Any]) -> None:
    kind, words = told["never ran"]
    assert kind == "StartError" and words.startswith("Flink did not run the job: ") and "none" in words
    kind, words = told["never executed"]
    assert kind == "StartError" and words.startswith(
        "no subtask came within 0.2 s (slot_timeout=); its Flink job is waiting to be"
    )


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("too many", "the job needs 50 task slots"),
        (
            "select",
            "select=, input_schema=, columns=, defaults=, decimals=: the rows of the PyFlink table do not come through this process",
        ),
        ("local", "give engine='flink'"),
        ("map", "column 'm'"),
        ("decimal", "CAST"),
        ("batch", "StreamTableEnvironment.create(StreamExecutionEnvironment"),
        ("an output", "output= means nothing for flink.predict: rows come from a Table"),
        ("misspelled", "there is no option 'num_worker' for flink.run; did you mean 'num_workers'?"),
        ("not Flink's", "source must be a PyFlink Table or DataStream, not dict"),
    ],
)
def test_what_is_refused(told: dict[str, Any], name: str, words: str) -> None:
    assert words in told[name][1]


def test_without_the_java_operators(programs: dict[str, dict[str, Any]]) -> None:
    """Row by row through Python: the same values, where Flink's compiler does not take the operators, or somebody wants it so."""
    told = of(programs, "rows.py")
    check_types_in(told)
    check_types_out(told)
    (said,) = told["said"]
    assert "rows go through Python one by one, some ten times slower" in said and "NoSuchSerializer" in said
    assert told["a stream to a table"] == sum(range(1000)) and told["shares"] == [500, 500]
    assert told["Flink says"] is True
    assert "java_operators: without them no checkpoint would have the rows" in told["checkpoints"]


def test_alinks_operators_on_flinks_tables(programs: dict[str, dict[str, Any]]) -> None:
    """Their SQL is Flink's."""
    told = of(programs, "alink_tables.py")
    assert told["schema"] == "kind VARCHAR, n BIGINT, j VARCHAR"
    assert told["Flink's SQL"] == [["a", 2, '{"most":3}'], ["b", 1, '{"most":2}']]
    assert told["ordered"] == [[3, "a", 4.0], [2, "b", None]]
    assert told["joined"] == [[1, 1.5], [3, 4.0]] and told["anti"] == [[2]] and told["others"] == [3, 2]
    assert told["drawn once"] == 12, "random numbers are the same for both that use them"
    assert told["a script over Flink's table"] == [[500, sum(range(0, 1000, 2)), float(sum(range(0, 1000, 2)))]]
    assert told["predicted"] == [[0, 0.0], [2, 2.0], [4, 4.0]] and told["a file"] == 500
    assert "Column 'nothing' not found" in told["wrong SQL"] and "SELECT nothing FROM" in told["wrong SQL"]
    assert "this table is of another Flink environment" in told["another environment"]
    assert "call useRemoteEnv(...)" in told["no environment"]


@pytest.mark.tensorflow
def test_the_example_submitted_with_flink_run(flink_cluster: Cluster, tmp_path: Path) -> None:
    need_flink(program=True)
    command = [
        f"{flink_home(str(FLINK))}/bin/flink", "run", "-m", flink_cluster.address, "-pyclientexec", str(PROGRAM), "-pyexec", str(FLINK),
        "-py", str(ROOT / "examples" / "flink" / "iris_table.py"), sys.executable,
    ]  # fmt: skip
    environ = {
        **os.environ, "JAVA_HOME": java_home(str(FLINK)), "TMPDIR": str(tmp_path), "FLINK_LOG_DIR": str(tmp_path),
    }  # fmt: skip
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    found = {name: int(correct) for name, correct in re.findall(r"(\w+): (\d+) of 50", done.stdout)}
    assert set(found) == {"setosa", "versicolor", "virginica"} and sum(found.values()) > 130, done.stdout
    assert "150 rows in, 150 out" in done.stdout
    nothing_is_left(flink_cluster)
