"""What a task knows of itself."""

from akrunner.worker.dl_on_flink import Context

__all__ = ["Context"]
