"""`scripts/bench [NAME ...]`: run all measurements (the soak takes ten minutes), or those whose names begin so; prints a table in
Markdown."""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Callable, Dict, List, Tuple

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

import akrunner
from akrunner.codec import decode_examples, encode_examples, encode_records
from akrunner.schema import Schema
from bench import tables
from bench.asked import asked
from bench.doctor import doctor
from bench.flink import flink
from bench.maxcompute import maxcompute
from bench.pack import pack
from bench.reading import reading

#: what was measured: (what, measured, against, ratio, goal, whether it was met)
Row = Tuple[str, str, str, str, str, bool]
_CHUNK = 8192


def rate(call: Callable[[], Any], units: float, seconds: float = 1.0) -> float:
    """Units a second, the median of several runs after a warm-up."""
    call()
    times: List[float] = []
    while sum(times) < seconds or len(times) < 5:
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return units / statistics.median(times)


def ratio_row(what: str, ours: float, theirs: float, goal: float, against: str) -> Row:
    ratio = ours / theirs
    return (what, f"{ours:,.0f} rows/s", f"{against}: {theirs:,.0f} rows/s", f"{ratio:.2f} x", f">= {goal:g} x", ratio >= goal)


def _protos() -> Any:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import tensorflow as tf

    train = tf.train
    return train, (train.FloatList, train.Int64List, train.BytesList, train.Features)


def codec() -> List[Row]:
    """Encode and decode against TensorFlow's protos, a row at a time in Python."""
    train, lists = _protos()
    rows: List[Row] = []
    for what, make, goal in (("encode numbers", tables.numbers, 100), ("encode, 3 strings more", tables.with_strings, 30)):
        batch, few = make(_CHUNK), make(1000)
        theirs = rate(lambda few=few: tables.as_examples(few, train, lists), 1000)
        ours = rate(lambda batch=batch: encode_examples(batch), _CHUNK)
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
    batch = tables.numbers(_CHUNK)
    blobs = tables.as_examples(batch, train, lists)
    joined, lengths = b"".join(blobs), np.array([len(b) for b in blobs])
    schema = Schema.from_arrow(batch.schema)
    ours = rate(lambda: decode_examples(schema, joined, lengths), _CHUNK)
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


def spool() -> List[Row]:
    """From the host's table to the finished dataset file, against reading that file with TensorFlow afterwards."""
    count = 1_500_000
    table = pa.Table.from_batches([tables.numbers(100_000, seed) for seed in range(count // 100_000)])
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "read.py")
        script.write_text(_READ)
        best: List[Tuple[float, float]] = []
        for _ in range(3):
            stats = akrunner.run(script, table).stats
            best.append((count / stats.feed_seconds, stats.reports[-1]["read"]))
    ours, theirs = (statistics.median(values) for values in zip(*best, strict=True))
    return [ratio_row("batch: table to dataset_file", ours, theirs, 1.2, "TFRecordDataset.batch(1024).map(parse_example)")]


_TIMES = """
import time
import tensorflow as tf

def main(task_config):
    entered = time.time()
    task_config.report({"entered": entered, "left": time.time()})
"""


def start() -> List[Row]:
    """A tiny job: to main() and back."""
    import_code = "import time; a = time.time(); import tensorflow; print(time.time() - a)"
    akrunner.run  # noqa: B018  the package is imported once, as in a notebook
    ours, back, bare = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "times.py")
        script.write_text(_TIMES)
        for _ in range(7):
            began = time.time()
            subprocess.run([sys.executable, "-c", import_code], check=True, capture_output=True)
            bare.append(time.time() - began)
            began = time.time()
            result = akrunner.run(script, {"a": [1, 2, 3]})
            ended = time.time()
            ours.append(result.stats.reports[0]["entered"] - began)
            back.append(ended - result.stats.reports[0]["left"])
    over = statistics.median([a - b for a, b in zip(ours, bare, strict=True)])
    after = statistics.median(back)
    base = statistics.median(bare)
    return [
        (
            "run() to main()",
            f"{statistics.median(ours):.2f} s",
            f'python -c "import tensorflow": {base:.2f} s',
            f"{over:+.2f} s",
            "<= +0.5 s",
            over <= 0.5,
        ),
        ("main() returned to run() returned", f"{after:.2f} s", "", "", "<= 0.3 s", after <= 0.3),
    ]


def warm() -> List[Row]:
    """The same with a worker that has waited, against the same with one that has not."""
    cold: List[float] = []
    ours: List[float] = []
    again: List[float] = []
    replaced: List[float] = []
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "times.py")
        script.write_text(_TIMES)

        def to_main(how: str) -> float:
            began = time.time()
            result = akrunner.run(script, {"a": [1, 2, 3]})
            if result.stats.starts != {"chief:0": how}:
                raise RuntimeError(f"it was to be {how}: {result.stats.starts}")
            return float(result.stats.reports[0]["entered"]) - began

        to_main("cold")
        for _ in range(7):
            cold.append(to_main("cold"))
        with akrunner.warm(workers=1) as kept:
            if not kept.wait():
                raise RuntimeError(f"none came: {kept}")
            for _ in range(7):
                asked = time.time()
                ours.append(to_main("warm"))
                if not kept.wait():
                    raise RuntimeError(f"none came: {kept}")
                replaced.append(float(kept.status()["spares"][0]["since"]) - asked)
            for _ in range(7):
                # nobody waits until the one before has been replaced
                again.append(to_main("warm"))
    first, then, second, late = map(statistics.median, (cold, ours, again, replaced))
    goal = 0.1 * first
    return [
        (
            f"run() to main(), {what}",
            f"{seconds:.2f} s",
            f"cold: {first:.2f} s",
            f"{seconds / first:.3f} x",
            "<= 0.1 x",
            seconds <= goal,
        )
        for what, seconds in (("a warm worker", then), ("a warm worker, right after another", second))
    ] + [
        (
            "run() to another warm worker in its place",
            f"{late:.2f} s",
            f"cold: {first:.2f} s",
            f"{late / first:.3f} x",
            "<= 0.1 x",
            late <= goal,
        )
    ]


