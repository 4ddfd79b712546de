"""Tables that cross to a worker as a whole and back: codec, spool, memory, output, columns."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import akrunner
from akrunner.codec import decode_examples, encode_examples
from akrunner.schema import Schema
from bench import tables
from bench.measuring import CHUNK, Row, rate, ratio_row


def _protos() -> Any:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import tensorflow as tf

    train = tf.train
    return train, (train.FloatList, train.Int64List, train.BytesList, train.Features)


def codec() -> list[Row]:
    """Encode and decode against TensorFlow's protos, a row at a time in Python."""
    train, lists = _protos()
    rows: list[Row] = []
    for what, make, goal in (("encode numbers", tables.numbers, 100), ("encode, 3 strings more", tables.with_strings, 30)):
        batch, few = make(CHUNK), make(1000)
        theirs = rate(lambda few=few: tables.as_examples(few, train, lists), 1000)
        ours = rate(lambda batch=batch: encode_examples(batch), CHUNK)
        rows.append(ratio_row(what, ours, theirs, goal, "tf.train.Example per row"))
    image = tables.images(256)
    speed = rate(lambda: encode_examples(image), 256 * 20_000) / 1e9
    copied = rate(lambda: np.frombuffer(image.column(0).buffers()[2], np.uint8).copy(), 256 * 20_000) / 1e9
    rows.append(
        (
            "encode 20 kB binary",
            f"{speed:.2f} GB/s",
            f"memcpy: {copied:.1f} GB/s",
            f"{speed / copied:.2f} x",
            ">= 1 GB/s",
            speed >= 1,
        )
    )
    batch = tables.numbers(CHUNK)
    blobs = tables.as_examples(batch, train, lists)
    joined, lengths = b"".join(blobs), np.array([len(b) for b in blobs])
    schema = Schema.from_arrow(batch.schema)
    ours = rate(lambda: decode_examples(schema, joined, lengths), CHUNK)
    names = batch.schema.names

    def parse() -> None:
        for blob in blobs[:1000]:
            feature = train.Example.FromString(blob).features.feature
            for name in names:
                value = feature[name]
                _ = (value.float_list.value or value.int64_list.value)[0]

    rows.append(ratio_row("decode numbers", ours, rate(parse, 1000), 10, "protobuf per row, values read"))
    bare = rate(lambda: [train.Example.FromString(blob) for blob in blobs[:1000]], 1000)
    # the stricter reading of "parsing": no value is taken out of the message. Shown beside the other, whatever it says
    rows.append(ratio_row("decode numbers", ours, bare, 10, "protobuf per row, nothing read"))
    return rows


_READ = """
import os, sys, time
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

def main(task_config):
    import tensorflow as tf
    spec = task_config.feature_spec
    def read():
        began = time.perf_counter()
        data = tf.data.TFRecordDataset(task_config.dataset_file).batch(1024).map(lambda b: tf.io.parse_example(b, spec)).prefetch(2)
        n = 0
        for batch in data:
            n += 1
        return task_config.dataset_length / (time.perf_counter() - began)
    read()
    task_config.report({"read": max(read() for _ in range(3))})
"""


