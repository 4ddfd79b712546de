"""Learn what a user thinks of a film, with the model's tables on parameter servers. Needs TensorFlow 2.4 or later.

`akrunner train job.toml` calls `main` in four processes::

    chief:0    has no rows; it says what is computed, and saves the model ──┐
    worker:0   computes with its share of the rows  ◄───────────────────────┤
    worker:1   computes with its share of the rows  ◄───────────────────────┘
    ps:0       keeps the variables; a step sends it only the rows of a table that it has used
"""

import tensorflow as tf


def main(task_config):
    if task_config.task_type != "chief":
        return task_config.serve()  # does what the chief asks for, until the chief is done

    params = task_config.user_params
    tf.random.set_seed(params["seed"])
    cluster = tf.distribute.cluster_resolver.TFConfigClusterResolver()  # akrunner has set TF_CONFIG
    strategy = tf.distribute.experimental.ParameterServerStrategy(cluster)
    coordinator = tf.distribute.experimental.coordinator.ClusterCoordinator(strategy)
    with strategy.scope():
        model = Taste(params["users"], params["films"], params["numbers"])

    @tf.function
    def learn(batches):
        columns, stars = next(batches)
        with tf.GradientTape() as tape:
            off = model.stars(columns["user"], columns["film"]) - tf.cast(stars, tf.float32)
            loss = tf.reduce_sum(off**2) / 2
        for table, change in zip(model.tables, tape.gradient(loss, model.tables)):
            # of a large table, only the rows that the batch has used
            table.scatter_sub(tf.IndexedSlices(params["learning_rate"] * change.values, change.indices))
        return tf.reduce_sum(off**2), tf.size(stars)

    @tf.function
    def test(batches):
        columns, stars = next(batches)
        off = model.stars(columns["user"], columns["film"]) - tf.cast(stars, tf.float32)
        return tf.reduce_sum(off**2), tf.size(stars)

    def rows(split, **how):
        # this is called here, and read in each worker: the worker's own share of the table, again and again
        return coordinator.create_per_worker_dataset(
            lambda: task_config.per_worker_dataset(params["batch_size"], label="stars", split=split, **how)
        )

    def error(step, batches, times):
        """Have the workers take a step so many times. Returns how many stars the model was off: the root of the mean square."""
        results = [coordinator.schedule(step, args=(batches,)) for _ in range(times)]
        coordinator.join()
        square, count = (sum(float(one) for one in some) for some in zip(*(result.fetch() for result in results)))
        return (square / count) ** 0.5

    train = iter(rows("train", shuffle=True, seed=params["seed"]))
    for epoch in range(params["epochs"]):
        task_config.report({"error": error(learn, train, params["steps_per_epoch"])}, step=epoch)
    # so many batches that each row of the test is in one of them, or in two
    task_config.report({"test_error": error(test, iter(rows("test")), 20)})
    tf.saved_model.save(model, task_config.saved_model_dir, signatures=model.__call__)


class Taste(tf.Module):
    """What is saved: some numbers for each user and each film. The more a user's agree with a film's, the more stars there are."""

    def __init__(self, users, films, numbers):
        super().__init__()
        self.user = tf.Variable(tf.random.normal([users, numbers], stddev=0.1), name="user")
        self.film = tf.Variable(tf.random.normal([films, numbers], stddev=0.1), name="film")
        self.liked = tf.Variable(tf.fill([films], 3.0), name="liked")
        self.tables = [self.user, self.film, self.liked]

    def stars(self, user, film):
        agreement = tf.reduce_sum(tf.gather(self.user, user) * tf.gather(self.film, film), axis=1)
        return tf.gather(self.liked, film) + agreement

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int64, name=name) for name in ("user", "film")])
    def __call__(self, user, film):
        return {"stars": tf.clip_by_value(self.stars(user, film), 1.0, 5.0)}
