"""Tables that a script asks for by name, against the same rows dealt to it as columns."""

from __future__ import annotations

import contextlib
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import akrunner
from akrunner.tables.chosen import ROOT_VARIABLE, store_for
from akrunner.tables.names import TableName
from akrunner.tables.store import TableInfo
from bench.measuring import Row

_ROWS = 2_000_000
_TABLE, _OUT = "odps://bench/tables/t", "odps://bench/tables/out"
_TURNS = 3

#: both ways in one job, one after the other: the columns are dealt before `main`, and their way there is the host's feed_seconds. What a dataset
#: asks for is on its way while it is read, and what was dealt lies in a file by then: 0.2 x of that is 250,000 rows/s where it reads 1.25 M
_READ = """
import os, time
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
from akrunner.worker.tables.rows import Table

def passed(dataset):
    import tensorflow as tf

    rows = 0
    began = time.perf_counter()
    if tf.executing_eagerly():
        for batch in dataset:
            rows += int((batch["x"] if isinstance(batch, dict) else batch[0]).shape[0])
        return rows / (time.perf_counter() - began)
    with tf.compat.v1.Session() as session:
        following = tf.compat.v1.data.make_one_shot_iterator(dataset).get_next()
        size = tf.size(following["x"] if isinstance(following, dict) else following[0])
        while True:
            try:
                rows += session.run(size)
            except tf.errors.OutOfRangeError:
                return rows / (time.perf_counter() - began)

def main(task_config):
    share = {"slice_id": task_config.user_params["workers"] and int(task_config.task_type == "worker"), "slice_count": task_config.num_workers}
    began = time.perf_counter()
    rows = sum(rows for _, rows, _ in Table("odps://bench/tables/t", **share).rows().chunks())
    told = {"asked": time.perf_counter() - began, "rows_asked": rows}
    began = time.perf_counter()
    for batch in task_config.batches(8192):
        pass
    told["dealt"] = time.perf_counter() - began
    if not task_config.user_params["workers"]:
        import tensorflow as tf

        asked = lambda: tf.data.TableRecordDataset(["odps://bench/tables/t"], (np.int64(0), np.float64(0), ""))
        for name, made in (("batch", lambda: asked().batch(512)), ("map", lambda: asked().map(lambda x, y, s: (x, y, s)).batch(512)),
                           ("columns", lambda: task_config.dataset(512))):
            passed(made().take(10))
            told[name] = passed(made())
    task_config.report(told)
"""
_WRITE = """
import time
import common_io

def main(task_config):
    rows = [(i, i / 2, "row %d" % i) for i in range(1000)]
    began = time.perf_counter()
    with common_io.table.TableWriter("odps://bench/tables/out") as writer:
        for _ in range(500):
            writer.write(rows, (0, 1, 2))
    told = {"table": 500_000 / (time.perf_counter() - began)}
    began = time.perf_counter()
    for _ in range(500):
        x, y, s = zip(*rows)
        task_config.output_writer.write_batch({"x": list(x), "y": list(y), "s": list(s)})
    told["output_writer"] = 500_000 / (time.perf_counter() - began)
    task_config.report(told)
"""
_COLUMNS = pa.schema([("x", pa.int64()), ("y", pa.float64()), ("s", pa.string())])


