"""A small network over packed images."""

from __future__ import annotations

from akrunner.worker import BatchTaskConfig


def main(task_config: BatchTaskConfig) -> None:
    import tensorflow as tf

    tf.keras.utils.set_random_seed(0)
    rows = task_config.dataset(batch_size=16, shuffle=True, label="label", columns=["image"], image=(24, 24))
    rows = rows.map(lambda x, y: (x["image"], y))
    layers = tf.keras.layers
    model = tf.keras.Sequential(
        [layers.Conv2D(8, 5, activation="relu"), layers.MaxPool2D(), layers.Flatten(), layers.Dense(2, activation="softmax")]
    )
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    history = model.fit(rows, epochs=15, verbose=0)
    accuracy = history.history["accuracy"][-1]
    task_config.output_writer.write_batch({"rows": [task_config.dataset_length], "accuracy": [accuracy]})
