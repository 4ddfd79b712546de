"""The context of a task: its role, its index and its user params."""

from akrunner.worker.dl_on_flink import Context

__all__ = ["Context"]