def _rows() -> pa.Table:
    x = np.arange(_ROWS)
    return pa.table({"x": x, "y": x / 2, "s": [f"row {i}" for i in range(1000)] * (_ROWS // 1000)}, schema=_COLUMNS)


@contextlib.contextmanager
def _tables(rows: pa.Table) -> Iterator[Path]:
    before = os.environ.get(ROOT_VARIABLE)
    with tempfile.TemporaryDirectory() as folder:
        os.environ[ROOT_VARIABLE] = str(Path(folder, "tables"))
        store = store_for("bench")
        for name in (_TABLE, _OUT):
            store.create(TableName.parse(name), TableInfo(_COLUMNS))
        output = store.output(TableName.parse(_TABLE))
        part = output.part("a")
        for batch in rows.to_batches(max_chunksize=65536):
            part.write(batch)
        store.commit([output])
        try:
            yield Path(folder)
        finally:
            os.environ.pop(ROOT_VARIABLE)
            if before is not None:
                os.environ[ROOT_VARIABLE] = before


def asked() -> list[Row]:
    """Read by two workers, read as datasets, and written."""
    rows = _rows()
    out: list[Row] = []
    with _tables(rows) as folder:
        script = Path(folder, "read.py")
        script.write_text(_READ)
        given: dict[str, Any] = {"tables": [_TABLE], "data_format": "columns"}
        pairs = []
        for _ in range(_TURNS):
            stats = akrunner.run(script, rows, num_workers=2, user_params={"workers": True}, **given).stats
            dealt = stats.feed_seconds + max(one["dealt"] for one in stats.reports)
            pairs.append((_ROWS / max(one["asked"] for one in stats.reports), _ROWS / dealt))
        ours, theirs = _medians(pairs)
        out.append(_row("a table read by two workers", ours, theirs, 0.5, "dealt as columns"))
        old = Path(__file__).parents[1] / ".envs" / "tf1.15" / "bin" / "python"
        for what, python in (("TensorFlow 2", None), ("TensorFlow 1.15", str(old))):
            if python is not None and not old.exists():
                print(f"NOT MEASURED: {what}; scripts/matrix prepares it", file=sys.stderr)
                continue
            turns = [
                akrunner.run(script, rows, python_env=python, user_params={"workers": False}, **given).stats.reports[0]
                for _ in range(_TURNS)
            ]
            for name, words, goal in (("batch", "batch(512)", 0.2), ("map", "map(...).batch(512)", 0.01)):
                ours, theirs = _medians([(turn[name], turn["columns"]) for turn in turns])
                out.append(_row(f"TableRecordDataset, {words}, {what}", ours, theirs, goal, "task_config.dataset(512)"))
        script.write_text(_WRITE)
        wrote = []
        for _ in range(_TURNS):
            given = {"output_tables": [_OUT], "output_schema": "x bigint, y double, s string"}
            turn = akrunner.run(script, {"a": [1]}, **given).stats.reports[0]
            wrote.append((turn["table"], turn["output_writer"]))
        out.append(_row("TableWriter, 1,000 rows at a time", *_medians(wrote), 0.5, "the same by write_batch"))
        out.append(_start(folder))
    return out


def _start(folder: Path) -> Row:
    """A command of PAI from the call to its end, against `akrunner.run` of the same script: what the command costs by itself."""
    script = folder / "start.py"
    script.write_text("print('here')\n")
    command = f"PAI -name tensorflow -Dscript='file://{script}' -Dtables='{_TABLE}' -Doutputs='{_OUT}';"
    turns = []
    for _ in range(5):
        began = time.perf_counter()
        akrunner.pai(command, python_env=sys.executable)
        middle = time.perf_counter()
        akrunner.run(script, tables=[_TABLE], output_tables=[_OUT])
        turns.append((middle - began, time.perf_counter() - middle))
    ours, theirs = _medians(turns)
    told = f"{ours:.2f} s", f"akrunner.run: {theirs:.2f} s", f"{ours / theirs:.2f} x", "<= 1.5 x"
    return ("a PAI command, from its call to its end", *told, ours / theirs <= 1.5)


def _medians(pairs: list[tuple[float, float]]) -> tuple[float, float]:
    ours, theirs = zip(*pairs, strict=True)
    return statistics.median(ours), statistics.median(theirs)


def _row(what: str, ours: float, theirs: float, goal: float, against: str) -> Row:
    ratio = ours / theirs
    told = (what, f"{ours:,.0f} rows/s", f"{against}: {theirs:,.0f} rows/s", f"{ratio:.2f} x", f">= {goal:g} x")
    return (*told, ratio >= goal)
