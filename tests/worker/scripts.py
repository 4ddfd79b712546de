"""Scripts the TensorFlow tests run; each is one `main`, so that TensorFlow starts once for many checks."""

#: batch, in whatever TensorFlow: a training that is killed ends with the weights of one that is not
GOES_ON = """
import os
import tensorflow as tf

if tf.__version__ < "2":
    tf.compat.v1.enable_eager_execution()

def main(task_config):
    weights, counts = tf.Variable(tf.ones([3])), tf.Variable(tf.zeros([3, 100]))
    optimizer = tf.compat.v1.train.AdamOptimizer(0.1) if tf.__version__ < "2" else tf.keras.optimizers.Adam(0.1)
    checkpoint = task_config.checkpoint(every=3, seed=5, weights=weights, optimizer=optimizer, counts=counts)
    for epoch in checkpoint.epochs(3):
        for batch in checkpoint.dataset(8, shuffle=30):
            counts[epoch].assign(counts[epoch] + tf.reduce_sum(tf.one_hot(batch["i"], 100), 0))
            x = tf.cast(batch["i"], tf.float32)
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((weights[0] + weights[1] * tf.sin(x) + weights[2] * tf.cos(x) - 0.5) ** 2)
            optimizer.apply_gradients([(tape.gradient(loss, weights), weights)])
            checkpoint.trained()
            if checkpoint.step == task_config.user_params["kills"] and task_config.attempt == 0:
                os.kill(os.getpid(), 9)
    assert checkpoint.restored == (task_config.attempt > 0) and checkpoint.step == 39
    assert counts.numpy().min() == counts.numpy().max() == 1.0
    task_config.output_writer.write_batch({"weight": weights.numpy()})
"""

#: batch, in whatever TensorFlow: few rows, which are parsed once, come as many do, which are parsed batch by batch
FEW = """
import tensorflow as tf

if tf.__version__ < "2":
    tf.compat.v1.enable_eager_execution()

from akrunner.worker import data
from akrunner.worker.waits import pipeline

def doubled(features, *others):
    return (dict(features, f=2 * features["f"]),) + others

def kinds(dataset):
    return {one["node"] for one in pipeline.chain(dataset)}

def read(task_config, most, how):
    data._FEW_BYTES = most
    dataset = task_config.dataset(**dict(dict(batch_size=3, defaults=DEFAULTS), **how))
    v1 = tf.compat.v1.data
    spec = [getattr(v1, "get_output_" + what)(dataset) for what in ("types", "shapes", "classes")]
    return [tf.nest.map_structure(lambda tensor: tensor.numpy().tolist(), batch) for batch in dataset], str(spec), kinds(dataset)

DEFAULTS = {"i": -1, "s": "none", "f": 7.5}
HOW = [
    {}, {"label": "i"}, {"label": "i", "weights": "w"}, {"drop_remainder": True}, {"repeat": 3}, {"columns": ["s", "m"]},
    {"shuffle": True, "seed": 5, "repeat": 2}, {"shuffle": 4, "seed": 6}, {"uneven": "drop"}, {"uneven": "pad"},
    {"uneven": "pad", "label": "i"}, {"uneven": "pad", "label": "i", "weights": "w"}, {"cache": True, "batch_size": 1, "repeat": 2},
    {"label": "i", "map": doubled, "shuffle": True, "seed": 5}, {"split": "one"}, {"split": "other", "shuffle": 5, "seed": 1, "repeat": 2},
    {"split": "one", "uneven": "pad"}, {"split": "other", "uneven": "drop", "label": "i"}, {"prefetch": 0}, {"batch_size": 100},
]

def main(task_config):
    most, alone = data._FEW_BYTES, task_config.num_workers == 1
    for how in HOW:
        few = read(task_config, most, how)
        # Keras would take the number of a worker's batches for that of its steps, of which each has a part of a batch: a job of several workers
        # reads rows from the file, however few they are. To read them all again would compare them with themselves; a seed has to give them again
        if alone or "seed" in how:
            many = read(task_config, 0, how)
            assert few[:2] == many[:2] and "TFRecord" in many[2], (how, few, many)
        assert few[0] and ("TFRecord" in few[2]) != alone, how
    made_of = (most, 0) if alone else (most,)
    # epochs differ by their order, if they do where there are many: in TensorFlow 1 they do not
    differ = []
    for made in made_of:
        data._FEW_BYTES = made
        dataset = task_config.dataset(100, shuffle=100, seed=1, columns=["f"], defaults=DEFAULTS)
        epochs = [[batch["f"].numpy().tolist() for batch in dataset] for _ in range(2)]
        assert sorted(epochs[0][0]) == sorted(epochs[1][0])
        differ.append(epochs[0] != epochs[1])
    assert differ == [tf.__version__ >= "2"] * len(made_of)
    # a null without a default is an error of its batch, also where the rows are few
    for made in made_of:
        data._FEW_BYTES = made
        dataset = task_config.dataset(3, columns=["i"])
        try:
            rows = list(dataset)
        except tf.errors.InvalidArgumentError as e:
            assert "could not be found" in str(e)
        else:
            raise AssertionError(rows)
    data._FEW_BYTES = most
    # nor is anything read in a graph that is being built
    seen = []
    # AutoGraph would write all that looks at a dataset anew, and takes a third of this job's time for it
    looked_at = tf.autograph.experimental.do_not_convert(kinds)
    tf.function(lambda: seen.append(looked_at(task_config.dataset(3, columns=["f"], defaults=DEFAULTS))))()
    assert all("TFRecord" in one for one in seen)
"""

