"""`train_and_evaluate` of an Estimator, on TensorFlow 1.15 and 2.3: parameter servers, or workers in step (AllReduce).

With parameter servers every worker trains on its own, and variables are on the servers; `user_params={"strategy": "all_reduce"}`
is for clusters without servers. An evaluator (evaluator=True) evaluates every checkpoint, the last one among them.
"""

import os
import time

FEATURES = ["sepal_length", "sepal_width", "petal_length", "petal_width"]
SPECIES = ["setosa", "versicolor", "virginica"]


def main(task_config):
    import numpy as np
    import tensorflow as tf

    if not tf.__version__.startswith("1."):
        tf.compat.v1.disable_eager_execution()
    v1 = tf.compat.v1
    v1.logging.set_verbosity(v1.logging.INFO)
    params = task_config.user_params
    batch_size, max_steps = params.get("batch_size", 16), params.get("max_steps", 600)
    model_dir = os.path.join(task_config.checkpoint_dir, "model")

    def prepare(columns, species):
        features = tf.stack([columns[name] for name in FEATURES], axis=1)
        return {"x": features}, tf.argmax(tf.cast(tf.equal(species[:, None], tf.constant(SPECIES)), tf.int32), axis=1)

    def train_rows():
        return task_config.dataset(batch_size, shuffle=150, repeat=None, label="species", seed=7).map(prepare)

    def test_rows():
        # the evaluator is dealt no rows: it has a file of its own
        table = np.genfromtxt(params.get("test_file", "iris.csv"), delimiter=",", skip_header=1, dtype=None, encoding="utf-8")
        names = np.array([row[5].strip('"') for row in table])
        features = np.array([list(row)[1:5] for row in table], np.float32)
        labels = np.array([SPECIES.index(name) for name in names], np.int64)
        return tf.data.Dataset.from_tensors(({"x": features}, labels))

    def model(features, labels, mode):
        logits = v1.layers.dense(features["x"], 3, name="dense")
        if mode == "infer":
            return tf.estimator.EstimatorSpec(mode, predictions={"class": tf.argmax(logits, axis=1)})
        loss = v1.losses.sparse_softmax_cross_entropy(labels, logits)
        if mode == "eval":
            metrics = {"accuracy": v1.metrics.accuracy(labels, tf.argmax(logits, axis=1))}
            return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops=metrics)
        train_op = v1.train.AdamOptimizer(0.05).minimize(loss, global_step=v1.train.get_or_create_global_step())
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

    options = dict(model_dir=model_dir, tf_random_seed=7, save_checkpoints_steps=200, log_step_count_steps=200)
    if params.get("strategy") == "all_reduce":
        options["train_distribute"] = tf.distribute.experimental.MultiWorkerMirroredStrategy()
    estimator = tf.estimator.Estimator(model, config=tf.estimator.RunConfig(**options))
    outcome = tf.estimator.train_and_evaluate(
        estimator,
        tf.estimator.TrainSpec(train_rows, max_steps=max_steps),
        tf.estimator.EvalSpec(test_rows, steps=None, start_delay_secs=0, throttle_secs=1),
    )
    if task_config.task_type == "evaluator":
        metrics = outcome[0] if isinstance(outcome, tuple) else estimator.evaluate(test_rows)
        task_config.report({"accuracy": metrics["accuracy"], "loss": metrics["loss"]}, step=int(metrics["global_step"]))
        return
    # what every worker reads after the end is what all of them have trained: the chief saves it at its own end
    deadline = time.monotonic() + 60
    while int(estimator.get_variable_value("global_step")) < max_steps and time.monotonic() < deadline:
        time.sleep(0.2)
    kernel = estimator.get_variable_value("dense/kernel")
    step = int(estimator.get_variable_value("global_step"))
    task_config.output_writer.write_batch({"step": [step], "variables": [float(np.abs(kernel).sum())]})
