"""Works that all tasks share."""

from akrunner.worker.tables.work import WorkQueue

__all__ = ["WorkQueue", "prefetch"]


def prefetch(features, *args, **kwargs):
    """The features as they are: they come ahead of time anyway."""
    return features
