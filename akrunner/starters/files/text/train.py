"""Learn which topic a message to the help desk has. `akrunner train job.toml` calls `main`. Needs TensorFlow 2.7 or later."""

import tensorflow as tf

TOPICS = ["billing", "delivery", "technical"]


def main(task_config):
    params = task_config.user_params
    tf.keras.utils.set_random_seed(params["seed"])

    def rows(split, **how):
        # batches of the table's rows: texts [batch], and the number of the topic [batch]
        return task_config.dataset(params["batch_size"], label="topic", split=split, map=prepared, **how)

    # a text becomes the numbers of its words; which words there are is learned from the texts, without those of the test
    words = tf.keras.layers.TextVectorization(params["words"])
    words.adapt(rows("train").map(lambda texts, topics: texts))

    network = tf.keras.Sequential(
        [
            tf.keras.layers.Embedding(params["words"], 32),
            tf.keras.layers.GlobalAveragePooling1D(),
            tf.keras.layers.Dense(len(TOPICS), activation="softmax"),
        ]
    )
    network.compile(tf.keras.optimizers.Adam(params["learning_rate"]), "sparse_categorical_crossentropy", metrics=["accuracy"])
    numbered = rows("train", shuffle=True, seed=params["seed"]).map(lambda texts, topics: (words(texts), topics)).prefetch(2)
    # what is reported is shown while the job runs, and is in `result.stats.reports` when it has ended
    told = tf.keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: task_config.report(logs, step=epoch))
    network.fit(numbered, epochs=params["epochs"], callbacks=[told], verbose=2)

    loss, accuracy = network.evaluate(rows("test").map(lambda texts, topics: (words(texts), topics)), verbose=0)
    task_config.report({"test_loss": loss, "test_accuracy": accuracy})

    model = Classifier(words, network)
    tf.saved_model.save(model, task_config.saved_model_dir, signatures=model.__call__)


def prepared(columns, topics):
    return columns["text"], tf.argmax(tf.equal(topics[:, None], tf.constant(TOPICS)), axis=1)


class Classifier(tf.Module):
    """What is saved. It takes texts as they are in the table: the words and their numbers are a part of it."""

    def __init__(self, words, network):
        super().__init__()
        self.words = words
        self.network = network

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="text")])
    def __call__(self, text):
        p = self.network(self.words(text), training=False)
        return {"topic": tf.gather(tf.constant(TOPICS), tf.argmax(p, axis=1)), "p": tf.reduce_max(p, axis=1)}
