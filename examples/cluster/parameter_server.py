"""Parameter servers, the way of TensorFlow 2: the chief coordinates, workers and parameter servers do what it asks.

Start it with coordinator=True: the chief is a task of its own then, and the rows are the workers'.
"""

FEATURES = ["sepal_length", "sepal_width", "petal_length", "petal_width"]
SPECIES = ["setosa", "versicolor", "virginica"]


def main(task_config):
    if task_config.task_type != "chief":
        return task_config.serve()
    import tensorflow as tf

    params = task_config.user_params
    batch_size = params.get("batch_size", 16)
    tf.random.set_seed(7)
    cluster = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    strategy = tf.distribute.ParameterServerStrategy(cluster)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    with strategy.scope():
        kernel = tf.Variable(tf.zeros([4, 3]))
        bias = tf.Variable(tf.zeros([3]))
        seen = tf.Variable(tf.zeros([], tf.int64))

    def prepare(columns, species):
        features = tf.stack([columns[name] for name in FEATURES], axis=1)
        return columns["id"], features, tf.argmax(species[:, None] == tf.constant(SPECIES), axis=1)

    def rows():
        # written here, read in each worker: its own share of the table
        return task_config.per_worker_dataset(batch_size, shuffle=150, label="species", seed=7).map(prepare)

    @tf.function
    def train_step(iterator):
        ids, features, labels = next(iterator)
        with tf.GradientTape() as tape:
            logits = features @ kernel + bias
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))
        for variable, gradient in zip((kernel, bias), tape.gradient(loss, [kernel, bias])):
            variable.assign_sub(params.get("learning_rate", 0.02) * gradient)
        seen.assign_add(tf.size(ids, tf.int64))
        return loss, ids

    batches = iter(coordinator.create_per_worker_dataset(rows))
    steps = params.get("steps", 600)
    results = [coordinator.schedule(train_step, args=(batches,)) for _ in range(steps)]
    coordinator.join()
    loss = sum(float(result.fetch()[0]) for result in results[-20:]) / 20
    task_config.report({"loss": loss}, step=steps)
    ids = sorted({int(i) for result in results for i in result.fetch()[1]})
    task_config.output_writer.write_batch(
        {
            "rows": [int(seen.numpy())],
            "different_rows": [len(ids)],
            "loss": [loss],
            "variables": [float(abs(kernel.numpy()).sum())],
        }
    )
