"""Rows as lines of CSV, as scripts of Deep Learning on Flink read and write them.

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
#: rows from which on they are a batch of their own
_FEW = 8


def dataset(config: Any) -> Any:
    """This task's rows. Args: config: its task config. Raises: RuntimeError: a column is a list."""
    import numpy as np
    import tensorflow as tf

    for column in config.schema:
        if column["shape"] != []:
            raise RuntimeError(
                "column %r is a list, which a line of CSV has no place for: read the rows as Examples (tf.io.parse_single_example), or "
                "give the job a table without it (select=)" % column["name"]
            )

    def vectors() -> Iterator[NDArray[Any]]:
        for _, columns in config._rows.chunks(lazy=True):
            if columns is not None:
                yield np.array(written(columns), dtype=object)

    rows = tf_data.from_generator(vectors, (tf.string, [None]))
    return rows.unbatch() if hasattr(rows, "unbatch") else rows.apply(tf.data.experimental.unbatch())


def written(columns: Dict[str, Any]) -> List[bytes]:
    """One line of bytes for each row; a null is nothing. Args: columns: {name: array or Nulled}."""
    texts = [_texts(values) for values in columns.values()]
    found: List[str] = []
    # the writer calls `append` itself, without a line of Python; it quotes what stands in its end of a line
    csv.writer(types.SimpleNamespace(write=found.append), lineterminator=_END).writerows(zip(*texts))
    return [line[: -len(_END)].encode("utf-8", "surrogateescape") for line in found]


def _texts(values: Any) -> List[str]:
    valid = None
    if isinstance(values, chunks.Nulled):
        values, valid = values.values, values.valid
    if values.dtype.kind == "O":
        texts = [value.decode("utf-8", "surrogateescape") for value in values]
    else:
        # as short as the type allows: 0.1, not 0.10000000149011612
        texts = (values.astype("int8") if values.dtype.kind == "b" else values).astype(str).tolist()
    return texts if valid is None else [text if there else "" for text, there in zip(texts, valid.tolist())]


class RowWriter(object):
    """Takes rows of the result: values in the order of the job's output schema."""

    def __init__(self, context: Any = None) -> None:
        self._schema = _output_schema()

    def write(self, row: Any) -> None:
        """Args: row: a `pyflink.common.Row`, or a list or tuple. Raises: ValueError: as many values are not in a row of the result."""
        write_values(getattr(row, "_values", row), self._schema)

    def close(self) -> None:
        """Does nothing: rows are sent when enough have come together, and when the script ends."""


class RecordWriter(object):
    """Takes tensors of records, each a line of CSV or a serialized Example. Args: address: ignored."""

    def __init__(self, address: Any = None) -> None:
        told = running.context()["user_params"].get("sys:encoding_class")
        # the script's rows, however long their text is
        csv.field_size_limit(sys.maxsize)
        self._csv = "csv" in str(told).lower() if told else running.script_says("encode_csv")
        self._schema = _output_schema()

    def write(self, input_list: List[Any]) -> Any:
        """In a graph the operation that writes them. Args: input_list: a list of one tensor of strings."""
        import tensorflow as tf

        return tf.numpy_function(self._take, [input_list[0]], tf.int64, name="write_rows")

    def close(self) -> Any:
        """In a graph an operation that does nothing: rows are sent when enough have come together, and when the script ends."""
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
    """Tensors of one shape -> a tensor of lines. Text stands in quotes, whatever is in it."""
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
    """Add rows of the result, doubles as they are. Args: texts: a line of CSV for each, without its end."""
    rows = []
    try:
        # an empty line is a row of one empty text
        rows = [values or [""] for values in csv.reader(texts)]
    except csv.Error:
        if len(texts) == 1:
            raise
    if len(rows) == len(texts) < _FEW and all(column["dtype"] != "float64" for column in schema):
        # to go out with others; an Example has no doubles
        for values in rows:
            write_values(values, schema)
    elif len(rows) == len(texts) and set(map(len, rows)) == {len(schema)}:
        running.writer().write_batch({column["name"]: _values(some, column) for column, some in zip(schema, zip(*rows))})
    elif len(texts) == 1:
        raise _not_as_many(rows[0], schema)
    else:
        # a quote is not closed, a row is too short, ...: each by itself is right, or says what is wrong
        for text in texts:
            write_lines([text], schema)


def _values(texts: Sequence[str], column: Dict[str, Any]) -> NDArray[Any]:
    """A column of the result, of its texts."""
    import numpy as np

    if column["kind"] == "bytes":
        values = np.empty(len(texts), dtype=object)
        values[:] = [text.encode("utf-8", "surrogateescape") for text in texts]
    else:
        read, dtype = (float, np.float64) if column["kind"] == "float" else (int, np.int64)
        nulls = np.fromiter(map(operator.not_, texts), bool, len(texts))
        values = np.fromiter(map(read, [text or "0" for text in texts] if nulls.any() else texts), dtype, len(texts))
        values = np.ma.masked_array(values, nulls) if nulls.any() else values
    # a list of one
    return values if column["shape"] == [] else values.reshape(-1, 1)


def write_values(values: Sequence[Any], schema: List[Dict[str, Any]]) -> None:
    """Add one row of the result. Args: values: in the order of the schema; text, where it is to be a number, is read as one."""
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
