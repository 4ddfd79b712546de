"""Train a small convolutional network on handwritten digits: a column of 8 x 8 images as fixed-size lists. It learns from one
split of the table, and answers for the other."""


def main(task_config):
    import numpy as np
    import tensorflow as tf

    params = task_config.user_params
    tf.keras.utils.set_random_seed(7)

    def prepare(columns, label):
        image = tf.reshape(tf.cast(columns["image"], tf.float32) / 16.0, (-1, 8, 8, 1))
        return image, label

    rows = task_config.dataset(64, shuffle=2000, label="label", seed=7, split="train", map=prepare)
    model = tf.keras.Sequential(
        [
            tf.keras.layers.Conv2D(16, 3, activation="relu"),
            tf.keras.layers.MaxPooling2D(),
            tf.keras.layers.Flatten(),
            tf.keras.layers.Dense(64, activation="relu"),
            tf.keras.layers.Dense(10, activation="softmax"),
        ]
    )
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    model.fit(rows, epochs=params.get("epochs", 8), verbose=2)

    for batch in task_config.batches(256, split="test"):
        images = batch["image"].astype(np.float32).reshape(-1, 8, 8, 1) / 16.0
        p = model(images, training=False).numpy()
        task_config.output_writer.write_batch(
            {"id": batch["id"], "label": batch["label"], "predicted": p.argmax(axis=1), "p": p}
        )
