"""`scripts/bench reading`: what each argument of `task_config.dataset` is worth, against the same without it, in the same job."""

from __future__ import annotations

import gzip
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import akrunner
from akrunner.codec import encode_records
from bench import tables

Row = tuple[str, str, str, str, str, bool]

_COMMON = """
import os, time
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf

def passes(dataset, size, step=None, epochs=1):
    # rows a second of the last pass; `step` is what the script does with a batch
    for epoch in range(epochs):
        rows, began = 0, time.perf_counter()
        for batch in dataset:
            rows += int(tf.shape(size(batch))[0])
            if step is not None:
                step(batch)
        rate = rows / (time.perf_counter() - began)
    return rate

def told(task_config, ways):
    # by turns, so that whatever else the machine does meets all of them
    found = {name: [] for name in ways}
    for turn in range(4):
        for name, way in ways.items():
            rate = way()
            if turn:
                found[name].append(rate)
    for name, rates in found.items():
        # the quickest: what else runs on the machine makes any of them slower, and none quicker
        task_config.report({name: max(rates)})
"""
_ROWS = (
    _COMMON
    + """
def main(task_config):
    spec = task_config.feature_spec
    names = sorted(name for name in spec if name != "label")

    def work(x, y):
        # of each row by itself, or of all of a batch: the same to it
        z = tf.stack([x[name] for name in names], axis=-1)
        for _ in range(4):
            z = tf.math.log1p(tf.abs(tf.sin(z)))
        return z, y

    def plain():
        records = tf.data.TFRecordDataset(task_config.dataset_file)
        return records.batch(1024).map(lambda batch: tf.io.parse_example(batch, spec)).prefetch(2)

    def a_row():
        records = tf.data.TFRecordDataset(task_config.dataset_file)
        def one(record):
            x = tf.io.parse_single_example(record, spec)
            return work(x, x["label"])
        return records.take(task_config.dataset_length // 10).map(one).batch(1024).prefetch(2)

    def stepped(prefetch):
        # a step that computes elsewhere, as on a graphics card
        rows = task_config.dataset(1024, prefetch=prefetch)
        return lambda: passes(rows, label, lambda e: time.sleep(0.003))

    read = task_config.dataset
    label, target = (lambda e: e["label"]), (lambda e: e[1])
    kept = read(1024, cache=True)
    told(task_config, {
        "plain": lambda: passes(plain(), label),
        "dataset": lambda: passes(read(1024), label),
        "map": lambda: passes(read(1024, label="label", map=work), target),
        "map_row": lambda: passes(a_row(), target),
        "cached": lambda: passes(kept, label),
        "prefetch": stepped(2),
        "no_prefetch": stepped(0),
    })

    def computing(e):
        until = time.perf_counter() + 0.01
        while time.perf_counter() < until:
            pass

    # whole loops of two seconds each, with their ends: all of them count, as only some wait there
    tuner, began, rows = tf.data.Options(), {True: 0.0, False: 0.0}, 0
    for _ in range(4):
        for tuned in began if hasattr(type(tuner), "autotune") else ():
            tuner.autotune.enabled = tuned
            start = time.perf_counter()
            passes(read(64).take(200).with_options(tuner), label, computing)
            began[tuned] += time.perf_counter() - start
        rows += 200 * 64
    if began[True]:
        task_config.report({"untuned": rows / began[False], "tuned": rows / began[True]})
"""
)
_IMAGES = (
    _COMMON
    + """
def main(task_config):
    spec = task_config.feature_spec
    how = {"size": (160, 160), "augment": True}

    def plain():
        def one(record):
            row = tf.io.parse_single_example(record, spec)
            image = tf.image.convert_image_dtype(tf.image.decode_jpeg(row["image"], channels=3), tf.float32)
            image = tf.image.random_flip_left_right(tf.image.resize(image, (160, 160)))
            image = tf.pad(image, [[20, 20], [20, 20], [0, 0]], "REFLECT")
            return tf.image.random_crop(image, (160, 160, 3)), row["label"]
        return tf.data.TFRecordDataset(task_config.dataset_file).map(one).batch(32).prefetch(2)

    def read(**more):
        return task_config.dataset(32, label="label", image=how, **more)

    target = lambda e: e[1]
    kept = read(cache=True)
    told(task_config, {
        "plain": lambda: passes(plain(), target),
        "dataset": lambda: passes(read(), target),
        "cached": lambda: passes(kept, target),
        "any_order": lambda: passes(read(deterministic=False), target),
    })
"""
)
_FILES = (
    _COMMON
    + """
def main(task_config):
    folder = task_config.user_params["folder"]

    def of(row):
        path = tf.strings.join([folder, "/", row["name"]])
        return tf.data.TFRecordDataset(path, compression_type="GZIP")

    def in_turn():
        return task_config.dataset(1).unbatch().flat_map(of).batch(64).prefetch(2)

    size = lambda e: e
    told(task_config, {
        "in_turn": lambda: passes(in_turn(), size),
        "interleave": lambda: passes(task_config.dataset(64, interleave=of), size),
        "any_order": lambda: passes(task_config.dataset(64, interleave=of, deterministic=False), size),
    })
"""
)


