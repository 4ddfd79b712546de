"""Clusters: who is started, who is waited for, who is told to go, and what a failure leads to. Scripts without TensorFlow."""

from __future__ import annotations

import itertools
import os
import random
import signal
import socket
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

import akrunner
from akrunner.engines.base import Progress
from akrunner.engines.supervision import stall
from tests.conftest import ENDS, Script, ends
from tests.contract.conftest import Run, Workers

pytestmark = pytest.mark.slow

#: what each task was, told by itself
ROLES = """
    import json, os, time

    def main(task_config):
        config = json.loads(os.environ["TF_CONFIG"])
        with open(os.path.join(task_config.user_params["notes"], task_config.task_type + str(task_config.task_index)), "w") as f:
            json.dump({"cluster": sorted(config["cluster"]), "rows": task_config.dataset_length}, f)
        if task_config.task_type == "ps":
            import threading
            threading.Event().wait()      # as server.join() does
        if task_config.task_type == "chief":
            # who is done ends the others: not before they have written
            while len(os.listdir(task_config.user_params["notes"])) < 5:
                time.sleep(0.02)
            time.sleep(0.1)
    """


def notes(directory: Path) -> dict[str, Any]:
    import json

    return {path.name: json.loads(path.read_text()) for path in sorted(directory.iterdir())}


def test_every_role_runs_and_only_workers_get_rows(run: Run, script: Script, tmp_path: Path) -> None:
    told = tmp_path / "notes"
    told.mkdir()
    params = {"notes": str(told)}
    result = run(script(ROLES), output_schema=None, num_workers=2, num_ps=2, evaluator=True, user_params=params)
    seen = notes(told)
    assert sorted(seen) == ["chief0", "evaluator0", "ps0", "ps1", "worker0"]
    assert {name: one["rows"] for name, one in seen.items()} == {"chief0": 5, "worker0": 5, "evaluator0": 0, "ps0": 0, "ps1": 0}
    assert {name: one["cluster"] for name, one in seen.items() if name != "evaluator0"} == {
        name: ["chief", "ps", "worker"] for name in ("chief0", "worker0", "ps0", "ps1")
    }
    assert seen["evaluator0"]["cluster"] == ["chief", "evaluator", "ps", "worker"]
    # parameter servers are ended by us, and that is no failure
    assert {task.name: task.exit for task in result.tasks if task.name.startswith("ps")} == {
        "ps:0": "exit code 0",
        "ps:1": "exit code 0",
    }
    assert result.stats.warnings == []
    assert result.stats.shares == (5, 5)


def test_counts_from_the_parallelism(run: Run, script: Script) -> None:
    body = """
        def main(task_config):
            if task_config.task_type == "ps":
                import threading
                threading.Event().wait()
        """
    result = run(script(body), parallelism=4, output_schema=None)
    assert [task.name for task in result.tasks] == ["chief:0", "worker:0", "worker:1", "ps:0"]


def test_a_coordinators_rows_are_the_workers(run: Run, script: Script) -> None:
    body = """
        import os, time

        def main(task_config):
            rows = sum(len(batch["a"]) for batch in task_config.batches(4)) if task_config.task_type == "worker" else 0
            task_config.output_writer.write_batch({"id": [task_config.task_index + 10 * (task_config.task_type == "chief")], "p": [rows]})
            if task_config.task_type == "chief":
                while len(os.listdir(task_config.checkpoint_dir)) < 3:
                    time.sleep(0.02)
            else:
                open(os.path.join(task_config.checkpoint_dir, task_config.task_type + str(task_config.task_index)), "w").close()
                task_config._job.serve()
        """
    result = run(script(body), num_workers=2, num_ps=1, coordinator=True, data_format="columns")
    assert [task.name for task in result.tasks] == ["chief:0", "worker:0", "worker:1", "ps:0"]
    rows = {(row["id"], row["p"]) for row in result.table.to_pylist() if row["p"]}
    assert rows == {(0, 5.0), (1, 5.0)}
    assert [task.rows_in for task in result.tasks] == [0, 5, 5, 0]
    assert all(task.exit == "exit code 0" for task in result.tasks)


