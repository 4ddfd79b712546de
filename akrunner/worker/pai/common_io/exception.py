"""What they raise."""

from akrunner.worker.tables.errors import OutOfRangeException, TableError

__all__ = ["OutOfRangeException", "TableError"]
