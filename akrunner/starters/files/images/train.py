"""Learn to tell circles, squares and triangles. `akrunner train job.toml` calls `main`. Needs TensorFlow 2.7 or later."""

import tensorflow as tf

CLASSES = ["circle", "square", "triangle"]
SIZE = (32, 32)


def main(task_config):
    params = task_config.user_params
    tf.keras.utils.set_random_seed(params["seed"])

    def images(split, **how):
        # batches: images [batch, 32, 32, 3], numbers from 0 to 1, and the number of the class [batch]
        return task_config.dataset(params["batch_size"], columns=["bytes"], label="label", split=split, map=prepared, **how)

    network = tf.keras.Sequential(
        [
            tf.keras.layers.Conv2D(16, 3, activation="relu"),
            tf.keras.layers.MaxPooling2D(),
            tf.keras.layers.Conv2D(32, 3, activation="relu"),
            tf.keras.layers.MaxPooling2D(),
            tf.keras.layers.Conv2D(64, 3, activation="relu"),
            tf.keras.layers.GlobalMaxPooling2D(),  # what was found counts, wherever it is in the image
            tf.keras.layers.Dense(len(CLASSES), activation="softmax"),
        ]
    )
    network.compile(tf.keras.optimizers.Adam(params["learning_rate"]), "sparse_categorical_crossentropy", metrics=["accuracy"])
    # every epoch mirrors and moves the images anew, so that a few of them teach as much as many; they are decoded once
    learned = {"size": SIZE, "augment": ["flip", "shift"]}
    train = images("train", image=learned, shuffle=True, repeat=params["epochs"], cache=True, seed=params["seed"])
    # what is reported is shown while the job runs, and is in `result.stats.reports` when it has ended
    told = tf.keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: task_config.report(logs, step=epoch))
    steps = task_config.steps_per_epoch(params["batch_size"], split="train")
    network.fit(train, epochs=params["epochs"], steps_per_epoch=steps, callbacks=[told], verbose=2)

    loss, accuracy = network.evaluate(images("test", image=SIZE), verbose=0)
    task_config.report({"test_loss": loss, "test_accuracy": accuracy})

    model = Classifier(network)
    tf.saved_model.save(model, task_config.saved_model_dir, signatures=model.__call__)


def prepared(columns, labels):
    return columns["bytes"], tf.argmax(tf.equal(labels[:, None], tf.constant(CLASSES)), axis=1)


class Classifier(tf.Module):
    """What is saved. It takes files as they are (JPEG, PNG, ...), each as bytes: to decode and resize them is a part of it."""

    def __init__(self, network):
        super().__init__()
        self.network = network

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="bytes")])
    def __call__(self, files):
        def decoded(file):
            return tf.image.resize(tf.io.decode_image(file, channels=3, expand_animations=False, dtype=tf.float32), SIZE)

        p = self.network(tf.map_fn(decoded, files, fn_output_signature=tf.TensorSpec([*SIZE, 3])), training=False)
        return {"label": tf.gather(tf.constant(CLASSES), tf.argmax(p, axis=1)), "p": tf.reduce_max(p, axis=1)}
