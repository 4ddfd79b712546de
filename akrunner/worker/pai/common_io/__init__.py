"""PAI's `common_io`: tables for scripts without TensorFlow."""

from common_io import exception, table

__all__ = ["exception", "table"]
