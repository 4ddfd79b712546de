"""Train a small classifier on the iris table and write a prediction for every row. Runs on one worker or many."""

FEATURES = ["sepal_length", "sepal_width", "petal_length", "petal_width"]
SPECIES = ["setosa", "versicolor", "virginica"]


def main(task_config):
    import numpy as np
    import tensorflow as tf

    params = task_config.user_params
    batch_size = params.get("batch_size", 16)
    tf.keras.utils.set_random_seed(params.get("seed", 7))

    def prepare(columns, species):
        features = tf.stack([columns[name] for name in FEATURES], axis=1)
        return features, tf.argmax(species[:, None] == tf.constant(SPECIES), axis=1)

    def rows(context=None):
        # this worker's own share of the table, already parsed and batched
        return task_config.dataset(batch_size, shuffle=150, repeat=None, label="species", seed=7).map(prepare)

    many = task_config.num_workers > 1
    strategy = tf.distribute.MultiWorkerMirroredStrategy() if many else tf.distribute.get_strategy()
    with strategy.scope():
        model = tf.keras.Sequential(
            [tf.keras.layers.Dense(16, activation="relu", input_shape=(4,)), tf.keras.layers.Dense(3, activation="softmax")]
        )
        model.compile(tf.keras.optimizers.Adam(0.02), "sparse_categorical_crossentropy", metrics=["accuracy"])
    history = model.fit(
        strategy.distribute_datasets_from_function(rows) if many else rows(),
        steps_per_epoch=task_config.steps_per_epoch(batch_size),
        epochs=params.get("epochs", 30),
        verbose=2,
    )
    task_config.report({name: values[-1] for name, values in history.history.items()})

    for batch in task_config.batches(64):
        inputs = np.stack([batch[name] for name in FEATURES], axis=1)
        p = model(inputs, training=False).numpy()
        task_config.output_writer.write_batch(
            {
                "id": batch["id"],
                "species": batch["species"],
                "predicted": np.array(SPECIES)[p.argmax(axis=1)],
                "p": p.max(axis=1),
            }
        )
