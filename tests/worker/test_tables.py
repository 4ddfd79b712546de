"""PAI's names in TensorFlow, old and new: datasets, readers, queues and works over tables that a script asks for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import akrunner
from akrunner.launch.interpreters import Interpreter
from akrunner.tables.chosen import store_for
from akrunner.tables.names import TableName
from akrunner.tables.store import TableInfo
from tests.conftest import Script

pytestmark = pytest.mark.tensorflow

old_and_new = pytest.mark.parametrize("matrix_python", ["tf1.15", "newest"], indirect=True)
ROWS = 20_000
TABLE, OUT = "odps://p/tables/t", "odps://p/tables/out"

SCRIPT = """
import sys
before = "tensorflow" in sys.modules
import common_io, paiio, pai
assert ("tensorflow" in sys.modules) == before, "not before the script imports it, but in a warm worker"
import numpy as np
import tensorflow as tf
import tensorflow.data
from tensorflow import data as data_module
from tensorflow.python.ops.work_queue import WorkQueue

v1 = tf.compat.v1
T, N = "odps://p/tables/t", 20000
D = tf.data.TableRecordDataset
for other in (v1.data, tensorflow.data, data_module, paiio, paiio.data):
    assert other.TableRecordDataset is D
assert v1.python_io.TableReader is paiio.TableReader is paiio.python_io.TableReader is tf.python_io.TableReader
assert pai.data.WorkQueue is WorkQueue and tf.TableRecordReader is v1.TableRecordReader
DEFAULTS = (np.int64(0), np.float64(-1), "none")

if tf.executing_eagerly():
    def rows(dataset):
        return [tuple(part.numpy() for part in row) for row in dataset]
else:
    session = v1.Session()
    def rows(dataset):
        iterator, found = v1.data.make_initializable_iterator(dataset), []
        following = iterator.get_next()
        session.run(iterator.initializer)
        try:
            while True:
                found.append(session.run(following))
        except tf.errors.OutOfRangeError:
            return found

def joined(dataset, at=0):
    return np.concatenate([row[at] for row in rows(dataset)]).tolist()

every = list(range(N))
made = D([T], DEFAULTS)
assert isinstance(made, tf.data.Dataset) and isinstance(made, D) and isinstance(made.batch(2), D)
assert rows(made.take(2)) == [(0, 0.0, b"row 0"), (1, -1.0, b"none")], "nulls are the defaults"
batches = rows(made.batch(512))
assert [len(one[0]) for one in batches] == [512] * 39 + [32] and batches[0][2].dtype == object
assert joined(made.batch(512, drop_remainder=True)) == every[: 39 * 512]
typed = rows(D(T, [0, 0.0], selected_cols="x,y", slice_id=1, slice_count=3).batch(N))
assert len(typed) == 1 and typed[0][0].dtype == np.int32 and typed[0][1].dtype == np.float32
assert typed[0][0].tolist() == every[6667:13334], "the first slices have a row more"
shuffled = joined(made.shuffle(5000, seed=1).batch(100))
assert sorted(shuffled) == every != shuffled and joined(made.shuffle(5000, seed=1).batch(100)) == shuffled
twice = joined(made.shuffle(N, seed=1).repeat(2).batch(1000))
assert sorted(twice[:N]) == every == sorted(twice[N:]) and twice[:N] != twice[N:], "each pass in its own order"
assert joined(made.repeat(2).batch(N)) == every * 2 == joined(made.batch(N).repeat(2).prefetch(1))
mapped = made.map(lambda x, y, s: {"x": x + 1, "s": s}, num_parallel_calls=2).batch(N)
assert (rows(mapped.map(lambda row: (row["x"],)))[0][0] == np.arange(N) + 1).all()
assert joined(made.padded_batch(1000, ([], [], []))) == every
assert joined(D(tf.constant([T]), DEFAULTS, num_threads=4, capacity=9).batch(N)) == every
names = tf.data.Dataset.from_tensor_slices([T + "?start=0&end=5", T + "?start=19990&end=20000"])
assert joined(D(names, DEFAULTS).batch(100)) == every[:5] + every[19990:]
assert joined(D([T + "?start=3&end=6", T + "?start=1&end=2"], ["none"], selected_cols="s").batch(9)) == [b"row 3", b"row 4", b"row 5", b"none"]
assert joined(D(T, ([[0]],), excluded_cols="y,s").batch(N)) == every
works = WorkQueue([T], num_slices=7, seed=2, name="dataset")
assert sorted(joined(D(works.input_dataset(), DEFAULTS).batch(512))) == every