_MEMORY = """
import resource, sys, akrunner
akrunner.run(sys.argv[1], sys.argv[2])
try:
    # ru_maxrss would begin with that of the process which started this one
    print(next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")) // 1024)
except OSError:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


def memory() -> List[Row]:
    """Peak memory of the host, a large Parquet file against one ten times larger."""
    peaks: Dict[int, int] = {}
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


def output() -> List[Row]:
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


def stream() -> List[Row]:
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
            for batch in table.to_batches(max_chunksize=_CHUNK):
                f.write(encode_records(batch).data)
        flat: List[Row] = []
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


def soak(seconds: float = 600.0) -> List[Row]:
    """A stream at 50,000 rows/s for ten minutes: whether memory stays flat on both sides."""
    here: List[float] = []

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


def columns() -> List[Row]:
    """Columns through the pipe, into a loop over batches of 1,024: against Examples through it, and against memory."""
    count = 2_000_000
    table = pa.Table.from_batches([tables.numbers(100_000, seed) for seed in range(count // 100_000)])
    found: Dict[str, List[float]] = {"memory": [], "batches": [], "columns": [], "examples": [], "plain": []}
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
        varying: Dict[str, List[float]] = {"lists": [], "examples": []}
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


_MODEL = """
import os, sys
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf

tf.keras.utils.set_random_seed(7)

class Scores(tf.Module):
    # a recurrent cell over 20 steps: many small operations one after the other, as in most models of sequences and trees
    def __init__(self):
        super().__init__()
        self.w = tf.Variable(tf.random.normal([43, 32], stddev=0.2))
        self.out = tf.Variable(tf.random.normal([32, 1]))

    @tf.function(input_signature=[tf.TensorSpec([None, 11], tf.float32, name="x")])
    def __call__(self, x):
        state = tf.zeros([tf.shape(x)[0], 32])
        for _ in range(20):
            state = tf.tanh(tf.matmul(tf.concat([x, state], 1), self.w))
        return {"p": tf.squeeze(tf.matmul(state, self.out), 1)}

scores = Scores()
tf.saved_model.save(scores, sys.argv[1], signatures=scores.__call__)
"""
_PLAIN = """
import os, sys, time
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import pyarrow.parquet as pq
import tensorflow as tf

loaded = tf.saved_model.load(sys.argv[1])
signature = loaded.signatures["serving_default"]
signature(x=tf.zeros([1024, 11]))
began = time.perf_counter()
found = []
for batch in pq.ParquetFile(sys.argv[2]).iter_batches(batch_size=1024):
    x = np.stack([column.to_numpy() for column in batch.columns], axis=1).astype(np.float32)
    found.append(signature(x=tf.constant(x))["p"].numpy())
p = np.concatenate(found)
print(len(p) / (time.perf_counter() - began))
"""
_ONE_ROW = """
import os, sys, time
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf

loaded = tf.saved_model.load(sys.argv[1])
signature = loaded.signatures["serving_default"]
row = [0.5] * 11
late = []
for _ in range(3000):
    began = time.perf_counter()
    float(signature(x=tf.constant([row]))["p"].numpy()[0])
    late.append(time.perf_counter() - began)
