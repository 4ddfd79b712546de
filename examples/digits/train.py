"""Train the digits model and export it: `image` (64 pixels) in, ten probabilities and the likeliest digit out."""


def main(task_config):
    import tensorflow as tf

    tf.keras.utils.set_random_seed(7)
    image = tf.keras.Input((64,), name="image")
    x = tf.keras.layers.Rescaling(1 / 16.0)(image)
    x = tf.keras.layers.Reshape((8, 8, 1))(x)
    x = tf.keras.layers.Conv2D(16, 3, activation="relu")(x)
    x = tf.keras.layers.Flatten()(x)
    p = tf.keras.layers.Dense(10, activation="softmax")(tf.keras.layers.Dense(64, activation="relu")(x))
    model = tf.keras.Model(image, p)
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])

    rows = task_config.dataset(64, shuffle=2000, label="label", seed=7)
    rows = rows.map(lambda columns, label: (tf.cast(columns["image"], tf.float32), label))
    model.fit(rows, epochs=task_config.user_params.get("epochs", 8), verbose=2)

    class Classifier(tf.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        @tf.function(input_signature=[tf.TensorSpec([None, 64], tf.float32, name="image")])
        def __call__(self, image):
            p = self.model(image, training=False)
            return {"p": p, "digit": tf.argmax(p, axis=1)}

    classifier = Classifier()
    tf.saved_model.save(classifier, task_config.saved_model_dir, signatures=classifier.__call__)
