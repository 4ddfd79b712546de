"""A batch job on every engine: what reaches the script, what comes back, what is refused before anything starts."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import textwrap
import venv
import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import akrunner
from akrunner.cli.main import main
from akrunner.engines import workdir
from akrunner.engines.base import Progress
from akrunner.io.splits import Splitter
from akrunner.spec import SplitSpec
from tests.conftest import Script

from .conftest import Run

pytestmark = pytest.mark.slow

NOTHING = "def main(task_config):\n    pass\n"

#: gives every row back: reads the spool as the TFRecord file it is, without TensorFlow
ECHO = """
import os, struct

def main(task_config):
    count = 0
    with open(task_config.dataset_file, "rb") as f:
        while True:
            head = f.read(12)
            if not head:
                break
            (length,) = struct.unpack("<Q", head[:8])
            task_config.output_writer.write(f.read(length))
            f.read(4)
            count += 1
    assert count == task_config.dataset_length
    print("rows", count, "of", task_config.task_type, task_config.task_index)
"""

#: writes a column whose type each task has its own of, unless it is told one
COLUMNS = """
import numpy as np

def main(task_config):
    own = "int64" if task_config.task_type == "chief" else "float32"
    for batch in task_config.batches(8):
        x = batch["i"].astype(task_config.user_params.get("as", own))
        task_config.output_writer.write_batch({"s": batch["s"], "x": x, "v": np.stack([x, x], 1)})
