"""PAI's `paiio`: tables for scripts with TensorFlow, under both of its spellings."""

from paiio import data, errors, python_io

from akrunner.worker.tables.errors import OutOfRangeException
from akrunner.worker.tables.reader import TableReader
from akrunner.worker.tables.writer import TableWriter

__all__ = ["OutOfRangeException", "TableReader", "TableRecordDataset", "TableWriter", "data", "errors", "python_io"]


def __getattr__(name):
    if name == "TableRecordDataset":
        return data.TableRecordDataset
    raise AttributeError("module 'paiio' has no attribute %r" % name)
