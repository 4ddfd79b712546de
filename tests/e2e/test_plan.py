"""`akrunner.plan`: it says what the job then does, and starts nothing of it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import akrunner
from akrunner.cli.main import main

COMMAND = [sys.executable, "-m", "akrunner"]
#: tells what it is told
SCRIPT = """
import json, os
def main(task_config):
    told = {"task": task_config.task_type, "config": os.environ.get("TF_CONFIG"), "threads": os.environ.get("OMP_NUM_THREADS"), "columns": {}}
    for batch in task_config.batches(10, defaults={"id": -1, "word": b""}):
        told["columns"] = {name: getattr(batch[name], "dtype", None) and batch[name].dtype.kind for name in batch}
    task_config.output_writer.write_batch({"told": [json.dumps(told)]})
"""
ROWS = {
    "id": [1, 2, None, 4],
    "x": [1.5, None, 2.0, 3.0],
    "many": [[1.0], [], None, [2.0, 3.0]],
    "word": ["a", None, None, "d"],
}


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "score.py"
    path.write_text(SCRIPT)
    return path


def test_it_says_what_the_job_then_does(
    leaves_nothing: Path, tmp_path: Path, script: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    pq.write_table(pa.table(ROWS), tmp_path / "rows.parquet")
    options: Dict[str, Any] = dict(output_schema="told string", num_workers=2, data_format="columns")
    plan = akrunner.plan(script, tmp_path / "rows.parquet", **options)
    assert (plan.verb, plan.engine, plan.rows, plan.script, plan.output_schema) == (
        "run",
        "local",
        4,
        str(script),
        "told string",
    )
    assert plan.tensorflow and plan.python_version and not plan.warnings[2:]
    result = akrunner.run(script, tmp_path / "rows.parquet", **options)
    assert result.table is not None
    for task, text in zip(plan.tasks, result.table["told"].to_pylist()):
        told = json.loads(text)
        config = json.loads(told["config"])
        assert task.tf_config is not None and config["task"] == task.tf_config["task"]
        assert {role: len(members) for role, members in config["cluster"].items()} == {
            role: len(members) for role, members in task.tf_config["cluster"].items()
        }
        assert told["threads"] == task.env["OMP_NUM_THREADS"] and task.gets_rows
    assert [task.name for task in plan.tasks] == [task.name for task in result.tasks]
    assert [(one.name, one.feature, one.nulls, one.null) for one in plan.columns] == [
        ("id", "int64, one value", 1, "an error, but for defaults="),
        ("x", "float64, one value", 1, "NaN"),
        ("many", "float64, any number of values", None, "an empty list"),
        ("word", "bytes, one value", 2, "an error, but for defaults="),
    ]
    assert [told["columns"]["x"] for told in map(json.loads, result.table["told"].to_pylist())] == ["f", "f"]


def test_it_is_read_in_a_terminal(script: Path) -> None:
    plan = akrunner.plan(
        script,
        pa.table(ROWS),
        output_schema="told string",
        num_workers=8,
        num_ps=1,
        evaluator=True,
        user_files=[script],
        cpus_per_worker=None,
    )
    text = str(plan)
    for words in (
        "run on engine local; nothing was started",
        "score.py: main(task_config)",
        "4 rows, 4 columns as examples",
        "float32, any number of values",
        "evaluator:0 gets no rows",
        "ports are chosen at the start",
        "result.table, in memory: told string",
        "warning: 4 rows for 8 workers: 4 of them get none; num_workers=4",
        "warning: column 'word' has 2 nulls: a script that reads it needs defaults={'word': ...}",
    ):
        assert words in text, text
    assert "not set: one worker alone" in str(akrunner.plan(script, pa.table(ROWS), output_schema="told string"))


def test_columns_and_defaults_are_shown(tmp_path: Path, script: Path) -> None:
    pq.write_table(pa.table(ROWS), tmp_path / "rows.parquet")
    for source in (tmp_path / "rows.parquet", pa.table(ROWS)):
        plan = akrunner.plan(script, source, output_schema="told string", columns=["word", "id"], defaults={"id": -1})
        assert plan.rows == 4 and "4 rows, 2 columns as examples" in str(plan)
        assert [(one.name, one.nulls, one.null) for one in plan.columns] == [
            ("word", 2, "an error, but for defaults="),
            ("id", 1, "-1, of defaults="),
        ]
        assert not any("'id'" in one for one in plan.warnings)
        assert akrunner.plan(script, source, output_schema="told string", select="SELECT id FROM input LIMIT 1").rows is None


def test_what_would_fail_fails_in_the_same_words(tmp_path: Path, script: Path) -> None:
    wrong: Any
    for wrong, words in (
        (dict(num_workers=0), "num_workers"),
        (dict(verb="serve"), "verb"),
        (dict(verb="stream", max_restarts=3), "max_restarts= means nothing for stream: it is an option of run, train"),
        (dict(model_out="m"), "model_out= means nothing for run"),
        (dict(output="a/b.csv"), "output"),
        (dict(python_env=str(tmp_path)), "python_env"),
    ):
        with pytest.raises(akrunner.ConfigError, match=words):
            akrunner.plan(script, pa.table(ROWS), **{"output_schema": "told string", **wrong})
    with pytest.raises(akrunner.ConfigError, match="an iterator's rows come once"):
        akrunner.plan(script, iter([{"id": 1}]))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["score.py"], "nothing was made"


def test_of_a_train_job_the_model_is_where_it_goes(tmp_path: Path, script: Path) -> None:
    plan = akrunner.plan(script, pa.table(ROWS), verb="train", model_out=tmp_path / "model", output_schema="told string")
    assert plan.output == f"model: {tmp_path / 'model'}; rows: result.table, in memory" and not (tmp_path / "model").exists()


def test_the_command_shows_it(leaves_nothing: Path, tmp_path: Path, script: Path) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_text("id,x\n1,2.5\n")
    words = [str(script), "--input", str(rows), "--output-schema", "told string", "--dry-run"]
    plain = subprocess.run([*COMMAND, "run", *words], capture_output=True, text=True, timeout=120)
    assert plain.returncode == 0 and plain.stdout.startswith("run on engine local; nothing was started\n"), plain
    train = subprocess.run(
        [*COMMAND, "train", *words, "--json", "--model-out", str(tmp_path / "m")], capture_output=True, text=True, timeout=120
    )
    told = json.loads(train.stdout)
    assert (told["verb"], [one["name"] for one in told["columns"]], told["tasks"][0]["tf_config"]) == (
        "train",
        ["id", "x"],
        None,
    )
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == ["rows.csv", "score.py"], "nothing was made"


def test_what_the_command_itself_refuses_a_dry_run_of_it_refuses(tmp_path: Path, script: Path, capsys: Any) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_text("id,x\n1,2.5\n")
    words = [str(script), "--input", str(rows), "--output-schema", "told string", "--dry-run"]
    for verb, more, code, said in (
        ("run", [], 0, "output:       stdout: told string"),
        ("run", ["-o", "x.csv"], 0, "output:       x.csv: told string"),
        ("stream", [], 0, "output:       stdout: told string"),
        ("stream", ["-o", str(rows)], 2, "rows.csv exists; give overwrite=True"),
        ("stream", ["-o", "y.parqet"], 2, "does not say its format"),
        ("run", ["--detach"], 2, "--detach is for a Flink cluster that stays"),
        ("train", ["--detach", "--model-out", "m"], 2, "--detach is for a Flink cluster that stays"),
    ):
        assert main([verb, *words, *more]) == code
        told = capsys.readouterr()
        assert said in (told.err if code else told.out), told


def test_a_job_file_is_run_and_what_else_is_given_wins(leaves_nothing: Path, tmp_path: Path, script: Path) -> None:
    (tmp_path / "rows.csv").write_text("id,x,word\n1,2.5,a\n")
    file = tmp_path / "job.toml"
    file.write_text('script = "score.py"\nsource = "rows.csv"\nnum_workers = 3\noutput_schema = { told = "string" }\n')
    words = [*COMMAND, "run", str(file), "--num-workers", "2", "--output", str(tmp_path / "out.jsonl")]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    told = [json.loads(json.loads(line)["told"]) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert sorted(one["task"] for one in told) == ["chief", "worker"]
    shown = subprocess.run([*words, "--overwrite", "--dry-run"], capture_output=True, text=True, timeout=120)
    assert "source: the job file; " in shown.stdout and "num_workers: --num-workers" in shown.stdout, shown
    result = akrunner.run(str(file), num_workers=1)
    assert result.table is not None and result.table.num_rows == 1
