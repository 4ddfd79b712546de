"""What they raise."""

from akrunner.worker.tables.errors import OutOfRangeException

__all__ = ["OutOfRangeException"]