def reading(ratio_row: Callable[..., Row]) -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        rows = _measured(folder, _ROWS, pa.Table.from_batches([tables.numbers(50_000, seed) for seed in range(4)]), {})
        images = _measured(folder, _IMAGES, _photographs(600), {})
        names = _shards(Path(folder), 16, 1_500)
        files = _measured(folder, _FILES, pa.table({"name": names}), {"folder": folder})
    one_by_one = "the same by TFRecordDataset.map(...).batch(32), one call at a time"
    return [
        ratio_row(
            "dataset(1024)", rows["dataset"], rows["plain"], 0.9, "TFRecordDataset.batch(1024).map(parse_example).prefetch(2)"
        ),
        ratio_row("map= of a batch", rows["map"], rows["map_row"], 3, "the same map of each row"),
        ratio_row("cache=True, second pass", rows["cached"], rows["dataset"], 2, "without"),
        ratio_row("prefetch=2, a step of 3 ms on another device", rows["prefetch"], rows["no_prefetch"], 1.1, "prefetch=0"),
        ratio_row("four loops of 2 s, with their ends", rows["untuned"], rows["tuned"], 0.95, "with tf.data's tuner"),
        ratio_row("image=, augmented", images["dataset"], images["plain"], 1, one_by_one),
        ratio_row("image=, cache=True, second pass", images["cached"], images["dataset"], 1.5, "without"),
        ratio_row("image=, deterministic=False", images["any_order"], images["dataset"], 0.9, "in order"),
        ratio_row("interleave= of 16 compressed files", files["interleave"], files["in_turn"], 1, "one after the other"),
        ratio_row("interleave=, deterministic=False", files["any_order"], files["interleave"], 0.9, "in order"),
    ]


def _measured(folder: str, code: str, table: Any, params: dict[str, Any]) -> dict[str, float]:
    """What the script reports of each way, the best of two jobs."""
    script = Path(folder, "read.py")
    script.write_text(code)
    found: dict[str, list[float]] = {}
    for _ in range(2):
        for report in akrunner.run(script, table, user_params=params).stats.reports:
            for name in set(report) - {"task", "step", "time_ns"}:
                found.setdefault(name, []).append(report[name])
    return {name: max(rates) for name, rates in found.items()}


def _photographs(count: int) -> pa.Table:
    """JPEGs of about 20 kB."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import tensorflow as tf

    rng = np.random.default_rng(0)
    encoded = []
    for _ in range(count):
        coarse = rng.integers(0, 256, (48, 48, 3)).astype(np.float32)
        smooth = tf.image.resize(coarse, (256, 256)).numpy() + rng.normal(0, 12, (256, 256, 3))
        encoded.append(tf.io.encode_jpeg(np.clip(smooth, 0, 255).astype(np.uint8), quality=80).numpy())
    return pa.table({"image": pa.array(encoded, pa.binary()), "label": np.arange(count) % 10})


def _shards(folder: Path, count: int, rows: int) -> list[str]:
    """Compressed TFRecord files of texts of 4 kB."""
    letters = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz    ", np.uint8)
    names = []
    for number in range(count):
        rng = np.random.default_rng(number)
        texts = pa.array([letters[rng.integers(0, len(letters), 4000)].tobytes() for _ in range(rows)], pa.binary())
        names.append(f"{number}.gz")
        with gzip.open(folder / names[-1], "wb", 3) as file:
            file.write(encode_records(pa.record_batch({"text": texts})).data)
    return names
