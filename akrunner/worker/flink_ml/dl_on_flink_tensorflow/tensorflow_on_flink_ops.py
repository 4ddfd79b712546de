"""Reading and writing rows, under the names of Deep Learning on Flink."""

from flink_ml_tensorflow.tensorflow_on_flink_ops import FlinkStreamDataSet, FlinkTFRecordWriter, encode_csv

__all__ = ["FlinkStreamDataSet", "FlinkTFRecordWriter", "encode_csv"]
