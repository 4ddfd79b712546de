"""Scripts as TensorFlow's tutorials have them, run by TensorFlow."""

from __future__ import annotations

from pathlib import Path

import pytest

import akrunner
from tests.conftest import Script

pytestmark = pytest.mark.tensorflow

#: "Multi-worker training with Keras": counts the workers, worker 0 saves; and reads rows before the strategy is made
SEVERAL_WORKERS = """
import json, os

def write_filepath(filepath, task_type, task_id, cluster_spec):
    if not (task_type == "worker" and task_id == 0 and "chief" not in cluster_spec):
        filepath = os.path.join(os.path.dirname(filepath), "workertemp_" + str(task_id), os.path.basename(filepath))
    return filepath

def main(task_config):
    largest = max(float(batch["x"].max()) for batch in task_config.batches(64))
    import tensorflow as tf

    tf_config = json.loads(os.environ["TF_CONFIG"])
    num_workers = len(tf_config["cluster"]["worker"])
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    assert strategy.num_replicas_in_sync == num_workers == 2
    with strategy.scope():
        model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(2,))])
        model.compile("sgd", "mse")
    data = task_config.dataset(8, label="y", repeat=None).map(lambda row, y: (tf.stack([row["x"], row["z"]], axis=-1) / largest, y))
    model.fit(data, epochs=2, steps_per_epoch=task_config.steps_per_epoch(8), verbose=0)
    resolver = strategy.cluster_resolver
    model.save(write_filepath(task_config.saved_model_dir + "/1", resolver.task_type, resolver.task_id, tf_config["cluster"]))
"""

#: what AutoGraph compiles when it is traced; then a mistake
TRACED = """
import tensorflow as tf

def scaled(x):
    if x > 1:
        return x * 1
    return x

def main(task_config):
    path = task_config.user_params["path"]
    with open(path) as f:
        text = f.read()
    with open(path, "w") as f:
        f.write("# one line more\\n" + text.replace("x * 1", "x * 1000"))
    assert int(tf.function(scaled)(tf.constant(5))) == 5
    spec = {"age": tf.io.FixedLenFeature([], tf.float32)}
    for row in tf.data.TFRecordDataset(task_config.dataset_file).map(lambda row: tf.io.parse_single_example(row, spec)):
        pass
"""


@pytest.mark.warm(keras="legacy")
def test_several_workers_as_the_tutorial_counts_them(leaves_nothing: Path, script: Script) -> None:
    rows = {"x": [float(i) for i in range(41)], "z": [1.0] * 41, "y": [2.0 * i for i in range(41)]}
    result = akrunner.train(
        script(SEVERAL_WORKERS), rows, num_workers=2, chief=False, keras="legacy", select="x::FLOAT x, z::FLOAT z, y"
    )
    assert result.model is not None and [task.name for task in result.tasks] == ["worker:0", "worker:1"]


def test_what_is_traced_is_the_copy_and_a_mistake_is_said_first(leaves_nothing: Path, script: Script) -> None:
    path = script(TRACED)
    with pytest.raises(akrunner.ScriptFailedError) as caught:
        akrunner.run(path, {"age": [30, 40]}, user_params={"path": path})
    first, _, rest = str(caught.value).partition("\n")
    assert "] column 'age' is int64 in the table and comes as int64, and the script reads it as float: read it by" in first
    line = next(i for i, text in enumerate(TRACED.splitlines(), 1) if "for row in" in text)
    assert f'File "{path}", line {line}, in main\n    for row in tf.data' in rest
