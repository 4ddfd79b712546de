"""The exceptions of readers and writers."""

from akrunner.worker.tables.errors import OutOfRangeException, TableError

__all__ = ["OutOfRangeException", "TableError"]
