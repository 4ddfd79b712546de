"""Rows as lines of CSV, the form in which scripts of Deep Learning on Flink read and write them.

::

    the task's rows -> columns, some thousand rows each -> lines -> a tf.data.Dataset of strings
    a row, or a line -> an Example, by the job's output schema -> the output writer
"""

from __future__ import annotations

import csv
import operator
import sys
import types
from typing import TYPE_CHECKING, Any, Dict, Iterable, Iterator, List, Optional, Sequence

from akrunner.worker import chunks, running, tf_data

if TYPE_CHECKING:
    from numpy.typing import NDArray

_END = "\r\n"
#: from this many rows on, rows that are written together are sent as one batch
_FEW = 8


def dataset(config: Any) -> Any:
    """Return this task's rows as a dataset of lines. Args: config: a task config. Raises: RuntimeError: a column is a list."""
    import numpy as np
    import tensorflow as tf

    for column in config.schema:
        if column["shape"] != []:
            raise RuntimeError(
                "column %r is a list, which a line of CSV has no place for: read the rows as Examples "
                "(tf.io.parse_single_example), or give the job a table without it (select=)" % column["name"]
            )

    def vectors() -> Iterator[NDArray[Any]]:
        for _, columns in config._rows.chunks(lazy=True):
            if columns is not None:
                yield np.array(written(columns), dtype=object)

    rows = tf_data.from_generator(vectors, (tf.string, [None]))
    return rows.unbatch() if hasattr(rows, "unbatch") else rows.apply(tf.data.experimental.unbatch())


def written(columns: Dict[str, Any]) -> List[bytes]:
    """Return a line of bytes for each row; a null becomes an empty field. Args: columns: {name: array or Nulled}."""
    texts = [_texts(values) for values in columns.values()]
    found: List[str] = []
    # the csv writer calls `append` directly, without a call of Python; with this line end it quotes texts that contain \r or \n
    csv.writer(types.SimpleNamespace(write=found.append), lineterminator=_END).writerows(zip(*texts))
    return [line[: -len(_END)].encode("utf-8", "surrogateescape") for line in found]


def _texts(values: Any) -> List[str]:
    valid = None
    if isinstance(values, chunks.Nulled):
        values, valid = values.values, values.valid
    if values.dtype.kind == "O":
        texts = [value.decode("utf-8", "surrogateescape") for value in values]
    else:
        # the shortest text for the type: 0.1, not 0.10000000149011612
        texts = (values.astype("int8") if values.dtype.kind == "b" else values).astype(str).tolist()
    return texts if valid is None else [text if there else "" for text, there in zip(texts, valid.tolist())]


class RowWriter(object):
    """Writes rows of the result, each a list of values in the order of the job's output schema."""

    def __init__(self, context: Any = None) -> None:
        self._schema = _output_schema()

    def write(self, row: Any) -> None:
        """Write one row. Args: row: a `pyflink.common.Row`, list or tuple. Raises: ValueError: it has too few or too many."""
        write_values(getattr(row, "_values", row), self._schema)

    def close(self) -> None:
        """Do nothing: rows are sent when there are enough of them, and when the script ends."""


class RecordWriter(object):
    """Writes tensors of records, each a line of CSV or a serialized Example. Args: address: ignored."""

    def __init__(self, address: Any = None) -> None:
        told = running.context()["user_params"].get("sys:encoding_class")
        # the texts in a row may be of any length
        csv.field_size_limit(sys.maxsize)
        self._csv = "csv" in str(told).lower() if told else running.script_says("encode_csv")
        self._schema = _output_schema()

    def write(self, input_list: List[Any]) -> Any:
        """Write records; in a graph, return the operation that does. Args: input_list: a list of one tensor of strings."""
        import tensorflow as tf

        return tf.numpy_function(self._take, [input_list[0]], tf.int64, name="write_rows")

    def close(self) -> Any:
        """Return an operation that does nothing: rows are sent when there are enough of them, and when the script ends."""
        import tensorflow as tf

        return tf.no_op()

    def _take(self, records: Any) -> Any:
        import numpy as np

        found = np.ravel(records).tolist()
        if self._csv:
            write_lines([record.decode("utf-8", "surrogateescape") for record in found], self._schema)
        elif len(found) < _FEW:
            for record in found:
                running.writer().write(record)
        else:
            running.writer().write_all(found)
        return np.int64(len(found))


