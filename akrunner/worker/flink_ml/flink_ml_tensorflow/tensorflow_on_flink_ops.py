"""Rows in and out, under the names of Flink AI Extended."""

from akrunner.worker.dl_on_flink import TFContext
from akrunner.worker.lines import RecordWriter as FlinkTFRecordWriter
from akrunner.worker.lines import encode_csv


def FlinkStreamDataSet(filenames=None, compression_type=None, buffer_size=0, num_parallel_reads=None):
    """This task's rows; the arguments are ignored."""
    return TFContext().get_tfdataset_from_flink()


__all__ = ["FlinkStreamDataSet", "FlinkTFRecordWriter", "encode_csv"]
