"""PAI's `pai`."""

from pai import data

__all__ = ["data"]
