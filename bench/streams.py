"""Rows that cross as they come: how many, and for how long."""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa

import akrunner
from akrunner.codec import encode_records
from bench import tables
from bench.measuring import CHUNK, Row, ratio_row

_ECHO = """
def main(task_config):
    for record in task_config.dataset_fn():
        task_config.output_writer.write(record.numpy())
"""

_FLAT = """
import os, time
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

def main(task_config):
    import tensorflow as tf
    spec = task_config.feature_spec
    def batches(records):
        parsed = records.batch(1024).map(lambda b: tf.io.parse_example(b, spec)).prefetch(2)
        if tf.executing_eagerly():
            yield from parsed
            return
        batch = tf.compat.v1.data.make_one_shot_iterator(parsed).get_next()
        with tf.compat.v1.Session() as session:
            # as it stands in a graph: nobody takes the values out of TensorFlow
            step = tf.group(*batch.values()), tf.size(batch["label"])
            while True:
                try:
                    yield {"label": Counted(session.run(step)[1])}
                except tf.errors.OutOfRangeError:
                    return
    class Counted:
        def __init__(self, rows):
            self.shape = [rows]
    def rate(records):
        rows, began = 0, None
        for batch in batches(records):
            if began is None:
                began = time.perf_counter()
            else:
                rows += int(batch["label"].shape[0])
        return rows / (time.perf_counter() - began)
    stream = rate(task_config.dataset_fn())
    path = task_config.user_params["file"]
    rate(tf.data.TFRecordDataset(path))
    task_config.report({"stream": stream, "file": rate(tf.data.TFRecordDataset(path))})
"""


def stream() -> list[Row]:
    """A row's way in and out again at 1,000 rows/s; and rows at full speed, against reading a file on tmpfs."""
    warm, count, late = 10.0, 6000, []

    def rows() -> Any:
        time.sleep(warm)
        began = time.time()
        for i in range(count):
            wait = began + i / 1000 - time.time()
            if wait > 0:
                time.sleep(wait)
            yield {"i": i, "t": int(time.time() * 1e6)}

    two = "i bigint, t bigint"
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as folder:
        script = Path(folder, "echo.py")
        script.write_text(_ECHO)
        with akrunner.stream(script, rows(), input_schema=two, output_schema=two) as job:
            for batch in job:
                now = time.time() * 1e6
                late += [(now - sent) / 1000 for sent in batch.column("t").to_pylist()]
        p50, p99 = np.percentile(late[1000:], [50, 99])
        script.write_text(_FLAT)
        table = pa.Table.from_batches([tables.numbers(100_000, seed) for seed in range(10)])
        path = Path(folder, "t.tfrecord")
        with path.open("wb") as f:
            for batch in table.to_batches(max_chunksize=CHUNK):
                f.write(encode_records(batch).data)
        flat: list[Row] = []
        old = Path(__file__).parents[1] / ".envs" / "tf1.15" / "bin" / "python"
        for what, python in (("TensorFlow 2", None), ("TensorFlow 1.15", str(old))):
            if python is not None and not old.exists():
                print(f"NOT MEASURED: {what}; scripts/matrix prepares it", file=sys.stderr)
                continue
            pairs = []
            for _ in range(3):
                with akrunner.stream(script, table, user_params={"file": str(path)}, python_env=python) as job:
                    list(job)
                assert job.stats is not None
                pairs.append((job.stats.reports[-1]["stream"], job.stats.reports[-1]["file"]))
            ours, theirs = (statistics.median(values) for values in zip(*pairs, strict=True))
            flat.append(
                ratio_row(f"stream, flat out, to parsed batches, {what}", ours, theirs, 0.9, "TFRecordDataset on tmpfs")
            )
    return [
        ("stream, row in to result out, p50", f"{p50:.1f} ms", "1,000 rows/s, one worker", "", "<= 15 ms", bool(p50 <= 15)),
        ("the same, p99", f"{p99:.1f} ms", "", "", "<= 60 ms", bool(p99 <= 60)),
        *flat,
    ]


_SOAK = """
import resource, time

def main(task_config):
    import tensorflow as tf
    spec = task_config.feature_spec
    rows, told = 0, time.monotonic()
    for batch in task_config.dataset_fn().batch(1024).map(lambda b: tf.io.parse_example(b, spec)).prefetch(2):
        rows += int(batch["i"].shape[0])
        if time.monotonic() - told > 5:
            told = time.monotonic()
            with open("/proc/self/statm") as f:
                resident = int(f.read().split()[1]) * resource.getpagesize() / 1e6
            task_config.report({"rows": rows, "resident": resident})
"""


def soak(seconds: float = 600.0) -> list[Row]:
    """A stream at 50,000 rows/s for ten minutes: whether memory stays flat on both sides."""
    here: list[float] = []

    def rows() -> Any:
        began, sent, told = time.monotonic(), 0, 0.0
        while time.monotonic() - began < seconds:
            due = int((time.monotonic() - began) * 50_000) - sent
            if due >= 500:
                yield pa.record_batch({"i": np.arange(sent, sent + due), "x": np.full(due, 0.5)})
                sent += due
            time.sleep(0.005)
            if time.monotonic() - told > 5:
                told = time.monotonic()
                here.append(psutil.Process().memory_info().rss / 1e6)

    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "soak.py")
        script.write_text(_SOAK)
        source = pa.RecordBatchReader.from_batches(pa.schema([("i", pa.int64()), ("x", pa.float64())]), rows())
        with akrunner.stream(script, source) as job:
            list(job)
    assert job.stats is not None
    there = [report["resident"] for report in job.stats.reports]
    result = []
    for what, values in (("host", here), ("worker", there)):
        # the first tenth warms up: TensorFlow's arenas, Arrow's pool
        early, late = max(values[len(values) // 10 : len(values) // 5]), max(values[-len(values) // 10 :])
        grown = late - early
        result.append(
            (
                f"soak, {seconds / 60:g} min at 50,000 rows/s, memory of the {what}",
                f"{late:.0f} MB at the end",
                f"{early:.0f} MB in the second tenth",
                f"{grown:+.0f} MB",
                "<= +20 MB",
                grown <= 20,
            )
        )
    rate = job.stats.rows_in / seconds
    result.append(
        ("soak, rows a second taken", f"{rate:,.0f}", "50,000 sent", f"{rate / 50_000:.3f} x", ">= 0.99 x", rate >= 49_500)
    )
    return result