#: batch, in whatever TensorFlow: every field, the dataset two ways, both ways to write
EVERYTHING = """
import json, os

assert os.environ["TF_CONFIG"], "before TensorFlow is imported"
import numpy as np
import tensorflow as tf
from akrunner.worker import BatchTaskConfig

def main(task_config):
    assert isinstance(task_config, BatchTaskConfig)
    fields = set(task_config.__dict__)
    assert {"tf_context", "num_workers", "cluster", "task_type", "task_index", "work_dir", "user_params", "dataset_file",
            "dataset_length", "output_writer"} <= fields
    again = BatchTaskConfig(nonsense=1, **task_config.__dict__)
    assert again.dataset_file == task_config.dataset_file and not hasattr(again, "nonsense")
    told = json.loads(os.environ["TF_CONFIG"])
    assert told["cluster"] == task_config.cluster == {"chief": told["cluster"]["chief"]}
    assert told["task"] == {"type": "chief", "index": 0} == {"type": task_config.task_type, "index": task_config.task_index}
    assert os.getcwd() == os.path.realpath(task_config.work_dir)
    assert task_config.user_params == {"n": 3, "nested": {"a": [1, None]}}
    assert task_config.dataset_length == 5 and task_config.steps_per_epoch(2) == 3
    assert task_config.steps_per_epoch(2, drop_remainder=True) == 2
    assert os.path.isdir(task_config.checkpoint_dir)

    seen = []
    for batch in task_config.batches(2, defaults={"i": -1, "s": "none"}):
        seen.append({k: np.asarray(v).tolist() for k, v in batch.items() if k != "ragged"})
    assert [len(b["i"]) for b in seen] == [2, 2, 1]
    assert sum((b["i"] for b in seen), []) == [1, -1, -3, 4, 5]
    assert sum((b["s"] for b in seen), []) == [b"a", b"none", "\\u00e9".encode(), b"", b"e"]
    floats = sum((b["f"] for b in seen), [])
    assert floats[0] == 0.5 and floats[1] != floats[1], "a missing float is NaN"
    assert seen[0]["v"] == [[1.0, 2.0], [3.0, 4.0]]
    assert seen[0]["m"] == [[[1, 2], [3, 4]]] * 2

    records = task_config.tf_context.flink_stream_dataset()
    spec = task_config.feature_spec
    assert sorted(spec) == ["f", "i", "m", "ragged", "s", "v"] and type(spec["ragged"]).__name__ == "VarLenFeature"
    spec["i"] = tf.io.FixedLenFeature([], tf.int64, default_value=0)
    spec["s"] = tf.io.FixedLenFeature([], tf.string, default_value="")
    dataset = records.batch(5).map(lambda r: tf.io.parse_example(r, spec))
    iterator = tf.compat.v1.data.make_one_shot_iterator(dataset)
    ragged = iterator.get_next()["ragged"]
    if not tf.executing_eagerly():
        with tf.compat.v1.Session() as session:
            ragged = session.run(ragged)
    values = np.asarray(ragged.values).tolist()
    assert values == [1, 2, 3, 4, 5, 6, 7], values

    epochs = task_config.dataset(2, shuffle=True, repeat=2, drop_remainder=True, label="f", defaults={"i": 0, "s": ""}, seed=1)
    iterator = tf.compat.v1.data.make_one_shot_iterator(epochs)
    features, label = iterator.get_next()
    assert "f" not in features and sorted(features) == ["i", "m", "ragged", "s", "v"]

    task_config.report({"loss": np.float32(0.5)}, step=10)
    def example(i):
        feature = {
            "i": tf.train.Feature(int64_list=tf.train.Int64List(value=[i])),
            "p": tf.train.Feature(float_list=tf.train.FloatList(value=[i / 2.0])),
            "s": tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"row%d" % i])),
            "v": tf.train.Feature(float_list=tf.train.FloatList(value=[1.0] * i)),
        }
        return tf.train.Example(features=tf.train.Features(feature=feature))
    task_config.output_writer.write(example(0))
    task_config.output_writer.write(example(1).SerializeToString())
    task_config.output_writer.write_batch({
        "i": np.array([2, 3], dtype=np.int32),
        "p": np.ma.masked_array([1.0, 0.1], mask=[False, True]),
        "s": np.array(["row2", None], dtype=object),
        "v": [np.array([1.0]), None],
    })
    task_config.output_writer.write_batch({"i": [4], "p": [0.1], "s": np.array([b"row4"]), "v": np.ones((1, 3))})
    if tf.executing_eagerly():
        task_config.output_writer.write_batch({
            "i": tf.constant([5]), "p": tf.constant([2.5]), "s": tf.constant(["row5"]), "v": tf.ones((1, 2))})
    else:
        task_config.output_writer.write_batch({"i": [5], "p": [2.5], "s": ["row5"], "v": [[1.0, 1.0]]})
    print("tensorflow", tf.__version__)
"""

#: an AllReduce over all workers, on any TensorFlow 2: the sum of the workers' row counts reaches each of them
ALL_REDUCE = """
import tensorflow as tf

def main(task_config):
    kind = getattr(tf.distribute, "MultiWorkerMirroredStrategy", None) or tf.distribute.experimental.MultiWorkerMirroredStrategy
    strategy = kind()
    assert strategy.num_replicas_in_sync == task_config.num_workers == 2
    with strategy.scope():
        weight = tf.Variable(5.0)
    local = strategy.experimental_distribute_datasets_from_function(
        lambda context: task_config.dataset(task_config.dataset_length, label="y"))

    @tf.function
    def step(iterator):
        def gradient(features_and_label):
            features, y = features_and_label
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((weight * features["x"] - y) ** 2) / 2.0
            tape_gradient = tape.gradient(loss, weight)
            weight.assign_sub(0.05 * tf.distribute.get_replica_context().all_reduce("SUM", tape_gradient))
            return tf.cast(tf.size(y), tf.float32)
        counts = strategy.run(gradient, args=(next(iterator),))
        return strategy.reduce("SUM", counts, axis=None)

    for epoch in range(10):
        total = step(iter(local))
    task_config.output_writer.write_batch({"rows": [int(total.numpy())], "w": [float(weight.numpy())]})
"""

