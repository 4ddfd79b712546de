"""A small classifier of flowers, with Keras: `features` in, three probabilities and the likeliest class out."""

import json


def main(task_config):
    import tensorflow as tf

    # through Alink's operators every param is text
    params = task_config.user_params
    columns = json.loads(params["featureCols"])
    species = json.loads(params["species"])
    tf.keras.utils.set_random_seed(7)
    model = tf.keras.Sequential(
        [
            tf.keras.Input((len(columns),)),
            tf.keras.layers.Dense(16, activation="relu"),
            tf.keras.layers.Dense(len(species), activation="softmax"),
        ]
    )
    model.compile(tf.keras.optimizers.Adam(0.02), "sparse_categorical_crossentropy")

    def prepare(row, label):
        return tf.stack([row[name] for name in columns], axis=1), tf.argmax(label[:, None] == tf.constant(species), axis=1)

    model.fit(
        task_config.dataset(16, shuffle=150, label=params["labelCol"], seed=7).map(prepare),
        epochs=int(params["epochs"]),
        verbose=0,
    )

    class Classifier(tf.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        @tf.function(input_signature=[tf.TensorSpec([None, len(columns)], tf.float32, name="features")])
        def __call__(self, features):
            p = self.model(features, training=False)
            return {"p": p, "class": tf.argmax(p, axis=1)}

    classifier = Classifier()
    tf.saved_model.save(classifier, task_config.saved_model_dir, signatures=classifier.__call__)
