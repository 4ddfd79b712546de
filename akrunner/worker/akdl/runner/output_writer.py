"""Output writers, under Alink's names."""

from __future__ import annotations

from typing import Any, Callable, Dict, Tuple

from akrunner.worker.output import OutputWriter


class DirectOutputWriter(OutputWriter):
    """Writes Examples, as protobuf messages or serialized: `write(example)`, `close()`."""


class _Nobody(object):
    """An output writer that only counts the rows."""

    rows = 0

    def write(self, example: Any) -> None:
        self.rows += 1

    def write_batch(self, columns: Dict[str, Any]) -> None:
        self.rows += len(next(iter(columns.values()), ()))

    def flush(self) -> None:
        pass

    def close(self) -> None:
        pass


def fake_output_writer_op(input_list: Any) -> Tuple[Any, Callable[..., Any]]:
    """Return stand-ins for an output writer's operations in a graph: one that prints, and a function that makes a no-op."""
    import tensorflow as tf

    return tf.print(input_list), tf.no_op


def get_fake_output_writer() -> _Nobody:
    """Return a writer that drops the rows, for running a `main` by hand."""
    return _Nobody()
