"""Alink's names, as scripts written for it use them, on every TensorFlow there is."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import akrunner
from akrunner.launch.interpreters import Interpreter
from tests.conftest import Script

pytestmark = pytest.mark.tensorflow

old_tensorflows = pytest.mark.parametrize("matrix_python", ["tf1.15", "tf2.3"], indirect=True)
MODEL_ROWS = "model_id bigint, model_info string"

NAMES = """
import os, sys
assert not any(name.split(".")[0] in ("akdl", "flink_ml_framework") for name in sys.modules), "not before it is asked for"

from akdl.runner import io_helper
from akdl.runner.config import BaseConfig, BatchTaskConfig, TrainTaskConfig
from akdl.runner.output_writer import DirectOutputWriter, OutputWriter, fake_output_writer_op, get_fake_output_writer
from akdl.runner.tf_helper import preview_tfrecords_file
from flink_ml_framework.context import Context
from flink_ml_framework.java_file import JavaFile
from flink_ml_tensorflow.tensorflow_context import TFContext
from flink_ml_tensorflow2.tensorflow_context import TFContext as TFContext2

def main(task_config):
    import tensorflow as tf
    from akdl.engine.inputs import dtype_str_map, get_dataset, get_example_parser, get_feature_placeholders, parse_feature_specs

    assert isinstance(task_config, BatchTaskConfig) and isinstance(task_config.output_writer, OutputWriter)
    assert isinstance(task_config, BaseConfig) and BaseConfig(work_dir="w", unknown=1).work_dir == "w"
    folder = os.path.join(task_config.work_dir, "saved")
    train_config = TrainTaskConfig(saved_model_dir=folder, **task_config.__dict__)
    assert train_config.saved_model_dir == folder and train_config.dataset_file == task_config.dataset_file
    assert train_config.latest_ckpt_dir is None

    context = Context()
    records = JavaFile(context.from_java(), context.to_java())
    spool = os.path.join(task_config.work_dir, "again.tfrecord")
    dataset, count = io_helper.convert_java_queue_file_to_repeatable_dataset(records, spool)
    assert count == task_config.dataset_length == 10
    assert open(spool, "rb").read() == open(task_config.dataset_file, "rb").read()
    try:
        records.read(1)
    except EOFError:
        pass
    else:
        raise AssertionError("it was at its end")
    assert context.properties == {"batch_size": "4"} and context.get_property("nothing") is None
    for kind in (TFContext, TFContext2):
        assert kind(context).get_tf_cluster() == task_config.cluster == kind().export_estimator_cluster()
    preview_tfrecords_file(spool, 1)
    fake = get_fake_output_writer()
    fake.write(b"")
    assert fake.rows == 1

    columns = [{"name": "x", "dtype": "double", "shape": [1]}, {"name": "label", "dtype": "long", "shape": [1]}]
    specs = parse_feature_specs(columns)
    assert specs["x"].dtype == tf.float32 and specs["label"].dtype == dtype_str_map["long"] == tf.int64
    with tf.Graph().as_default():
        placeholders = get_feature_placeholders(columns[:1], export_batch_dim=True)
        assert placeholders["x"].shape.as_list() == [None, 1]
    rows = get_dataset(specs, lambda: tf.data.TFRecordDataset(spool), "label", 4, 2)
    iterator = tf.compat.v1.data.make_one_shot_iterator(rows)
    features, label = iterator.get_next()
    if not tf.executing_eagerly():
        with tf.compat.v1.Session() as session:
            features, label = session.run((features, label))
    assert list(features) == ["x"] and features["x"].shape == (4, 1) and label.shape == (4, 1)

    columns = [{"name": "x", "dtype": "float", "shape": [1]}, {"name": "label", "dtype": "boolean", "shape": [1]}]
    specs = parse_feature_specs(columns)
    assert specs["label"].dtype == dtype_str_map["boolean"] == tf.bool and dtype_str_map["byte"] == tf.int8
    kinds = [("FixedLenSequenceFeature", [5], tf.float32), ("VarLenFeature", None, tf.float32)]
    for kind, shape, dtype in kinds:
        spec = parse_feature_specs([dict(columns[0], feature_type=getattr(tf.io, kind))])["x"]
        assert type(spec) is getattr(tf.io, kind) and spec.dtype == dtype and getattr(spec, "allow_missing", True)
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        assert get_feature_placeholders(columns[1:], anything=1)["label"].dtype == tf.bool
        for dtype, wanted in (("boolean", bool), ("byte", "int8")):
            parse = get_example_parser(parse_feature_specs([columns[0], dict(columns[1], dtype=dtype)]), "label")
            record = tf.compat.v1.data.make_one_shot_iterator(tf.data.TFRecordDataset(spool).skip(1)).get_next()
            _, value = session.run(parse(record))
            assert value.dtype == wanted and value[0] == 1
        show, nothing = fake_output_writer_op(["printed"])
        session.run([show, nothing()])

    os.makedirs(os.path.join(folder, "1700000000"))
    with open(os.path.join(folder, "1700000000", "saved_model.pb"), "wb") as f:
        f.write(os.urandom(1500000))
    for name in ("checkpoint", "model.ckpt-1.index", "graph.pbtxt", "notes.txt"):
        open(os.path.join(folder, name), "w").close()
    io_helper.remove_checkpoint_files(folder)
    assert sorted(os.listdir(folder)) == ["1700000000", "notes.txt"]
    assert io_helper.find_timestamp_dir(folder) == os.path.join(folder, "1700000000")
    packed = io_helper.pack_dir_to_file(folder, 1 << 20)
    assert packed["chunks"] == 2 and packed["chunk_size"] == 1 << 20 and packed["size"] == os.path.getsize(packed["name"])
    io_helper.gfile_copy_dir_content(folder, os.path.join(task_config.work_dir, "copy"))
    assert sorted(os.listdir(os.path.join(task_config.work_dir, "copy"))) == ["1700000000", "notes.txt"]

    source, target = os.path.join(folder, "notes.txt"), os.path.join(task_config.work_dir, "copied.txt")
    io_helper.file_io_copy_fix(source, target)
    io_helper.file_io_copy_fix(source, target, overwrite=True)
    try:
        io_helper.file_io_copy_fix(source, target)
    except ValueError as e:
        assert target in str(e)
    else:
        raise AssertionError("it was there")

    class Lines(object):
        def __init__(self, path):
            self.file = open(path, "w")
        def write(self, example):
            feature = example.features.feature
            info = feature["model_info"].bytes_list.value[0].decode()
            self.file.write("%d %s\\n" % (feature["model_id"].int64_list.value[0], info))

    for pack in (lambda w: io_helper.output_model_to_flink(folder, w),
                 lambda w: io_helper.output_model_ckpt_to_flink(folder, folder, w)):
        lines = Lines(os.path.join(task_config.work_dir, "model.txt"))
        pack(lines)
        lines.file.close()
        back = io_helper.unpack_model_from_flink(lines.file.name, os.path.join(task_config.work_dir, "back"))
        with open(os.path.join(back, "saved_model.pb"), "rb") as f, open(os.path.join(folder, "1700000000", "saved_model.pb"), "rb") as g:
            assert f.read() == g.read()
    io_helper.output_model_to_flink(folder, task_config.output_writer)
    out = JavaFile(context.from_java(), context.to_java())
    import struct
    record = tf.train.Example(features=tf.train.Features(feature={
        "model_id": tf.train.Feature(int64_list=tf.train.Int64List(value=[99])),
        "model_info": tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"through a JavaFile"])),
    })).SerializeToString()
    framed = struct.pack("<Q", len(record)) + b"0000" + record + b"0000"
    out.write(framed[:20], 20)
    out.write(framed[20:], len(framed) - 20)
