"""What is said first of the mistakes that all newcomers make. The messages are TensorFlow's own, of 1.15, 2.3 and 2.20."""

from __future__ import annotations

from typing import Any

import pytest

from akrunner.engines.causes import gist, told
from akrunner.engines.mistakes import of_death, of_exit
from akrunner.schema import Schema

SCHEMA = Schema.parse("age bigint, income double, name string, pixels array<float>, tags array<bigint>, label int")
FIELDS = {field.name: field for field in SCHEMA}
INVALID = "tensorflow.python.framework.errors_impl.InvalidArgumentError"
NODE = "{{function_node __wrapped__IteratorGetNext_device_/job:localhost/replica:0/task:0/device:CPU:0}} "
MAP = "Error in user-defined function passed to MapDataset:3 transformation with iterator: Iterator::Root::ParallelMapV2: "


def said(kind: str, message: str) -> str:
    record: dict[str, Any] = {"type": kind, "message": message, "phase": "in main()", "time_ns": 1, "traceback": "t"}
    return told(record, SCHEMA.names, FIELDS)


@pytest.mark.parametrize(
    ("kind", "message", "words"),
    [
        (
            "tensorflow.python.framework.errors_impl.UnknownError",
            "RuntimeError: this stream was read already, and its rows are gone: iterate it once (epochs=1, no repeat())\n\t [[PyFunc]]",
            "this stream was read already: its rows come once, and something wants them a second time, the input_fn of an EvalSpec perhaps",
        ),
        (
            INVALID,
            NODE + "Key: age.  Data types don't match. Data type: int64 but expected type: float\n\t [[{{node ParseSingleExample}}]]",
            "column 'age' is int64 in the table and comes as int64, and the script reads it as float: read it by tf.io.FixedLenFeature([], "
            "tf.int64), which task_config.feature_spec has, and tf.cast it to tf.float32 then (raised " + INVALID + " in main())",
        ),
        (
            INVALID,
            MAP + "Name: <unknown>, Key: name, Index: 0.  Data types don't match. Data type: string but expected type: float",
            "column 'name' is string in the table and comes as string, and the script reads it as float: read it by "
            "tf.io.FixedLenFeature([], tf.string)",
        ),
        (
            INVALID,
            "Name: <unknown>, Key: age, Index: 0.  Number of int64 values != expected.  Values size: 1 but output shape: [3]",
            "column 'age' (int64 in the table) has the shape [] in every row, and the script reads it as another: read it by "
            "tf.io.FixedLenFeature([], tf.int64), which task_config.feature_spec has",
        ),
        (
            INVALID,
            NODE + "Key: tags.  Can't parse serialized Example: Some int64_list slice was not parsed.",
            "column 'tags' (list<item: int64> in the table) has as many values as each row says, and the script reads it as another: read it "
            "by tf.io.VarLenFeature(tf.int64)",
        ),
        ("NameError", "name 'task_config' is not defined", "task_config is the argument of main: define `def main(task_config):`"),
        ("NameError", "name 'xrange' is not defined", "the script is Python 2, which has xrange, and runs on Python 3, which has range in its place"),
        ("NameError", "name 'reduce' is not defined. Did you mean: 'repr'?", "the script is Python 2, which has reduce, and runs on Python 3, which has "
        "functools.reduce"),
        ("AttributeError", "'dict' object has no attribute 'iteritems'", "the script is Python 2, which has iteritems, and runs on Python 3, which has "
        "items() in"),
        ("AttributeError", "module 'sys' has no attribute 'setdefaultencoding'", "the script is Python 2, which has setdefaultencoding"),
        ("ImportError", "cannot import name 'izip' from 'itertools' (unknown location)", "the script is Python 2, which has izip"),
        ("ModuleNotFoundError", "No module named 'urllib2'", "the script is Python 2, which has urllib2, and runs on Python 3, which has urllib.request"),
        ("TypeError", "a bytes-like object is required, not 'str'", "a bytes-like object is required, not 'str': text is bytes in TensorFlow's readers"),
        ("TypeError", 'can only concatenate str (not "bytes") to str', 'can only concatenate str (not "bytes") to str: text is bytes'),
        (INVALID, "File system scheme 'oss' not implemented (file: 'oss://b/x')", "the script opens an oss:// path of its own, which TensorFlow cannot: hand "
        "the path in as a flag (-Dbuckets, -DcheckpointDir"),
        ("FileNotFoundError", "[Errno 2] No such file or directory: 'oss://b/x.csv'", "the script opens an oss:// path of its own, which TensorFlow cannot"),
        ("FileNotFoundError", "[Errno 2] No such file or directory (hand it in (-Dbuckets)): b'oss://b/x.csv'", "the script opens an oss:// path of its own, "
        "which TensorFlow cannot"),
        ("ValueError", "Protocol not known: oss", "the script opens an oss:// path of its own, which TensorFlow cannot"),
        (INVALID, "File system scheme 'odps' not implemented (file: 'odps://p/tables/t')", "odps:// is a table's name, and was opened as a file"),
        ("ValueError", "Attempt to convert a value (PerReplica:{\n  0: tf.Tensor(\n[1", "Keras 3 does not train under MultiWorkerMirroredStrategy: give "
        "keras='legacy'"),
        ("ValueError", "When providing an infinite dataset, you must specify the number of steps", "the dataset never ends (repeat=None, or .repeat()), and "
        "Keras was not told how many steps an epoch has: give steps_per_epoch=task_config.steps_per_epoch(batch_size)"),
        ("ValueError", "When passing an infinitely repeating dataset, please specify a `steps_per_epoch`", "the dataset never ends"),
        (INVALID, "ValueError: callback pyfunc_0 is not found\n\nFrom /job:ps/replica:0/task:0: ...", "what reads calls Python in the process of its own "
        "task, and TensorFlow has placed it on another task: pin the input to /job:worker/task:N"),
        (INVALID, "ValueError: Could not find callback with key=pyfunc_0 in the registry.\n\nFrom /job:ps/replica:0/task:0: ...", "what reads calls Python in the process of its own task, and TensorFlow has placed it on another task: pin the input to /job:worker/task:N"),
        ("RuntimeError", "Collective ops must be configured at program startup", "TensorFlow was used before the strategy was made"),
        ("ValueError", "Input 0 of layer dense is incompatible with the layer: : expected min_ndim=2, found ndim=1. Full", "the layer wants several numbers a "
        "row, and a column is one number a row: tf.stack([tf.cast(x[name], tf.float32) for name in ('age', 'income', 'label')]"),
        ("ValueError", 'Exception encountered when calling Sequential.call().\n\n\x1b[1mLayer "dense" expects 1 input(s), but it received 2 input '
        'tensors.\x1b[0m', "dataset() gives a dict of columns, and the model takes one array"),
        ("ValueError", "in user code:\n\n    File x\n\n    ValueError: The last dimension of the inputs to a Dense layer should be defined. Found None.", "a list whose length varies comes as a SparseTensor"),
        ("X", "Graph execution error:\n\nDetected at node s/Cast defined at (most recent call last):\n  File \"x\", line 1\n\nCast string to float is not "
        "supported", "a column of text was given to a layer that computes"),
        ("TypeError", "in user code:\n\n    File \"x\", line 7, in None  *\n        f\n\n    TypeError: Tensors in list passed to 'values' of 'Pack' Op have "
        "types [int64, float32] that don't all match.\n", "columns of different types are put together, which TensorFlow does not do by itself: "
        "tf.stack([tf.cast(x[name], tf.float32) for name in ('age', 'income', 'label')]"),
        (INVALID, "cannot compute Pack as input #1(zero-based) was expected to be a int64 tensor but is a float tensor [Op:Pack] name: stack", "columns of different types are put together"),
        (INVALID, "cannot compute Mul as input #1(zero-based) was expected to be a int64 tensor but is a float tensor [Op:Mul]", "whole numbers and floats"),
        ("TypeError", "Input 'y' of 'Mul' Op has type float32 that does not match type int64 of argument 'x'.", "whole numbers and floats, or two kinds of "
        "them, meet in one operation"),
        ("AttributeError", "module 'tensorflow' has no attribute 'estimator'", "the script needs tf.estimator, which TensorFlow has no longer from 2.16 on: "
        "python_env='tf2.3' or 'tf1.15' (--python-env)"),
        ("AttributeError", "module 'tensorflow._api.v2.compat.v1' has no attribute 'estimator'", "the script needs tf.estimator"),
        ("AttributeError", "module 'tensorflow' has no attribute 'contrib'", "the script needs tf.contrib, which TensorFlow 1 had: python_env='tf1.15' "
        "(--python-env)"),
        ("ModuleNotFoundError", "No module named 'tensorflow.contrib'", "the script needs tf.contrib"),
        ("ModuleNotFoundError", "No module named 'tensorflow_estimator'", "the script needs tf.estimator"),
        ("AttributeError", "module 'tensorflow' has no attribute 'placeholder'", "tf.placeholder is a name of TensorFlow 1: tf.compat.v1.placeholder (`import "
        "tensorflow.compat.v1 as tf`"),
        ("AttributeError", "module 'tensorflow._api.v2.train' has no attribute 'AdamOptimizer'", "tf.train.AdamOptimizer is a name of TensorFlow 1: "
        "tf.compat.v1.train.AdamOptimizer"),
        ("AttributeError", "module 'tensorflow' has no attribute 'datta'", "raised AttributeError in main(): module 'tensorflow'"),
        ("ModuleNotFoundError", "No module named 'pyflink.table'", "the interpreter has no PyFlink: a script of Deep Learning on Flink has pyflink.common.Row "
        "without it (or takes a tuple or a list)"),
        ("ValueError", "Exception encountered when calling Sequential.call().\n\n\x1b[1mInvalid input shape for input Tensor(\"data:0\", shape=(None, 784), "
        "dtype=float32) with name 'k' and path ''. Expected shape (None, 28, 28), but input has incompatible shape (None, 784)\x1b[0m\n", "the model takes rows of shape (28, 28), and gets (784,): tf.reshape(x, [-1, 28, 28]) in .map() makes them so, or Input(shape=(784,)) takes them as they are (raised ValueError"),
        ("ValueError", "Invalid input shape for input x. Expected shape (None, 5), but input has incompatible shape (8, 3)", "the model takes rows of shape "
        "(5,), and gets (3,): other columns, or Input(shape=(3,)) (raised"),
        ("ValueError", "Expected shape (None, None, 3), but input has incompatible shape (None, 3)", "the model takes the shape (None, None, 3), and gets "
        "(None, 3): tf.reshape them"),
        ("ValueError", "Input 0 with name 'None' of layer 'dense_2' is incompatible with the layer: expected axis -1 of input shape to have value 5, but "
        "received input with shape (None, 3)", "the model takes 5 numbers at the end of a row's shape, and gets (None, 3)"),
        ("ValueError", "Input 0 of layer conv2d is incompatible with the layer: expected ndim=4, found ndim=2. Full shape received: [None, 784]", "the layer wants rows of another number of dimensions than it gets: tf.reshape(x, [-1, height, width, channels])"),
        ("NameError", "in user code:\n\n    File \"x\", line 7, in None  *\n        f(x)\n\n    NameError: name 'g' is not defined\n", "raised NameError in main(): name 'g' is not defined"),
        ("KeyError", "'TF_CONFIG'", "looked for TF_CONFIG, and one worker alone has none: chief=True (--chief) or chief=False"),
        ("KeyError", "'worker'", "looked for workers in a cluster that has none: worker 0 is the chief; chief=False (--no-chief)"),
        ("AttributeError", "'BatchTaskConfig' object has no attribute 'epochs'", "asked the task config for 'epochs', which it does not have: the job's own "
        "values are in task_config.user_params['epochs']"),
        ("AttributeError", "'BatchTaskConfig' object has no attribute 'saved_model_dir'", "asked the task config for 'saved_model_dir', which it does not "
        "have: a job that leaves a model has it: akrunner train, or akrunner.train(), in place of run"),
        ("AttributeError", "'StreamTaskConfig' object has no attribute 'dataset_length'", "asked the task config for 'dataset_length', which it does not "
        "have: jobs of akrunner run and train have it; the rows of a stream come as they arrive, by task_config.dataset(), batches() or dataset_fn()"),
        ("AttributeError", "'BatchTaskConfig' object has no attribute 'batch'", "asked the task config for 'batch', which it does not have; did you mean "
        "'batches'?"),
        (INVALID, "{{function_node x}} jpeg::Uncompress failed. Invalid JPEG data or crop window. [[{{node DecodeImage}}]]", "an encoded image is broken or "
        "cut short, which nothing but its decoding tells: `akrunner pack ... --check whole"),
        (INVALID, "Invalid PNG data, size 100\n\t [[{{node cond/decode_image}}]]", "an encoded image is broken or cut short"),
        (INVALID, "assertion failed: [Unable to decode bytes as JPEG, PNG, GIF, or BMP]", "an encoded image is of a format that this TensorFlow does not decode"),
        (INVALID, "Cannot add tensor to the batch: number of elements does not match. Shapes are: [tensor]: [30,40,3], [batch]: [20,50,3]", "rows of different shapes, [30,40,3] and [20,50,3], were to be put into one batch: image=(height, width)"),
        (INVALID, "Cannot batch tensors with different shapes in component 0. First element had shape [20,50,3] and element 1 had shape [30,40,3].", "rows of different shapes, [20,50,3] and [30,40,3], were to be put"),
        ("absl.flags._exceptions.UnparsedFlagAccessError", "Trying to access flag --lr before flags were parsed.", "the flags were never parsed"),
    ],
)  # fmt: skip
def test_the_first_line(kind: str, message: str, words: str) -> None:
    assert said(kind, message).startswith(words)