def spool() -> list[Row]:
    """From the host's table to the finished dataset file, against reading that file with TensorFlow afterwards."""
    count = 1_500_000
    table = pa.Table.from_batches([tables.numbers(100_000, seed) for seed in range(count // 100_000)])
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "read.py")
        script.write_text(_READ)
        best: list[tuple[float, float]] = []
        for _ in range(3):
            stats = akrunner.run(script, table).stats
            best.append((count / stats.feed_seconds, stats.reports[-1]["read"]))
    ours, theirs = (statistics.median(values) for values in zip(*best, strict=True))
    return [ratio_row("batch: table to dataset_file", ours, theirs, 1.2, "TFRecordDataset.batch(1024).map(parse_example)")]


_MEMORY = """
import resource, sys, akrunner
akrunner.run(sys.argv[1], sys.argv[2])
try:
    # ru_maxrss would begin with that of the process which started this one
    print(next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")) // 1024)
except OSError:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


def memory() -> list[Row]:
    """Peak memory of the host, a large Parquet file against one ten times larger."""
    peaks: dict[int, int] = {}
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "nothing.py")
        script.write_text("def main(task_config):\n    pass\n")
        for count in (2_000_000, 20_000_000):
            path = Path(folder, "t.parquet")
            schema = tables.numbers(1).schema
            with pq.ParquetWriter(path, schema) as writer:
                for seed in range(count // 500_000):
                    writer.write_batch(tables.numbers(500_000, seed))
            done = subprocess.run(
                [sys.executable, "-c", _MEMORY, str(script), str(path)], check=True, capture_output=True, text=True
            )
            peaks[count] = int(done.stdout.split()[-1])
    small, large = peaks.values()
    more = large - small
    return [("host memory, 20 M rows", f"{large} MB", f"2 M rows: {small} MB", f"{more:+d} MB", "<= +100 MB", more <= 100)]


_WRITE_BATCH = """
import time
import numpy as np

def main(task_config):
    columns = {"f%d" % i: np.random.rand(8192).astype(np.float32) for i in range(10)}
    columns["label"] = np.arange(8192)
    for _ in range(366):
        task_config.output_writer.write_batch(columns)
"""

_WRITE = """
import os, time
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf

def main(task_config):
    feature = {"f%d" % i: tf.train.Feature(float_list=tf.train.FloatList(value=[i / 3.0])) for i in range(10)}
    def example(i):
        feature["label"] = tf.train.Feature(int64_list=tf.train.Int64List(value=[i]))
        return tf.train.Example(features=tf.train.Features(feature=feature))
    class Nobody:
        def write(self, example):
            example.SerializeToString()
    for name, writer in (("alone", Nobody()), ("out", task_config.output_writer)):
        began = time.perf_counter()
        for i in range(100_000):
            writer.write(example(i))
        task_config.report({name: 100_000 / (time.perf_counter() - began)})
"""


def output() -> list[Row]:
    """Rows back into the table."""
    schema = ", ".join(f"{name} float" for name in tables.NUMBERS) + ", label bigint"
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "write.py")
        script.write_text(_WRITE_BATCH)
        speeds = []
        for _ in range(3):
            stats = akrunner.run(script, {"a": [1]}, output_schema=schema).stats
            speeds.append(stats.rows_out / (stats.seconds - stats.start_seconds))
        script.write_text(_WRITE)
        reports = akrunner.run(script, {"a": [1]}, output_schema=schema).stats
    alone, out = reports.reports[0]["alone"], reports.reports[1]["out"]
    blocked = reports.output_blocked_seconds / (100_000 / out)
    speed = statistics.median(speeds)
    return [
        ("write_batch, to the table", f"{speed:,.0f} rows/s", "", "", ">= 1 M rows/s", speed >= 1e6),
        (
            "write(example)",
            f"{out:,.0f} rows/s",
            f"building it and throwing it away: {alone:,.0f} rows/s",
            f"blocked {blocked:.0%}",
            "blocked < 10%",
            blocked < 0.1,
        ),
    ]


_COLUMNS = """
import os, time
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np

def main(task_config):
    import pyarrow as pa
    import tensorflow as tf
    names = [column["name"] for column in task_config.schema]

    def rate(batches, convert=tf.constant):
        rows, began = 0, None
        for batch in batches:
            tensors = [convert(batch[name]) for name in names]
            if began is None:
                began = time.perf_counter()
            else:
                rows += int(tensors[0].shape[0])
        return rows / (time.perf_counter() - began)

    way = task_config.user_params["way"]
    if way == "memory":
        with pa.memory_map(task_config.user_params["file"]) as f:
            table = pa.ipc.open_file(f).read_all()
        arrays = [{n: c.to_numpy() for n, c in zip(names, b.columns)} for b in table.to_batches(max_chunksize=1024)]
        found = [rate(iter(arrays)) for _ in range(3)][-1]
    elif way in ("batches", "plain"):
        found = rate(task_config.batches(1024))
    elif way == "lists":
        found = rate(task_config.batches(1024), lambda array: array)
    else:
        found = rate(task_config.dataset(1024), lambda tensor: tensor)
    task_config.report({"rate": found})
"""


def columns() -> list[Row]:
    """Columns through the pipe, into a loop over batches of 1,024: against Examples through it, and against memory."""
    count = 2_000_000
    table = pa.Table.from_batches([tables.numbers(100_000, seed) for seed in range(count // 100_000)])
    found: dict[str, list[float]] = {"memory": [], "batches": [], "columns": [], "examples": [], "plain": []}
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as folder:
        script, path = Path(folder, "read.py"), Path(folder, "t.arrow")
        script.write_text(_COLUMNS)
        with pa.ipc.new_file(str(path), table.schema) as writer:
            writer.write_table(table.slice(0, 1_000_000))
        for _ in range(3):
            for way, rates in found.items():
                form = "examples" if way in ("examples", "plain") else "columns"
                with akrunner.stream(script, table, user_params={"way": way, "file": str(path)}, data_format=form) as job:
                    list(job)
                assert job.stats is not None
                rates.append(job.stats.reports[-1]["rate"])
        lists = pa.Table.from_batches([tables.with_lists(50_000, seed) for seed in range(8)])
        varying: dict[str, list[float]] = {"lists": [], "examples": []}
        for _ in range(3):
            for way, rates in varying.items():
                with akrunner.stream(script, lists, user_params={"way": way, "file": str(path)}) as job:
                    list(job)
                assert job.stats is not None
                rates.append(job.stats.reports[-1]["rate"])
    speed = {way: statistics.median(rates) for way, rates in found.items()}
    return [
        ratio_row("dataset() on columns, through the pipe", speed["columns"], speed["examples"], 2, "the same on Examples"),
        ratio_row(
            "batches() on columns, through the pipe", speed["batches"], speed["memory"], 0.4, "the same Arrow data in memory"
        ),
        ratio_row("batches() on Examples, through the pipe", speed["plain"], speed["examples"], 1, "dataset() on them"),
        ratio_row(
            "batches() on Examples with lists of 0 to 100 numbers",
            *(statistics.median(varying[way]) for way in ("lists", "examples")),
            1,
            "dataset() on them",
        ),
    ]
