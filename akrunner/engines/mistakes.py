"""The mistakes that all newcomers make: what TensorFlow, Keras and Python say of them -> what it means for the table and the job, and what
to write instead."""

from __future__ import annotations

import re
from typing import Callable, Mapping, Match, Optional, Tuple

from akrunner.schema import BYTES, FLOAT, Field, nearest

Columns = Mapping[str, Field]

_DTYPES = {BYTES: "tf.string", FLOAT: "tf.float32"}
_PER_WORKER = "steps_per_epoch=task_config.steps_per_epoch(batch_size), which is equal on all workers"
#: what a task config has, for a name that is none of it
_TASK_CONFIG = (
    "tf_context num_workers cluster task_type task_index work_dir user_params schema checkpoint_dir attempt feature_spec report serve "
    "dataset_file dataset_length output_writer dataset per_worker_dataset batches steps_per_epoch saved_model_dir latest_ckpt_dir dataset_fn"
).split()


def mistake(kind: str, message: str, columns: Columns) -> Optional[str]:
    """One sentence, without its subject. Args: kind: of the exception; columns: of the table. None: it is none of those known here."""
    for pattern, explained in _KNOWN:
        found = pattern.search(message)
        said = explained(found, columns) if found is not None else None
        if said is not None:
            return said
    return _of_key(message) if kind.rpartition(".")[2] == "KeyError" else None


def of_death(tail: str, source: str) -> str:
    """Why a task may have died, by the last lines of its log and its script; "" when nothing that is known here says so."""
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
    """What a script has printed before it called `sys.exit` with a failure; "" when nothing that looks like a reason."""
    told = [line.strip() for line in tail.splitlines() if re.search(r"\berror\b", line, re.IGNORECASE)]
    return told[-1] if told else ""


_FILLING = re.compile(r"Filling up shuffle buffer[^\n]*?: \d+ of (\d+)")
_HUGE = re.compile(r"\.shuffle\(\s*(?:buffer_size\s*=\s*)?(\d[\d_]{7,}|10 ?\*\* ?(?:[89]|\d\d)|int\(1e(?:[89]|\d\d)\))")
_SMALLER = "and all of them lie in memory: take a smaller one, for instance dataset(shuffle=True), which has 10 batches"


def reader(field: Field) -> str:
    """The feature a column is read by."""
    dtype = _DTYPES.get(field.kind, "tf.int64")
    if field.shape is None:
        return f"tf.io.VarLenFeature({dtype})"
    return f"tf.io.FixedLenFeature({list(field.shape)}, {dtype})"


def _read_so(column: Field) -> str:
    return f"read it by {reader(column)}, which task_config.feature_spec has"


def _of_type(found: Match[str], columns: Columns) -> Optional[str]:
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


def _of_shape(found: Match[str], columns: Columns) -> Optional[str]:
    column = columns.get(found["key"])
    if column is None:
        return None
    values = "as many values as each row says" if column.shape is None else f"the shape {list(column.shape)} in every row"
    return f"column {column.name!r} ({column.type} in the table) has {values}, and the script reads it as another: {_read_so(column)}"


def _of_attribute(found: Match[str], columns: Columns) -> Optional[str]:
    name = found["name"]
    near = nearest(name, _TASK_CONFIG)
    instead = (
        f"the job's own values are in task_config.user_params[{name!r}] (user_params=, --param); a script with a command line is run as a "
        'program if it ends with `if __name__ == "__main__":`'
    )
    return f"asked the task config for {name!r}, which it does not have" + (near or f": {instead}")


def _of_key(message: str) -> Optional[str]:
    """A key that is no column's."""
    key = message.strip().strip("'\"")
    return {
        "TF_CONFIG": "looked for TF_CONFIG, and one worker alone has none: chief=True (--chief) or chief=False (--no-chief) says what it is",
        "worker": "looked for workers in a cluster that has none: worker 0 is the chief; chief=False (--no-chief) makes a cluster of workers "
        "only",
        "chief": "looked for a chief in a cluster that has none: leave out chief=False (--no-chief)",
    }.get(key)


def _always(words: str) -> Callable[[Match[str], Columns], Optional[str]]:
    def said(found: Match[str], columns: Columns) -> Optional[str]:
        numbers = [repr(column.name) for column in columns.values() if column.kind != BYTES and column.shape == ()]
        stack = f"tf.stack([tf.cast(x[name], tf.float32) for name in ({', '.join(numbers[:3]) or '...'})], axis=-1)"
        return words.format(stack=stack)

    return said


_KEY = r"Key: (?P<key>.+?)(?:, Index: \d+)?\.\s+"
_KNOWN: Tuple[Tuple["re.Pattern[str]", Callable[[Match[str], Columns], Optional[str]]], ...] = (
    (
        re.compile(
            _KEY + r"Data types don't match\. (?:Data type: (?P<has>\w+) but expected type: (?P<wanted>\w+)"
            r"|Expected type: (?P<wanted_>\w+),? (?:but got|Actual type:) (?P<has_>\w+))"
        ),
        _of_type,
    ),
    (re.compile(_KEY + r"(?:Number of \w+ values|Can't parse serialized Example|Column \d+)"), _of_shape),
    (re.compile(r"'\w*TaskConfig' object has no attribute '(?P<name>\w+)'"), _of_attribute),
    (
        re.compile(r"convert a value \(PerReplica:|PerReplica[^\n]*\n[\s\S]*(?:unsupported|Unsupported|convert)"),
        _always(
            "Keras 3 does not train under MultiWorkerMirroredStrategy: give keras='legacy' (--keras legacy), which is Keras 2 as "
            "tf.keras, with tf-keras installed beside TensorFlow"
        ),
    ),
    (
        re.compile(r"(?:infinitely repeating|an infinite) dataset"),
        _always(
            f"the dataset never ends (repeat=None, or .repeat()), and Keras was not told how many steps an epoch has: give {_PER_WORKER}"
        ),
    ),
    (
        re.compile(r"Collective ops must be configured at program startup"),
        _always(
            "TensorFlow was used before the strategy was made: make MultiWorkerMirroredStrategy() first. task_config.batches() is plain "
            "numpy and may come before it; dataset() and tensors come after"
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
            r"'dict' object has no attribute 'shape'|expects 1 input\(s\), but it received \d+ input|Exception encountered when calling "
            r"Sequential[\s\S]*\bdict\b|Only input tensors may be passed as positional arguments[^\n]*\{{"
        ),
        _always(
            "dataset() gives a dict of columns, and the model takes one array: .map(lambda x, y: ({stack}, "
            "y)), or a model with an Input named as each column"
        ),
    ),
    (
        re.compile(r"last dimension of the inputs to a `?Dense`? (?:layer )?should be defined|inputs=SparseTensor"),
        _always(
            "a list whose length varies comes as a SparseTensor, whose width no layer knows: say its length in select= (--select), "
            '"SELECT * REPLACE (pixels::FLOAT[784] AS pixels) FROM input", or tf.reshape(tf.sparse.to_dense(x), [-1, n])'
        ),
    ),
    (
        re.compile(r"Cast string to \w+ is not supported"),
        _always(
            "a column of text was given to a layer that computes: tf.keras.layers.StringLookup makes numbers of words, tf.strings.to_number or "
            "a CAST in select= (--select) of digits"
        ),
    ),
    (
        re.compile(r"Trying to access flag --(?P<name>\S+) before flags were parsed"),
        _always(
            "the flags were never parsed: main(task_config) is called without a command line; a script that ends with "
            '`if __name__ == "__main__": app.run(main)` is run as a program, and its command line is script_args= (behind --)'
        ),
    ),
)
