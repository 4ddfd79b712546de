"""Scripts of Deep Learning on Flink in TensorFlow: rows come as lines of CSV or as Examples, and go out as either."""

from __future__ import annotations

from pathlib import Path

import pytest

import akrunner
from tests.conftest import Script

LINES = """
import tensorflow as tf
from pyflink.common import Row

def inference(context):
    from dl_on_flink_tensorflow.tensorflow_context import TFContext

    tf_context = TFContext(context)
    defaults = [[0.], [7], [""]]
    rows = tf_context.get_tfdataset_from_flink().map(lambda line: tf.io.decode_csv(line, record_defaults=defaults)).batch(2)
    writer = tf_context.get_row_writer_to_flink()
    for x, n, name in rows:
        for one in zip(x.numpy(), n.numpy(), name.numpy()):
            writer.write(Row(y=2 * one[0], n=one[1], name=one[2]))
    writer.close()
"""
GRAPH = """
import tensorflow.compat.v1 as tf
from flink_ml_tensorflow import tensorflow_on_flink_ops as tff_ops
from flink_ml_tensorflow.tensorflow_context import TFContext
tf.disable_v2_behavior()

def map_func(context):
    dataset = TFContext(context).flink_stream_dataset(buffer_size=0)
    if "Example" in context.get_property("sys:decoding_class"):
        features = {"x": tf.FixedLenFeature([], tf.float32), "n": tf.FixedLenFeature([], tf.int64, 7)}
        row = tf.io.parse_single_example(tf.data.make_one_shot_iterator(dataset).get_next(), features)
        columns = [[2 * row["x"]], [row["n"]], tf.constant(["a,b"])]
    else:
        x, n, name = tf.decode_csv(tf.data.make_one_shot_iterator(dataset).get_next(), [[0.], [tf.constant(7, tf.int64)], [""]])
        columns = [[2 * x], [n], [name]]
    out = tff_ops.FlinkTFRecordWriter(address=context.to_java()).write([tff_ops.encode_csv(columns[:2] + [['"a", he said\\n']])])
    with tf.Session() as session:
        while True:
            try:
                session.run(out)
            except tf.errors.OutOfRangeError:
                return
"""
ROWS = {"x": [0.1, 1.5, 2.0], "n": [1, None, 3], "name": ['a,"b', "", "\u00e9\n"]}
SCHEMA = "y float, n bigint, name string"


@pytest.mark.tensorflow
def test_rows_as_lines(leaves_nothing: Path, script: Script) -> None:
    table = akrunner.run(script(LINES), ROWS, output_schema=SCHEMA).table.to_pydict()
    assert table == {"y": [pytest.approx(0.2), 3.0, 4.0], "n": [1, 7, 3], "name": ROWS["name"]}
    options = dict(input_schema="x float, n bigint, name string", output_schema=SCHEMA, data_format="columns")
    with akrunner.stream(script(LINES), [{"x": 1.0, "n": 2, "name": "s"}], **options) as job:
        assert [row for batch in job for row in batch.to_pylist()] == [{"y": 2.0, "n": 2, "name": "s"}]
    with pytest.raises(akrunner.ScriptFailedError, match="column 'l' is a list, which a line of CSV has no place for"):
        akrunner.run(script(LINES), {"l": [[1.0]]}, output_schema=SCHEMA)


@pytest.mark.tensorflow
@pytest.mark.parametrize("coding", ["operator.coding.RowCSVCoding", "tensorflow.coding.ExampleCoding"])
def test_rows_in_a_graph(leaves_nothing: Path, script: Script, coding: str) -> None:
    params = {"sys:decoding_class": "org.flinkextended.flink.ml." + coding}
    table = akrunner.run(script(GRAPH), ROWS, user_params=params, output_schema=SCHEMA).table.to_pydict()
    assert table == {"y": [pytest.approx(0.2), 3.0, 4.0], "n": [1, 7, 3], "name": ['"a", he said\n'] * 3}
