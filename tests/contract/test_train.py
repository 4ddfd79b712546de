"""Train jobs on every engine: the chief's SavedModel comes back, or the job says why not."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import akrunner
from tests.conftest import Script

EXPORT = """
import os

def main(task_config):
    import tensorflow as tf
    from akrunner.worker import TrainTaskConfig
    assert isinstance(task_config, TrainTaskConfig)
    again = TrainTaskConfig(**task_config.__dict__)
    assert again.saved_model_dir == task_config.saved_model_dir

    class Double(tf.Module):
        def __init__(self):
            super().__init__()
            self.factor = tf.Variable(2.0 if task_config.task_type == "chief" else 3.0)

        @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
        def __call__(self, x):
            return {"y": self.factor * x}

    model = Double()
    for stamp in ("1700000001", "1700000002"):
        tf.saved_model.save(model, os.path.join(task_config.saved_model_dir, stamp), signatures=model.__call__)
    tf.train.Checkpoint(model=model).save(os.path.join(task_config.latest_ckpt_dir, "ckpt"))
    task_config.output_writer.write_batch({"n": [task_config.dataset_length]})
"""
#: of the models in these directories, each in a line
FACTORS = """
import sys
import tensorflow as tf

for path in sys.argv[1:]:
    print(float(tf.saved_model.load(path).signatures["serving_default"](x=tf.constant([1.0]))["y"][0]))
"""
NOTHING = "def main(task_config):\n    pass\n"
BROKEN = "import os\ndef main(c):\n    open(os.path.join(c.saved_model_dir, 'saved_model.pb'), 'wb').write(b'\\xff\\xff')\n"

Train = Callable[..., akrunner.Result]


@pytest.fixture
def train(engine: str, leaves_nothing: Path) -> Iterator[Train]:
    def start(script: str, **options: Any) -> akrunner.Result:
        return akrunner.train(script, {"a": list(range(7))}, engine=engine, **options)

    yield start


@pytest.mark.tensorflow
def test_the_chiefs_model_comes_back(train: Train, script: Script, tmp_path: Path, in_warm_worker: Callable[..., str]) -> None:
    result = train(
        script(EXPORT), num_workers=2, output_schema="n bigint", save_latest_checkpoint=True, model_out=tmp_path / "out.zip"
    )
    model = result.model
    assert model is not None and os.path.basename(model.path) == "1700000002", "the newest child"
    assert result.output == str(tmp_path / "out.zip")
    assert result.table is not None and result.table["n"].to_pylist() == [4, 3]
    assert model.checkpoint is not None and "checkpoint" in os.listdir(model.checkpoint)
    others = akrunner.Model.from_saved_model(tmp_path / "out.zip"), akrunner.Model.from_table(model.to_table())
    factors = in_warm_worker(FACTORS, *(other.path for other in others)).split()
    assert factors == ["2.0", "2.0"], "the chief's, not the worker's"
    del model, others, result


@pytest.mark.slow
def test_nothing_was_exported(train: Train, script: Script) -> None:
    with pytest.raises(akrunner.ScriptFailedError, match=r"left no SavedModel in task_config.saved_model_dir \(it is empty\)"):
        train(script(NOTHING))


@pytest.mark.tensorflow
def test_something_else_was_exported(train: Train, script: Script) -> None:
    with pytest.raises(akrunner.ScriptFailedError, match="TensorFlow cannot read the SavedModel"):
        train(script(BROKEN))


def test_refused_before_anything_starts(train: Train, script: Script, tmp_path: Path) -> None:
    (tmp_path / "there.zip").write_text("x")
    with pytest.raises(akrunner.ModelError, match="overwrite=True"):
        train(script(NOTHING), model_out=tmp_path / "there.zip")
    with pytest.raises(akrunner.ConfigError, match="means nothing without checkpoint_dir="):
        train(script(NOTHING), remove_checkpoint_before_training=True)


@pytest.mark.slow
def test_checkpoints_of_earlier_runs(train: Train, script: Script, tmp_path: Path) -> None:
    body = "import os\ndef main(c):\n    raise ValueError(sorted(os.listdir(c.checkpoint_dir)))\n"
    folder = tmp_path / "inner"
    folder.mkdir()
    for name in ("checkpoint", "notes.txt"):
        (folder / name).write_text("old")
    path = script(body)
    with pytest.raises(akrunner.ScriptFailedError, match=r"\['checkpoint', 'notes.txt'\]"):
        train(path, checkpoint_dir=folder)
    with pytest.raises(akrunner.ScriptFailedError, match=r"\['notes.txt'\]"):
        train(path, checkpoint_dir=folder, remove_checkpoint_before_training=True)
