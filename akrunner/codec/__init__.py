"""Converts Arrow RecordBatches to and from `tf.train.Example` bytes, TFRecord framing and columns; whole batches at a time,
never row by row."""

from akrunner.codec.chunks import decode_frame, encode_frame, frame_types
from akrunner.codec.columns import decode_columns, decode_some_columns, encode_columns
from akrunner.codec.decode import decode_examples
from akrunner.codec.encode import check_values, encode_examples, encode_records
from akrunner.codec.tfrecord import read_examples, write_examples
from akrunner.codec.times import check_units

__all__ = [
    "check_units",
    "check_values",
    "decode_columns",
    "decode_examples",
    "decode_frame",
    "decode_some_columns",
    "encode_columns",
    "encode_examples",
    "encode_frame",
    "encode_records",
    "frame_types",
    "read_examples",
    "write_examples",
]
