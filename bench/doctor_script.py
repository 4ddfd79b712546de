"""Slow for one known reason, or not: `how` says for which, `mended` that the doctor's advice is followed. `bench/doctor.py` runs it.

What would be a graphics card's step is a sleep: it needs no processor, as a card's does not.
"""

import os
import time

import numpy as np
import tensorflow as tf

try:
    from tensorflow.python.data.experimental.ops.testing import sleep
except ImportError:
    from tensorflow.python.data.experimental.ops.sleep import sleep

AUTO = tf.data.experimental.AUTOTUNE


began = []


def start():
    """What came before was to make the rows."""
    began[:] = [time.perf_counter()]


def train(dataset, seconds):
    start()
    for _ in dataset:
        time.sleep(seconds)


def jpegs(count, side=500):
    rng = np.random.default_rng(0)
    rows = [tf.io.encode_jpeg(rng.integers(0, 255, (side, side, 3)).astype(np.uint8)).numpy() for _ in range(16)]
    return [rows[i % 16] for i in range(count)]


def decode(data):
    return tf.image.resize(tf.io.decode_jpeg(data, channels=3), [64, 64])


def records(folder, files, rows):
    paths = []
    for number in range(files):
        paths.append(os.path.join(folder, f"part-{number}.tfrecord"))
        with tf.io.TFRecordWriter(paths[-1]) as writer:
            for row in range(rows):
                writer.write(b"%d" % row)
    return paths


def no_prefetch(config, mended):
    # what makes a batch, and the step, need no processor: they could be done at the same time
    dataset = tf.data.Dataset.range(200 * 8).batch(8).apply(sleep(10000))
    dataset = dataset.prefetch(2) if mended else dataset
    train(dataset, 0.01)


def map_alone(config, mended):
    dataset = tf.data.Dataset.from_tensor_slices(jpegs(1200)).map(decode, num_parallel_calls=AUTO if mended else None)
    train(dataset.batch(8).prefetch(2), 0.001)


def python_map(config, mended):
    def text(number):
        return np.float32(sum(ord(letter) % 7 for letter in str(number) * 40))

    dataset = tf.data.Dataset.range(12000)
    if mended:
        dataset = dataset.batch(64).map(lambda some: tf.cast(some, tf.float32) * 40.0 % 7.0)
    else:
        dataset = dataset.map(lambda number: tf.numpy_function(text, [number], tf.float32)).batch(64)
    train(dataset.prefetch(2), 0.001)


def generator(config, mended):
    def rows():
        for batch in config.batches(1):
            yield batch["a"][0]

    if mended:
        dataset = config.dataset(64)
    else:
        dataset = tf.data.Dataset.from_generator(rows, tf.float32, tf.TensorShape([])).batch(64).prefetch(2)
    train(dataset, 0.001)


def one_source(config, mended):
    paths = tf.data.Dataset.from_tensor_slices(records(config.work_dir, 8, 200))

    def read(path):
        # a store that is far away
        return tf.data.TFRecordDataset(path).apply(sleep(2000))

    if mended:
        options = tf.data.Options()
        options.experimental_deterministic = False
        dataset = paths.interleave(read, cycle_length=8, num_parallel_calls=AUTO).with_options(options)
    else:
        dataset = paths.flat_map(read)
    train(dataset.batch(16).prefetch(2), 0.001)


def small_files(config, mended):
    folder = os.path.join(config.work_dir, "small")
    os.makedirs(folder)
    paths = []
    for number in range(1500):
        paths.append(os.path.join(folder, f"{number}.bin"))
        with open(paths[-1], "wb") as f:
            f.write(b"x" * 2000)
    packed = os.path.join(config.work_dir, "packed.tfrecord")
    with tf.io.TFRecordWriter(packed) as writer:
        for _ in paths:
            writer.write(b"x" * 2000)
    # one pass over many: in several, keeping what was read would win as much
    if mended:
        dataset = tf.data.TFRecordDataset([packed] * 60)
    else:
        dataset = tf.data.Dataset.from_tensor_slices(paths * 60).map(tf.io.read_file)
    train(dataset.batch(128).prefetch(2), 0.001)


def decode_first(config, mended):
    # images are small, and take the time of large ones: so it does not depend on what else this machine does
    dataset = tf.data.Dataset.from_tensor_slices(jpegs(1000, 32))
    if mended:
        dataset = dataset.shuffle(800).map(decode).apply(sleep(2000))
    else:
        dataset = dataset.map(decode).apply(sleep(2000)).shuffle(800)
    train(dataset.batch(16).prefetch(4), 0.03)


def cheap_map(config, mended):
    dataset = tf.data.Dataset.range(150000)
    if mended:
        dataset = dataset.batch(512).map(lambda n: tf.cast(n, tf.float32) * 2.0 + 1.0)
    else:
        dataset = dataset.map(lambda n: tf.cast(n, tf.float32) * 2.0 + 1.0).batch(512)
    train(dataset.prefetch(2), 0.001)


def no_cache(config, mended):
    dataset = tf.data.Dataset.from_tensor_slices(jpegs(400)).map(decode, num_parallel_calls=AUTO)
    dataset = dataset.cache() if mended else dataset
    train(dataset.repeat(6).batch(8).prefetch(2), 0.001)


def checkpoints(config, mended):
    kept = tf.train.Checkpoint(w=tf.Variable(tf.zeros([512, 1024])))
    manager = tf.train.CheckpointManager(kept, config.checkpoint_dir, max_to_keep=2)
    start()
    for step, _ in enumerate(config.dataset(64)):
        time.sleep(0.002)
        if step % (100 if mended else 1) == 0:
            manager.save()