"""

#: names of the modules that Keras and Estimators need, what is not here, and what an import does to TensorFlow
MODULES = """
import importlib, os
import numpy as np
import tensorflow as tf

def main(task_config):
    eager = tf.executing_eagerly()
    from akdl.engine import early_stopping, inputs, train
    from akdl.models.tf.keras_sequential import keras_sequential_main, metrics_from_logits
    from akdl.models.tf.keras_sequential.keras_sequential_main import create_model, get_info_info
    from akdl.runner import config, io_helper, output_writer, tf_helper

    assert tf.executing_eagerly() == eager
    for kind, more in (("AUC", {}), ("SparseCategoricalAccuracy", {}), ("Precision", {}), ("TrueNegatives", {"name": "t"})):
        metric = getattr(metrics_from_logits, kind)(from_logits=True, **more)
        assert isinstance(metric, metrics_from_logits.FromLogitsMixin) and isinstance(metric, getattr(tf.keras.metrics, kind))
        assert metric.from_logits is True and metric.get_config()["from_logits"] is True
    if eager:
        auc = metrics_from_logits.AUC(from_logits=True)
        auc.update_state(np.array([0.0, 0.0, 1.0, 1.0]), np.array([-2.0, -1.0, 1.0, 2.0]))
        assert float(auc.result()) > 0.99
        right = metrics_from_logits.BinaryAccuracy(True)
        right.update_state(np.array([[0.0], [1.0]]), np.array([[-0.2], [0.2]]))
        assert float(right.result()) == 1.0
    for dtype in (tf.float32, "double", "float"):
        model = create_model("t", [2, 3], dtype, ["Flatten()", "Dense(4)"], True, 3)
        assert model.inputs[0].dtype in (tf.float32, "float32") and model.output_shape == (None, 3)
    assert create_model("t", [], tf.string, [], False, 1).inputs[0].dtype in (tf.string, "string")

    for name in ("akdl.entry", "akdl.entry.base_entry", "akdl.models.tf.easytransfer.easytransfer_main", "akdl.models.tf.easyrec",
                 "akdl.models.tf.lstnet.lstnet_main", "akdl.models.tf.deepar.deepar_main", "akdl.models.tf.tft.tft_main"):
        try:
            importlib.import_module(name)
        except ImportError as e:
            assert "is not in akrunner" in str(e) and ("user_files=" in str(e) or "main(task_config)" in str(e)), e
        else:
            raise AssertionError(name)

    folder = os.path.join(task_config.work_dir, "eval")
    assert early_stopping.read_eval_metrics(folder) == {}
    with tf.Graph().as_default():
        writer = tf.compat.v1.summary.FileWriter(folder)
        for step, loss in ((20, 0.25), (10, 0.5)):
            writer.add_summary(tf.compat.v1.Summary(value=[tf.compat.v1.Summary.Value(tag="loss", simple_value=loss)]), step)
        writer.close()
    assert list(early_stopping.read_eval_metrics(folder).items()) == [(10, {"loss": 0.5}), (20, {"loss": 0.25})]
    check_hooks(early_stopping, folder)

    from akdl.engine import run_config

    assert not tf.executing_eagerly()
    assert tf.compat.v1.placeholder(tf.float32, [None]).shape.as_list() == [None]
    for rows in (task_config.dataset(4), run_config and tf.data.TFRecordDataset(task_config.dataset_file).batch(4)):
        value = tf.compat.v1.data.make_one_shot_iterator(rows).get_next()
        with tf.compat.v1.Session() as session:
            session.run(value)

