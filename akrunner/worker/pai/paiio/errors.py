"""The exceptions of readers and writers."""

from akrunner.worker.tables.errors import OutOfRangeException

__all__ = ["OutOfRangeException"]
