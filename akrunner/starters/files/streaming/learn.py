"""Watch a machine: say which power it should take, write an alarm if it takes another, and learn from what it takes.

`akrunner stream job.toml` calls `main`.
"""

import numpy as np
import tensorflow as tf

tf.compat.v1.enable_v2_behavior()  # TensorFlow 1.15 then computes as TensorFlow 2 does, where this line does nothing


def main(task_config):
    params = task_config.user_params
    weights = tf.Variable(tf.zeros([3]))

    @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.float32), tf.TensorSpec([None], tf.float32)])
    def predict_then_learn(features, power):
        with tf.GradientTape() as tape:
            expected = tf.linalg.matvec(features, weights)
            loss = tf.reduce_mean((expected - power) ** 2)
        weights.assign_sub(params["learning_rate"] * tape.gradient(loss, weights))
        return expected, loss

    # the rows come once, as they arrive; each is predicted before the model has learned from it
    seen = 0
    for batch in task_config.batches(params["batch_size"]):
        load, outside = batch["load"], batch["outside"] / 20
        features = np.stack([load, outside, np.ones_like(load)], axis=1).astype(np.float32)
        expected, loss = predict_then_learn(features, batch["power"].astype(np.float32))
        off = np.abs(batch["power"] - expected.numpy())
        alarm = off > params["alarm"]
        if alarm.any() and seen >= params["rows_before_alarms"]:
            told = {"id": batch["id"], "power": batch["power"], "expected": expected.numpy()}
            task_config.output_writer.write_batch({name: values[alarm] for name, values in told.items()})
        seen += len(off)
        task_config.report({"loss": float(loss)}, step=seen)
