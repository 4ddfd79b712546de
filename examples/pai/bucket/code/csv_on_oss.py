"""Softmax regression over a CSV file of a bucket, as PAI's guides have it: a queue of names, TextLineReader, decode_csv, queue runners."""

import os

try:
    import tensorflow.compat.v1 as tf

    tf.disable_eager_execution()
except ImportError:
    import tensorflow as tf

tf.app.flags.DEFINE_string("buckets", "", "where the data is")
tf.app.flags.DEFINE_string("checkpointDir", "", "where the model goes")
tf.app.flags.DEFINE_float("learning_rate", 0.01, "of the descent")
tf.app.flags.DEFINE_integer("steps", 10, "of this run")
FLAGS = tf.app.flags.FLAGS


def rows(path, batch_size):
    names = tf.train.string_input_producer([path], shuffle=False)
    reader = tf.TextLineReader()
    _, lines = reader.read_up_to(names, batch_size)
    *columns, label = tf.decode_csv(lines, record_defaults=[[0.0], [0.0], [0.0], [0.0], [0]])
    return tf.stack(columns, axis=1), label


def main(_):
    features, labels = rows(os.path.join(FLAGS.buckets, "iris_train.csv"), 64)
    kernel = tf.get_variable("kernel", [4, 3], initializer=tf.zeros_initializer())
    bias = tf.get_variable("bias", [3], initializer=tf.zeros_initializer())
    logits = tf.matmul(features, kernel) + bias
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
    step = tf.train.get_or_create_global_step()
    train = tf.train.GradientDescentOptimizer(FLAGS.learning_rate).minimize(loss, global_step=step)
    saver = tf.train.Saver()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        latest = tf.train.latest_checkpoint(FLAGS.checkpointDir)
        if latest:
            saver.restore(session, latest)
        print("begins at step", session.run(step))
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coordinator)
        for _ in range(FLAGS.steps):
            _, value = session.run([train, loss])
        print("loss", value, "at step", session.run(step))
        saver.save(session, os.path.join(FLAGS.checkpointDir, "model.ckpt"), global_step=step)
        coordinator.request_stop()
        coordinator.join(threads)


if __name__ == "__main__":
    tf.app.run(main=main)