def test_what_only_its_author_knows() -> None:
    """A key that is no column's, of a feature nobody has, is said as it was raised."""
    assert said("KeyError", "'chieff'").startswith("raised KeyError in main(): 'chieff'")
    assert said(INVALID, "Key: nobody.  Data types don't match. Data type: int64 but expected type: float").startswith("raised")


@pytest.mark.parametrize(
    ("message", "line"),
    [
        ('in user code:\n\n    File "x.py", line 12, in None  *\n        f(x)\n\n    NameError: name \'g\' is not defined\n', "NameError: name 'g' is not "
        "defined"),
        ("Exception encountered when calling Dense.call().\n\n\x1b[1mwrong\x1b[0m\n\nArguments received:\n", "wrong"),
        ("in user code:\n\n    ValueError: Exception encountered when calling layer 'd' (type D).\n    \n    wrong\n", "wrong"),
        (NODE + "out of range\n\t [[{{node X}}]]", "out of range"),
        ("Graph execution error:\n\nDetected at node 'x' defined at (most recent call last):\n  File \"a\", line 1\n\nout of range", "out of range"),
    ],
)  # fmt: skip
def test_the_line_that_says_most(message: str, line: str) -> None:
    assert gist(message) == line


def test_what_the_log_says() -> None:
    """Of a program that did not like its command line, and of one that was killed while it shuffled."""
    assert (
        of_exit("usage: t.py [-h]\nt.py: error: unrecognized arguments: --epoks 3\n")
        == "t.py: error: unrecognized arguments: --epoks 3"
    )
    assert of_exit("hello\n") == ""
    filling = "I0000 shuffle_dataset_op.cc:450] ShuffleDatasetV3:5: Filling up shuffle buffer (this may take a while): 1203 of 1000000\n"
    assert "it was filling a shuffle buffer of 1000000 rows, and all of them lie in memory" in of_death(filling, "")
    assert "a large shuffle buffer perhaps" in of_death("terminate called after throwing an instance of 'std::bad_alloc'\n", "")
    for huge in ("10**10", "100_000_000", "buffer_size=1000000000"):
        assert "TensorFlow takes room for them at once" in of_death("", f"data = data.shuffle({huge}).batch(3)")
    assert of_death("", "data.shuffle(10000)") == of_death("", "") == ""