#: train, in whatever TensorFlow: export a SavedModel the way of its time
TRAIN = """
def main(task_config):
    import tensorflow as tf
    if hasattr(tf, "Module") and tf.executing_eagerly():
        class Double(tf.Module):
            @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
            def __call__(self, x):
                return {"y": 2.0 * x}
        model = Double()
        tf.saved_model.save(model, task_config.saved_model_dir + "/1700000000", signatures=model.__call__)
        return
    v1 = tf.compat.v1
    with v1.Session(graph=tf.Graph()) as session:
        x = v1.placeholder(tf.float32, [None])
        factor = v1.get_variable("factor", initializer=2.0)
        y = factor * x
        session.run(v1.global_variables_initializer())
        v1.saved_model.simple_save(session, task_config.saved_model_dir + "/1700000000", {"x": x}, {"y": y})
"""

#: stream, in whatever TensorFlow, graph mode included
STREAM = """
def main(task_config):
    import tensorflow as tf
    spec = task_config.feature_spec
    total = 0
    parsed = task_config.dataset_fn().batch(100).map(lambda batch: tf.io.parse_example(batch, spec)).prefetch(1)
    if tf.executing_eagerly():
        for batch in parsed:
            total += int(tf.reduce_sum(batch["i"]))
    else:
        batch = tf.compat.v1.data.make_one_shot_iterator(parsed).get_next()
        with tf.compat.v1.Session() as session:
            while True:
                try:
                    total += int(session.run(batch)["i"].sum())
                except tf.errors.OutOfRangeError:
                    break
    task_config.output_writer.write_batch({"total": [total]})
"""

#: columns instead of Examples, in whatever TensorFlow: the same rows through batches() and dataset()
COLUMNS = """
import numpy as np
import tensorflow as tf

def batches_of(dataset):
    if tf.executing_eagerly():
        return [{k: v for k, v in batch.items()} for batch in dataset]
    batch = tf.compat.v1.data.make_one_shot_iterator(dataset).get_next()
    found = []
    with tf.compat.v1.Session() as session:
        while True:
            try:
                found.append(session.run(batch))
            except tf.errors.OutOfRangeError:
                return found

def main(task_config):
    fill = {"i": -1, "s": "none"}
    seen = list(task_config.batches(2, defaults=fill))
    assert [len(b["i"]) for b in seen] == [2, 2, 1]
    assert sum((b["i"].tolist() for b in seen), []) == [1, -1, -3, 4, 5]
    assert seen[0]["f"].dtype == np.float64 and np.isnan(seen[0]["f"][1]), "doubles stay doubles"
    assert seen[0]["v"].tolist() == [[1.0, 2.0], [3.0, 4.0]] and seen[0]["m"].tolist() == [[[1, 2], [3, 4]]] * 2
    assert [r.tolist() for b in seen for r in b["ragged"]] == [[1, 2], [], [3], [4, 5, 6], [7]]
    for batch, again in zip(seen, batches_of(task_config.dataset(2, defaults=fill))):
        assert sorted(batch) == sorted(again)
        for name in ("i", "s", "f", "v", "m"):
            np.testing.assert_array_equal(batch[name], np.asarray(again[name]))
        flat = [value for row in batch["ragged"] for value in row.tolist()]
        assert np.asarray(again["ragged"].values).tolist() == flat, "a list of varying length is sparse, as with Examples"

    mixed = batches_of(task_config.dataset(4, shuffle=True, repeat=3, drop_remainder=True, defaults=fill, seed=1))
    assert [len(np.asarray(b["i"])) for b in mixed] == [4, 4, 4], "3 x 5 rows"
    epochs = task_config.dataset(5, label="f", defaults=fill)
    iterator = tf.compat.v1.data.make_one_shot_iterator(epochs)
    features, label = iterator.get_next()
    assert "f" not in features and label.dtype == tf.float64
    try:
        task_config.tf_context.flink_stream_dataset()
    except RuntimeError as e:
        assert "batches(batch_size)" in str(e)
    else:
        raise AssertionError("there are no Examples to give")
    task_config.output_writer.write_batch({"i": [task_config.dataset_length]})
    print("tensorflow", tf.__version__)
"""

#: a stream of columns without a ragged one, so that whole batches travel in stacks
COLUMN_STREAM = """
def main(task_config):
    import numpy as np
    total = 0
    for batch in task_config.batches(300):
        assert batch["i"].dtype == np.int64 and len(batch["i"]) <= 300
        total += int(batch["i"].sum())
    task_config.output_writer.write_batch({"total": [total]})
"""

#: a stream under model.fit: Keras looks at a first batch, then reads it once
FIT_STREAM = """
def main(task_config):
    import tensorflow as tf
    spec = task_config.feature_spec

    def parse(batch):
        columns = tf.io.parse_example(batch, spec)
        return tf.reshape(columns["x"], [-1, 1]), columns["y"]

    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile(optimizer=tf.keras.optimizers.SGD(0.1), loss="mse")
    history = model.fit(task_config.dataset_fn().batch(50).map(parse).prefetch(1), epochs=1, verbose=0)
    task_config.output_writer.write_batch({"total": [round(float(model.predict(tf.constant([[1.0]]), verbose=0)[0][0]))]})
"""