def check_hooks(early_stopping, folder):
    try:
        module = tf.compat.v1.estimator
    except AttributeError:
        try:
            early_stopping.make_early_stopping_hook(None, lambda: True)
        except RuntimeError as e:
            assert "Estimators" in str(e)
        return
    estimator = module.Estimator(lambda features, labels, mode: None)
    higher, lower = early_stopping.stop_if_higher_hook, early_stopping.stop_if_lower_hook
    up, down = early_stopping.stop_if_no_increase_hook, early_stopping.stop_if_no_decrease_hook
    often = {"eval_dir": folder, "run_every_secs": None, "run_every_steps": 1}
    for hook, stops in ((higher(estimator, "loss", 0.4, **often), True), (higher(estimator, "loss", 0.6, **often), False),
                        (higher(estimator, "loss", 0.4, folder, 15, None, 1), False), (lower(estimator, "loss", 0.3, **often), True),
                        (lower(estimator, "loss", 0.2, **often), False), (up(estimator, "loss", 10, **often), True),
                        (up(estimator, "loss", 11, **often), False), (down(estimator, "loss", 10, **often), False)):
        assert ran(hook) == (1 if stops else 5), (hook, stops)
    for wrong, error in ((lambda: early_stopping.make_early_stopping_hook(None, lambda: True), TypeError),
                         (lambda: higher(estimator, "loss", 1, run_every_steps=1), ValueError),
                         (lambda: ran(higher(estimator, "nonsense", 1, **often)), ValueError)):
        try:
            wrong()
        except error:
            continue
        raise AssertionError(error)

