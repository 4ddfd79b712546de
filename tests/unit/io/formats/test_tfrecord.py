"""TFRecord as a format: which names are its files', and which columns it holds."""

from __future__ import annotations

import pyarrow as pa
import pytest

from akrunner.errors import SchemaError
from akrunner.io import formats
from akrunner.io.formats.tfrecord import FORMAT


@pytest.mark.parametrize("name", ["t.tfrecord", "T.TFRECORDS", "t.tfr", "t.tfrecord.gz", "t.tfrecords.gz"])
def test_names_of_its_files(name: str) -> None:
    assert formats.format_of(name) == FORMAT.name and FORMAT.examples


def test_columns_that_an_example_holds() -> None:
    FORMAT.check(pa.schema([("i", pa.int64()), ("s", pa.string()), ("b", pa.binary()), ("l", pa.list_(pa.float32()))]))


@pytest.mark.parametrize("kind", [pa.decimal128(5, 2), pa.struct([("a", pa.int64())]), pa.list_(pa.list_(pa.int64()))], ids=str)
def test_a_column_that_none_holds_is_named(kind: pa.DataType) -> None:
    with pytest.raises(SchemaError, match="column 'x' is .*, which a tf.train.Example cannot hold"):
        FORMAT.check(pa.schema([("i", pa.int64()), ("x", kind)]))
