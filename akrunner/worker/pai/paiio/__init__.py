"""PAI's `paiio`: tables for scripts with TensorFlow, as `paiio.TableReader` and as `paiio.python_io.TableReader`."""

from __future__ import annotations

from typing import Any

from paiio import data, errors, python_io

from akrunner.worker.tables.errors import OutOfRangeException
from akrunner.worker.tables.reader import TableReader
from akrunner.worker.tables.writer import TableWriter

__all__ = ["OutOfRangeException", "TableReader", "TableRecordDataset", "TableWriter", "data", "errors", "python_io"]


def __getattr__(name: str) -> Any:
    if name == "TableRecordDataset":
        return data.TableRecordDataset
    raise AttributeError("module 'paiio' has no attribute %r" % name)