def ran(hook):
    with tf.Graph().as_default():
        step = tf.compat.v1.train.get_or_create_global_step()
        more = tf.compat.v1.assign_add(step, 1)
        with tf.compat.v1.train.SingularMonitoredSession([hook, tf.compat.v1.train.StopAtStepHook(5)]) as session:
            while not session.should_stop():
                last = session.run(more)
    return last
"""

TRAIN = "from akdl.models.tf.dnn import dnn_train\n\ndef main(task_config):\n    dnn_train.main(task_config)\n"
BATCH = "from akdl.models.tf.dnn.dnn_batch import main\n"
STREAM = "from akdl.models.tf.dnn.dnn_stream import main\n"
TENSOR = """
import json, os
from akdl.models.tf.dnn.dnn_tensor import dnn_tensor

def main(task_config):
    with open(os.path.join(task_config.work_dir, "tensor_shapes.txt"), "w") as f:
        json.dump({"t": [2, 3]}, f)
    dnn_tensor(task_config)
"""
SEQUENTIAL = """
import json, os
from akdl.models.tf.keras_sequential import keras_sequential_main

def main(task_config):
    for name, value in (("shapes", {"t": [2, 3]}), ("types", {"t": "float"})):
        with open(os.path.join(task_config.work_dir, "tensor_%s.txt" % name), "w") as f:
            json.dump(value, f)
    path = os.path.join(task_config.work_dir, "classes.txt")
    with open(path, "w") as f:
        f.write("2\\n")
    task_config.user_params["ALINK:bc_1"] = path
    keras_sequential_main.main(task_config)
"""
ONE_WORKER = """
import os
import tensorflow as tf
from akdl.engine.run_config import generate_run_config
from akdl.engine.train import train_estimator_one_worker

def main(task_config):
    columns = [{"name": name, "dtype": "float", "shape": [1]} for name in ("a", "b")]
    estimator = tf.compat.v1.estimator.DNNClassifier(
        hidden_units=[16, 8], n_classes=2, model_dir=os.path.join(task_config.work_dir, "model_dir"),
        feature_columns=[tf.feature_column.numeric_column(column["name"], shape=(1,)) for column in columns],
        config=generate_run_config(save_checkpoints_steps=20))
    train_estimator_one_worker(
        estimator,
        {"example_config": columns + [{"name": "label", "dtype": "long", "shape": [1]}], "label_col": "label"},
        {"raw_dataset_fn": lambda: tf.data.TFRecordDataset(task_config.dataset_file), "batch_size": 32, "num_epochs": 8,
         "validation_split": 0.2, "early_stopping_patience_steps": 200, "best_exporter_metric": "accuracy", "metric_bigger": True},
        {"placeholders_config": columns, "exporter_type": task_config.user_params["exporter_type"]},
        task_config)
"""
#: written out as Alink's own scripts are; workers connect when the chief is done and gone
WRITTEN_OUT = """
import json, os, time
from akdl.engine.run_config import generate_run_config
from akdl.engine.train import train_estimator
import tensorflow as tf

if tf.__version__ >= "2.0":
    tf = tf.compat.v1

def main(task_config):
    chief = os.path.join(task_config.checkpoint_dir, "chief")
    while task_config.task_type == "worker" and not (os.path.exists(chief) and gone(chief)):
        time.sleep(0.1)
    params = task_config.user_params
    names = json.loads(params["featureCols"])
    columns = [{"name": name, "dtype": "float", "shape": [1]} for name in names]
    label = {"name": params["labelCol"], "dtype": "long", "shape": [1]}
    train_config = {"raw_dataset_fn": lambda: tf.data.TFRecordDataset(task_config.dataset_file),
                    "batch_size": int(params["batch_size"]), "num_epochs": 1, "log_step_count_steps": 1}
    classifier = tf.estimator.DNNClassifier(
        feature_columns=[tf.feature_column.numeric_column(name) for name in names], hidden_units=[30, 10], n_classes=2,
        config=generate_run_config(**train_config))
    train_estimator(classifier, {"example_config": columns + [label], "label_col": params["labelCol"]}, train_config,
                    {"placeholders_config": columns}, task_config)
    if task_config.task_type == "chief":
        with open(chief + ".new", "w") as f:
            f.write(str(os.getpid()))
        os.rename(chief + ".new", chief)

def gone(path):
    with open(path) as f:
        stat = "/proc/%s/stat" % f.read()
    if not os.path.exists(stat):
        return True
    with open(stat) as f:
        return f.read().rpartition(")")[2].split()[0] == "Z"
