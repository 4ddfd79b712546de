"""A table that can be read: what every source becomes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Callable, Iterator, Optional

import pyarrow as pa

from akrunner.errors import SourceError

if TYPE_CHECKING:
    from akrunner.io.paths import Files

#: rows of the batches readers give
BATCH_ROWS = 65536


@dataclass(frozen=True)
class TableSource:
    """A table that can be read.

    Attributes: schema: of every batch; name: for errors; replayable: whether it can be read again; elsewhere: whether its rows reach
    the tasks without coming through this process; files: what it is read from as it stands, None when there is more to it.
    """

    schema: pa.Schema
    open: Callable[[], Iterator[pa.RecordBatch]]
    name: str = "the table"
    replayable: bool = False
    elsewhere: bool = False
    files: "Optional[Files]" = None

    def batches(self) -> Iterator[pa.RecordBatch]:
        """All rows, in order. Raises: SourceError: they cannot be read."""
        try:
            yield from self.open()
        except (pa.ArrowException, OSError) as e:
            raise SourceError(f"source: cannot read {self.name}: {e}{hint(str(e))}") from e


def opened_once(
    first: Iterator[pa.RecordBatch], again: Callable[[], Iterator[pa.RecordBatch]]
) -> Callable[[], Iterator[pa.RecordBatch]]:
    """What gives `first`, which is open already, when it is called for the first time, and opens anew after that."""
    held = [first]
    return lambda: held.pop() if held else again()


def hint(message: str) -> str:
    """What to do about what Arrow says."""
    if "straddling object" in message:
        return "; a row is too long for text: a Parquet, Arrow or TFRecord file may have it"
    if "CSV conversion error" in message:
        return "; the types were guessed from the file's beginning: give input_schema= (--input-schema)"
    return ""
