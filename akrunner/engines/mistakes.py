"""Frequent mistakes in scripts: the messages of TensorFlow, Keras and Python about them -> what they mean for the table
and the job, and what to write instead."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from re import Match

from akrunner.schema import Field
from akrunner.wire.features import BYTES, KINDS
from akrunner.wire.near import nearest

Columns = Mapping[str, Field]

_PER_WORKER = "steps_per_epoch=task_config.steps_per_epoch(batch_size), which is equal on all workers"
#: the attributes of a task config, for a script that asks for another one
_TASK_CONFIG = (
    "tf_context num_workers cluster task_type task_index work_dir user_params schema checkpoint_dir checkpoint attempt feature_spec "
    "report serve dataset_file dataset_length output_writer dataset per_worker_dataset batches steps_per_epoch "
    "saved_model_dir latest_ckpt_dir dataset_fn"
).split()

_OF_BATCHES = "jobs of akrunner run and train have it; the rows of a stream come as they arrive, by task_config.dataset(), batches() or dataset_fn()"
#: attributes that only the task config of another command has -> which command
_OF_ANOTHER = {
    "saved_model_dir": "a job that leaves a model has it: akrunner train, or akrunner.train(), in place of run",
    "latest_ckpt_dir": "a job that leaves a model has it: akrunner train, or akrunner.train(), in place of run",
    "dataset_fn": "a stream has it: akrunner stream, or akrunner.stream(), in place of this; here task_config.dataset() and "
    "batches() read the rows",
    **dict.fromkeys(("dataset_file", "dataset_length", "per_worker_dataset", "steps_per_epoch"), _OF_BATCHES),
}


def mistake(kind: str, message: str, columns: Columns) -> str | None:
    """Return one sentence, without its subject, about a known mistake; None if the mistake is not known here.

    Args:
        kind: the type of the exception.
        message: its message.
        columns: the table's columns.
    """
    for pattern, explained in _KNOWN:
        found = pattern.search(message)
        said = explained(found, columns) if found is not None else None
        if said is not None:
            return said
    return _of_key(message) if kind.rpartition(".")[2] == "KeyError" else None


def of_death(tail: str, source: str) -> str:
    """Return why a task may have died, by the last lines of its log and by its script; "" if nothing known here explains it."""
    filling = _FILLING.search(tail)
    if filling is not None:
        return f"it was filling a shuffle buffer of {filling[1]} rows, {_SMALLER}"
    huge = _HUGE.search(source)
    if huge is not None:
        return f"the script has a shuffle buffer of {huge[1]} rows: TensorFlow takes room for them at once, {_SMALLER}"
    if "bad_alloc" in tail:
        return "there was no memory for what it asked for at once, a large shuffle buffer perhaps: shuffle(n) holds n rows"
    return ""


def of_exit(tail: str) -> str:
    """Return the last line with the word "error" that a script printed before it called `sys.exit` with a failure; "" if
    there is none."""
    told = [line.strip() for line in tail.splitlines() if re.search(r"\berror\b", line, re.IGNORECASE)]
    return told[-1] if told else ""


_FILLING = re.compile(r"Filling up shuffle buffer[^\n]*?: \d+ of (\d+)")
_HUGE = re.compile(r"\.shuffle\(\s*(?:buffer_size\s*=\s*)?(\d[\d_]{7,}|10 ?\*\* ?(?:[89]|\d\d)|int\(1e(?:[89]|\d\d)\))")
_SMALLER = "and all of them lie in memory: take a smaller one, for instance dataset(shuffle=True), which has 10 batches"


def reader(field: Field) -> str:
    """Return the TensorFlow feature by which a script reads a column."""
    dtype = f"tf.{KINDS[field.kind].tensor}"
    if field.shape is None:
        return f"tf.io.VarLenFeature({dtype})"
    return f"tf.io.FixedLenFeature({list(field.shape)}, {dtype})"


def _read_so(column: Field) -> str:
    return f"read it by {reader(column)}, which task_config.feature_spec has"


def _of_type(found: Match[str], columns: Columns) -> str | None:
    column = columns.get(found["key"])
    if column is None:
        return None
    has, wanted = found["has"] or found["has_"], found["wanted"] or found["wanted_"]
    return (
        f"column {column.name!r} is {column.type} in the table and comes as {has}, and the script reads it as {wanted}: "
        f"{_read_so(column)}" + (f", and tf.cast it to tf.{_cast(wanted)} then" if column.kind != BYTES else "")
    )


def _cast(wanted: str) -> str:
    return {"float": "float32", "DT_FLOAT": "float32", "DT_INT64": "int64"}.get(wanted, wanted)


def _of_shape(found: Match[str], columns: Columns) -> str | None:
    column = columns.get(found["key"])
    if column is None:
        return None
    values = "as many values as each row says" if column.shape is None else f"the shape {list(column.shape)} in every row"
    return f"column {column.name!r} ({column.type} in the table) has {values}, and the script reads it as another: {_read_so(column)}"


def _of_sizes(found: Match[str], columns: Columns) -> str | None:
    one, other = (found[name] or found[f"{name}_"] for name in ("one", "other"))
    return (
        f"rows of different shapes, {one} and {other}, were to be put into one batch: image=(height, width) in "
        "task_config.dataset() makes images of one size, tf.image.resize in .map() too, and padded_batch pads what else varies"
    )


def _of_attribute(found: Match[str], columns: Columns) -> str | None:
    name = found["name"]
    if name in _OF_ANOTHER:
        return f"asked the task config for {name!r}, which it does not have: {_OF_ANOTHER[name]}"
    near = nearest(name, _TASK_CONFIG)
    instead = (
        f"the job's own values are in task_config.user_params[{name!r}] (user_params=, --param); a script with a command line "
        "is run as a "
        'program if it ends with `if __name__ == "__main__":`'
    )
    return f"asked the task config for {name!r}, which it does not have" + (near or f": {instead}")


def _of_key(message: str) -> str | None:
    """Return words about a KeyError whose key is not meant as a column's name; None if the key is unknown here."""
    key = message.strip().strip("'\"")
    return {
        "TF_CONFIG": "looked for TF_CONFIG, and one worker alone has none: chief=True (--chief) or chief=False (--no-chief) "
        "says what it is",
        "worker": "looked for workers in a cluster that has none: worker 0 is the chief; chief=False (--no-chief) makes a "
        "cluster of workers only",
        "chief": "looked for a chief in a cluster that has none: leave out chief=False (--no-chief)",
    }.get(key)