#: a stream under Estimator.train
ESTIMATOR_STREAM = """
def main(task_config):
    import tensorflow as tf
    spec = task_config.feature_spec

    def input_fn():
        def parse(batch):
            columns = tf.io.parse_example(batch, spec)
            return {"x": columns["x"]}, columns["y"]
        return task_config.dataset_fn().batch(50).map(parse)

    def model_fn(features, labels, mode):
        v1 = tf.compat.v1
        weight = v1.get_variable("weight", initializer=0.0)
        loss = tf.reduce_mean((weight * features["x"] - labels) ** 2)
        step = v1.train.GradientDescentOptimizer(0.3).minimize(loss, global_step=v1.train.get_global_step())
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=step)

    estimator = tf.estimator.Estimator(model_fn, model_dir=task_config.checkpoint_dir)
    estimator.train(input_fn)
    assert int(estimator.get_variable_value("global_step")) == 40, "every batch once"
    task_config.output_writer.write_batch({"total": [round(float(estimator.get_variable_value("weight")))]})
"""

#: the arguments of dataset() beyond its rows, in whatever TensorFlow and either format. What a row is: id, image (8x6, all of one colour: 10 x id
#: + channel), label; user_params["parts"]: TFRecord files of three texts each
READING = """
import glob, os
import numpy as np
import tensorflow as tf

def all_of(dataset, most=None):
    if tf.executing_eagerly():
        found = []
        for element in dataset if most is None else dataset.take(most):
            found.append(tf.nest.map_structure(lambda tensor: tensor.numpy(), element))
        return found
    element = tf.compat.v1.data.make_one_shot_iterator(dataset if most is None else dataset.take(most)).get_next()
    found = []
    with tf.compat.v1.Session() as session:
        while True:
            try:
                found.append(session.run(element))
            except tf.errors.OutOfRangeError:
                return found

def ids(batches):
    return [int(i) for batch in batches for i in np.asarray(batch["id"])]

def refused(kind, words, **arguments):
    try:
        CONFIG.dataset(arguments.pop("batch_size", 2), **arguments)
    except kind as e:
        assert words in str(e), str(e)
    else:
        raise AssertionError(arguments)

def main(task_config):
    global CONFIG
    CONFIG = task_config
    n = task_config.dataset_length
    rows = ["id", "label"]
    read = task_config.dataset

    doubled = all_of(read(4, columns=rows, label="label", map=lambda x, y: ({"id": 2 * x["id"]}, y + 1)))
    assert [len(y) for _, y in doubled] == [4, 4, 2]
    assert ids(x for x, _ in doubled) == [2 * i for i in range(n)] and list(doubled[0][1]) == [1, 2, 1, 2]

    # nobody waits for the tuner at the end of a loop, unless the script asks for it
    tuner = tf.data.Options()
    if hasattr(type(tuner), "autotune"):
        assert read(4).options().autotune.enabled is False and read(4, cache=True, shuffle=3).options().autotune.enabled is False
        tuner.autotune.enabled = True
        assert read(4).with_options(tuner).options().autotune.enabled is True

    # what is kept comes out as what is not kept does
    for kept in (True, "memory", "disk"):
        for batch_size in (5, 4):
            twice = all_of(read(batch_size, columns=rows, cache=kept, repeat=2, prefetch=0))
            assert [len(b["id"]) for b in twice] == [len(b["id"]) for b in all_of(read(batch_size, columns=rows, repeat=2))]
            assert ids(twice) == 2 * list(range(n)), ids(twice)
        shuffled = ids(all_of(read(5, columns=rows, cache=kept, repeat=2, shuffle=n, seed=3)))
        assert sorted(shuffled[:n]) == sorted(shuffled[n:]) == list(range(n)) and shuffled[:n] != shuffled[n:], shuffled
    beside = glob.glob(os.path.dirname(task_config.dataset_file) + "/*.cache-*")
    assert all(path.startswith(task_config.dataset_file) for path in beside)
    assert sorted(ids(all_of(read(3, columns=rows, deterministic=False, map=lambda b: b, prefetch=-1)))) == list(range(n))

    # images: shape and values, by every way to make them fit
    for fit in ("stretch", "crop", "pad"):
        plain = all_of(read(4, label="label", image={"size": (4, 4), "dtype": "uint8", "fit": fit}))
        images = np.concatenate([x["image"] for x, _ in plain])
        assert images.shape == (n, 4, 4, 3) and images.dtype == np.uint8
        assert images[3, 2, 2].tolist() == [30, 31, 32], images[3, 2, 2]
        assert (images[3, 3, 0].tolist() == [0, 0, 0]) == (fit == "pad"), "8 x 6 is wider than it is high"
    as_they_are = np.concatenate([b["image"] for b in all_of(read(5, columns=["image"], image=True))])
    assert as_they_are.shape == (n, 6, 8, 3) and as_they_are.dtype == np.float32
    assert abs(as_they_are[9, 0, 0, 1] - 91 / 255.0) < 1e-6
    static = read(5, image=(4, 3), drop_remainder=True)
    assert static.element_spec["image"].shape.as_list() == [5, 4, 3, 3]

    # every format, as each number of channels
    from akrunner.worker.images import Images

    schema = [{"name": "image", "kind": "bytes", "shape": [], "type": "varbinary"}]
    wanted = {1: [17], 3: [9, 20, 30], 4: [9, 20, 30, 255]}
    for channels, colour in wanted.items():
        made = Images({"size": (6, 8), "channels": channels, "dtype": "uint8"}, schema)
        names = sorted(glob.glob(os.path.join(task_config.user_params["parts"], "*.image")))
        encoded = [open(name, "rb").read() for name in names]
        decoded = all_of(tf.data.Dataset.from_tensor_slices({"image": encoded}).map(made.decoded))
        assert len(decoded) == 11
        for name, image in zip(names, decoded):
            kind = os.path.basename(name).split(".")[0]
            grey, seen_through = kind.endswith("-L"), kind.endswith("-RGBA")
            values = [77] * min(channels, 3) + [255] * (channels == 4) if grey else list(colour)
            if seen_through and channels == 4:
                values[3] = 40
            if kind.endswith("-1"):
                values = [255] * channels
            assert np.abs(image["image"][2, 3].astype(int) - values).max() <= 1, (kind, channels, image["image"][2, 3])

    # augmented anew in every epoch, kept or not; the same for one seed
    def whitened(image):
        return image + tf.random.uniform([])
    changing = {"size": (4, 4), "augment": whitened}
    for kept in (False, True):
        epochs = all_of(read(n, columns=["image"], image=changing, cache=kept, repeat=2))
        assert (epochs[0]["image"] != epochs[1]["image"]).all()
    # the doctor is told what its operations do not say
    from akrunner.worker.waits import pipeline

    for size, augment in (((4, 4), True), (None, "flip")):
        asked = {"size": size, "augment": augment}
        for kept, wanted in ((True, [(False, True), (True, False)]), (False, [(True, True)])):
            some = [one for one in pipeline.chain(read(4, columns=["image"], image=asked, cache=kept, repeat=2)) if one.get("images")]
            assert [(bool(one.get("decodes")), bool(one.get("floats"))) for one in some] == wanted, some
            assert any(one.get("resizes") for one in some) == (size is not None), some
            assert any(one.get("augments") for one in some) == (augment is True), some
    every = {"size": (16, 16), "augment": ["flip", "shift", "brightness", "contrast"]}
    first, again = (all_of(read(n, columns=["image"], image=every, seed=5))[0]["image"] for _ in range(2))
    assert (first == again).all() and first.min() >= 0 and first.max() <= 1
    assert np.isfinite(all_of(read(n, columns=["image"], image=dict(every, dtype="uint8", channels=1)))[0]["image"]).all()
    padded = all_of(read(n, image=(4, 4), uneven="pad", columns=["id", "image"]))
    assert padded[0]["sample_weight"].tolist() == [1.0] * n

    # the rows name files; those are read at the same time
    files = task_config.user_params["parts"]
    def records(row):
        path = tf.strings.join([files, "/", tf.strings.as_string(row["id"]), ".tfrecord"])
        return tf.data.TFRecordDataset(path)
    for more in ({}, {"cache": True, "repeat": 2}, {"shuffle": True, "seed": 1}, {"deterministic": False}):
        texts = [t for batch in all_of(read(4, columns=["id"], interleave=records, **more)) for t in batch]
        assert sorted(texts) == sorted([b"%d" % (10 * i + j) for i in range(n) for j in range(3)] * more.get("repeat", 1))

    refused(TypeError, "map=4", map=4)
    refused(TypeError, "interleave=4: give a function of a row's columns", interleave=4)
    refused(ValueError, "cache='ram'", cache="ram")
    refused(TypeError, "prefetch='much'", prefetch="much")
    refused(ValueError, "prefetch=-2", prefetch=-2)
    assert ids(all_of(read(3, columns=rows, deterministic=None))) == list(range(n))
    def raising(batch):
        return batch["petal"]
    for label in (None, "label"):
        refused(TypeError, "is called with (" + ("columns" if label is None else "features, label"), map=lambda a, b, c: a, label=label)
    refused(ValueError, "map=main.<locals>.raising raised KeyError", map=raising)
    refused(TypeError, "returns None", map=lambda batch: None)
    refused(TypeError, "is called with (row)", interleave=lambda: 1)
    refused(TypeError, "returns None: return a tf.data.Dataset", interleave=lambda row: None)
    refused(TypeError, "returns what is of type list", interleave=lambda row: [1, 2])
    refused(ValueError, "raised ZeroDivisionError at line", interleave=lambda row: 1 / 0)
    refused(ValueError, "batch_size=0", batch_size=0)
    refused(TypeError, "batch_size=True", batch_size=True)
    refused(ValueError, "(height, width)", image=(4,))
    refused(ValueError, "which column has the encoded images", image=True, columns=["id"])
    refused(ValueError, "those of bytes: image", image={"column": "label"})
    refused(ValueError, "decode it in map=", image=True, interleave=records)
    refused(ValueError, "part it in map=", label="label", interleave=records)
    try:
        all_of(read(2, columns=["id", "name"], image={"column": "name", "size": (4, 4)}))
        raise AssertionError("text was decoded")
    except tf.errors.InvalidArgumentError as e:
        assert "a value of column name is no encoded image" in str(e) and "n0" in str(e), str(e)
    refused(ValueError, "cache='disk'", image=(60000, 60000), cache=True)
    task_config.output_writer.write_batch({"id": [n]})
"""