"""
COLUMNS_JOB: dict[str, Any] = dict(output_schema=None, num_workers=2, data_format="columns")


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_every_row_arrives_once(run: Run, script: Script, workers: int) -> None:
    rows = 20_001
    table = pa.table(
        {"i": range(rows), "s": [f"row {i}" for i in range(rows)], "n": [None if i % 3 else i / 2 for i in range(rows)]}
    )
    result = run(script(ECHO), table, output_schema="i bigint, s string, n double", num_workers=workers)
    shares = [table.take(list(range(part, rows, workers))) for part in range(workers)]
    assert (
        result.table.equals(pa.concat_tables(shares).combine_chunks())
        or result.table.to_pylist() == pa.concat_tables(shares).to_pylist()
    )
    assert list(result.stats.shares) == [share.num_rows for share in shares]
    assert max(result.stats.shares) - min(result.stats.shares) <= 1
    assert result.stats.rows_in == result.stats.rows_out == rows
    assert [task.rows_out for task in result.tasks] == [share.num_rows for share in shares]


@pytest.mark.parametrize("output", [None, "o.parquet", "parts/"])
def test_the_first_batch_decides_the_columns(run: Run, script: Script, tmp_path: Path, output: Any) -> None:
    table = pa.table({"i": range(40), "s": [f"ü{i}" for i in range(40)]})
    path = output and f"{tmp_path}/{output}"
    result = run(script(COLUMNS), table, output=path, **COLUMNS_JOB, user_params={"as": "float64"})
    got = result.table if output is None else pq.read_table(path)
    assert got.schema.names == ["s", "x", "v"]
    assert [str(one) for one in got.schema.types[:2]] == ["string", "double"] and pa.types.is_list(got.schema.field("v").type)
    assert sorted(got["s"].to_pylist()) == sorted(table["s"].to_pylist())


def test_first_batches_that_differ(run: Run, script: Script, tmp_path: Path) -> None:
    there = set(os.listdir(tmp_path))
    body = script(COLUMNS)
    with pytest.raises(akrunner.OutputError) as failed:
        run(body, {"i": range(40), "s": ["a"] * 40}, output=str(tmp_path / "o.parquet"), **COLUMNS_JOB)
    words = str(failed.value)
    assert "column 'x' is" in words and "chief:0" in words and "worker:0" in words and "output_schema=" in words
    assert "o.parquet" not in "".join(set(os.listdir(tmp_path)) - there)


def test_nobody_writes_and_nobody_has_said_what(run: Run, script: Script, tmp_path: Path) -> None:
    assert run(script(NOTHING), {"i": [1]}, output_schema=None).table is None
    with pytest.raises(akrunner.WriteError, match="no task wrote a row.*output_schema="):
        run(script(NOTHING), {"i": [1]}, output_schema=None, output=str(tmp_path / "o.parquet"))
    assert not (tmp_path / "o.parquet").exists()


def test_no_rows(run: Run, script: Script) -> None:
    result = run(script(ECHO), {"i": pa.array([], pa.int64())}, output_schema="i bigint", num_workers=2)
    assert result.table.num_rows == 0 and result.table.schema.names == ["i"]
    assert result.stats.shares == (0, 0)


def test_fewer_rows_than_workers(run: Run, script: Script) -> None:
    result = run(script(ECHO), {"i": [7]}, output_schema="i bigint", num_workers=3)
    assert result.table["i"].to_pylist() == [7] and result.stats.shares == (1, 0, 0)


def test_large_values(run: Run, script: Script) -> None:
    blobs = [os.urandom(n) for n in (0, 1, 300, 70_000, 9_000_000, 5)]
    result = run(script(ECHO), {"b": blobs}, output_schema="b varbinary")
    assert result.table["b"].to_pylist() == blobs


def test_roles(run: Run, script: Script) -> None:
    body = """
    import json, os, sys, time

    def main(task_config):
        told = json.loads(os.environ["TF_CONFIG"])
        assert told["cluster"] == task_config.cluster
        row = {"task": [f"{task_config.task_type}:{task_config.task_index}"], "n": [task_config.dataset_length],
               "members": [json.dumps({k: len(v) for k, v in told["cluster"].items()}, sort_keys=True)]}
        assert told["task"] == {"type": task_config.task_type, "index": task_config.task_index}
        assert task_config.num_workers == 3
        if task_config.task_type == "ps":
            assert task_config.dataset_length == 0
            time.sleep(1000)
        task_config.output_writer.write_batch(row)
    """
    result = run(script(body), num_workers=3, num_ps=1, output_schema="task string, n bigint, members string")
    assert result.table["task"].to_pylist() == ["chief:0", "worker:0", "worker:1"]
    assert result.table["n"].to_pylist() == [4, 3, 3]
    assert set(result.table["members"].to_pylist()) == {'{"chief": 1, "ps": 1, "worker": 2}'}


def test_user_files(run: Run, script: Script, tmp_path: Path) -> None:
    """Modules beside the script, a package with relative imports out of an archive, data files; the cwd is the work dir."""
    script("VALUE = 1\n", "model.py")
    with zipfile.ZipFile(tmp_path / "utils.zip", "w") as archive:
        archive.writestr("utils/__init__.py", "from .deep import two\n")
        archive.writestr("utils/deep.py", "from . import consts\ndef two(): return consts.TWO\n")
        archive.writestr("utils/consts.py", "TWO = 2\n")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "three.txt").write_text("3")
    body = """
    import os
    import model
    from utils import two

    def main(task_config):
        assert os.path.samefile(os.getcwd(), task_config.work_dir)
        assert os.path.samefile(os.path.dirname(__file__), task_config.work_dir)
        with open("data/three.txt") as f:
            three = int(f.read())
        task_config.output_writer.write_batch({"v": [model.VALUE, two(), three]})
    """
    files = [tmp_path / "model.py", tmp_path / "utils.zip", tmp_path / "data"]
    result = run(script(body, "train-it.txt"), user_files=files, output_schema="v bigint", num_workers=2)
    assert result.table["v"].to_pylist() == [1, 2, 3] * 2


@pytest.mark.parametrize("name", ["copy.py", "numpy.py"])
def test_a_script_with_the_name_of_another_module(run: Run, script: Script, name: str) -> None:
    """It does not stand in that module's way, wherever it is imported first."""
    body = """
    import importlib, sys

    def main(task_config):
        module = importlib.import_module(NAME)
        assert task_config.work_dir not in getattr(module, "__file__", ""), module
        rows = next(iter(task_config.batches(3)))
        task_config.output_writer.write_batch({"v": rows["i"]})
    """
    path = script(f"NAME = {name[:-3]!r}\n" + textwrap.dedent(body), name)
    assert run(path, {"i": [1, 2, 3]}, output_schema="v bigint", data_format="columns").table["v"].to_pylist() == [1, 2, 3]


