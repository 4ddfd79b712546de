"""Output writers, under Alink's names."""

from __future__ import annotations

from typing import Any, Callable, Dict, Tuple

from akrunner.worker.output import OutputWriter


class DirectOutputWriter(OutputWriter):
    """Takes serialized or built Examples: `write(example)`, `close()`."""


class _Nobody(object):
    """An output writer that throws rows away."""

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
    """What an output writer's operations look like in a graph: (one that prints, what makes one that does nothing)."""
    import tensorflow as tf

    return tf.print(input_list), tf.no_op


def get_fake_output_writer() -> _Nobody:
    """A writer whose rows go nowhere, for running a `main` by hand."""
    return _Nobody()