#: what a dataset gives, as numpy, in TensorFlow 1 and 2
_ALL_OF = """
import numpy as np
import tensorflow as tf

def all_of(dataset):
    if tf.executing_eagerly():
        return [tf.nest.map_structure(lambda tensor: tensor.numpy(), element) for element in dataset]
    element = tf.compat.v1.data.make_one_shot_iterator(dataset).get_next()
    found = []
    with tf.compat.v1.Session() as session:
        while True:
            try:
                found.append(session.run(element))
            except tf.errors.OutOfRangeError:
                return found
"""

#: two workers, of five rows: weights of the table, whole numbers or not, and of rows made up
WEIGHTS = (
    _ALL_OF
    + """
def main(task_config):
    index = task_config.cluster["worker"].index(task_config.cluster[task_config.task_type][task_config.task_index])
    mine = list(range(index, 5, 2))
    for name, scale in (("sample_weight", 0.5), ("whole", 10)):
        for uneven, rows in (("keep", mine), ("pad", mine + [None] * (3 - len(mine)))):
            batches = all_of(task_config.dataset(2, label="y", weights=name, columns=["x"], uneven=uneven))
            assert all(set(features) == {"x"} and weights.dtype == np.float32 for features, _, weights in batches)
            assert [w for _, _, weights in batches for w in weights.tolist()] == [0 if i is None else scale * i for i in rows]
            assert [y for _, labels, _ in batches for y in labels.tolist()] == [0 if i is None else 3 * i for i in rows]
    doubled = all_of(task_config.dataset(9, label="y", weights="whole", columns=["x"], map=lambda x, y, w: (x, y, 2 * w)))
    assert doubled[0][2].tolist() == [20 * i for i in mine]
    for wrong, words in (({"weights": "weight"}, "weights='weight' is not a column; columns: x, y, "), ({"uneven": "pad"}, "the table has one")):
        try:
            task_config.dataset(2, label="y", **wrong)
            raise AssertionError(wrong)
        except ValueError as e:
            assert words in str(e), str(e)
"""
)