def test_a_script_in_a_package(run: Run, script: Script, tmp_path: Path) -> None:
    script("", "pkg/__init__.py")
    script("WORD = 'relative'\n", "pkg/model.py")
    script("from .model import WORD\ndef main(c):\n    c.output_writer.write_batch({'w': [WORD, __name__]})\n", "pkg/train.py")
    for path in ("pkg/train.py", str(tmp_path / "pkg" / "train.py")):
        result = run(path, user_files=[tmp_path / "pkg"], output_schema="w string")
        assert result.table["w"].to_pylist() == ["relative", "pkg.train"]


def test_tracebacks_have_the_users_own_file_names(run: Run, script: Script, tmp_path: Path) -> None:
    model = script("def build():\n    raise KeyError('weights')\n", "model.py")
    train = script(
        "import model\ndef main(c):\n    try:\n        model.build()\n    except KeyError as e:\n        raise RuntimeError('no model') from e\n"
    )
    with pytest.raises(akrunner.ScriptFailedError) as caught:
        run(train, user_files=[model])
    text = str(caught.value)
    assert f'File "{train}", line 4, in main' in text and f'File "{model}", line 2, in build' in text
    assert "KeyError: 'weights'" in text and "direct cause" in text and "RuntimeError: no model" in text
    assert "bundle.zip" not in text and "worker/main.py" not in text
    assert caught.value.failure is not None and caught.value.failure.what == "raised RuntimeError in main(): no model"


def test_user_params_keep_their_types(run: Run, script: Script) -> None:
    params = {"batch_size": 16, "rate": 0.5, "names": ["a", "ü"], "deep": {"x": None, "y": True}, "text": "1"}
    body = f"def main(c):\n    assert c.user_params == {params!r}, c.user_params\n"
    run(script(body), user_params=params)


def test_environment(run: Run, script: Script) -> None:
    body = """
    import os, sys

    def main(task_config):
        assert os.environ["MINE"] == "1" and "TF_USE_LEGACY_KERAS" not in os.environ
        assert sys.stdin.read() == ""
        assert sys.argv[0].endswith("train.py"), sys.argv
        assert "tensorflow" not in sys.modules, "imported only when something asks for it"
        assert not [a for a in sys.argv if "secret" in a]
    """
    run(script(body), env={"MINE": "1"}, user_params={"password": "secret"})


def test_legacy_keras(run: Run, script: Script) -> None:
    run(script("import os\ndef main(c):\n    assert os.environ['TF_USE_LEGACY_KERAS'] == '1'\n"), keras="legacy")


def test_nobody_else_may_look(run: Run, script: Script) -> None:
    body = "import os\ndef main(c):\n    top = os.path.join(c.work_dir, '..', '..', '..')\n    assert os.stat(top).st_mode & 0o777 == 0o700\n"
    run(script(body))


def test_threads_may_write(run: Run, script: Script) -> None:
    body = """
    import threading

    def main(task_config):
        def work(n):
            for i in range(200):
                task_config.output_writer.write_batch({"t": [n] * 10, "i": list(range(i * 10, i * 10 + 10))})
        threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
        [t.start() for t in threads]
        [t.join() for t in threads]
    """
    result = run(script(body), output_schema="t int, i int")
    assert result.table.num_rows == 8000
    for n in range(4):
        assert result.table.filter(pc.equal(result.table["t"], n))["i"].to_pylist() == list(range(2000))


