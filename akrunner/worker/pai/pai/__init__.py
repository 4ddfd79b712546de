"""PAI's `pai`: the queue of works that all tasks share."""

from pai import data

__all__ = ["data"]