"""
PARAMS = {"featureCols": json.dumps(["a", "b"]), "labelCol": "label", "batch_size": "16", "num_epochs": "10"}


def separable(rows: int = 400) -> pa.Table:
    """label = a + b > 0."""
    random = np.random.default_rng(7)
    a, b = random.normal(size=rows), random.normal(size=rows)
    tensors = np.stack([a, b, a, b, a, b], axis=1).reshape(-1)
    fixed = pa.FixedSizeListArray.from_arrays(pa.array(tensors.astype(np.float32)), 6)
    return pa.table({"a": a, "b": b, "t": fixed, "label": (a + b > 0).astype(np.int64)})


def check_names(script: Script, python_env: Any) -> None:
    table = {"x": [i / 2 for i in range(10)], "label": [i % 2 for i in range(10)]}
    result = akrunner.run(script(NAMES), table, user_params={"batch_size": 4}, output_schema=MODEL_ROWS, python_env=python_env)
    assert result.table is not None
    rows = dict(zip(result.table["model_id"].to_pylist(), result.table["model_info"].to_pylist(), strict=True))
    assert rows.pop(99) == "through a JavaFile" and rows[0] == "1700000000.zip" and sorted(rows) == [0, 1, 2]


def test_names(leaves_nothing: Path, script: Script) -> None:
    check_names(script, None)


@pytest.mark.matrix
def test_names_on_the_matrix(leaves_nothing: Path, script: Script, matrix_python: Interpreter) -> None:
    check_names(script, matrix_python.path)


def test_modules(leaves_nothing: Path, script: Script) -> None:
    akrunner.run(script(MODULES), {"x": [0.5] * 10})


@pytest.mark.matrix
def test_modules_on_the_matrix(leaves_nothing: Path, script: Script, matrix_python: Interpreter) -> None:
    akrunner.run(script(MODULES), {"x": [0.5] * 10}, python_env=matrix_python.path)


def accuracy(model: akrunner.Model, columns: list[str], python: str, table: pa.Table) -> float:
    wrapped = table.select([*columns, "label"])
    probabilities = akrunner.predict(
        model, wrapped, output_schema="p FLOAT_TENSOR", output_signature_defs=["probabilities"], signature_def_key="predict",
        python_env=python,
    ).table  # fmt: skip
    assert probabilities is not None
    right = [int(np.argmax(p)) == y for p, y in zip(probabilities["p"].to_pylist(), table["label"].to_pylist(), strict=True)]
    return sum(right) / len(right)


@pytest.mark.matrix
@old_tensorflows
def test_dnn_in_every_mode(leaves_nothing: Path, script: Script, matrix_python: Interpreter) -> None:
    """The same classifier by train, batch (model rows through the writer) and stream; each has learned."""
    table = separable()
    options: dict[str, Any] = dict(user_params=PARAMS, python_env=matrix_python.path)
    trained = akrunner.train(script(TRAIN), table, **options)
    assert trained.model is not None
    assert accuracy(trained.model, ["a", "b"], matrix_python.path, table) > 0.8
    batch = akrunner.run(script(BATCH), table, output_schema=MODEL_ROWS, **options)
    assert batch.table is not None
    assert accuracy(akrunner.Model.from_table(batch.table), ["a", "b"], matrix_python.path, table) > 0.8
    with akrunner.stream(script(STREAM), pa.concat_tables([table] * 10), output_schema=MODEL_ROWS, **options) as job:
        rows = pa.Table.from_batches(list(job))
    assert accuracy(akrunner.Model.from_table(rows), ["a", "b"], matrix_python.path, table) > 0.8


@pytest.mark.matrix
@pytest.mark.parametrize("matrix_python", ["tf1.15"], indirect=True)
def test_parameter_servers_and_a_chief_that_is_done(
    leaves_nothing: Path, script: Script, matrix_python: Interpreter, tmp_path: Path
) -> None:
    table, folder = separable(100), tmp_path / "shared"
    folder.mkdir()
    trained = akrunner.train(
        script(WRITTEN_OUT), table, user_params=PARAMS, python_env=matrix_python.path, num_workers=2, num_ps=1,
        checkpoint_dir=folder,
    )  # fmt: skip
    assert trained.model is not None and (folder / "chief").exists()
    assert trained.stats.warnings == [] and [task.exit for task in trained.tasks] == ["exit code 0"] * 3


@pytest.mark.matrix
@old_tensorflows
@pytest.mark.parametrize("exporter_type", ["best", "latest"])
def test_one_worker(leaves_nothing: Path, script: Script, matrix_python: Interpreter, exporter_type: str) -> None:
    """A validation set, early stopping, and the best or the latest model exported."""
    table = separable()
    params = {"exporter_type": exporter_type}
    trained = akrunner.train(script(ONE_WORKER), table, user_params=params, python_env=matrix_python.path)
    assert trained.model is not None and accuracy(trained.model, ["a", "b"], matrix_python.path, table) > 0.8


@pytest.mark.matrix
@pytest.mark.parametrize("matrix_python", ["tf2.3"], indirect=True)
def test_dnn_over_a_tensor(leaves_nothing: Path, script: Script, matrix_python: Interpreter) -> None:
    params = {"tensorCol": "t", "labelCol": "label", "batch_size": "64", "num_epochs": "2"}
    table = separable().select(["t", "label"])
    trained = akrunner.train(script(TENSOR), table, user_params=params, python_env=matrix_python.path)
    assert trained.model is not None and accuracy(trained.model, ["t"], matrix_python.path, table) > 0.7


def check_sequential(script: Script, python_env: Any, body: str = SEQUENTIAL) -> None:
    params = {
        "model_config": json.dumps({"layers": ["Flatten()", "Dense(16, activation='relu')"]}),
        "label_col": "label",
        "label_type": "long",
        "optimizer": "Adam(learning_rate=0.01)",
        "batch_size": "32",
        "num_epochs": "8",
        "validation_split": "0.2",
    }
    table = separable().select(["t", "label"])
    trained = akrunner.train(script(body), table, user_params=params, python_env=python_env)
    assert trained.model is not None
    logits = akrunner.predict(
        trained.model, table.select(["t"]), reserved_cols=[], output_schema="y float", python_env=python_env
    )
    assert logits.table is not None
    right = [(y > 0) == bool(label) for y, label in zip(logits.table["y"].to_pylist(), table["label"].to_pylist(), strict=True)]
    assert sum(right) / len(right) > 0.8


def test_keras_sequential(leaves_nothing: Path, script: Script) -> None:
    check_sequential(script, None)


@pytest.mark.matrix
def test_keras_sequential_on_the_matrix(leaves_nothing: Path, script: Script, matrix_python: Interpreter) -> None:
    check_sequential(script, matrix_python.path)


def test_keras_without_the_behaviour_of_tensorflow_2(leaves_nothing: Path, script: Script) -> None:
    with pytest.raises(
        akrunner.ScriptFailedError, match=r"Keras does not train without .* akdl.engine.run_config .*python_env='tf2.3'"
    ):
        akrunner.train(script("import akdl.engine.run_config\n" + SEQUENTIAL), separable(20), user_params={})


@pytest.mark.matrix
@pytest.mark.parametrize("matrix_python", ["tf2.3"], indirect=True)
def test_keras_in_a_graph(leaves_nothing: Path, script: Script, matrix_python: Interpreter) -> None:
    """A script that imports run_config, as Alink's do, may train a Keras model."""
    check_sequential(script, matrix_python.path, "import akdl.engine.run_config\n" + SEQUENTIAL)


def test_estimators_are_missed_in_words(leaves_nothing: Path, script: Script) -> None:
    with pytest.raises(
        akrunner.ScriptFailedError, match=r"Estimators, which TensorFlow 2\.\d+.* does not have.*python_env='tf2.3'"
    ):
        akrunner.train(script(TRAIN), separable(20), user_params=PARAMS)


def test_the_users_own_akdl_wins(leaves_nothing: Path, script: Script, tmp_path: Path) -> None:
    shipped = tmp_path / "akdl.zip"
    with zipfile.ZipFile(shipped, "w") as archive:
        archive.writestr("akdl/__init__.py", "")
        archive.writestr("akdl/runner/__init__.py", "")
        archive.writestr("akdl/runner/config.py", "from flink_ml_framework.java_file import JavaFile\nWHOSE = 'theirs'\n")
    body = """
    from akdl.runner.config import JavaFile, WHOSE

    def main(task_config):
        assert WHOSE == "theirs" and JavaFile.__module__ == "flink_ml_framework.java_file"
    """
    akrunner.run(script(body), {"a": [1]}, user_files=[shipped])