def test_writes_more_than_the_pipes_hold(run: Run, script: Script) -> None:
    body = "import numpy as np\ndef main(c):\n    for i in range(40):\n        c.output_writer.write_batch({'x': np.full(100_000, i)})\n"
    result = run(script(body), output_schema="x bigint", num_workers=2)
    assert result.table.num_rows == 8_000_000


@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl", "arrow", "tfrecord"])
def test_output_file(run: Run, script: Script, tmp_path: Path, ending: str) -> None:
    out = tmp_path / f"out.{ending}"
    result = run(script(ECHO), {"i": [1, 2, 3]}, output_schema="i bigint", output=out)
    assert result.table is None and result.output == str(out) and result.stats.rows_out == 3
    assert out.stat().st_size > 0
    with pytest.raises(akrunner.SinkError, match="overwrite=True"):
        run(script(ECHO), {"i": [1]}, output_schema="i bigint", output=out)
    before = out.read_bytes()
    with pytest.raises(akrunner.JobError):
        run(script("def main(c):\n    1 / 0\n"), {"i": [1]}, output_schema="i bigint", output=out, overwrite=True)
    assert out.read_bytes() == before and sorted(p.name for p in tmp_path.iterdir()) == [out.name, "train.py"]


def test_files_in_files_out(run: Run, script: Script, tmp_path: Path) -> None:
    for i in range(3):
        pq.write_table(pa.table({"a": [i, i + 10], "b": ["x", "y"]}), tmp_path / f"in-{i}.parquet")
    result = run(
        script(ECHO),
        str(tmp_path / "in-*.parquet"),
        select="SELECT a * 2 AS a2, b FROM input WHERE a < 12 ORDER BY a2",
        output_schema="a2 bigint, b string",
    )
    assert result.table.to_pydict() == {"a2": [0, 2, 4, 20, 22], "b": ["x", "x", "x", "y", "y"]}


@pytest.mark.parametrize("form", ["examples", "columns"])
def test_only_the_columns_that_are_named_cross_and_their_nulls_are_filled(
    run: Run, script: Script, tmp_path: Path, form: str
) -> None:
    body = """
    def main(task_config):
        assert [column["name"] for column in task_config.schema] == ["age", "name", "x"], task_config.schema
        for batch in task_config.batches(2):
            told = [name.decode() + " of " + str(age) for name, age in zip(batch["name"], batch["age"])]
            task_config.output_writer.write_batch({"told": told, "x": batch["x"]})
    """
    names = {
        "name": ["a", None, "c"],
        "unused": pa.array([None, 1, None], pa.int64()),
        "age": [1, 2, None],
        "x": [None, 0.5, 1.5],
    }
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table(names), path)
    more: dict[str, Any] = dict(output_schema="told string, x double", data_format=form, columns=["age", "name", "x"])
    result = run(script(body), path, defaults={"age": -1, "name": "?", "x": 7}, **more)
    assert result.table.to_pylist() == [
        {"told": "a of 1", "x": 7.0},
        {"told": "? of 2", "x": 0.5},
        {"told": "c of -1", "x": 1.5},
    ]
    for wrong, words in (
        ({"columns": ["age", "nam", "x"]}, r"columns: .* has no column 'nam' .*did you mean 'name'\?"),
        ({"defaults": {"unused": 0}}, r"defaults: no column 'unused' goes to the tasks \(there are age, name, x\)"),
        (
            {"defaults": {"age": "young"}},
            "defaults: column 'age' is int64, and 'young' is none of its values; give a whole number",
        ),
    ):
        with pytest.raises(akrunner.ConfigError, match=words):
            run(script(body), path, **{**more, **wrong})