#: every task writes a row, some when the chief is done for long
EVERY_TASK_WRITES = """
    import os, time

    def main(task_config):
        task, notes = (task_config.task_type, task_config.task_index), task_config.user_params["notes"]
        if task[0] != "chief":
            while not os.path.exists(os.path.join(notes, "chief0")):
                time.sleep(0.02)
        if task[0] != "ps" or task_config.user_params["ps"] == "writes":
            time.sleep({"chief": 0, "worker": 0.8, "ps": 0.1}[task[0]])
            task_config.output_writer.write_batch({"id": [task[1]], "p": [len(task[0])]})
        open(os.path.join(notes, task[0] + str(task[1])), "w").close()
        if task[0] == "ps" and task_config.user_params["ps"] == "computes":
            while True:
                sum(range(1000))
        if task == ("worker", 1):
            # as TensorFlow's own, which never returns
            namespace = {"time": time}
            exec(compile("def join():\\n    time.sleep(1000)", "/tensorflow/python/training/server_lib.py", "exec"), namespace)
            namespace["join"]()
    """


@pytest.mark.parametrize("ps", ["writes", "computes"])
def test_no_row_is_lost_of_who_does_not_say_that_it_serves(run: Run, script: Script, tmp_path: Path, ps: str) -> None:
    told = tmp_path / "notes"
    told.mkdir()
    params = {"notes": str(told), "ps": ps}
    result = run(
        script(EVERY_TASK_WRITES), num_workers=2, num_ps=1, coordinator=True, data_format="columns", user_params=params
    )
    rows = sorted((row["p"], row["id"]) for row in result.table.to_pylist())
    assert rows == [(2, 0)] * (ps == "writes") + [(5, 0), (6, 0), (6, 1)]
    warned = [one for one in result.stats.warnings if "ps:0" in one and "return task_config.serve()" in one]
    assert len(warned) == (ps == "computes"), result.stats.warnings


def test_an_evaluator_gets_its_last_evaluation(run: Run, script: Script, tmp_path: Path) -> None:
    body = """
        import os, time

        def main(task_config):
            done = os.path.join(task_config.checkpoint_dir, "last")
            if task_config.task_type == "evaluator":
                while not os.path.exists(done):
                    time.sleep(0.05)
                time.sleep(0.5)
                task_config.report({"accuracy": 0.75}, step=7)
            elif task_config.task_type == "chief":
                open(done, "w").close()
        """
    result = run(script(body), num_workers=2, evaluator=True, output_schema=None)
    assert result.stats.report_table.to_pylist()[0]["accuracy"] == 0.75
    assert result.stats.report_table.column_names == ["task", "step", "time", "accuracy"]
    assert {task.name: task.exit for task in result.tasks}["evaluator:0"] == "exit code 0"


def test_an_evaluator_that_goes_on_is_ended(run: Run, script: Script) -> None:
    body = """
        import time

        def main(task_config):
            while task_config.task_type == "evaluator":
                time.sleep(0.1)
        """
    with ends():
        result = run(script(body), evaluator=True, evaluator_timeout=0.5, output_schema=None)
    assert "evaluator_timeout=" in result.stats.warnings[0]


def test_an_evaluator_that_fails_fails_the_job(run: Run, script: Script) -> None:
    body = """
        import time

        def main(task_config):
            if task_config.task_type == "evaluator":
                time.sleep(0.3)
                raise ValueError("no checkpoint")
        """
    with pytest.raises(akrunner.ScriptFailedError, match=r"\[evaluator:0\] raised ValueError"):
        run(script(body), evaluator=True, output_schema=None)


def test_a_parameter_server_that_does_not_go_is_killed(run: Run, script: Script) -> None:
    body = """
        import ctypes, os, signal, time

        def main(task_config):
            there = os.path.join(task_config.checkpoint_dir, "there")
            if task_config.task_type == "ps":
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
                open(there, "w").close()
                ctypes.PyDLL(None).sleep(1000)      # and keeps the interpreter's lock
            while not os.path.exists(there):
                time.sleep(0.05)
            time.sleep(0.3)
        """
    with ends():
        result = run(script(body), num_ps=1, output_schema=None)
    assert "ps:0 did not end within" in result.stats.warnings[0]


def test_a_parameter_server_that_fails_fails_the_job(run: Run, script: Script) -> None:
    body = """
        import time

        def main(task_config):
            if task_config.task_type == "ps":
                raise ValueError("no memory for that")
            time.sleep(1000)
        """
    with ends(), pytest.raises(akrunner.ScriptFailedError, match=r"\[ps:0\] raised ValueError"):
        run(script(body), num_ps=1, output_schema=None)


