"""Reading and writing rows, under the names of Flink-AI-Extended."""

from __future__ import annotations

from typing import Any, Optional

from akrunner.worker.dl_on_flink import TFContext
from akrunner.worker.lines import RecordWriter as FlinkTFRecordWriter
from akrunner.worker.lines import encode_csv


def FlinkStreamDataSet(
    filenames: Any = None,
    compression_type: Optional[str] = None,
    buffer_size: int = 0,
    num_parallel_reads: Optional[int] = None,
) -> Any:
    """Return a dataset of this task's rows. The arguments are ignored."""
    return TFContext().get_tfdataset_from_flink()


__all__ = ["FlinkStreamDataSet", "FlinkTFRecordWriter", "encode_csv"]