def _of_old_name(found: Match[str], columns: Columns) -> str | None:
    """Return words about a name that TensorFlow no longer has."""
    name = found["name"]
    if name.startswith("estimator"):
        return (
            "the script needs tf.estimator, which TensorFlow has no longer from 2.16 on: python_env='tf2.3' or 'tf1.15' "
            "(--python-env) is a TensorFlow that has it, `akrunner env create tf2.3` makes it"
        )
    if name in ("contrib", "examples"):
        return f"the script needs tf.{name}, which TensorFlow 1 had: python_env='tf1.15' (--python-env), which `akrunner env create tf1.15` makes"
    if name not in _NAMES_OF_1:
        return None
    name = f"train.{name}" if (found["module"] or "").endswith(".train") else name
    return (
        f"tf.{name} is a name of TensorFlow 1: tf.compat.v1.{name} (`import tensorflow.compat.v1 as tf` and "
        "tf.disable_v2_behavior() for all of them), or python_env='tf1.15' (--python-env)"
    )


def _of_input(found: Match[str], columns: Columns) -> str | None:
    """Return words about rows whose shape is not the one that the model takes."""
    want, have = ([one.strip() for one in found[name].split(",") if one.strip()][1:] for name in ("want", "have"))
    if not all(one.isdigit() for one in want + have):
        return f"the model takes the shape ({found['want']}), and gets ({found['have']}): tf.reshape them, or change the model's Input"
    rows = f"the model takes rows of shape {_shape(want)}, and gets {_shape(have)}"
    if math.prod(map(int, want)) == math.prod(map(int, have)):
        return f"{rows}: tf.reshape(x, [-1, {', '.join(want)}]) in .map() makes them so, or Input(shape={_shape(have)}) takes them as they are"
    return f"{rows}: other columns, or Input(shape={_shape(have)})"


def _shape(sizes: Sequence[str]) -> str:
    return f"({', '.join(sizes)}{',' if len(sizes) == 1 else ''})"


def _of_2(found: Match[str], columns: Columns) -> str | None:
    """Return words about a name that only Python 2 had."""
    name = next(one for one in found.groups() if one is not None)
    return (
        f"the script is Python 2, which has {name}, and runs on Python 3, which has {_IN_3[name]} in its place; "
        "`python3.7 -m lib2to3 -w FILE` rewrites such names"
    )


