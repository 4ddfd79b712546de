"""Works that all tasks share."""

from __future__ import annotations

from typing import Any

from akrunner.worker.tables.work import WorkQueue

__all__ = ["WorkQueue", "prefetch"]


def prefetch(features: Any, *args: Any, **kwargs: Any) -> Any:
    """The features as they are: they come ahead of time anyway."""
    return features
