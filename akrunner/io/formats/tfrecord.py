"""TFRecord files of `tf.train.Example`s, which `akrunner.codec` reads and writes."""

from __future__ import annotations

import pyarrow as pa

from akrunner.io.formats.base import Format
from akrunner.schema import Schema


class TFRecord(Format):
    name = "tfrecord"
    endings = (".tfrecord", ".tfrecords", ".tfr", ".tfrecord.gz", ".tfrecords.gz")
    examples = True

    def check(self, schema: pa.Schema) -> None:
        # this raises an error for what an Example cannot hold
        Schema.from_arrow(schema)


FORMAT = TFRecord()
