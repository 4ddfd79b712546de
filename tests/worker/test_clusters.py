"""Clusters of real TensorFlow: what the examples train, and what happens when one of the workers is lost."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import akrunner
from akrunner.launch.interpreters import Interpreter
from tests.conftest import Script, ends

pytestmark = pytest.mark.tensorflow

examples: Any = SimpleNamespace(**runpy.run_path(str(Path(__file__).parents[2] / "examples" / "cluster" / "run.py")))


def check_shared(result: akrunner.Result) -> None:
    """Every worker has the same variables, and they classify."""
    table = result.table
    assert table is not None
    rows = table.to_pylist()
    assert len(rows) == 2 and rows[0]["variables"] == rows[1]["variables"] != 0
    assert sum(row["rows"] for row in rows) == result.stats.rows_in
    assert sum(row["correct"] for row in rows) >= 0.9 * result.stats.rows_in


@pytest.mark.warm(keras="legacy")
@pytest.mark.parametrize(
    ("uneven", "warning"), [("pad", "rows made up in each pass .*: .worker:0. 1"), ("drop", "rows left out .*: .chief:0. 1")]
)
def test_keras_in_step(leaves_nothing: Path, uneven: str, warning: str) -> None:
    import re

    params = {"uneven": uneven, "epochs": 9, "learning_rate": 0.15}
    result = examples.mirrored(select="SELECT * FROM input LIMIT 149", user_params=params)
    check_shared(result)
    assert len(result.stats.warnings) == 1 and re.search(warning, result.stats.warnings[0])


def test_a_loop_of_ones_own(leaves_nothing: Path) -> None:
    # learns as much as by its own numbers, in half of the steps
    check_shared(examples.custom_loop(user_params={"epochs": 50, "batch_size": 25}))


def test_parameter_servers_and_a_coordinator(leaves_nothing: Path) -> None:
    result = examples.parameter_server()
    (row,) = result.table.to_pylist()
    # two workers have read their own shares: all rows of the table, none of them on the chief
    assert result.stats.shares == (75, 75) and row["different_rows"] == 150 and row["rows"] == 600 * 16
    # it began at log 3; how far it comes is a matter of how old the gradients are that a busy machine adds
    assert row["loss"] < 0.9 and row["variables"] > 0
    assert [(task.name, task.rows_in, task.exit) for task in result.tasks] == [
        ("chief:0", 0, "exit code 0"), ("worker:0", 75, "exit code 0"), ("worker:1", 75, "exit code 0"), ("ps:0", 0, "exit code 0"),
    ]  # fmt: skip


@pytest.mark.matrix
@pytest.mark.parametrize("servers", [2, 0], ids=["parameter-servers", "all-reduce"])
def test_estimators(leaves_nothing: Path, matrix_python: Interpreter, servers: int) -> None:
    if not matrix_python.tensorflow or not matrix_python.tensorflow.startswith(("1.", "2.3.")):
        return  # this TensorFlow has no Estimators
    result = examples.estimator(matrix_python.path, servers)
    rows = result.table.to_pylist()
    assert len(rows) == 2 and min(row["step"] for row in rows) >= 600
    # what is on parameter servers may have had another worker's last step when the second looked
    ahead = rows[0]["step"] != rows[1]["step"]
    assert rows[0] == rows[1] or (servers and ahead and abs(rows[0]["variables"] - rows[1]["variables"]) < 1)
    # the evaluator has had its last evaluation
    (evaluated,) = result.stats.report_table.to_pylist()
    assert evaluated["task"] == "evaluator:0" and evaluated["step"] >= 600 and evaluated["accuracy"] >= 0.9
    assert {task.exit for task in result.tasks} == {"exit code 0"}


COLLECTIVE = """
    import time
    import tensorflow as tf

    def main(task_config):
        strategy = tf.distribute.MultiWorkerMirroredStrategy()

        @tf.function
        def total(x):
            return strategy.reduce(tf.distribute.ReduceOp.SUM, strategy.run(lambda: x), axis=None)

        assert float(total(tf.constant(1.0))) == 2.0
        what = task_config.user_params["what"]
        if task_config.task_type == "worker":
            if what == "raise":
                time.sleep(1)
                raise ValueError("this worker gives up")
            if what == "leave":
                time.sleep(1000)
        total(tf.constant(1.0))
    """


def test_the_chief_fails_while_others_are_in_server_join(leaves_nothing: Path, script: Script) -> None:
    body = """
        import os, time
        import tensorflow as tf

        def main(task_config):
            if task_config.task_type != "chief":
                server = tf.distribute.Server(
                    tf.train.ClusterSpec(task_config.cluster), job_name=task_config.task_type, task_index=task_config.task_index
                )
                open(os.path.join(task_config.checkpoint_dir, task_config.task_type), "w").close()
                server.join()
            while len(os.listdir(task_config.checkpoint_dir)) < 2:
                time.sleep(0.05)
            raise ValueError("no more")
        """
    with ends(), pytest.raises(akrunner.ScriptFailedError, match=r"\[chief:0\] raised ValueError in main\(\): no more"):
        akrunner.run(script(body), {"a": [1, 2]}, num_workers=2, num_ps=1)


def test_a_worker_fails_while_another_waits_in_a_collective(leaves_nothing: Path, script: Script) -> None:
    with ends(), pytest.raises(akrunner.ScriptFailedError, match=r"\[worker:0\] raised ValueError .*this worker gives up"):
        akrunner.run(script(COLLECTIVE), {"a": [1, 2]}, num_workers=2, user_params={"what": "raise"})


def test_a_collective_nobody_joins(leaves_nothing: Path, script: Script) -> None:
    with pytest.raises(akrunner.JobStalledError) as caught:
        akrunner.run(script(COLLECTIVE), {"a": [1, 2]}, num_workers=2, user_params={"what": "leave"}, stall_timeout=4)
    told = caught.value.report
    assert "[chief:0] in main(); waits in a TensorFlow operation" in told and "train.py" in told
    assert "[worker:0] in main(); at " in told and "stacks of [chief:0]" in told


@pytest.mark.matrix
def test_threads_on_the_matrix(leaves_nothing: Path, script: Script, matrix_python: Interpreter) -> None:
    check_threads(script, matrix_python.path)


def test_threads(leaves_nothing: Path, script: Script) -> None:
    check_threads(script, None)


def check_threads(script: Script, python_env: str | None) -> None:
    """TensorFlow's pool has as many threads as were asked for: the process has three more with three more."""
    body = """
        import os
        import numpy as np
        import tensorflow as tf

        def main(task_config):
            v1 = tf.compat.v1
            with tf.Graph().as_default(), v1.Session() as session:
                session.run(tf.matmul(np.ones((300, 300), np.float32), np.ones((300, 300), np.float32)))
                task_config.output_writer.write_batch({"n": [len(os.listdir("/proc/self/task"))]})
        """
    if sys.platform != "linux":
        pytest.skip("counts threads in /proc")
    path = script(body)
    counts = [
        akrunner.run(
            path,
            {"a": [1]},
            output_schema="n bigint",
            intra_op_parallelism=threads,
            env={"OMP_NUM_THREADS": "1"},
            python_env=python_env,
        ).to_pandas()["n"][0]
        for threads in (2, 5)
    ]
    assert counts[1] - counts[0] == 3
