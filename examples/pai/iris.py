"""PAI-TensorFlow's iris job: the table is read by TableRecordDataset, and each flower written with the nearest species by TableWriter.

As it is run on PAI: TensorFlow 1.15. The first lines let it run on TensorFlow 2 as well.
"""

import sys

import numpy as np

try:
    import tensorflow.compat.v1 as tf

    tf.disable_eager_execution()
except ImportError:
    import tensorflow as tf

tf.app.flags.DEFINE_string("tables", "", "input tables")
tf.app.flags.DEFINE_string("outputs", "", "output tables")
tf.app.flags.DEFINE_integer("batch_size", 16, "rows in a batch")
FLAGS = tf.app.flags.FLAGS
print("tables:", FLAGS.tables, "outputs:", FLAGS.outputs)


def batches(session, table):
    """Numbers [rows, 4] and species [rows], a batch at a time."""
    dataset = tf.data.TableRecordDataset([table], record_defaults=[0.0, 0.0, 0.0, 0.0, ""], selected_cols="f1,f2,f3,f4,f5")
    row = tf.data.make_one_shot_iterator(dataset.batch(FLAGS.batch_size)).get_next()
    while True:
        try:
            *numbers, species = session.run(row)
        except tf.errors.OutOfRangeError:
            return
        yield np.stack(numbers, axis=1), species


def main(_):
    table = FLAGS.tables.split(",")[0]
    with tf.Session() as session:
        sums, counts = {}, {}
        for numbers, species in batches(session, table):
            for name in set(species):
                rows = numbers[species == name]
                sums[name] = sums.get(name, 0) + rows.sum(axis=0)
                counts[name] = counts.get(name, 0) + len(rows)
        names = sorted(sums)
        centres = np.stack([sums[name] / counts[name] for name in names])
        writer = tf.python_io.TableWriter(FLAGS.outputs)
        for numbers, _ in batches(session, table):
            nearest = np.square(numbers[:, None] - centres).sum(axis=2).argmin(axis=1)
            rows = [(*tuple(float(x) for x in row), names[i].decode()) for row, i in zip(numbers, nearest)]
            writer.write(rows, indices=[0, 1, 2, 3, 4])
        writer.close()
    print("centres of", [name.decode() for name in names])


if __name__ == "__main__":
    tf.app.run(main=main, argv=sys.argv)
