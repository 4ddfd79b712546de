"""Learn what a flat costs a month. `akrunner train job.toml` calls `main`."""

import random

import numpy as np
import tensorflow as tf

NUMBERS = ["area", "floor", "age", "balcony"]
DISTRICTS = ["centre", "harbour", "hills", "north", "west"]
#: the columns that the model takes -> their types
INPUTS = dict({name: tf.int64 for name in NUMBERS}, district=tf.string)

tf.compat.v1.enable_v2_behavior()  # TensorFlow 1.15 then computes as TensorFlow 2 does, where this line does nothing


def main(task_config):
    params = task_config.user_params
    random.seed(params["seed"])  # Keras 3 draws its first weights by this, TensorFlow and older Keras by the next
    tf.compat.v1.set_random_seed(params["seed"])

    # networks learn from numbers around 0: take mean and deviation of what is learned from, and of nothing else
    batches = list(task_config.batches(1000, split="train"))
    known = {name: np.concatenate([batch[name] for batch in batches]).astype(np.float32) for name in [*NUMBERS, "rent"]}
    scales = {name: (values.mean(), values.std()) for name, values in known.items()}

    def scaled(columns):
        """Columns by name, each [batch] -> features, [batch, 9]: numbers around 0, and a 1 at the flat's district."""
        numbers = [(tf.cast(columns[name], tf.float32) - scales[name][0]) / scales[name][1] for name in NUMBERS]
        where = tf.cast(tf.equal(columns["district"][:, None], tf.constant(DISTRICTS)), tf.float32)
        return tf.concat([tf.stack(numbers, axis=1), where], axis=1)

    def prepared(columns, rent):
        return scaled(columns), (tf.cast(rent, tf.float32) - scales["rent"][0]) / scales["rent"][1]

    def rows(split, **how):
        return task_config.dataset(params["batch_size"], label="rent", split=split, map=prepared, **how)

    network = tf.keras.Sequential([tf.keras.layers.Dense(32, activation="relu"), tf.keras.layers.Dense(1)])
    network.compile(tf.keras.optimizers.Adam(params["learning_rate"]), "mse")
    # what is reported is shown while the job runs, and is in `result.stats.reports` when it has ended
    told = tf.keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: task_config.report(logs, step=epoch))
    network.fit(rows("train", shuffle=True, seed=params["seed"]), epochs=params["epochs"], callbacks=[told], verbose=2)

    model = Rent(network, scaled, scales["rent"])
    off, guess_off = errors(model, task_config.batches(1000, split="test"), guess=scales["rent"][0])
    task_config.report({"test_error": off, "error_of_the_mean": guess_off})
    tf.saved_model.save(model, task_config.saved_model_dir, signatures=model.__call__)


def errors(model, batches, guess):
    """How many euros the model is off, on average, and how many a guess is that is the same for every flat."""
    pairs = [(batch["rent"], model({name: tf.constant(batch[name]) for name in INPUTS})["rent"].numpy()) for batch in batches]
    rent, predicted = (np.concatenate(some) for some in zip(*pairs))
    return np.abs(rent - predicted).mean(), np.abs(rent - guess).mean()


class Rent(tf.Module):
    """What is saved. It takes columns by their names, so that `akrunner predict` can feed it a table, and returns euros."""

    def __init__(self, network, scaled, scale):
        super().__init__()
        self.network = network
        self.scaled = scaled
        self.mean, self.deviation = scale

    @tf.function(input_signature=[{name: tf.TensorSpec([None], kind, name=name) for name, kind in INPUTS.items()}])
    def __call__(self, columns):
        return {"rent": self.network(self.scaled(columns), training=False)[:, 0] * self.deviation + self.mean}
