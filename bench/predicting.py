"""A SavedModel over a table, against plain TensorFlow."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import akrunner
from bench import tables
from bench.measuring import Row, ratio_row

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


def predict() -> list[Row]:
    """A SavedModel over Parquet, against the plain script for it; one row at a time, against a call in the process."""
    count = 600_000
    names = tables.numbers(1).schema.names
    ones: list[float] = []
    twos: list[float] = []
    plain: list[float] = []
    calls: list[float] = []
    asked: list[float] = []
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