#: two workers: rows of one split by every way to read them, again and again; the splits of all are told in user_params
SPLITS = (
    _ALL_OF
    + """
def ids(batches):
    return [int(i) for batch in batches for i in np.asarray(batch["id"])]

def main(task_config):
    index = task_config.cluster["worker"].index(task_config.cluster[task_config.task_type][task_config.task_index])
    read, n = task_config.dataset, task_config.dataset_length
    whole = ids(all_of(read(50, columns=["id"])))
    assert whole == list(range(index, 301, 2)) and len(whole) == n
    shares = {}
    for name, count in task_config.splits.items():
        mine = [i for i in whole if task_config.user_params["marks"][i] == name]
        assert len(mine) == count and ids(task_config.batches(7, split=name)) == mine
        assert ids(all_of(read(7, columns=["id"], split=name))) == mine
        assert ids(all_of(read(7, columns=["id"], split=name, repeat=3))) == 3 * mine
        for kept in (False, True, "disk"):
            shuffled = ids(all_of(read(7, columns=["id"], split=name, shuffle=True, seed=3, repeat=2, cache=kept)))
            assert sorted(shuffled) == sorted(2 * mine) and shuffled != 2 * mine
        batches = all_of(read(7, columns=["x"], label="id", split=name, drop_remainder=True))
        assert [i for _, labels in batches for i in labels.tolist()] == mine[: len(mine) // 7 * 7]
        assert len(all_of(read(7, columns=["id"], split=name, uneven="drop"))) == task_config.steps_per_epoch(7, split=name)
        padded = all_of(read(7, columns=["id"], split=name, uneven="pad"))
        assert len(padded) == task_config.steps_per_epoch(7, uneven="pad", split=name)
        assert int(sum(batch["sample_weight"].sum() for batch in padded)) == count
        if task_config.user_params["form"] == "examples":
            assert ids(all_of(task_config.per_worker_dataset(7, repeat=1, split=name))) == mine
        shares[name] = mine
    assert sorted(sum(shares.values(), [])) == whole
    try:
        read(7, split="tset")
        raise AssertionError("there is no such split")
    except ValueError as e:
        assert "split='tset' is no split of this job, which has train, test, spare; did you mean 'test'?" in str(e), str(e)
    task_config.output_writer.write_batch({"id": shares["test"]})
"""
)

#: a row that weighs nothing is as if it were not there
FIT_WEIGHTS = """
import tensorflow as tf

def main(task_config):
    model = tf.keras.Sequential([tf.keras.layers.Dense(1, use_bias=False)])
    model.compile(tf.keras.optimizers.SGD(0.05), "mse")
    rows = task_config.dataset(4, label="y", weights="w", repeat=100, map=lambda x, y, w: (x["x"][:, None], y, w))
    model.fit(rows, verbose=0)
    assert abs(float(model.get_weights()[0][0, 0]) - 3) < 0.01, model.get_weights()
"""

#: a stream of images: decoded as they come, and a function of ours over each batch
READING_STREAM = """
def main(task_config):
    for wrong, words in ((7, "give a function of a batch"), (lambda x, y: x, "is called with (columns)"), (lambda x: None, "returns None"),
                         (lambda x: x["petal"], "raised KeyError at line")):
        try:
            task_config.dataset(4, map=wrong)
            raise AssertionError(words)
        except (TypeError, ValueError) as e:
            assert words in str(e) and e.__cause__ is None, str(e)
    for name, words in (("cache", "nothing to keep"), ("shuffle", "as they come"), ("cash", "no such argument")):
        try:
            task_config.dataset(4, **{name: True})
            raise AssertionError(name)
        except TypeError as e:
            assert words in str(e) and "takes batch_size, " in str(e), str(e)
    read = task_config.dataset(4, image=(4, 4), map=lambda batch: dict(batch, twice=2.0 * batch["image"][:, 0, 0, 0]), prefetch=1)
    for batch in read:
        assert batch["image"].shape[1:] == (4, 4, 3)
        task_config.output_writer.write_batch({"id": batch["id"].numpy(), "p": batch["twice"].numpy()})
"""

