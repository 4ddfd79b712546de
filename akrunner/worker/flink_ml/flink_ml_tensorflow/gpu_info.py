"""The graphics cards of this task."""

from akrunner.worker.dl_on_flink import get_gpus

__all__ = ["get_gpus"]
