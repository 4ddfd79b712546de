"""A training loop of one's own on several workers that compute in step: `strategy.run` in a function."""

FEATURES = ["sepal_length", "sepal_width", "petal_length", "petal_width"]
SPECIES = ["setosa", "versicolor", "virginica"]


def main(task_config):
    import numpy as np
    import tensorflow as tf

    params = task_config.user_params
    batch_size = params.get("batch_size", 16)
    tf.random.set_seed(7)

    def prepare(columns, species):
        features = tf.stack([columns[name] for name in FEATURES], axis=1)
        return features, tf.argmax(species[:, None] == tf.constant(SPECIES), axis=1)

    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    with strategy.scope():
        kernel = tf.Variable(tf.zeros([4, 3]))
        bias = tf.Variable(tf.zeros([3]))

    def rows(context):
        return task_config.dataset(batch_size, shuffle=150, repeat=None, label="species", seed=7, uneven="drop").map(prepare)

    batches = iter(strategy.distribute_datasets_from_function(rows))

    def step(features, labels):
        with tf.GradientTape() as tape:
            logits = features @ kernel + bias
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))
        replica = tf.distribute.get_replica_context()
        gradients = replica.all_reduce(tf.distribute.ReduceOp.MEAN, tape.gradient(loss, [kernel, bias]))
        for variable, gradient in zip((kernel, bias), gradients):
            variable.assign_sub(params.get("learning_rate", 0.1) * gradient)
        return loss

    @tf.function
    def train_step(iterator):
        losses = strategy.run(step, args=next(iterator))
        return strategy.reduce(tf.distribute.ReduceOp.MEAN, losses, axis=None)

    steps = task_config.steps_per_epoch(batch_size)
    for epoch in range(params.get("epochs", 60)):
        for _ in range(steps):
            loss = train_step(batches)
        if epoch % 10 == 9:
            task_config.report({"loss": float(loss)}, step=epoch)
    weights, offset = kernel.numpy(), bias.numpy()
    correct = rows_seen = 0
    for batch in task_config.batches(64):
        p = np.stack([batch[name] for name in FEATURES], axis=1) @ weights + offset
        correct += int((np.array(SPECIES)[p.argmax(axis=1)] == batch["species"].astype(str)).sum())
        rows_seen += len(p)
    task_config.output_writer.write_batch(
        {"rows": [rows_seen], "correct": [correct], "variables": [float(np.abs(weights).sum())]}
    )
