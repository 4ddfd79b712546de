"""A stream's barriers, in a real TensorFlow: every way to draw rows has done with those of before when it asks for what is behind."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from akrunner.launch.interpreters import Interpreter

ROOT = Path(__file__).parents[2]
#: prints {"format way": [batch or "barrier n", ...]}; ten rows lie between two barriers
PROGRAM = """
import json, threading, time

import numpy as np
import tensorflow as tf

from akrunner.wire import column_layout as layout
from akrunner.worker import data, stream
from akrunner.worker.column_rows import Columns

if not tf.executing_eagerly():
    tf.compat.v1.enable_eager_execution()
SCHEMA = [{"name": "a", "kind": "int64", "dtype": "int64", "shape": [], "nullable": False}]


def example(i):
    made = tf.train.Example()
    made.features.feature["a"].int64_list.value.append(i)
    return made.SerializeToString()


def chunk(ids, form):
    if form == "columns":
        packed = layout.pack(len(ids), [({"name": "a", "form": "numbers", "dtype": "int64", "shape": [len(ids)]}, [np.array(ids)])])
        return len(ids), b"".join(bytes(memoryview(part).cast("B")) for part in packed)
    examples = [example(i) for i in ids]
    return len(ids), np.array([len(e) for e in examples], np.uint32).tobytes() + b"".join(examples)


def batches(rows, source, way):
    if way == "scalars":
        spec = {"a": tf.io.FixedLenFeature([], tf.int64)}
        return ([tf.io.parse_single_example(row, spec)["a"].numpy()] for row in source.dataset())
    if way == "batches":
        return (batch["a"] for batch in rows.batches(4))
    return (batch["a"].numpy() for batch in rows.dataset(4, drop_remainder=way == "whole"))


def seen(form, way):
    source, log = stream.RowStream(form, True), []
    source.answered = lambda number: log.append("barrier %d" % number)
    rows = (data.Examples if form == "examples" else Columns)(SCHEMA, None, source)

    def feed():
        for number in (1, 2):
            for first in (number * 10 - 10, number * 10 - 5):
                source.put(*chunk(range(first, first + 5), form), host_is_there=bool)
            source.barrier(number, bool)
            time.sleep(0.3)
        source.put(*chunk([20], form), host_is_there=bool)
        source.end(bool)

    feeding = threading.Thread(target=feed)
    feeding.start()
    for batch in batches(rows, source, way):
        # whatever is drawn ahead is drawn by now
        time.sleep(0.02)
        log.append([int(i) for i in batch])
    feeding.join()
    return log


ways = {"examples": ["dataset", "whole", "batches", "scalars"], "columns": ["dataset", "whole", "batches"]}
print("SEEN " + json.dumps({form + " " + way: seen(form, way) for form in ways for way in ways[form]}))
"""


def told(printed: str) -> dict[str, list[Any]]:
    (line,) = [line for line in printed.splitlines() if line.startswith("SEEN ")]
    found: dict[str, list[Any]] = json.loads(line[5:])
    return found


def seen(python: str) -> dict[str, list[Any]]:
    environ = {"PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3", "PATH": "/usr/bin:/bin"}
    done = subprocess.run([python, "-c", PROGRAM], env=environ, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr[-2000:]
    return told(done.stdout)


def check(seen: dict[str, list[Any]]) -> None:
    short = [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9], "barrier 1", [10, 11, 12, 13], [14, 15, 16, 17], [18, 19], "barrier 2", [20]]
    whole = [[0, 1, 2, 3], [4, 5, 6, 7], "barrier 1", [8, 9, 10, 11], [12, 13, 14, 15], [16, 17, 18, 19], "barrier 2"]
    for name in ("examples dataset", "examples batches", "columns dataset", "columns batches"):
        assert seen.pop(name) == short, name
    for name in ("examples whole", "columns whole"):
        assert seen.pop(name) == whole, name
    scalars = [*range(10), "barrier 1", *range(10, 20), "barrier 2", 20]
    assert seen == {"examples scalars": [one if isinstance(one, str) else [one] for one in scalars]}


@pytest.mark.cold
@pytest.mark.tensorflow
def test_barriers(in_warm_worker: Callable[..., str]) -> None:
    check(told(in_warm_worker(PROGRAM)))


@pytest.mark.cold
@pytest.mark.matrix
def test_barriers_on_the_matrix(matrix_python: Interpreter) -> None:
    check(seen(matrix_python.path))
