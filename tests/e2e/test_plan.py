"""`akrunner.plan`: it says what the job then does, and starts nothing of it."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import akrunner
from akrunner.cli.main import main
from tests import hosts

pytestmark = pytest.mark.slow

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
    options: dict[str, Any] = dict(output_schema="told string", num_workers=2, data_format="columns")
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
        ("id", "int64, one value", 1, "an error"),
        ("x", "float64, one value", 1, "NaN"),
        ("many", "float64, any number of values", None, "an empty list"),
        ("word", "bytes, one value", 2, "an error"),
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
        "warning: column 'word' has 2 nulls: a script that reads it needs defaults={'word': ...} (--default word=...), or batches(nulls='none')",
    ):
        assert words in text, text
    assert repr(plan) == text
    assert "not set: one worker alone" in str(akrunner.plan(script, pa.table(ROWS), output_schema="told string"))


def test_columns_and_defaults_are_shown(tmp_path: Path, script: Path) -> None:
    pq.write_table(pa.table(ROWS), tmp_path / "rows.parquet")
    for source in (tmp_path / "rows.parquet", pa.table(ROWS)):
        plan = akrunner.plan(script, source, output_schema="told string", columns=["word", "id"], defaults={"id": -1})
        assert plan.rows == 4 and "4 rows, 2 columns as examples" in str(plan)
        assert [(one.name, one.nulls, one.null) for one in plan.columns] == [
            ("word", 2, "an error"),
            ("id", 1, "-1, the default"),
        ]
        assert not any("'id'" in one for one in plan.warnings)
        assert akrunner.plan(script, source, output_schema="told string", select="SELECT id FROM input LIMIT 1").rows is None


def test_nulls_are_said_with_what_reads_them(tmp_path: Path) -> None:
    """A column whose nulls the script was just tried with is not warned of."""
    (tmp_path / "copy.py").write_text(
        "def main(task_config):\n    for batch in task_config.batches(2, nulls='none'):\n        task_config.output_writer.write_batch(batch)\n"
    )
    pairs = pa.array([[1.0, 2.0], None, None, [3.0, 4.0]], pa.list_(pa.float32(), 2))
    rows = pa.table({"id": [1, None, 3, None], "late": [1, 2, 3, None], "point": pairs})
    first = "column 'id' has 2 nulls: a script that reads it needs defaults={'id': ...} (--default id=...), or batches(nulls='none')"
    second = "column 'late' has 1 null: a script that reads it needs defaults={'late': ...} (--default late=...), or batches(nulls='none')"
    plan = akrunner.plan(tmp_path / "copy.py", rows)
    assert plan.warnings == (first, second)
    assert [one.null for one in plan.columns] == ["an error"] * 2 + ["NaN in each place"]
    tried = akrunner.plan(tmp_path / "copy.py", rows, try_rows=2)
    assert tried.warnings == (second,) and tried.trial is not None
    assert tried.trial.nulls == ("id", "point") and tried.trial.written["id"].to_pylist() == [1, None]
    assert akrunner.plan(tmp_path / "copy.py", rows, try_rows=4).warnings == ()


def test_a_split_is_shown(script: Path) -> None:
    options: Any = dict(output_schema="told string", split={"train": 0.75, "test": 0.25})
    for more, words in (
        ({}, "train 0.75, test 0.25; by a hash of each row's number\n"),
        ({"split_by": "id", "split_seed": 3}, "train 0.75, test 0.25; by a hash of the value of 'id', seed 3\n"),
    ):
        assert f"split:        {words}" in str(akrunner.plan(script, pa.table(ROWS), **options, **more))
    assert akrunner.plan(script, pa.table(ROWS), output_schema="told string").split == ""
    script.write_text("def main(task_config):\n    print(sorted(task_config.splits.items()))\n")
    trial = akrunner.plan(script, pa.table({"id": range(100)}), split=options["split"], try_rows=5).trial
    assert trial is not None and trial.rows_in == 20 and trial.printed.startswith("[('test', ")
    with pytest.raises(akrunner.ConfigError, match="split= means nothing for stream: it is an option of run, train"):
        akrunner.plan(script, pa.table(ROWS), verb="stream", **options)


def test_what_would_fail_fails_in_the_same_words(tmp_path: Path, script: Path) -> None:
    wrong: Any
    for wrong, words in (
        (dict(num_workers=0), "num_workers"),
        (dict(verb="serve"), "verb"),
        (dict(verb="stream", split="train=0.8,test=0.2"), "split= means nothing for stream: it is an option of run, train"),
        (dict(model_out="m"), "model_out= means nothing for run"),
        (dict(output="a/b.csv"), "output"),
        (dict(python_env=str(tmp_path)), "python_env"),
        (dict(bind_host="1.2.3.4", num_workers=2), "bind_host='1.2.3.4': cannot bind a port there"),
        (dict(requirements=str(script)), "score.py is no file of requirements: 'import json, os'"),
        (dict(engine="flink"), "has no PyFlink|needs Java"),
    ):
        with pytest.raises(akrunner.ConfigError, match=words):
            akrunner.plan(script, pa.table(ROWS), **{"output_schema": "told string", **wrong})
    with pytest.raises(akrunner.ConfigError, match="an iterator's rows come once"):
        akrunner.plan(script, iter([{"id": 1}]))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["score.py"], "nothing was made"


def test_what_the_script_is_told_is_shown_without_its_secrets(script: Path) -> None:
    plan = akrunner.plan(
        script,
        pa.table(ROWS),
        output_schema="told string",
        user_params={"lr": 0.1, "api_key": "s3cret"},
        env={"TOKEN": "s3cret", "OMP": "4"},
        script_args=["--epochs", "3 4", "--password=s3cret", "--db-password", "s3cret", "-v", "--token", "s3cret"],
    )
    text = str(plan)
    assert "params:       lr=0.1, api_key=***\n" in text and "environment:  TOKEN=***, OMP=4\n" in text, text
    assert (
        "arguments:    --epochs '3 4' '--password=***' --db-password '***' -v --token '***'\n" in text
        and "s3cret" not in text + repr(plan)
    ), text


@pytest.mark.tensorflow
def test_the_script_is_tried_over_the_first_rows(
    leaves_nothing: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "rows.csv").write_text("id\n" + "".join(f"{i}\n" for i in range(50)))
    (tmp_path / "copy.py").write_text(
        "import os\ndef main(task_config):\n    print('epoch', task_config.user_params['my_token'])\n    for batch in task_config.batches(3):\n"
        "        task_config.output_writer.write_batch({'id': batch['id']})\n"
        "    open(os.path.join(task_config.checkpoint_dir, 'saved'), 'w').close()\n"
        "    if task_config.user_params.get('bad'):\n        raise ValueError('bad luck')\n"
    )
    (tmp_path / "ck").mkdir()
    words = [
        str(tmp_path / "copy.py"),
        "-i",
        str(tmp_path / "rows.csv"),
        "--output-schema",
        "id bigint",
        "--checkpoint-dir",
        str(tmp_path / "ck"),
        "-p",
        "my_token=hush1",
    ]
    out = ["-o", str(tmp_path / "out.csv"), "--num-workers", "2", "--num-ps", "1"]
    assert main(["run", *words, *out, "--dry-run=2", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["trial"]["written"] == [{"id": i} for i in range(4)] and told["trial"]["printed"] == "epoch ***"
    assert (told["trial"]["rows_in"], told["trial"]["rows_out"], len(told["tasks"])) == (4, 4, 3)
    assert main(["run", *words, "--dry-run=3"]) == 0
    shown = capsys.readouterr().out
    assert "tried:        3 rows in, 3 rows out" in shown and "thrown away\n              id\n              0\n" in shown, shown
    assert main(["run", *words, *out, "--dry-run=2", "-p", "bad=1"]) == 1
    failed = capsys.readouterr()
    # the plan helps to see why it failed
    assert "ValueError in main(): bad luck" in failed.err and "\ntasks:        3\n" in failed.out
    for wrong, said in (
        (
            ["--dry-run=few"],
            "--dry-run=few: over how many rows is the script tried? Give a whole number from 1 on, --dry-run=5",
        ),
        (["--dry-run=0"], "--dry-run=0: over how many rows is the script tried? Give a whole number from 1 on, --dry-run=5"),
    ):
        assert main(["run", *words, *wrong]) == 2
        assert said in capsys.readouterr().err
    with pytest.raises(akrunner.ConfigError, match="rows that arrive would be taken from the stream"):
        akrunner.plan(tmp_path / "copy.py", "-", verb="stream", try_rows=2)
    assert sorted(path.name for path in tmp_path.rglob("*") if path.suffix != ".pyc" and path.name != "__pycache__") == [
        "ck",
        "copy.py",
        "rows.csv",
    ]


@pytest.mark.tensorflow
def test_what_is_exported_in_a_trial_is_named(leaves_nothing: Path, tmp_path: Path) -> None:
    (tmp_path / "export.py").write_text(
        "import tensorflow as tf\ndef main(task_config):\n    model = tf.Module()\n"
        "    model.call = tf.function(lambda x: {'y': x}, input_signature=[tf.TensorSpec([None], tf.float32, name='x')])\n"
        "    tf.saved_model.save(model, task_config.saved_model_dir, signatures={'serving_default': model.call})\n"
    )
    plan = akrunner.plan(tmp_path / "export.py", {"x": [1.0] * 9}, verb="train", model_out=tmp_path / "m", try_rows=3)
    assert plan.trial is not None and plan.trial.written is None and plan.trial.rows_in == 3
    assert any(one.endswith("saved_model.pb") for one in plan.trial.exported) and "exported:     " in str(plan)
    assert [one.name for one in tmp_path.iterdir() if one.is_file()] == ["export.py"]


def test_of_a_train_job_the_model_is_where_it_goes(tmp_path: Path, script: Path) -> None:
    plan = akrunner.plan(script, pa.table(ROWS), verb="train", model_out=tmp_path / "model", output_schema="told string")
    assert plan.output == f"model: {tmp_path / 'model'}; rows: result.table, in memory" and not (tmp_path / "model").exists()


def test_the_command_shows_it(leaves_nothing: Path, tmp_path: Path, script: Path) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_text("id,x\n1,2.5\n")
    words = [str(script), "--input", str(rows), "--output-schema", "told string", "--dry-run"]
    plain = hosts.run([*COMMAND, "run", *words], capture_output=True, text=True, timeout=120)
    assert plain.returncode == 0 and plain.stdout.startswith("run on engine local; nothing was started\n"), plain
    train = hosts.run(
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
        ("run", ["-o", "-"], 0, "output:       stdout: told string"),
        ("run", ["--json"], 0, '"output": null'),
        ("run", ["--json", "-o", f"{tmp_path}/../{tmp_path.name}/x.csv"], 0, f'"output": "{tmp_path}/x.csv"'),
        ("train", ["--json", "--model-out", "m"], 0, '"output": "m"'),
        ("stream", ["--json", "-o", "y.csv"], 0, '"output": "y.csv"'),
        ("train", ["--model-out", "m"], 0, "output:       model: m; rows: stdout: told string"),
        ("stream", [], 0, "output:       stdout: told string"),
        ("stream", ["-o", str(rows)], 2, "rows.csv exists; give overwrite=True"),
        ("stream", ["-o", "y.parqet"], 2, "does not say its format"),
        ("run", ["--detach"], 2, "--detach is for a Flink cluster that stays"),
        ("train", ["--detach", "--model-out", "m"], 2, "--detach is for a Flink cluster that stays"),
    ):
        assert main([verb, *words, *more]) == code
        told = capsys.readouterr()
        assert said in (told.err if code and "--json" not in more else told.out), told


def test_rows_without_a_schema_are_on_stdout_too(tmp_path: Path, script: Path, capsys: Any) -> None:
    (tmp_path / "rows.csv").write_text("id,x\n1,2.5\n")
    for more in ([], ["-o", "-"]):
        assert main(["run", str(script), "-i", str(tmp_path / "rows.csv"), "--dry-run", *more]) == 0
        assert "output:       stdout: the columns of the first batch" in capsys.readouterr().out


def test_of_a_table_without_rows_it_says_what_becomes(tmp_path: Path, script: Path) -> None:
    nothing = pa.table(ROWS).slice(0, 0)
    schema: Any = dict(output_schema="told string")
    for options, words in (
        (
            dict(output=tmp_path / "o.csv"),
            "the input has no rows: unless .* the job fails at its end, and .*o.csv is not made.*output_schema=",
        ),
        (dict(output=tmp_path / "o.csv", **schema), "the input has no rows: the script runs, and gets none"),
        (dict(num_workers=3, **schema), "the input has no rows: the script runs, and gets none"),
    ):
        (warning,) = akrunner.plan(script, nothing, **options).warnings
        assert re.fullmatch(words + ".*", warning)


def test_what_is_long_in_a_plan_is_short(tmp_path: Path, script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Addresses of many tasks, and paths that go up from where a job file is."""
    plan = akrunner.plan(script, pa.table(ROWS), output_schema="told string", num_workers=40)
    (line,) = [one for one in str(plan).splitlines() if one.startswith("TF_CONFIG:")]
    assert '"and 36 more"' in line and len(line) < 300
    assert len(plan.tasks[0].tf_config["cluster"]["worker"]) == 39  # type: ignore[index]
    (tmp_path / "rows.csv").write_text("id,x\n1,2.5\n")
    deep = tmp_path / "sub" / "dir"
    deep.mkdir(parents=True)
    (tmp_path / "link").symlink_to(deep)
    plan = akrunner.plan(f"{deep}/../../score.py", f"{deep}/../../rows.csv", output=f"{deep}/../out/")
    assert (plan.script, plan.source, plan.output) == (str(script), str(tmp_path / "rows.csv"), f"{tmp_path}/sub/out/")
    # up from what a link leads to
    assert akrunner.plan(script, f"{tmp_path}/link/../../rows.csv").source == f"{tmp_path}/link/../../rows.csv"