#: waits for Python in its map; the script's own profiler may start while ours looks
WAITS = """
import copy
import os
import socket
import sys
import threading
import time
import traceback

import tensorflow as tf


def slow(x):
    time.sleep(0.004)
    return x


def main(task_config):
    started = [] if task_config.user_params["asked"] else profilers()
    # the doctor names the line of the map
    dataset = tf.data.Dataset.range(240)
    dataset = dataset.map(lambda x: tf.compat.v1.py_func(slow, [x], tf.int64))
    dataset = dataset.batch(2)
    if tf.__version__.startswith("1."):
        iterator = tf.compat.v1.data.make_initializable_iterator(dataset)
        total = tf.reduce_sum(iterator.get_next())
        operations = len(tf.compat.v1.get_default_graph().get_operations())
        sums = []
        with tf.compat.v1.Session() as session:
            session.run(iterator.initializer)
            for _ in range(120):
                sums.append(session.run(total))
        assert len(tf.compat.v1.get_default_graph().get_operations()) == operations
    else:
        sums = [int(tf.reduce_sum(batch)) for batch in dataset]
    if not task_config.user_params["asked"]:
        assert started == []
        caches(os.path.join(task_config.work_dir, "kept"))
    elif tf.__version__.startswith("1."):
        as_without_clocks()
    else:
        from akrunner.worker.waits import timing

        clocks = timing.running()
        clocks.looks._due = 1
        clocks.before(clocks.way("dataset"))
        assert clocks.looks.running
        tf.profiler.experimental.start(os.path.join(task_config.work_dir, "own"))
        tf.profiler.experimental.stop()
        assert not clocks.looks.running and os.listdir(os.path.join(task_config.work_dir, "own"))
        no_step(clocks)
        errors_are_the_scripts()
        # from here on others may ask for the only profiler there can be
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        tf.profiler.experimental.server.start(port)
        clocks.looks._due = 1
        clocks.before(clocks.way("dataset"))
        assert not clocks.looks.running and clocks.looks.served
        no_step(clocks)
        is_traced()
        as_without_clocks()
    task_config.output_writer.write_batch({"total": [sum(sums)]})


def caches(path):
    '''What the doctor thinks of caches is so.'''
    from akrunner.worker.waits import pipeline, timing

    clocks = timing.running()
    own = list(clocks.pipelines)
    numbers, drawn = tf.data.Dataset.range(4), []
    told = pipeline.chain(numbers.cache().cache(path).repeat(3))
    assert [one["node"] for one in told] == ["Repeat", "Cache", "Cache", "Range"], told
    assert told[0]["count"] == 3 and told[1]["file"] and "file" not in told[2], told
    # and of what a dataset's own options leave to TensorFlow
    options = tf.data.Options()
    assert pipeline.left_on(numbers.with_options(options)) == ["maps", "ahead"]
    if hasattr(type(options), "autotune"):
        options.autotune.enabled = False
        assert pipeline.left_on(numbers.with_options(options).batch(2)) == []

    def draw(x):
        drawn.append(int(x))
        return x

    dataset = numbers.map(lambda x: tf.compat.v1.py_func(draw, [x], tf.int64)).cache()
    if tf.executing_eagerly():
        for _ in range(2):
            assert [int(x) for x in dataset] == [0, 1, 2, 3]
    else:
        iterator = tf.compat.v1.data.make_initializable_iterator(dataset)
        number = iterator.get_next()
        with tf.compat.v1.Session() as session:
            for _ in range(2):
                session.run(iterator.initializer)
                for _ in range(4):
                    session.run(number)
                # the cache is whole when its end has been met
                try:
                    session.run(number)
                except tf.errors.OutOfRangeError:
                    pass
    assert len(drawn) == (4 if pipeline.keeps() else 8), drawn
    # the doctor is asked about the others
    clocks.pipelines[:] = own


def profilers():
    '''Those of TensorFlow that are started from now on.'''
    from akrunner.worker.waits import tracing

    name = "TFE_NewProfiler" if tf.__version__.startswith("1.") else "ProfilerSession"
    module = sys.modules[tracing._V1 if tf.__version__.startswith("1.") else tracing._V2]
    real, made = getattr(module, name), []

    def counted(*args):
        made.append(args)
        return real(*args)

    setattr(module, name, counted)
    tracing._known["session"] = counted
    return made


def no_step(clocks):
    # what comes now takes its time, and is no step of a training
    clocks.ways["dataset"].settle()
    clocks.wholly()
    clocks.ways["dataset"]._last = None


def errors_are_the_scripts():
    @tf.function
    def broken(iterator):
        return tf.debugging.check_numerics(1.0 / tf.cast(next(iterator), tf.float32), "no number")

    for run in (lambda: broken(iter(tf.data.Dataset.range(2))), lambda: next(iter(tf.data.Dataset.range(2).map(mapped)))):
        try:
            run()
            raise AssertionError("it has to fail")
        except tf.errors.InvalidArgumentError as e:
            # where an operation was made: lines of the script and of nobody else
            assert "akrunner: how long" not in str(e) and "hooks.py" not in str(e) and "pipeline.py" not in str(e), str(e)
            shown = traceback.format_exc()
            assert shown.count("akrunner: how long") <= 1 and "hooks.py" not in shown, shown


def mapped(number):
    return tf.debugging.check_numerics(1.0 / tf.cast(number, tf.float32), "no number")


def is_traced():
    '''As coverage and debuggers do it.'''
    lines = []

    def trace(frame, event, arg):
        if frame.f_code is counted.__code__:
            lines.append(event)
        return trace

    def counted():
        total = 0
        for batch in tf.data.Dataset.range(10):
            total += int(batch)
        return total

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        assert counted() == sum(range(10)) and sys.gettrace() is trace
    finally:
        sys.settrace(before)
    assert lines[0] == "call" and lines[-1] == "return" and lines.count("line") > 20


def as_without_clocks():
    from akrunner.worker.waits import timing

    clocks = timing.running()
    for way in clocks.ways.values():
        way.settle()
    ways = copy.deepcopy(clocks.ways)
    clocks.looks.may = False
    watched = all_drawn()
    assert timing.running() is clocks and clocks.failed == "", clocks.failed
    clocks.wholly()
    timing._now["meter"] = None
    try:
        plain = all_drawn()
    finally:
        timing._now["meter"] = clocks
    assert clocks.hidden != tf.__version__.startswith("1.")
    # what the doctor says is to be of the first loop
    clocks.hidden, clocks.ways = False, ways
    assert watched == plain, (watched, plain)
    for name, drawn in watched.items():
        broken = [one for one in drawn if one.startswith("error") and "InvalidArgumentError" not in one]
        assert len(drawn) == 100 and not broken, (name, len(drawn), broken[:1])
    errors = sum(one.startswith("error") for one in watched["errors that are caught"])
    assert errors == 34 and sum(one.startswith("error") for drawn in watched.values() for one in drawn) == errors


def all_drawn():
    '''What comes of datasets of every kind: name -> elements.'''
    numbers = tf.data.Dataset.range(100)
    dense = lambda x: tf.reshape(tf.cast(x, tf.float32), [1])
    ranks = lambda x: tf.cond(x % 2 < 1, lambda: x, lambda: tf.reshape(x, [1]))
    kinds = {
        "numbers": [numbers],
        "two in turn": [numbers, numbers.repeat(32).batch(32)],
        "batches and numbers in turn": [numbers.repeat(32).batch(32), numbers, numbers.map(lambda x: (x, dense(x), dense(x)))],
        "components in turn": [numbers.map(lambda x: (x, dense(x))), numbers.map(dense)],
        "ranks that vary": [numbers.map(ranks)],
        "dicts": [numbers.map(lambda x: {"b": dense(x), "a": (x, {"c": x})})],
        "nested": [numbers.map(lambda x: ((x, (dense(x), {"a": x})), tf.as_string(x))).repeat(4).batch(4)],
        "sparse": [numbers.map(lambda x: tf.SparseTensor([[x, 0]], [x], [100, 1]))],
        "ragged": [numbers.repeat(3).batch(3).map(lambda x: tf.RaggedTensor.from_row_lengths(x, [1, 0, 2]))],
        "windows": [numbers.repeat(5).window(5).flat_map(lambda x: x.batch(5))],
        "errors that are caught": [numbers.map(lambda x: tf.debugging.check_numerics(1.0 / tf.cast(x % 3, tf.float32), "0"))],
    }
    found = {name: drawn_of(made) for name, made in kinds.items()}
    if not tf.__version__.startswith("1."):
        found["optional"] = [optional_of(iterator) for iterator in [iter(numbers)] for _ in range(100)]
        found["in threads"] = in_threads()
        found["a function that draws"] = within_functions(numbers)
    return found


def drawn_of(datasets):
    nexts = nexts_of(datasets)
    found = []
    for index in range(1000):
        try:
            found.append(shown_of(nexts[index % len(nexts)]()))
        except (StopIteration, tf.errors.OutOfRangeError):
            break
        except Exception as e:
            found.append("error %s" % type(e).__name__)
        if index % len(nexts):
            # only those of the first count
            found.pop()
    return found


def nexts_of(datasets):
    if not tf.__version__.startswith("1."):
        return [lambda made=iter(dataset): next(made) for dataset in datasets]
    wanted = [tf.compat.v1.data.make_one_shot_iterator(dataset).get_next() for dataset in datasets]
    session = tf.compat.v1.Session()
    return [lambda one=one: session.run(one) for one in wanted]


def shown_of(element):
    if isinstance(element, dict):
        return str([(name, shown_of(element[name])) for name in sorted(element)])
    if isinstance(element, (list, tuple)):
        return str([shown_of(one) for one in element])
    if isinstance(element, tf.SparseTensor):
        return str([shown_of(one) for one in (element.indices, element.values)])
    if isinstance(element, tf.RaggedTensor):
        return str(element.to_list())
    return str(element.numpy().tolist() if hasattr(element, "numpy") else element)


def optional_of(iterator):
    made = tf.data.experimental.get_next_as_optional(iterator)
    return str(made.get_value().numpy())


def in_threads():
    found = []

    def draw(index):
        found.extend(str(int(x) % 5) for x in tf.data.Dataset.range(20))

    threads = [threading.Thread(target=draw, args=(index,)) for index in range(4)]
    for thread in threads:
        thread.start()
    draw(4)
    for thread in threads:
        thread.join()
    return sorted(found)


def within_functions(numbers):
    iterator = iter(numbers.take(98))

    @tf.function
    def one():
        return next(iterator)

    @tf.function
    def whole():
        total = tf.constant(0, tf.int64)
        for number in numbers:
            total += number
        return total

    return [str(int(one())) for _ in range(98)] + [str(int(whole())) for _ in range(2)]
"""