def encode_csv(input_list: Iterable[Any], field_delim: str = ",") -> Any:
    """Return a tensor of lines made from tensors of one shape, one for each field. Text is always quoted."""
    import tensorflow as tf

    texts = [
        tf.strings.join(['"', tf.strings.regex_replace(value, '"', '""'), '"'])
        if value.dtype == tf.string
        else tf.strings.as_string(value)
        for value in map(tf.convert_to_tensor, input_list)
    ]
    return tf.strings.join(texts, field_delim)


def _output_schema() -> List[Dict[str, Any]]:
    schema: Optional[List[Dict[str, Any]]] = running.context()["output_schema"]
    if schema is None:
        raise RuntimeError("the script writes rows, and nobody has said what they are: give output_schema= (--output-schema)")
    return schema


def write_lines(texts: Sequence[str], schema: List[Dict[str, Any]]) -> None:
    """Write rows of the result; doubles keep their precision. Args: texts: a line of CSV for each row, without its line end."""
    rows = []
    try:
        # an empty line is a row of one empty text
        rows = [values or [""] for values in csv.reader(texts)]
    except csv.Error:
        if len(texts) == 1:
            raise
    if len(rows) == len(texts) < _FEW and all(column["dtype"] != "float64" for column in schema):
        # as Examples, which are collected and sent with others; not for doubles, which an Example cannot hold
        for values in rows:
            write_values(values, schema)
    elif len(rows) == len(texts) and set(map(len, rows)) == {len(schema)}:
        running.writer().write_batch({column["name"]: _values(some, column) for column, some in zip(schema, zip(*rows))})
    elif len(texts) == 1:
        raise _not_as_many(rows[0], schema)
    else:
        # for instance a quote is not closed, or a row is too short: written one by one, the wrong line raises its error
        for text in texts:
            write_lines([text], schema)


def _values(texts: Sequence[str], column: Dict[str, Any]) -> NDArray[Any]:
    """Return a column of the result from its texts."""
    import numpy as np

    if column["kind"] == "bytes":
        values = np.empty(len(texts), dtype=object)
        values[:] = [text.encode("utf-8", "surrogateescape") for text in texts]
    else:
        read, dtype = (float, np.float64) if column["kind"] == "float" else (int, np.int64)
        nulls = np.fromiter(map(operator.not_, texts), bool, len(texts))
        values = np.fromiter(map(read, [text or "0" for text in texts] if nulls.any() else texts), dtype, len(texts))
        values = np.ma.masked_array(values, nulls) if nulls.any() else values
    # a column of lists gets lists of one value
    return values if column["shape"] == [] else values.reshape(-1, 1)


def write_values(values: Sequence[Any], schema: List[Dict[str, Any]]) -> None:
    """Write one row of the result. Args: values: in the order of the schema; a text for a column of numbers is parsed."""
    import tensorflow as tf

    if len(values) != len(schema):
        raise _not_as_many(values, schema)
    example = tf.train.Example()
    for column, value in zip(schema, values):
        if value is None or (isinstance(value, str) and not value and column["kind"] != "bytes"):
            continue  # a null
        feature = example.features.feature[column["name"]]
        if column["kind"] == "bytes":
            feature.bytes_list.value.append(
                value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogateescape")
            )
        elif column["kind"] == "float":
            feature.float_list.value.append(float(value))
        else:
            feature.int64_list.value.append(int(value))
    running.writer().write(example)


def _not_as_many(values: Sequence[Any], schema: List[Dict[str, Any]]) -> ValueError:
    names = ", ".join(column["name"] for column in schema)
    return ValueError(
        "a row of %d values, and the result has %d columns: %s (output_schema=)" % (len(values), len(schema), names)
    )
