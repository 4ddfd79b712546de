"""A sink of streams, for tests."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from akrunner.alink import StreamOperator
from akrunner.alink.environment import current
from akrunner.alink.flow import Flow


class Rows(StreamOperator):
    """Keeps the rows that a stream gives it."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[Any] = []

    def _linked(self) -> None:
        current().streams.append(self)

    def _take(self, flow: Flow, batch: pa.RecordBatch) -> None:
        self.rows += zip(*(column.to_pylist() for column in batch.columns))
