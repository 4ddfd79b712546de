"""The queue of works that all tasks share."""

from __future__ import annotations

from typing import Any

from akrunner.worker.tables.work import WorkQueue

__all__ = ["WorkQueue", "prefetch"]


def prefetch(features: Any, *args: Any, **kwargs: Any) -> Any:
    """Return the features unchanged: they are read ahead of time anyway."""
    return features