@pytest.mark.parametrize("workers, form", [(1, "columns"), (3, "examples")])
def test_a_row_is_in_its_split_whichever_worker_has_it(
    run: Run, script: Script, tmp_path: Path, workers: int, form: str
) -> None:
    body = """
    def main(task_config):
        assert sum(task_config.splits.values()) == task_config.dataset_length
        for name in task_config.splits:
            for batch in task_config.batches(50, columns=["id"], split=name):
                task_config.output_writer.write_batch({"id": batch["id"], "split": [name] * len(batch["id"])})
        try:
            task_config.batches(50, split="tset")
        except ValueError as e:
            assert "did you mean 'test'" in str(e), str(e)
    """
    rows = 1000
    path = tmp_path / "t.parquet"
    users = [None if i % 50 == 0 else f"u{i % 97}" for i in range(rows)]
    table = pa.table({"id": range(rows), "user": users, "label": [None if i % 3 else i for i in range(rows)]})
    pq.write_table(table, path, row_group_size=100)
    options: dict[str, Any] = dict(output_schema="id bigint, split string", num_workers=workers, data_format=form)
    for by in (None, "user"):
        spec = SplitSpec(("train", "test"), (0.8, 0.2), by, 5)
        marks = Splitter(spec).marks(table.combine_chunks().to_batches()[0], 0, 1).tolist()
        result = run(script(body), path, split={"train": 0.8, "test": 0.2}, split_by=by, split_seed=5, **options)
        assert dict(zip(*(column.to_pylist() for column in result.table.columns))) == {
            i: spec.names[mark] for i, mark in enumerate(marks)
        }
        assert result.table.num_rows == rows and not result.stats.warnings
    few = run(script(body), {"id": [1]}, split="train=0.99,test=0.01", **options)
    assert "split: no row is in test: the table has few rows, or few values of split_by" in few.stats.warnings
    with pytest.raises(akrunner.ConfigError, match="split_by: no column 'user' goes to the tasks"):
        run(script(body), path, split="train=0.8,test=0.2", split_by="user", columns=["id", "label"], **options)


def test_tfrecord_in(run: Run, script: Script, tmp_path: Path) -> None:
    first = tmp_path / "x.tfrecord"
    run(script(ECHO), {"i": [1, 2, 3], "s": ["a", "b", None]}, output_schema="i bigint, s string", output=first)
    result = run(script(ECHO), first, input_schema="s string, i bigint", output_schema="i bigint, s string")
    assert result.table.to_pylist() == [{"i": 1, "s": "a"}, {"i": 2, "s": "b"}, {"i": 3, "s": None}]


class Watcher:
    def __init__(self) -> None:
        self.seen: list[Progress] = []
        self.lines: list[str] = []

    def progress(self, progress: Progress) -> None:
        self.seen.append(progress)

    def log(self, task: str, line: str) -> None:
        self.lines.append(f"[{task}] {line}")


def test_progress_reports_and_stats(run: Run, script: Script) -> None:
    body = """
    import time

    def main(task_config):
        for step in range(3):
            task_config.report({"loss": 1.0 / (step + 1)}, step=step)
            time.sleep(0.15)
    """
    watcher = Watcher()
    result = run(script(body), num_workers=2, observer=watcher, profile_input=5)
    assert {"chief:0", "worker:0"} == set(watcher.seen[-1].states)
    assert any(p.states["chief:0"] == "running" for p in watcher.seen) and watcher.seen[-1].rows_in == 10
    assert any(p.reports for p in watcher.seen)
    assert [r["loss"] for r in result.stats.reports if r["task"] == "chief:0"] == [1.0, 0.5, 1.0 / 3]
    stats = result.stats
    asked = {task: told["asked"] for task, told in stats.inputs.items()}
    assert asked == {"chief:0": 5, "worker:0": 5} and all("report" in told["spent"] for told in stats.inputs.values())
    assert stats.bound == "unknown" and stats.main_seconds >= 0.45 and stats.seconds >= stats.main_seconds
    assert all(task.peak_rss > 0 and task.cpu_seconds > 0 and task.exit == "exit code 0" for task in result.tasks)


def test_input_bound(run: Run, script: Script) -> None:
    def slow() -> Any:
        import time

        for i in range(5):
            time.sleep(0.15)
            yield {"a": i}

    assert (
        run(script(NOTHING), pa.RecordBatchReader.from_batches(pa.schema([("a", pa.int64())]), batches_of(slow()))).stats.bound
        == "input"
    )


