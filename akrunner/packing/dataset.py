"""`dataset.json`, the description of what was packed, for programs and people that read the shards."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from akrunner.errors import SchemaError
from akrunner.io import formats
from akrunner.io.formats import arrow, parquet
from akrunner.io.packed import DESCRIPTION
from akrunner.io.seals import CHECKSUM
from akrunner.packing import sealed
from akrunner.schema import feature_kind, is_list
from akrunner.wire.features import KINDS

LABELS = "labels.json"
#: format of files with columns -> Python code that reads one file
_READ = {parquet.FORMAT.name: "pq.read_table(path)", arrow.FORMAT.name: "pa.ipc.open_file(path).read_all()"}

_SNIPPET = """\
import json
import os

import tensorflow as tf

folder = os.path.dirname(os.path.abspath(__file__))  # where dataset.json is
with open(os.path.join(folder, "dataset.json")) as f:
    about = json.load(f)
features = {{
{features}
}}


def parse(example):
    row = tf.io.parse_single_example(example, features)
{decode}    return row


def dataset(split, shuffle=10000, batch_size=32):
    files = [os.path.join(folder, one["name"]) for one in about["splits"][split]["files"]]
    rows = tf.data.Dataset.from_tensor_slices(files).interleave(tf.data.TFRecordDataset, cycle_length=4)
    rows = rows.shuffle(shuffle) if shuffle else rows
    return rows.map(parse, num_parallel_calls=tf.data.experimental.AUTOTUNE).batch(batch_size).prefetch(2)


# TensorFlow 2: for batch in dataset("{split}"): ...
# TensorFlow 1.15: batch = tf.compat.v1.data.make_one_shot_iterator(dataset("{split}")).get_next(), or tf.compat.v1.enable_eager_execution()
"""
_COLUMNS = '''\
import json
import os

import pyarrow as pa
import pyarrow.parquet as pq

folder = os.path.dirname(os.path.abspath(__file__))  # where dataset.json is
with open(os.path.join(folder, "dataset.json")) as f:
    about = json.load(f)


def tables(split):
    """A table of each file: .column("label").to_numpy() is what tf.data.Dataset.from_tensor_slices takes."""
    for one in about["splits"][split]["files"]:
        path = os.path.join(folder, one["name"])
        yield {read}


# for table in tables("{split}"): ...
'''
_DECODE = """\
    {decoded}
    # [height, width, 3] bytes; of a GIF [pictures, height, width, 3], of which the first is taken
    image = tf.reshape(image, tf.concat([[-1], tf.shape(image)[-3:]], 0))[0]
    image.set_shape([None, None, 3])
    row["image"] = tf.image.resize(tf.cast(image, tf.float32) / 255, [224, 224])
"""
_DECODED = 'image = tf.io.decode_image(row["image"], channels=3)'
# what TensorFlow does not decode with channels=3, or only in some versions. Each kind has an operation of its own: older versions
# remember in an operation how many channels its first BMP had, and refuse those that have others
_DECODED_OWN = """\
data = row["image"]
    begins, bits = tf.strings.substr(data, 0, 2), tf.strings.substr(data + b"\\0" * 29, 28, 1)

    def as_it_is():  # 1, 3 or 4 channels, as the file has them: of these come 3
        return tf.concat([tf.io.decode_image(data)] * 3, -1)[..., :3]

    # BMPs of 8 and of 32 bits a pixel, WebP
    kinds = [tf.equal(begins + bits, b"BM\\x08"), tf.equal(begins + bits, b"BM\\x20"), tf.equal(begins, b"RI")]
    image = tf.case([(kind, as_it_is) for kind in kinds], default=lambda: tf.io.decode_image(data, channels=3))"""


def feature_spec(schema: pa.Schema) -> dict[str, dict[str, Any]]:
    """Return feature -> its dtype in TensorFlow, its shape, and whether it is optional.

    The shape [None] means that each row has its own number of values. Columns that no feature holds are left out.
    """
    spec: dict[str, dict[str, Any]] = {}
    for field in schema:
        kind = feature_of(field.name, field.type)
        if kind is None:
            continue
        size: Sequence[int | None] | None = [] if not is_list(field.type) else [None]
        if pa.types.is_fixed_size_list(field.type):
            size = [field.type.list_size]
        spec[field.name] = {"dtype": KINDS[kind].tensor, "shape": size, "optional": field.nullable}
    return spec


def feature_of(name: str, data_type: pa.DataType) -> str | None:
    """Return the kind of feature that holds a column, as `feature_kind` does; None: only Parquet and Arrow files hold it."""
    try:
        return feature_kind(name, data_type)
    except SchemaError:
        return None


def snippet(schema: pa.Schema, image: bool, split: str, form: str, own: bool = False) -> str:
    """Return Python code that reads the shards without akrunner.

    It reads TFRecord files with TensorFlow alone, 1.15 or 2.x, and other files with pyarrow.

    Args:
        schema: columns of the shards.
        image: whether the rows are images.
        split: the split that the code's example reads.
        form: format of the shards.
        own: whether some of the images are BMPs or WebP, which are decoded with the channels that they have.
    """
    if not formats.named(form).examples:
        return _COLUMNS.format(split=split, read=_READ[form])
    lines = []
    for name, one in feature_spec(schema).items():
        dtype = f"tf.{one['dtype']}"
        if one["shape"] == [None]:
            made = f"tf.io.VarLenFeature({dtype})"
        elif one["optional"]:
            default = '""' if one["dtype"] == "string" else "0"
            default = f"[{', '.join([default] * one['shape'][0])}]" if one["shape"] else default
            made = f"tf.io.FixedLenFeature({one['shape']}, {dtype}, default_value={default})"
        else:
            made = f"tf.io.FixedLenFeature({one['shape']}, {dtype})"
        lines.append(f"    {json.dumps(name)}: {made},")
    return _SNIPPET.format(
        features="\n".join(lines),
        decode=_DECODE.format(decoded=_DECODED_OWN if own else _DECODED) if image else "",
        split=split,
    )


def read(folder: str) -> dict[str, Any] | None:
    """Read the `dataset.json` of a directory, without its checksum.

    Returns: its content; None: there is no such file; {}: it is no file, or its JSON is not an object.
    Raises: ValueError, RecursionError: it is damaged.
    """
    path = os.path.join(folder, DESCRIPTION)
    if sealed.is_no_file(path):
        return {}
    try:
        with open(path, encoding="utf-8") as stream:
            found = json.load(stream)
    except FileNotFoundError:
        return None
    return {name: value for name, value in found.items() if name != CHECKSUM} if isinstance(found, dict) else {}


def write(folder: str, name: str, value: Any) -> None:
    """Write a JSON file completely or not at all."""
    with sealed.replacing(folder, name) as stream:
        json.dump(value, stream, indent=1, ensure_ascii=False)
        stream.write("\n")