for call, words in (
    (lambda: D(T, [0, 0.0]), "2 record_defaults for 3 columns (x, y, s)"),
    (lambda: D(T, ["", 0.0, ""]), "column 'x' is bigint, and its record_defaults are string"),
    (lambda: D(T, [0], selected_cols="y"), "column 'y' is double, and its record_defaults are int32"),
    (lambda: D(T, [0], selected_cols="nope"), "no column 'nope'"),
    (lambda: D(T, [0], selected_cols="x", excluded_cols="y"), "not both"),
    (lambda: D("odps://p/tables/other", [0]), "not predefined"),
    (lambda: rows(D(tf.constant("odps://p/tables/other"), [0])), "not predefined"),
    (lambda: rows(D(tf.data.Dataset.from_tensor_slices([T]), ["", 0.0, ""])), "record_defaults are string"),
    (lambda: tf.trans_csv_kv2dense("x"), "only PAI's own TensorFlow has"),
    (lambda: tf.TableRecordWriter(T), "use tf.python_io.TableWriter"),
):
    try:
        call()
    except Exception as e:
        assert words in str(e), (words, e)
    else:
        raise AssertionError(words)

reader = tf.python_io.TableReader(T, selected_cols="s")
assert reader.read(1) == [(b"row 0",)]
reader.seek(N)
for kind in (tf.errors.OutOfRangeError, tf.python_io.OutOfRangeException, common_io.exception.OutOfRangeException):
    try:
        reader.read()
    except kind as e:
        assert "End of table reached!" in str(e)

def lines(source, reader, count):
    found = []
    with v1.Session() as session:
        tensors = reader.read_up_to(source, count) + (reader.num_records_produced(),)
        session.run([v1.global_variables_initializer(), v1.local_variables_initializer()])
        coordinator = v1.train.Coordinator()
        threads = v1.train.start_queue_runners(session, coordinator)
        try:
            while True:
                found.append(session.run(tensors[:2]))
        except tf.errors.OutOfRangeError:
            produced = session.run(tensors[2])
        coordinator.request_stop()
        coordinator.join(threads)
    assert produced == sum(len(one[1]) for one in found)
    return found

with tf.Graph().as_default():
    source = v1.train.string_input_producer([T + "?start=0&end=5", T + "?start=9&end=9", T + "?start=7&end=8"], num_epochs=1, shuffle=False)
    found = lines(source, tf.TableRecordReader(csv_delimiter="|", selected_cols="s,x,y"), 3)
    assert [one[1].tolist() for one in found] == [
        [b"row 0|0|0.0", b"|1|", b"row 2|2|1.0"], [b"row 3|3|1.5", b"row 4|4|2.0"], [b"row 7|7|3.5"]]
with tf.Graph().as_default():
    found = lines(WorkQueue([T], num_slices=5, name="queue").input_producer(), tf.TableRecordReader(selected_cols="x"), 3000)
    assert sorted(int(line) for one in found for line in one[1]) == every