def batches_of(rows: Any) -> Any:
    return (pa.RecordBatch.from_pylist([row]) for row in rows)


def test_debug_keeps_what_a_replay_needs(
    run: Run, script: Script, tmp_path: Path, leaves_nothing: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    body = """
    import model

    def main(task_config):
        print("rows", task_config.dataset_length, task_config.num_workers, task_config.cluster, model.X)
        task_config.output_writer.write_batch({"n": [task_config.dataset_length]})
        counts = dict(task_config.splits), task_config.steps_per_epoch(1, split="odd")
        print("splits", counts, sum(len(batch["i"]) for batch in task_config.batches(2, split="odd")))
        if task_config.dataset_length == 3 and task_config.user_params["fail"]:
            raise ValueError("in the replay")
    """
    watcher = Watcher()
    files = [script("X = 'model'\n", "model.py")]
    path = script(body)
    kept = tmp_path / "kept"
    result = run(
        path, {"i": list(range(7))}, num_workers=2, output_schema="n bigint", user_files=files, debug=True, work_dir=kept,
        observer=watcher, user_params={"fail": False}, split={"even": 0.5, "odd": 0.5},
    )  # fmt: skip
    splits = next(line for line in watcher.lines if line.startswith("[worker:0] splits")).partition(" ")[2]
    assert result.work_dir == str(kept)
    assert any(line.startswith("[worker:0] rows 3 2") for line in watcher.lines)
    assert "rows 3 2" in (kept / "tasks" / "worker-0" / "log.txt").read_text()
    os.remove(path)

    def replay(*arguments: str) -> subprocess.CompletedProcess[str]:
        """What the command line says that it would become."""
        assert main(["replay", str(kept), *arguments, "--print-command", "--json"]) == 0
        return subprocess.run(json.loads(capsys.readouterr().out)["command"], capture_output=True, text=True)

    command = [sys.executable, "-m", "akrunner", "replay", str(kept)]
    chief = subprocess.run(command, capture_output=True, text=True)
    assert chief.returncode == 0, chief.stderr
    assert "rows 4 2" in chief.stdout and "alone" in chief.stdout and "it wrote 1 rows" in chief.stdout
    worker = replay("--task", "worker:0", "--cluster")
    assert "rows 3 2" in worker.stdout and "alone" not in worker.stdout and splits in worker.stdout
    assert main(["replay", str(kept), "--task", "ps:0"]) == 2 and "had chief:0, worker:0" in capsys.readouterr().err
    context = kept / "tasks" / "worker-0" / "context.json"
    told = json.loads(context.read_text())
    context.write_text(json.dumps({**told, "user_params": {"fail": True}}))
    failing = replay("--task", "worker:0")
    assert failing.returncode == 1 and "ValueError: in the replay" in failing.stderr
    assert str(kept / "tasks" / "worker-0" / "work" / "train.py") in failing.stderr, "the copy that ran"


def test_replay_of_a_failed_job(run: Run, script: Script, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    with pytest.raises(akrunner.ScriptFailedError) as caught:
        run(script("def main(c):\n    raise ValueError(c.dataset_length)\n"), work_dir=kept)
    assert caught.value.work_dir == str(kept)
    bundle, task = kept / "bundle.zip", kept / "tasks" / "chief-0"
    done = subprocess.run([sys.executable, str(bundle), "replay", str(task)], capture_output=True, text=True)
    assert done.returncode == 1 and "ValueError: 10" in done.stderr, "plain python is all it takes"


BAD: dict[str, Any] = {
    "no script": (dict(script="nowhere.py"), akrunner.ScriptError, "there is no file nowhere.py"),
    "no main": (dict(body="x = 1\n"), akrunner.ScriptError, "defines no main"),
    "syntax error": (dict(body="def main(c):\n  return )\n"), akrunner.ScriptError, r"(?s)train.py\", line 2.*return \)"),
    "no input": (dict(source="nowhere.csv"), akrunner.SourceError, "there is no file nowhere.csv"),
    "wrong schema": (dict(output_schema="id bigintt"), akrunner.SchemaError, r"(?s)bigint.*\n.*\^"),
    "unknown column": (dict(select="SELECT z FROM input"), akrunner.SourceError, "(?s)z.*its columns: a, x"),
    "type that cannot cross": (dict(source={"d": [{"x": 1}]}), akrunner.SchemaError, "column 'd' is struct"),
    "no workers": (dict(num_workers=0), akrunner.ConfigError, "num_workers=0"),
    "no such engine": (dict(engine_name="spark"), akrunner.ConfigError, "engine='spark'"),
    "no such interpreter": (dict(python_env="/no/python"), akrunner.PythonEnvError, "there is no /no/python"),
    "no interpreter on PATH": (dict(python_env="python9.9"), akrunner.PythonEnvError, "python9.9.*PATH"),
    "interpreter that does not run": (dict(python_env="/bin/false"), akrunner.PythonEnvError, "/bin/false is not a Python"),
    "table without schema": (
        dict(output_schema=None, output="odps://demo/tables/t"), akrunner.ConfigError, "output= needs output_schema="),
    "user params": (dict(user_params={"a": {1, 2}}), akrunner.ConfigError, r"user_params\['a'\] is a set"),
    "missing user file": (dict(user_files=["nowhere.py"]), akrunner.UserFilesError, "there is no nowhere.py"),
    "keras": (dict(keras="3"), akrunner.ConfigError, "keras='3'"),
    "schema of another type": (dict(output_schema=7), akrunner.ConfigError, "output_schema must be text"),
}  # fmt: skip


@pytest.mark.parametrize("what", BAD)
def test_bad_input(run: Run, script: Script, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    """Refused before any process is started."""
    options, error, words = BAD[what]
    options = dict(options)
    path = options.pop("script", None) or script(options.pop("body", NOTHING))

    def refuse(*args: Any, **kwargs: Any) -> None:
        raise AssertionError("a process was started")

    monkeypatch.setattr("akrunner.launch.process.subprocess.Popen.__init__", refuse) if "python_env" not in options else None
    with pytest.raises(error, match=words):
        if "engine_name" in options:
            akrunner.run(path, {"a": [1]}, engine=options["engine_name"])
        else:
            run(path, options.pop("source", None), **options)


def test_interpreter_without_tensorflow(run: Run, script: Script, tmp_path: Path) -> None:
    venv.create(tmp_path / "bare", symlinks=True)
    with pytest.raises(akrunner.PythonEnvError, match=r"has no TensorFlow.*pip install tensorflow"):
        run(script(NOTHING), python_env=tmp_path / "bare")
    with pytest.raises(akrunner.PythonEnvError, match="without bin/python"):
        run(script(NOTHING), python_env=tmp_path)


def test_work_dir_that_is_not_empty(run: Run, script: Script, tmp_path: Path) -> None:
    with pytest.raises(akrunner.ConfigError, match="is not empty"):
        run(script(NOTHING), work_dir=tmp_path)


def test_checkpoint_dir(run: Run, script: Script, tmp_path: Path) -> None:
    body = "import os\ndef main(c):\n    open(os.path.join(c.checkpoint_dir, c.task_type), 'w').close()\n"
    run(script(body), num_workers=2, checkpoint_dir=tmp_path / "deep" / "ckpt")
    assert sorted(os.listdir(tmp_path / "deep" / "ckpt")) == ["chief", "worker"]


def test_full_logs_of_a_failed_job_are_kept_and_the_oldest_forgotten(
    run: Run, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert workdir._FAILED_KEPT == 20
    monkeypatch.setattr(workdir, "_FAILED_KEPT", 2)
    path = script("def main(c):\n    print('the log')\n    raise ValueError\n")
    for _ in range(4):
        with pytest.raises(akrunner.ScriptFailedError) as caught:
            run(path)
    assert caught.value.failure is not None
    log = Path(caught.value.failure.log_path)
    assert log.read_text().startswith("the log")
    assert len(os.listdir(log.parents[3])) == 2


def test_columns_over_several_workers(run: Run, script: Script) -> None:
    """Rows as columns: dealt as ever, whole, in order, and replayable. No TensorFlow has a part in it."""
    body = """
    def main(task_config):
        assert task_config.dataset_file.endswith(".columns")
        for batch in task_config.batches(7):
            task_config.output_writer.write_batch({"id": batch["a"], "p": batch["x"]})
    """
    table = {"a": list(range(10_001)), "x": [i / 3 for i in range(10_001)]}
    result = run(script(body), table, num_workers=3, data_format="columns", debug=True)
    ids = result.table["id"].to_pylist()
    assert ids == [*range(0, 10_001, 3), *range(1, 10_001, 3), *range(2, 10_001, 3)]
    assert result.table["p"].to_pylist() == [i / 3 for i in ids], "a double crosses whole"
    assert result.work_dir is not None
    bundle, task = os.path.join(result.work_dir, "bundle.zip"), os.path.join(result.work_dir, "tasks", "worker-1")
    done = subprocess.run([sys.executable, bundle, "replay", task], capture_output=True, text=True)
    assert "it wrote 3333 rows" in done.stdout, done.stderr
    shutil.rmtree(result.work_dir)
    with pytest.raises(akrunner.ConfigError, match="data_format='rows': known formats are examples, columns"):
        run(script(body), data_format="rows")


@pytest.mark.cold
@pytest.mark.tensorflow
def test_reports_for_tensorboard(run: Run, script: Script, tmp_path: Path) -> None:
    """What tasks report is in event files, which TensorBoard's own loader reads."""
    body = """
    def main(task_config):
        for step in (10, 20, None):
            task_config.report({"loss": (step or 30) / 100.0, "lr": 0.5}, step)
    """
    run(script(body), num_workers=2, output_schema=None, tensorboard=tmp_path / "board")
    from tensorboard.backend.event_processing.event_file_loader import LegacyEventFileLoader

    assert sorted(os.listdir(tmp_path / "board")) == ["chief-0", "worker-0"]
    for task in ("chief-0", "worker-0"):
        (path,) = (tmp_path / "board" / task).iterdir()
        first, *events = LegacyEventFileLoader(str(path)).Load()
        assert first.file_version == "brain.Event:2"
        told = [(e.step, {v.tag: round(v.simple_value, 3) for v in e.summary.value}) for e in events]
        assert told == [(s, {"loss": loss, "lr": 0.5}) for s, loss in ((10, 0.1), (20, 0.2), (21, 0.3))]
    (tmp_path / "file").write_text("")
    with pytest.raises(akrunner.ConfigError, match="tensorboard: cannot make"):
        run(script(body), output_schema=None, tensorboard=tmp_path / "file" / "board")


def test_the_job_has_its_own_copy_of_the_script(run: Run, script: Script) -> None:
    """What AutoGraph, and whoever else asks for a function's source, is given is what runs, not what its author makes of the file meanwhile."""
    body = """
    import inspect, linecache

    def double(x):
        return 2 * x

    def main(task_config):
        with open(task_config.user_params["path"], "w") as f:
            f.write("# version 2\\n")
        linecache.checkcache()
        assert inspect.getsource(double) == "def double(x):\\n    return 2 * x\\n"
        raise ValueError("version 1")
    """
    path = script(body)
    with pytest.raises(akrunner.ScriptFailedError) as caught:
        run(path, user_params={"path": path})
    line = textwrap.dedent(body).splitlines().index('    raise ValueError("version 1")') + 1
    assert f'File "{path}", line {line}, in main\n    raise ValueError("version 1")' in str(caught.value)
