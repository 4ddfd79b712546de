"""Is it a setosa? Logistic regression by workers and a parameter server, the TensorFlow 1 way: Server, replica_device_setter, MonitoredTrainingSession."""

import numpy as np
import tensorflow as tf
from common.tables import COLUMNS, DEFAULTS

flags = tf.app.flags
flags.DEFINE_string("tables", "", "input tables")
flags.DEFINE_string("outputs", "", "output tables")
flags.DEFINE_string("job_name", "worker", "worker or ps")
flags.DEFINE_integer("task_index", 0, "of the worker, or the parameter server")
flags.DEFINE_string("ps_hosts", "", "host:port of each parameter server")
flags.DEFINE_string("worker_hosts", "", "host:port of each worker")
flags.DEFINE_integer("steps", 10, "of all workers together")
flags.DEFINE_float("learning_rate", 0.01, "of the descent")
FLAGS = flags.FLAGS


def rows(index, count, epochs):
    dataset = tf.data.TableRecordDataset([FLAGS.tables], DEFAULTS, selected_cols=COLUMNS, slice_id=index, slice_count=count)
    *numbers, species = dataset.repeat(epochs).batch(32).make_one_shot_iterator().get_next()
    return tf.stack(numbers, axis=1), species


def train(server, cluster, workers):
    chief = FLAGS.task_index == 0
    setter = tf.train.replica_device_setter(worker_device="/job:worker/task:%d" % FLAGS.task_index, cluster=cluster)
    with tf.device(setter):
        features, species = rows(FLAGS.task_index, workers, epochs=None)
        labels = tf.to_float(tf.equal(species, "setosa"))
        logits = tf.squeeze(tf.layers.dense(features, 1), axis=1)
        loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits))
        step = tf.train.get_or_create_global_step()
        optimize = tf.train.GradientDescentOptimizer(FLAGS.learning_rate).minimize(loss, global_step=step)
    config = tf.ConfigProto(device_filters=["/job:ps", "/job:worker/task:%d" % FLAGS.task_index])
    hooks = [tf.train.StopAtStepHook(last_step=FLAGS.steps)]
    with tf.train.MonitoredTrainingSession(server.target, is_chief=chief, config=config, hooks=hooks) as session:
        weights = tf.trainable_variables()
        values = session.run(weights)
        while not session.should_stop():
            _, values = session.run([optimize, weights])
    return values


def write(kernel, bias, workers):
    """Every worker scores its own slice, and writes under its own number."""
    reader = tf.python_io.TableReader(FLAGS.tables, selected_cols=COLUMNS, slice_id=FLAGS.task_index, slice_count=workers)
    writer = tf.python_io.TableWriter(FLAGS.outputs, slice_id=FLAGS.task_index)
    for *numbers, species in reader.read(reader.get_row_count()):
        score = 1 / (1 + np.exp(-(np.array(numbers) @ kernel[:, 0] + bias[0])))
        writer.write((species, float(score), FLAGS.task_index), indices=[0, 1, 2])
    reader.close()
    writer.close()


def main(_):
    ps_hosts, worker_hosts = FLAGS.ps_hosts.split(","), FLAGS.worker_hosts.split(",")
    cluster = tf.train.ClusterSpec({"ps": ps_hosts, "worker": worker_hosts})
    server = tf.train.Server(cluster, job_name=FLAGS.job_name, task_index=FLAGS.task_index)
    if FLAGS.job_name == "ps":
        server.join()
    kernel, bias = train(server, cluster, len(worker_hosts))
    write(kernel, bias, len(worker_hosts))


if __name__ == "__main__":
    tf.app.run()