with tf.Graph().as_default(), v1.Session() as session:
    key, line = tf.TableRecordReader().read(v1.train.string_input_producer([T], shuffle=False))
    record = v1.decode_csv(line, [[0], [0.0], [""]])
    coordinator = v1.train.Coordinator()
    threads = v1.train.start_queue_runners(session, coordinator)
    assert session.run(record) == [0, 0.0, b"row 0"]
    coordinator.request_stop()
    coordinator.join(threads)
    iterator = v1.data.make_one_shot_iterator(D([T], DEFAULTS).shuffle(10).repeat().batch(7))
    assert len(session.run(iterator.get_next())[0]) == 7
    taken = WorkQueue(["f1", "f2"], shuffle=False, prefix="oss://b/", name="files")
    taken.add_summary()
    work = taken.take()
    assert [session.run(work), session.run(work)] == [b"oss://b/f1", b"oss://b/f2"]
    try:
        session.run(work)
    except tf.errors.OutOfRangeError:
        pass
    else:
        raise AssertionError("there were two works")

def input_fn():
    return D([T], DEFAULTS).shuffle(100).batch(1000).map(lambda x, y, s: ({"y": y}, tf.cast(x % 2, tf.int32)))

if hasattr(tf, "estimator") and not tf.executing_eagerly():
    model = tf.estimator.LinearClassifier([tf.feature_column.numeric_column("y", dtype=tf.float64)])
    model.train(input_fn, steps=5)

with tf.python_io.TableWriter("odps://p/tables/out", slice_id=0) as writer:
    values = np.arange(3)
    writer.write(zip(values, values / 2.0, ["a", b"b", None]), indices=range(3))
    if tf.executing_eagerly():
        writer.write((tf.constant(9, tf.int64), tf.constant(1.5, tf.float64), tf.constant("t")))

from akrunner.worker import oss_paths  # as a command of PAI's has it

oss_paths.refuse()
MODEL = "oss://b/model/"
for call in (
    tf.train.latest_checkpoint, tf.train.list_variables, v1.train.checkpoint_exists, v1.gfile.IsDirectory, v1.gfile.Exists, v1.gfile.ListDirectory,
    v1.gfile.Glob, v1.gfile.MakeDirs, v1.gfile.Stat, lambda path: list(v1.gfile.Walk(path)), lambda path: v1.gfile.GFile(path, "w").write("x"),
    lambda path: v1.gfile.Copy(__file__, path), lambda path: list(tf.io.gfile.walk(path)), v1.python_io.TFRecordWriter,
):
    try:
        call(MODEL)
    except Exception as e:
        assert "scheme 'oss' not implemented" in str(e), (call, e)
    else:
        raise AssertionError(call)
assert tf.train.latest_checkpoint(".") is None and v1.gfile.IsDirectory(".")
print("all read")
"""


@old_and_new
def test_scripts_of_pai(
    script: Script, matrix_python: Interpreter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, leaves_nothing: Path
) -> None:
    monkeypatch.setenv("AKRUNNER_TABLES", str(tmp_path / "tables"))
    store = store_for("p")
    columns = pa.schema([("x", pa.int64()), ("y", pa.float64()), ("s", pa.string())])
    for name in (TABLE, OUT):
        store.create(TableName.parse(name), TableInfo(columns))
    x = np.arange(ROWS)
    filled = store.output(TableName.parse(TABLE))
    text = pa.array([f"row {i}" for i in x], mask=x == 1)
    filled.part("a").write(pa.record_batch([pa.array(x), pa.array(x / 2, mask=x == 1), text], schema=columns))
    store.commit([filled])
    result = akrunner.run(script(SCRIPT), tables=[TABLE], output_tables=[OUT], python_env=matrix_python.path)
    assert "all read" in result.tasks[0].log_tail
    written = [row for batch in store.read(TableName.parse(OUT)) for row in batch.to_pylist()]
    assert written[:3] == [{"x": 0, "y": 0.0, "s": "a"}, {"x": 1, "y": 0.5, "s": "b"}, {"x": 2, "y": 1.0, "s": None}]
    assert written[3:] == ([] if "1.15" in matrix_python.path else [{"x": 9, "y": 1.5, "s": "t"}])