print(1000 * float(np.percentile(late[500:], 50)))
"""


def predict() -> List[Row]:
    """A SavedModel over Parquet, against the plain script for it; one row at a time, against a call in the process."""
    count = 600_000
    names = tables.numbers(1).schema.names
    ones: List[float] = []
    twos: List[float] = []
    plain: List[float] = []
    calls: List[float] = []
    asked: List[float] = []
    with tempfile.TemporaryDirectory() as folder:
        model, path = str(Path(folder, "model")), str(Path(folder, "t.parquet"))
        subprocess.run([sys.executable, "-c", _MODEL, model], check=True, capture_output=True)
        pq.write_table(pa.Table.from_batches([tables.numbers(100_000, seed) for seed in range(count // 100_000)]), path)

        def alone(code: str, *arguments: str) -> float:
            done = subprocess.run([sys.executable, "-c", code, *arguments], check=True, capture_output=True, text=True)
            return float(done.stdout)

        for _ in range(3):
            plain.append(alone(_PLAIN, model, path))
            for rates, workers in ((ones, 1), (twos, 2)):
                stats = akrunner.predict(
                    model, path, selected_cols=names, output_schema="p float", reserved_cols=[], num_workers=workers
                ).stats
                rates.append(count / (stats.seconds - stats.start_seconds))
            calls.append(alone(_ONE_ROW, model))
            with akrunner.LocalPredictor(model) as predictor:
                for i in range(3000):
                    began = time.perf_counter()
                    predictor.predict({"x": [0.5] * 11})
                    if i >= 500:
                        asked.append(1000 * (time.perf_counter() - began))
    p50, call = statistics.median(asked), statistics.median(calls)
    one, two = statistics.median(ones), statistics.median(twos)
    return [
        ratio_row("predict, one worker", one, statistics.median(plain), 0.8, "a plain script in one process"),
        ratio_row("predict, two workers", two, one, 1.4, "one worker"),
        (
            "LocalPredictor, one row, p50",
            f"{p50:.2f} ms",
            f"calling the signature in-process: {call:.2f} ms",
            f"{p50 - call:+.2f} ms",
            "<= +1.5 ms",
            p50 - call <= 1.5,
        ),
    ]


def rendezvous() -> List[Row]:
    """A thousand tasks find each other; one falls silent."""
    from akrunner.cluster.rendezvous import RendezvousClient, RendezvousServer

    tasks, limit = [f"worker:{i}" for i in range(1000)], 3.0
    with RendezvousServer(tasks, "token", heartbeat_limit=limit) as server:
        clients = [RendezvousClient(f"127.0.0.1:{server.port}", "token", task) for task in tasks]
        began = time.perf_counter()
        for outcome in [one.registering("h", i) for i, one in enumerate(clients)]:
            assert len(outcome()) == len(tasks)
        took = time.perf_counter() - began
        signs = time.perf_counter()
        for one in clients[:-1]:
            one.beat()
        each = (time.perf_counter() - signs) / (len(clients) - 1)
        # since it registered
        silent = began + took
        while not server.failed:
            for one in clients[:-1]:
                one.beat()
        lost = time.perf_counter() - silent
        for one in clients:
            one.close()
    return [
        ("rendezvous of 1,000 tasks", f"{took:.2f} s", f"a sign of life from each: {1000 * each:.2f} s", "", "< 5 s", took < 5),
        (
            "one of 1,000 falls silent, until it is named",
            f"{lost:.1f} s",
            f"its limit: {limit:g} s",
            f"{lost - limit:+.1f} s",
            "<= +2 s",
            lost <= limit + 2,
        ),
    ]


MEASUREMENTS: Dict[str, Callable[[], List[Row]]] = {
    "codec": codec,
    "spool": spool,
    "start": start,
    "warm": warm,
    "memory": memory,
    "output": output,
    "stream": stream,
    "soak": soak,
    "columns": columns,
    "reading": lambda: reading(ratio_row),
    "predict": predict,
    "rendezvous": rendezvous,
    "pack": pack,
    "asked": asked,
    "doctor": doctor,
    "maxcompute": lambda: maxcompute(ratio_row),
    "flink": lambda: flink(ratio_row),
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__)
    parser.add_argument("names", nargs="*", help="of " + ", ".join(MEASUREMENTS))
    chosen = parser.parse_args().names
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, pyarrow {pa.__version__}\n")
    print("| what | measured | against | ratio | goal | |\n| --- | --- | --- | --- | --- | --- |")
    met = True
    with tempfile.TemporaryDirectory() as state:
        # warm workers that somebody keeps (`akrunner warm start`) are not what is measured
        os.environ["XDG_STATE_HOME"] = state
        for name, measure in MEASUREMENTS.items():
            if not chosen or any(name.startswith(one) for one in chosen):
                for *cells, good in measure():
                    met &= bool(good)
                    print("| " + " | ".join([*map(str, cells), "met" if good else "NOT MET"]) + " |", flush=True)
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
