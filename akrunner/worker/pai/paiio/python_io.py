"""Readers and writers of rows in Python."""

from akrunner.worker.tables.errors import OutOfRangeException
from akrunner.worker.tables.reader import TableReader
from akrunner.worker.tables.writer import TableWriter

__all__ = ["OutOfRangeException", "TableReader", "TableWriter"]