def test_a_job_file_is_run_and_what_else_is_given_wins(leaves_nothing: Path, tmp_path: Path, script: Path) -> None:
    (tmp_path / "rows.csv").write_text("id,x,word\n1,2.5,a\n")
    file = tmp_path / "job.toml"
    file.write_text('script = "score.py"\nsource = "rows.csv"\nnum_workers = 3\noutput_schema = { told = "string" }\n')
    words = [*COMMAND, "run", str(file), "--num-workers", "2", "--output", str(tmp_path / "out.jsonl")]
    done = hosts.run(words, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    told = [json.loads(json.loads(line)["told"]) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert sorted(one["task"] for one in told) == ["chief", "worker"]
    shown = hosts.run([*words, "--overwrite", "--dry-run"], capture_output=True, text=True, timeout=120)
    assert "source: the job file; " in shown.stdout and "num_workers: --num-workers" in shown.stdout, shown
    result = akrunner.run(str(file), num_workers=1)
    assert result.table is not None and result.table.num_rows == 1


def test_a_plan_shows_nothing_of_what_stands_in_files(tmp_path: Path, capsys: Any) -> None:
    """Files are where secrets are to be, whatever they are called."""
    (tmp_path / "s.py").write_text("def main(task_config):\n    print('told', task_config.user_params['k'])\n")
    (tmp_path / "t.csv").write_text("a\n1\n")
    for name, text in (("one.txt", "hidden-1"), ("p.json", '{"pin": "hidden-2"}'), ("e.env", "PIN=hidden-3\n")):
        (tmp_path / name).write_text(text)
    words = ["run", str(tmp_path / "s.py"), "-i", str(tmp_path / "t.csv"), "-p", f"k=@{tmp_path}/one.txt", "-p", "plain=shown"]
    words += [
        "--env",
        f"E=@{tmp_path}/one.txt",
        "--params-file",
        str(tmp_path / "p.json"),
        "--env-file",
        str(tmp_path / "e.env"),
    ]
    for more in (["--dry-run=1"], ["--dry-run", "--json"]):
        assert main([*words, *more]) == 0
        told = capsys.readouterr().out
        assert "hidden-" not in told and "shown" in told and "***" in told, told


def test_modules_that_the_tasks_will_not_find_are_told(tmp_path: Path, leaves_nothing: Path) -> None:
    script = tmp_path / "imports.py"
    script.write_text(
        "import os, no_such_module\nfrom beside import x\nimport sent\nimport akrunner.worker\nimport akdl\n"
        "try:\n    import optional_module\nexcept ImportError:\n    pass\ndef main(task_config):\n    import later_module\n"
    )
    for name in ("beside.py", "sent.py"):
        (tmp_path / name).write_text("x = 1\n")
    plan = akrunner.plan(script, {"a": [1]}, user_files=[tmp_path / "sent.py"])
    told = [one for one in plan.warnings if "imports" in one]
    assert len(told) == 2
    assert "imports no_such_module in line 1" in told[0] and "requirements= (--requirements)" in told[0]
    assert (
        "imports beside in line 2" in told[1] and "user_files=['beside.py'] (--user-file beside.py) sends it along" in told[1]
    )
