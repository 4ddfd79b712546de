"""Learn to tell three kinds of iris from the measures of a flower. `akrunner train job.toml` calls `main`."""

import random

import tensorflow as tf

FEATURES = ["sepal_length", "sepal_width", "petal_length", "petal_width"]
SPECIES = ["setosa", "versicolor", "virginica"]

tf.compat.v1.enable_v2_behavior()  # TensorFlow 1.15 then computes as TensorFlow 2 does, where this line does nothing


def main(task_config):
    params = task_config.user_params
    random.seed(params["seed"])  # Keras 3 draws its first weights by this, TensorFlow and older Keras by the next
    tf.compat.v1.set_random_seed(params["seed"])

    def rows(split, **how):
        # batches of the table's rows: features [batch, 4], and the number of the species [batch]
        return task_config.dataset(params["batch_size"], label="species", split=split, map=prepared, **how)

    network = tf.keras.Sequential(
        [tf.keras.layers.Dense(16, activation="relu"), tf.keras.layers.Dense(len(SPECIES), activation="softmax")]
    )
    network.compile(tf.keras.optimizers.Adam(params["learning_rate"]), "sparse_categorical_crossentropy", metrics=["accuracy"])
    # what is reported is shown while the job runs, and is in `result.stats.reports` when it has ended
    told = tf.keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: task_config.report(logs, step=epoch))
    network.fit(rows("train", shuffle=True, seed=params["seed"]), epochs=params["epochs"], callbacks=[told], verbose=2)

    loss, accuracy = network.evaluate(rows("test"), verbose=0)
    task_config.report({"test_loss": loss, "test_accuracy": accuracy})

    model = Classifier(network)
    tf.saved_model.save(model, task_config.saved_model_dir, signatures=model.__call__)


def stacked(columns):
    """Columns by name, each [batch] -> features, [batch, 4]."""
    return tf.stack([columns[name] for name in FEATURES], axis=1)


def prepared(columns, species):
    return stacked(columns), tf.argmax(tf.cast(tf.equal(species[:, None], tf.constant(SPECIES)), tf.int32), axis=1)


class Classifier(tf.Module):
    """What is saved. It takes columns by their names, so that `akrunner predict` can feed it a table."""

    def __init__(self, network):
        super().__init__()
        self.network = network

    @tf.function(input_signature=[{name: tf.TensorSpec([None], tf.float32, name=name) for name in FEATURES}])
    def __call__(self, columns):
        p = self.network(stacked(columns), training=False)
        return {"species": tf.gather(tf.constant(SPECIES), tf.argmax(p, axis=1)), "p": tf.reduce_max(p, axis=1)}