def _always(words: str) -> Callable[[Match[str], Columns], str | None]:
    def said(found: Match[str], columns: Columns) -> str | None:
        numbers = [repr(column.name) for column in columns.values() if column.kind != BYTES and column.shape == ()]
        stack = f"tf.stack([tf.cast(x[name], tf.float32) for name in ({', '.join(numbers[:3]) or '...'})], axis=-1)"
        return words.format(stack=stack)

    return said


#: names of Python 2 -> their replacement in Python 3
_IN_3 = {
    "xrange": "range",
    "unicode": "str",
    "basestring": "str",
    "raw_input": "input",
    "unichr": "chr",
    "long": "int",
    "reduce": "functools.reduce",
    "reload": "importlib.reload, and for sys.setdefaultencoding nothing: text is Unicode",
    "execfile": "exec(open(FILE).read())",
    "cmp": "(a > b) - (a < b)",
    "iteritems": "items()",
    "itervalues": "values()",
    "iterkeys": "keys()",
    "viewitems": "items()",
    "has_key": "`key in`",
    "next": "next(x)",
    "izip": "zip",
    "imap": "map",
    "ifilter": "filter",
    "izip_longest": "itertools.zip_longest",
    "maxint": "sys.maxsize",
    "setdefaultencoding": "nothing, text is Unicode: leave the call out",
    "cPickle": "pickle",
    "StringIO": "io.StringIO",
    "cStringIO": "io.StringIO",
    "urllib2": "urllib.request",
    "urlparse": "urllib.parse",
    "ConfigParser": "configparser",
    "Queue": "queue",
    "httplib": "http.client",
    "__builtin__": "builtins",
}
_KEY = r"Key: (?P<key>.+?)(?:, Index: \d+)?\.\s+"
#: names that TensorFlow 2 has in tf.compat.v1 only
_NAMES_OF_1 = set(
    "placeholder placeholder_with_default Session InteractiveSession ConfigProto GPUOptions app flags logging gfile python_io "
    "layers global_variables_initializer local_variables_initializer tables_initializer global_variables trainable_variables "
    "get_variable variable_scope get_variable_scope get_default_graph get_default_session reset_default_graph set_random_seed "
    "decode_csv decode_raw FixedLenFeature VarLenFeature parse_example parse_single_example to_float to_double to_int32 "
    "to_int64 random_normal random_uniform truncated_normal assign assign_add scatter_update sparse_placeholder "
    "sparse_tensor_to_dense string_to_number string_to_hash_bucket_fast read_file disable_v2_behavior disable_eager_execution "
    "enable_eager_execution py_func ceil log div rint AdamOptimizer GradientDescentOptimizer AdagradOptimizer "
    "MomentumOptimizer RMSPropOptimizer FtrlOptimizer SyncReplicasOptimizer MonitoredTrainingSession MonitoredSession "
    "SingularMonitoredSession ChiefSessionCreator Saver Supervisor Scaffold Server replica_device_setter get_global_step "
    "get_or_create_global_step create_global_step global_step exponential_decay SessionRunHook StopAtStepHook "
    "CheckpointSaverHook LoggingTensorHook StepCounterHook import_meta_graph start_queue_runners".split()
)
_OF_2 = (
    r"name '(xrange|unicode|raw_input|long|basestring|reduce|reload|unichr|execfile|cmp)' is not defined",
    r"object has no attribute '(iteritems|itervalues|iterkeys|viewitems|has_key)'",
    r"'\w*(?:generator|iterator|_reader|zip|map|filter|TextIOWrapper|BufferedReader)' object has no attribute '(next)'",
    r"(?:module 'itertools' has no attribute|cannot import name) '(izip|imap|ifilter|izip_longest)'",
    r"module 'sys' has no attribute '(maxint|setdefaultencoding)'",
    r"No module named '(cPickle|StringIO|cStringIO|urllib2|urlparse|ConfigParser|Queue|httplib|__builtin__)'",
)
#: messages of Python about bytes in place of text
_BYTES = (
    r"a bytes-like object is required, not 'str'|cannot use a string pattern on a bytes-like object|can't concat str to bytes"
    r"|can only concatenate str \(not \"bytes\"\) to str|must be str, not bytes|first arg must be bytes or a tuple of bytes, "
    r"not str"
)
_KNOWN: tuple[tuple[re.Pattern[str], Callable[[Match[str], Columns], str | None]], ...] = (
    (
        re.compile(
            _KEY + r"Data types don't match\. (?:Data type: (?P<has>\w+) but expected type: (?P<wanted>\w+)"
            r"|Expected type: (?P<wanted_>\w+),? (?:but got|Actual type:) (?P<has_>\w+))"
        ),
        _of_type,
    ),
    (re.compile(_KEY + r"(?:Number of \w+ values|Can't parse serialized Example|Column \d+)"), _of_shape),
    (
        re.compile(
            r"number of elements does not match\. Shapes are: \[tensor\]: (?P<one>\[[\d,]*\]), \[batch\]: (?P<other>\[[\d,]*\])"
            r"|Cannot batch tensors with different shapes in component \d+\. First element had shape (?P<one_>\[[\d,]*\]) and "
            r"element \d+ had shape (?P<other_>\[[\d,]*\])"
        ),
        _of_sizes,
    ),
    (
        re.compile(
            r"jpeg::Uncompress failed|Invalid JPEG data|Invalid PNG (?:data|header)|Invalid GIF data|Incomplete "
            r"(?:BMP|GIF|bmp)|Not enough data|Could not decode (?:GIF|PNG|WebP)|Failed to decode WebP"
        ),
        _always(
            "an encoded image is broken or cut short, which nothing but its decoding tells: `akrunner pack ... --check whole "
            "--bad-rows skip` (with --overwrite over what is packed already) names such files and leaves them out"
        ),
    ),
    (
        re.compile(r"Unable to decode bytes as JPEG"),
        _always(
            "an encoded image is of a format that this TensorFlow does not decode (WebP is read by the newest ones only): "
            "`akrunner pack --resize WIDTHxHEIGHT` makes PNGs of such"
        ),
    ),
    (re.compile(r"'\w*TaskConfig' object has no attribute '(?P<name>\w+)'"), _of_attribute),
    (
        re.compile(r"name 'task_config' is not defined"),
        _always(
            "task_config is the argument of main: define `def main(task_config):` and use it there, or give it to the functions "
            "that main calls"
        ),
    ),
    (
        re.compile(r"convert a value \(PerReplica:|PerReplica[^\n]*\n[\s\S]*(?:unsupported|Unsupported|convert)"),
        _always(
            "Keras 3 does not train under MultiWorkerMirroredStrategy: give keras='legacy' (--keras legacy), which is Keras 2 "
            "as tf.keras, with tf-keras installed beside TensorFlow"
        ),
    ),
    (
        re.compile(r"(?:infinitely repeating|an infinite) dataset"),
        _always(
            "the dataset never ends (repeat=None, or .repeat()), and Keras was not told how many steps an epoch has: give "
            f"{_PER_WORKER}"
        ),
    ),
    (
        re.compile(r"this stream (?:is being|was) read already"),
        lambda found, columns: (
            f"{found[0]}: its rows come once, and something wants them a second time, the input_fn of an EvalSpec perhaps, "
            "validation_data or a second epoch. Train on them alone (estimator.train, fit with epochs=1), evaluate on a file "
            "of its own (user_files=), or run the job in batch mode, where rows can be read many times"
        ),
    ),
    (
        re.compile(r"callback (?:pyfunc_\d+ is not found|with key=pyfunc_\d+ in the registry)"),
        _always(
            "what reads calls Python in the process of its own task, and TensorFlow has placed it on another task: pin the "
            "input to /job:worker/task:N, with tf.device('/job:worker/task:%d' % task_index) around it, or make the task's "
            "tf.train.Server in this process"
        ),
    ),
    (
        re.compile(r"Collective ops must be configured at program startup"),
        _always(
            "TensorFlow was used before the strategy was made: make MultiWorkerMirroredStrategy() first. "
            "task_config.batches() is plain numpy and may come before it; dataset() and tensors come after"
        ),
    ),
    (
        re.compile(r"expected min_ndim=(?P<want>\d+), found ndim=(?P<have>\d+)"),
        _always(
            "the layer wants several numbers a row, and a column is one number a row: {stack} "
            "makes rows of columns, x[name][:, None] one of one number"
        ),
    ),
    (
        re.compile(
            r"'dict' object has no attribute 'shape'|expects 1 input\(s\), but it received \d+ input|Exception encountered "
            r"when calling "
            r"Sequential[\s\S]*\bdict\b|Only input tensors may be passed as positional arguments[^\n]*\{{"
        ),
        _always(
            "dataset() gives a dict of columns, and the model takes one array: .map(lambda x, y: ({stack}, "
            "y)), or a model with an Input named as each column"
        ),
    ),
    (
        re.compile(r"types \[[^\]\n]*\] that don't all match|cannot compute (?:Pack|ConcatV2) as input #"),
        _always("columns of different types are put together, which TensorFlow does not do by itself: {stack}"),
    ),
    (
        re.compile(
            r"has type \w+ that does not match type \w+ of argument|cannot compute \w+ as input #\d+\(zero-based\) was expected"
        ),
        _always(
            "whole numbers and floats, or two kinds of them, meet in one operation, which TensorFlow does not convert by "
            "itself: tf.cast(x, tf.float32) the column that is none"
        ),
    ),
    (re.compile(r"module '(?P<module>tensorflow[\w.]*)' has no attribute '(?P<name>\w+)'"), _of_old_name),
    (re.compile(r"No module named '(?P<module>tensorflow)[._](?P<name>estimator|contrib|examples)"), _of_old_name),
    (
        re.compile(r"No module named 'pyflink"),
        _always(
            "the interpreter has no PyFlink: a script of Deep Learning on Flink has pyflink.common.Row without it (or takes a "
            "tuple or a list), and what makes tables and submits jobs is a call of akrunner.run; python_env= (--python-env) "
            "names an interpreter that has it"
        ),
    ),
    (
        re.compile(r"Expected shape \((?P<want>[^)\n]*)\), but input has incompatible shape \((?P<have>[^)\n]*)\)"),
        _of_input,
    ),
    (
        re.compile(
            r"expected axis -1 of input shape to have value (?P<n>\d+),? but received input with shape [(\[](?P<have>[^)\]\n]*)"
        ),
        lambda found, columns: (
            f"the model takes {found['n']} numbers at the end of a row's shape, and gets ({found['have']}): as many columns, "
            "tf.reshape, or another Input(shape=...)"
        ),
    ),
    (
        re.compile(r"expected ndim=(?P<want>\d+), found ndim=(?P<have>\d+)"),
        _always(
            "the layer wants rows of another number of dimensions than it gets: tf.reshape(x, [-1, height, width, channels]) "
            "in .map(), for instance, makes an image of a row of pixels"
        ),
    ),
    (
        re.compile(r"last dimension of the inputs to a `?Dense`? (?:layer )?should be defined|inputs=SparseTensor"),
        _always(
            "a list whose length varies comes as a SparseTensor, whose width no layer knows: say its length in select= "
            "(--select), "
            '"SELECT * REPLACE (pixels::FLOAT[784] AS pixels) FROM input", or tf.reshape(tf.sparse.to_dense(x), [-1, n])'
        ),
    ),
    (
        re.compile(r"Cast string to \w+ is not supported"),
        _always(
            "a column of text was given to a layer that computes: tf.keras.layers.StringLookup makes numbers of words, "
            "tf.strings.to_number or a CAST in select= (--select) of digits"
        ),
    ),
    (
        re.compile(r"Trying to access flag --(?P<name>\S+) before flags were parsed"),
        _always(
            "the flags were never parsed: main(task_config) is called without a command line; a script that ends with "
            '`if __name__ == "__main__": app.run(main)` is run as a program, and its command line is script_args= (behind --)'
        ),
    ),
    (re.compile("|".join(_OF_2)), _of_2),
    (
        re.compile(_BYTES),
        lambda found, columns: (
            f"{found[0]}: text is bytes in TensorFlow's readers and in what sessions give, and Python 3 tells it from str: "
            "x.decode() makes text of it (or write b',' in place of ',')"
        ),
    ),
    (
        re.compile(
            r"[Ff]ile system scheme 'oss' not implemented|No such file or directory( \(.*\))?: b?'oss://|Protocol not known: "
            r"oss\b|[Ii]nstall ossfs"
        ),
        _always(
            "the script opens an oss:// path of its own, which TensorFlow cannot: hand the path in as a flag (-Dbuckets, "
            "-DcheckpointDir, -DuserDefinedParameters='--dir=oss://...'), which becomes a directory of this machine"
        ),
    ),
    (
        re.compile(r"[Ff]ile system scheme 'odps' not implemented"),
        _always(
            "odps:// is a table's name, and was opened as a file: tf.data.TableRecordDataset and tf.python_io.TableReader "
            "read tables (-Dtables), tf.python_io.TableWriter writes them (-Doutputs)"
        ),
    ),
)