def feed_dict(config, mended):
    tf1 = tf.compat.v1
    rows = [[float(number % 7)] * 100 for number in range(6400)]
    with tf1.Graph().as_default(), tf1.Session() as session:
        if mended:
            dataset = tf1.data.Dataset.from_tensor_slices(np.asarray(rows, np.float32)).repeat(20).batch(64).prefetch(2)
            x = tf1.data.make_one_shot_iterator(dataset).get_next()
        else:
            x = tf1.placeholder(tf.float32, [None, 100])
        loss = tf.reduce_mean(x * x)
        start()
        for step in range(2000):
            at = step * 64 % 6400
            if mended:
                session.run(loss)
            else:
                some = [[value / 7.0 * 7.0 for value in row] for row in rows[at : at + 64]]
                session.run(loss, feed_dict={x: np.asarray(some)})


def pandas_loop(config, mended):
    import pandas as pd

    frame = pd.DataFrame({"a": np.arange(20000.0), "b": np.arange(20000) % 7})
    a, b = frame["a"].to_numpy(), frame["b"].to_numpy()
    start()
    for step in range(1000):
        at = step * 64 % 19000
        if mended:
            mine, other = a[at : at + 64], b[at : at + 64]
        else:
            some = frame[frame.index >= at].head(64)
            mine = some.apply(lambda row: row["a"] + row["b"], axis=1).to_numpy()
            other = some["b"].to_numpy()
        tf.reduce_sum(mine + other)
        time.sleep(0.001)


def shuffle_fill(config, mended):
    dataset = tf.data.Dataset.range(3000).apply(sleep(1000))
    dataset = dataset.shuffle(100 if mended else 2500)
    train(dataset.batch(16).prefetch(4), 0.016)


def iterators(config, mended):
    dataset = config.dataset(64, shuffle=5000, repeat=100)
    iterator = iter(dataset)
    start()
    for _ in range(60):
        next(iterator if mended else iter(dataset))
        time.sleep(0.01)


def lock(config, mended):
    # steps of TensorFlow's that Python calls, while Python makes the batches in another thread: one of the two has the interpreter
    def summed(values):
        return np.array([sum(i * 0.5 for i in range(2000)) + value for value in values], "float32")

    def many(columns):
        return columns["a"] + 1.0 if mended else tf.numpy_function(summed, [columns["a"]], tf.float32)

    weights = tf.random.normal((300, 300)) * 0.05

    @tf.function
    def step(values):
        product = weights
        for _ in tf.range(8):
            product = tf.tanh(product @ weights)
        return tf.reduce_sum(product) + tf.reduce_sum(values)

    start()
    for values in config.dataset(32, map=many).take(400):
        step(values)


def fine_loop(config, mended):
    dataset = tf.data.Dataset.from_tensor_slices(jpegs(200, 64)).map(decode, num_parallel_calls=AUTO)
    train(dataset.batch(2).prefetch(8), 0.03)


def fine_fit(config, mended):
    model = tf.keras.Sequential([tf.keras.layers.Dense(700, activation="relu") for _ in range(2)] + [tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")

    def apart(columns):
        return tf.tile(tf.reshape(columns["a"], [-1, 1]), [1, 64]), columns["a"]

    model.fit(config.dataset(64).map(apart).prefetch(2), epochs=1, verbose=0)


def in_turns(one, pairs=60):
    """The processor's seconds of passes with the input doctor's clocks on, and off: in pairs, of which each second one is the other way round. The
    median of the pairs counts: the machine becomes slower and faster by some percent, so passes are short, and pairs many."""
    from akrunner.worker.waits import timing

    clocks, off, ratios = timing.running(), [], []
    for pair in range(-1, pairs):
        took = {}
        for on in (True, False) if pair % 2 else (False, True):
            clocks.wholly()
            timing._now["meter"] = clocks if on else None
            began = time.process_time()
            one()
            took[on] = time.process_time() - began
        if pair >= 0:
            off.append(took[False])
            ratios.append(took[True] / took[False])
    timing._now["meter"] = clocks
    return {"off": float(np.median(off)), "ratio": float(np.median(ratios))}


def cost_loop(config, mended, size=2048, steps=60):
    """Steps of some milliseconds."""
    dataset = config.dataset(64).take(steps)
    weights = tf.ones([512, size])

    def one():
        for columns in dataset:
            tf.matmul(tf.ones([64, 512]) * columns["a"][0], weights)

    config.report(dict(in_turns(one), steps=steps))


def cost_short(config, mended):
    """Steps of a tenth of one."""
    cost_loop(config, mended, 16, 600)


def cost_fit(config, mended, units=1000, steps=30, pairs=300):
    model = tf.keras.Sequential(
        [tf.keras.layers.Dense(units, activation="relu"), tf.keras.layers.Dense(units), tf.keras.layers.Dense(1)]
    )
    model.compile("sgd", "mse")
    dataset = config.dataset(64).map(lambda columns: (tf.reshape(columns["a"], [-1, 1]), columns["a"])).prefetch(2).take(steps)
    config.report(dict(in_turns(lambda: model.fit(dataset, verbose=0), pairs), steps=steps))


def cost_fit_short(config, mended):
    cost_fit(config, mended, 16, 600, 60)


def main(task_config):
    params = task_config.user_params
    start()
    globals()[params["how"]](task_config, params["mended"])
    task_config.report({"seconds": time.perf_counter() - began[0]})
