"""Writing rows, one by one."""

from akrunner.worker.lines import RowWriter as FlinkRowWriter

__all__ = ["FlinkRowWriter"]