def test_every_task_is_down_though_one_never_comes_out_of_its_import(run: Run, script: Script, tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.mkdir()
    body = """
        import json, os, tempfile, time

        task = json.loads(os.environ["TF_CONFIG"])["task"]["type"]
        if task == "chief":
            while len(os.listdir(os.environ["THERE"])) < 3:
                time.sleep(0.02)
            raise ImportError("no module of this name")
        tempfile.mkstemp(dir=os.environ["THERE"])
        time.sleep(1000)

        def main(task_config):
            pass
        """
    with ends(), pytest.raises(akrunner.ScriptFailedError, match=r"\[chief:0\] raised ImportError") as caught:
        run(script(body), num_workers=2, num_ps=1, evaluator=True, output_schema=None, env={"THERE": str(there)})
    assert {other.what.split(" and was stopped")[0] for other in caught.value.others} == {
        "was importing the script or taking its rows"
    }


# -- restarts

FAILS_ONCE = """
    import os, signal, sys, time

    def main(task_config):
        note = os.path.join(task_config.checkpoint_dir, task_config.task_type + str(task_config.attempt))
        open(note, "w").close()
        ids = [int(i) for batch in task_config.batches(4) for i in batch["a"]]
        task_config.output_writer.write_batch({"id": ids, "p": [task_config.attempt] * len(ids)})
        if task_config.attempt == 0 and task_config.task_type == "worker":
            while not os.path.exists(os.path.join(task_config.checkpoint_dir, "chief0")):
                time.sleep(0.01)
            %s
    """


@pytest.mark.parametrize(
    ("how", "words"),
    [("raise ValueError('bad luck')", "bad luck"), ("os._exit(3)", "exit code 3"), ("os.kill(os.getpid(), 9)", "SIGKILL")],
)
def test_every_task_starts_again_with_its_rows_from_the_start(
    run: Run, script: Script, tmp_path: Path, how: str, words: str
) -> None:
    kept = tmp_path / "ckpt"
    result = run(
        script(FAILS_ONCE % how), num_workers=2, max_restarts=2, restart_delay=0, checkpoint_dir=str(kept), data_format="columns",
        output=str(tmp_path / "out.parquet"),
    )  # fmt: skip
    assert result.stats.attempt == 1
    assert len(result.stats.warnings) == 1 and words in result.stats.warnings[0] and "1 of 2" in result.stats.warnings[0]
    assert sorted(os.listdir(kept)) == ["chief0", "chief1", "worker0", "worker1"]
    import pyarrow.parquet as pq

    # what the failed attempt wrote is gone, and every row is there once
    rows = pq.read_table(tmp_path / "out.parquet").to_pylist()
    assert sorted(row["id"] for row in rows) == list(range(10))
    assert {row["p"] for row in rows} == {1.0}


COUNTS = """
    import json, os

    def main(task_config):
        seen = {}
        where = lambda folder: os.path.join(folder, "seen.json")

        def save(folder):
            with open(where(folder), "w") as f:
                json.dump(seen, f)

        def restore(folder):
            with open(where(folder)) as f:
                seen.update(json.load(f))

        checkpoint = task_config.checkpoint(every=3, save=save, restore=restore)
        last = task_config.user_params["kills"] + 5 * task_config.attempt
        for epoch in checkpoint.epochs(3):
            for batch in checkpoint.batches(10):
                seen.setdefault(str(epoch), []).extend(batch["a"].tolist())
                checkpoint.trained()
                if checkpoint.step == last and task_config.attempt < 3 and task_config.attempt % 2 == (task_config.task_type == "worker"):
                    os.kill(os.getpid(), 9)
        for epoch, rows in sorted(seen.items()):
            task_config.output_writer.write_batch({"epoch": [int(epoch)], "rows": [len(rows)], "sum": [sum(set(rows))]})
"""


def test_a_job_that_is_killed_goes_on_after_its_last_save(run: Run, script: Script, tmp_path: Path) -> None:
    """Each epoch has each row once, however often one of two tasks was killed; and a new job goes on, too."""
    given: Any = dict(source={"a": list(range(203))}, num_workers=2, data_format="columns")
    given["output_schema"] = "epoch bigint, rows bigint, sum bigint"
    path = script(COUNTS)
    undisturbed = run(path, user_params={"kills": 1000}, **given)
    killed = run(
        path, user_params={"kills": 2}, max_restarts=3, restart_delay=0, checkpoint_dir=str(tmp_path / "saves"), **given
    )
    assert killed.stats.attempt == 3 and killed.table.equals(undisturbed.table)
    with pytest.raises(akrunner.ScriptFailedError, match="saves of an earlier job: --resume"):
        run(path, user_params={"kills": 1000}, checkpoint_dir=str(tmp_path / "saves"), **given)
    again = run(path, user_params={"kills": 1000}, checkpoint_dir=str(tmp_path / "saves"), resume=True, **given)
    assert again.table.equals(undisturbed.table)
    with pytest.raises(akrunner.ConfigError, match="resume= .* means nothing without checkpoint_dir="):
        run(path, user_params={"kills": 1000}, resume=True, **given)


def test_restarts_come_to_an_end(run: Run, script: Script) -> None:
    with pytest.raises(akrunner.ScriptFailedError, match="never") as caught:
        run(script("def main(c):\n    raise ValueError('never')\n"), max_restarts=2, restart_delay=0)
    assert len(caught.value.warnings) == 2
    assert "started again (2 of 2)" in str(caught.value)


def test_nothing_restarts_unasked(run: Run, script: Script) -> None:
    with pytest.raises(akrunner.TaskDiedError) as caught:
        run(script(FAILS_ONCE % "os._exit(3)"), num_workers=2, data_format="columns")
    assert caught.value.warnings == ()


def test_a_source_that_cannot_be_read_again_refuses(run: Run, script: Script) -> None:
    rows = iter([{"a": 1}])
    with pytest.raises(akrunner.ConfigError, match="max_restarts: .* can be read only once"):
        run(script("def main(c):\n    pass\n"), rows, max_restarts=1)


def test_restarts_replay_sql(run: Run, script: Script, tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text("a\n1\n2\n3\n4\n")
    result = run(
        script(FAILS_ONCE % "os._exit(3)"),
        str(table),
        select="a + 1 AS a",
        num_workers=2,
        max_restarts=1,
        restart_delay=0,
        data_format="columns",
    )
    assert sorted(result.table["id"].to_pylist()) == [2, 3, 4, 5]


def test_a_taken_port_means_new_ports(run: Run, script: Script) -> None:
    body = """
        import json, os, socket

        def main(task_config):
            port = json.loads(os.environ["TF_CONFIG"])["cluster"]["chief"][0].split(":")[1]
            if task_config.attempt == 0:
                port = task_config.user_params["taken"]
            with socket.socket() as s:
                s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                s.bind(("127.0.0.1", int(port)))
        """
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        result = run(script(body), output_schema=None, chief=True, user_params={"taken": taken.getsockname()[1]})
    assert result.stats.attempt == 1
    assert "[chief:0] found its port taken; everything was started again with new ports" in result.stats.warnings[0]


def test_addresses(run: Run, script: Script) -> None:
    body = """
        def main(task_config):
            task_config.output_writer.write_batch({"id": [0], "host": [task_config.cluster["chief"][0].rsplit(":", 1)[0]]})
        """
    options: dict[str, Any] = {"output_schema": "id bigint, host string"}
    assert run(script(body), **options).table["host"].to_pylist() == ["127.0.0.1"]
    options["chief"] = True
    asked = run(script(body), bind_host="0.0.0.0", advertised_host="this-machine", **options)
    assert asked.table["host"].to_pylist() == ["this-machine"]
    with pytest.raises(akrunner.ConfigError, match="bind_host='192.0.2.1'"):
        run(script(body), bind_host="192.0.2.1", **options)


def test_jobs_started_together_never_collide(run: Run, script: Script) -> None:
    """Ten times two jobs of two tasks, each of which binds the port it was given, as TensorFlow would. (Thousands of ports, without
    jobs: `tests/unit/cluster/test_ports.py`.)"""
    path = script(
        """
        import socket

        def main(task_config):
            address = task_config.cluster[task_config.task_type][task_config.task_index]
            with socket.socket() as s:
                s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                s.bind(("127.0.0.1", int(address.split(":")[1])))
                s.listen()
        """
    )
    failed: list[BaseException] = []

    def jobs() -> None:
        for _ in range(10):
            try:
                result = run(path, {"a": [1, 2]}, num_workers=2, output_schema=None)
                assert result.stats.attempt == 0
            except BaseException as e:
                failed.append(e)
                return

    threads = [threading.Thread(target=jobs) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(150)
    assert not failed, failed[0]


# -- nothing moves

STUCK = """
    import threading

    def main(task_config):
        if task_config.task_type == "worker":
            wait_for_the_others()

    def wait_for_the_others():
        threading.Event().wait(1000)
    """


def test_a_job_in_which_nothing_moves_is_ended_and_explained(run: Run, script: Script, tmp_path: Path) -> None:
    path = script(STUCK)
    with ends(), pytest.raises(akrunner.JobStalledError, match="nothing has moved for 1 s") as caught:
        run(path, num_workers=2, stall_timeout=1, output_schema=None, work_dir=str(tmp_path / "work"))
    told = caught.value.report
    assert "[chief:0] done" in told
    assert f"[worker:0] in main(); at {path}:9 in wait_for_the_others" in told
    assert "stacks of [worker:0]" in told and "stall_timeout=" in str(caught.value)
    assert (tmp_path / "work" / "stall.txt").read_text().strip() == told


def test_a_session_with_a_task_that_is_gone(run: Run, script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    """As TensorFlow does it: whoever connects when the chief is done waits for it. It is said long before stall_timeout."""
    monkeypatch.setattr(stall, "SOON_SECONDS", 1)
    # the innermost call is the session's own: what it calls is not Python
    body = """
        import select

        def main(task_config):
            if task_config.task_type == "worker":
                code = compile("def _extend_graph():\\n    select.select([], [], [], 60)", "tensorflow/python/client/session.py", "exec")
                names = {"select": select}
                exec(code, names)
                names["_extend_graph"]()
        """
    with pytest.raises(
        akrunner.JobStalledError, match=r"^worker:0 waits for a TensorFlow session with chief:0, done"
    ) as caught:
        run(script(body), num_workers=2, output_schema=None)
    assert "'/job:ps', '/job:worker/task:0'" in str(caught.value) and "stacks of [worker:0]" in caught.value.report


def test_a_stalled_job_may_go_on(run: Run, script: Script) -> None:
    body = """
        import time

        def main(task_config):
            time.sleep(3.5)
        """
    told: list[Any] = []
    observer: Any = SimpleNamespace(progress=told.append, log=lambda task, line: None)
    result = run(script(body), stall_timeout=1, stall_action="warn", output_schema=None, observer=observer)
    assert told[0].stalls == 0 and told[-1].stalls == len(result.stats.warnings)
    assert result.stats.warnings and all("nothing has moved" in warning for warning in result.stats.warnings)


def test_a_task_that_computes_is_well(run: Run, script: Script) -> None:
    body = """
        import time

        def main(task_config):
            until = time.monotonic() + 3
            while time.monotonic() < until:
                sum(range(1000))
        """
    assert run(script(body), stall_timeout=1, output_schema=None).stats.warnings == []


def test_a_task_whose_child_computes_is_well(run: Run, script: Script) -> None:
    body = """
        import subprocess, sys

        def main(task_config):
            code = "import time\\nuntil = time.monotonic() + 3\\nwhile time.monotonic() < until: sum(range(1000))"
            subprocess.run([sys.executable, "-c", code], check=True)
        """
    assert run(script(body), stall_timeout=1, output_schema=None).stats.warnings == []


def test_reports_are_signs_of_life(run: Run, script: Script) -> None:
    body = """
        import time

        def main(task_config):
            for step in range(12):
                time.sleep(0.25)
                task_config.report({"loss": 1 / (step + 1)}, step=step)
        """
    result = run(script(body), stall_timeout=1, output_schema=None)
    assert result.stats.warnings == []
    assert result.stats.report_table["loss"].to_pylist()[:2] == [1.0, 0.5]


def test_a_slow_source_is_not_the_tasks_fault(run: Run, script: Script) -> None:
    schema = pa.schema([("a", pa.int64())])
    told, waits = threading.Event(), "waits for the source to give rows"

    class Watching:
        def progress(self, progress: Progress) -> None:
            if any(waits in one for one in progress.warnings):
                told.set()

        def log(self, task: str, line: str) -> None:
            pass

    def batches() -> Any:
        yield pa.record_batch([[1]], schema)
        # on a busy machine the tasks use the processor for longer, and are not silent
        told.wait(60)

    reader = pa.RecordBatchReader.from_batches(schema, batches())
    result = run(script("def main(c):\n    pass\n"), reader, stall_timeout=1, output_schema=None, observer=Watching())
    assert result.stats.rows_in == 1
    assert any(waits in one for one in result.stats.warnings)


# -- uneven shares

EVEN = """
    def main(task_config):
        sizes, weights = [], []
        for batch in task_config.batches(100, uneven=task_config.user_params["uneven"]):
            sizes.append(len(batch["a"]))
            weights.append(float(batch["sample_weight"].sum()) if "sample_weight" in batch else len(batch["a"]))
        steps = task_config.steps_per_epoch(100, uneven=task_config.user_params["uneven"])
        task_config.output_writer.write_batch({"rows": [sum(sizes)], "weight": [sum(weights)], "batches": [len(sizes)], "steps": [steps]})
    """


@pytest.mark.parametrize(
    ("uneven", "rows", "weights", "dropped", "padded"),
    [("drop", [500, 500], [500, 500], 1, 0), ("pad", [501, 501], [501, 500], 0, 1), ("keep", [501, 500], [501, 500], 0, 0)],
)
def test_uneven_shares(run: Run, script: Script, uneven: str, rows: Any, weights: Any, dropped: int, padded: int) -> None:
    result = run(
        script(EVEN), {"a": range(1001), "s": ["x"] * 1001, "l": [[1, 2]] * 1001}, num_workers=2, data_format="columns",
        output_schema="rows bigint, weight double, batches bigint, steps bigint", user_params={"uneven": uneven},
    )  # fmt: skip
    table = result.table
    assert table["rows"].to_pylist() == rows and table["weight"].to_pylist() == weights
    assert (result.stats.rows_dropped, result.stats.rows_padded) == (dropped, padded)
    assert len(result.stats.warnings) == dropped + padded
    if dropped:
        assert "rows left out of each pass" in result.stats.warnings[0] and "[chief:0] 1" in result.stats.warnings[0]
    if padded:
        assert "rows made up in each pass" in result.stats.warnings[0] and "[worker:0] 1" in result.stats.warnings[0]
    if uneven != "keep":
        assert table["batches"].to_pylist() == table["steps"].to_pylist()


def test_a_word_uneven_does_not_know(run: Run, script: Script) -> None:
    with pytest.raises(akrunner.ScriptFailedError, match="uneven='cut': give 'drop', 'pad' or 'keep'"):
        run(
            script(EVEN), num_workers=2, data_format="columns", user_params={"uneven": "cut"},
            output_schema="rows bigint, weight double, batches bigint, steps bigint",
        )  # fmt: skip


# -- resources


def test_cores_and_threads(engine: Any, run: Run, script: Script) -> None:
    body = """
        import os

        def main(task_config):
            cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
            task_config.output_writer.write_batch({
                "cores": [",".join(map(str, cores))], "threads": [os.environ.get("TF_NUM_INTRAOP_THREADS", "")],
                "cards": [os.environ.get("CUDA_VISIBLE_DEVICES", "-")],
            })
        """
    options: dict[str, Any] = {"output_schema": "cores string, threads string, cards string", "num_workers": 2}
    shared = run(script(body), **options).table.to_pylist()
    total = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    assert [row["threads"] for row in shared] == [str(max(1, total // 2))] * 2
    if engine != "local":
        with pytest.raises(akrunner.ConfigError, match="on Flink a slot's share is the cluster's to say"):
            run(script(body), cpus_per_worker=1, **options)
        return
    if hasattr(os, "sched_getaffinity") and total >= 2:
        own = run(script(body), cpus_per_worker=1, gpus_per_worker=0, **options).table.to_pylist()
        assert len({row["cores"] for row in own}) == 2 and {row["threads"] for row in own} == {"1"}
        assert {row["cards"] for row in own} == {""}
    with pytest.raises(akrunner.ConfigError, match="cpus_per_worker=1000"):
        run(script(body), cpus_per_worker=1000, **options)


def test_what_tasks_used_is_in_the_stats(run: Run, script: Script) -> None:
    body = """
        import time

        def main(task_config):
            memory = bytearray(200 << 20)
            until = time.process_time() + 0.3
            while time.process_time() < until:
                pass
        """
    (task,) = run(script(body), output_schema=None).tasks
    assert task.peak_rss > 200 << 20 and task.cpu_seconds > 0.3


# -- one of them dies, at some moment

TOGETHER = """
    import os, time

    def main(task_config):
        if task_config.task_type in ("chief", "worker"):
            ids = [int(i) for batch in task_config.batches(4) for i in batch["a"]]
            time.sleep(0.25)
            task_config.output_writer.write_batch({"id": ids, "p": [0.0] * len(ids)})
            time.sleep(0.25)
        elif task_config.task_type == "ps":
            import threading
            threading.Event().wait()
        else:
            time.sleep(0.6)
    """


@pytest.mark.parametrize("restarts", [0, 1])
@pytest.mark.parametrize("seeds", [range(0, 6), range(6, 12)], ids=["0-5", "6-11"])
def test_a_task_is_killed_at_some_moment(run: Run, workers: Workers, script: Script, seeds: range, restarts: int) -> None:
    """Never a hang, never an orphan (the fixture looks), never a wrong success. (`scripts/chaos` kills as often as one likes.)"""
    path = script(TOGETHER)
    outcomes = []
    for seed in seeds:
        chance = random.Random(seed)
        killer = _Killer(workers, chance.uniform(0, 1.2), chance)
        killer.start()
        try:
            result = run(
                path,
                num_workers=2,
                num_ps=1,
                evaluator=True,
                max_restarts=restarts,
                restart_delay=0,
                data_format="columns",
                timeout=ENDS,
            )
            assert sorted(result.table["id"].to_pylist()) == list(range(10)), seed
            assert result.stats.attempt <= restarts
            outcomes.append("again" if result.stats.attempt else "well")
        except akrunner.JobTimeoutError:
            raise
        except akrunner.JobError as e:
            assert restarts == 0, f"seed {seed}: {e}"
            # on Flink a process may be killed that has not said yet whose it is
            assert "SIGKILL" in str(e) or "a subtask has gone" in str(e), seed
            outcomes.append("failed")
        finally:
            killer.join()
    assert ("again" if restarts else "failed") in outcomes


class _Killer(threading.Thread):
    """Kills one of the engine's tasks, once."""

    def __init__(self, workers: Workers, after: float, chance: random.Random) -> None:
        super().__init__(daemon=True)
        self._workers = workers
        self._after = after
        self._chance = chance

    def run(self) -> None:
        time.sleep(self._after)
        for _ in itertools.repeat(None, 20):
            tasks = self._workers()
            if tasks:
                os.kill(self._chance.choice(tasks).pid, signal.SIGKILL)
                return
            time.sleep(0.05)


@pytest.mark.parametrize("workers", [1, 2])
def test_workers_without_a_chief(run: Run, script: Script, workers: int) -> None:
    """As TensorFlow's tutorials count the workers, and choose who saves."""
    body = """
    import json, os

    def main(task_config):
        told = json.loads(os.environ["TF_CONFIG"])
        workers, index = len(told["cluster"]["worker"]), told["task"]["index"]
        is_chief = told["task"]["type"] == "worker" and index == 0 and "chief" not in told["cluster"]
        task_config.output_writer.write_batch({"row": [f"{task_config.task_type} {index} of {workers} {is_chief}"]})
    """
    result = run(script(body), output_schema="row string", num_workers=workers, chief=False)
    assert result.table["row"].to_pylist() == [f"worker {i} of {workers} {i == 0}" for i in range(workers)]
    assert [task.name for task in result.tasks] == [f"worker:{i}" for i in range(workers)]


def test_one_worker_alone_is_told_of_no_cluster(run: Run, script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless the job says what it is; what the host itself is a member of is not its."""
    monkeypatch.setenv("TF_CONFIG", '{"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "worker", "index": 1}}')
    body = """
    import os

    def main(task_config):
        task_config.output_writer.write_batch({"row": [os.environ.get("TF_CONFIG", "none")[:20] + task_config.task_type]})
    """
    path = script(body)
    said = [run(path, output_schema="row string", chief=chief).table["row"][0].as_py() for chief in (None, True)]
    assert said == ["nonechief", '{"cluster": {"chief"chief']
