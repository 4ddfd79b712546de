"""Keras `fit` on several workers that compute in step (AllReduce). For Keras 2: start it with keras="legacy"."""

FEATURES = ["sepal_length", "sepal_width", "petal_length", "petal_width"]
SPECIES = ["setosa", "versicolor", "virginica"]


def main(task_config):
    import numpy as np
    import tensorflow as tf

    params = task_config.user_params
    batch_size, uneven = params.get("batch_size", 16), params.get("uneven", "drop")
    tf.keras.utils.set_random_seed(7)

    def prepare(columns, species, *weight):
        features = tf.stack([columns[name] for name in FEATURES], axis=1)
        return (features, tf.argmax(species[:, None] == tf.constant(SPECIES), axis=1), *weight)

    def rows(context):
        # every worker draws as many batches as the others: one more on one of them would wait for ever
        data = task_config.dataset(batch_size, shuffle=150, repeat=None, label="species", seed=7, uneven=uneven)
        return data.map(prepare)

    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    with strategy.scope():
        model = tf.keras.Sequential([tf.keras.layers.Dense(3, activation="softmax", input_shape=(4,))])
        model.compile(
            tf.keras.optimizers.Adam(params.get("learning_rate", 0.05)),
            "sparse_categorical_crossentropy",
            weighted_metrics=["accuracy"],
        )
    history = model.fit(
        strategy.distribute_datasets_from_function(rows),
        steps_per_epoch=task_config.steps_per_epoch(batch_size, uneven=uneven),
        epochs=params.get("epochs", 40),
        verbose=0,
    )
    for step, accuracy in enumerate(history.history["accuracy"]):
        task_config.report({"accuracy": accuracy}, step=step)
    kernel = model.get_weights()[0]
    correct = rows_seen = 0
    for batch in task_config.batches(64):
        p = np.stack([batch[name] for name in FEATURES], axis=1) @ kernel + model.get_weights()[1]
        correct += int((np.array(SPECIES)[p.argmax(axis=1)] == batch["species"].astype(str)).sum())
        rows_seen += len(p)
    task_config.output_writer.write_batch(
        {"rows": [rows_seen], "correct": [correct], "variables": [float(np.abs(kernel).sum())]}
    )
