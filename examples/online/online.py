"""Learn from rows as they arrive: predict each batch before it is learned from, and say how far off that was."""


def main(task_config):
    import numpy as np
    import tensorflow as tf

    weights = tf.Variable(tf.zeros([2]), name="weights")
    bias = tf.Variable(0.0, name="bias")
    optimizer = tf.keras.optimizers.SGD(task_config.user_params.get("learning_rate", 0.1))

    @tf.function(reduce_retracing=True)
    def learn(x, y):
        with tf.GradientTape() as tape:
            predicted = tf.linalg.matvec(x, weights) + bias
            loss = tf.reduce_mean((predicted - y) ** 2)
        variables = [weights, bias]
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return predicted, loss

    for step, batch in enumerate(task_config.batches(50)):
        x = np.stack([batch["x1"], batch["x2"]], axis=1).astype(np.float32)
        predicted, loss = learn(x, batch["y"].astype(np.float32))
        task_config.output_writer.write_batch({"id": batch["id"], "y": batch["y"], "predicted": predicted})
        task_config.report({"loss": float(loss)}, step=step)
