"""The rows that a job writes to a MaxCompute table, or to one of its partitions.

::

    output         opens an upload session, whose rows no reader sees yet
    part(key)      batches -> blocks of about 16 MB -> the session; a block that fails is sent again with the same number
    commit         makes all blocks visible in one call; if the output overwrites, they replace the old rows
    abort, a kill  the session is forgotten, and the table is as it was
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa

from akrunner.errors import SinkError, WriteError
from akrunner.foreign import ours
from akrunner.tables.local_output import fitted_to
from akrunner.tables.maxcompute_reading import worth_another
from akrunner.tables.names import Partition, TableName
from akrunner.tables.store import CHANGED, TableInfo, TableOutput

if TYPE_CHECKING:
    from akrunner.tables.maxcompute import MaxComputeTables

#: bytes of a block; later blocks are larger, because a session takes only 20,000 blocks
_BLOCK_BYTES = 16 << 20
_BLOCKS_OF_A_SIZE = 4_000
_MOST_BLOCKS = 20_000
#: seconds after which a session without blocks is replaced by a new one: MaxCompute keeps a session for a day
_FRESH = 3600.0
#: PyODPS itself tries again; these limits are for errors that remain
_TRIES, _PATIENCE = 4, 60.0


class MaxComputePart:
    """The rows that one task writes. See `store.TablePart`.

    Attributes:
        rows: how many rows were written.
        blocks: the numbers of the blocks that were sent.
    """

    def __init__(self, output: MaxComputeOutput) -> None:
        self._output = output
        self._held: list[pa.RecordBatch] = []
        self._bytes = 0
        self._closed = False
        self.rows = 0
        self.blocks: list[int] = []

    def write(self, batch: pa.RecordBatch) -> None:
        if self._closed:
            raise WriteError(f"output: {self._output.name}: rows were written to a part that is closed")
        fitted = fitted_to(batch, self._output.info, str(self._output.name.whole), self.rows)
        self._held.append(fitted)
        self._bytes += fitted.nbytes
        self.rows += fitted.num_rows
        if self._bytes >= self._output.block_bytes():
            self._send()

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._send()

    def drop(self) -> list[int]:
        """Discard the rows. Returns the numbers of the blocks that were sent."""
        self._closed = True
        self._held = []
        return self.blocks

    def _send(self) -> None:
        held, self._held, self._bytes = self._held, [], 0
        if held:
            number = self._output.number()
            self.blocks.append(number)
            self._output.send(number, pa.Table.from_batches(held))


class MaxComputeOutput:
    """The rows that a job writes to a table in MaxCompute. See `store.TableOutput`."""

    def __init__(
        self, store: MaxComputeTables, name: TableName, info: TableInfo, partition: Partition, overwrite: bool
    ) -> None:
        """Open a session, so that a user without permission to write gets the error now.

        Raises:
            SinkError: the session cannot be opened.
        """
        self.name, self.info = name, info
        self._store, self._partition, self._overwrite = store, partition, overwrite
        self._lock = threading.Lock()
        self._parts: dict[str, MaxComputePart] = {}
        #: numbers of blocks with discarded rows; these numbers are used again
        self._free: list[int] = []
        self._numbers = 0
        self._over = False
        with ours(SinkError, f"output: {name}"):
            self._open()

    def _open(self) -> None:
        self._session = self._store.upload(self.name, self._partition, self._overwrite)
        self._since = time.monotonic()
        self._numbers = 0
        self._free = []

    def part(self, key: str) -> MaxComputePart:
        with self._lock:
            if self._over:
                raise WriteError(f"output: {self.name} is committed, or given up")
            earlier = self._parts.pop(key, None)
            if earlier is not None:
                self._free += earlier.drop()
            self._parts[key] = MaxComputePart(self)
            return self._parts[key]

    def block_bytes(self) -> int:
        return _BLOCK_BYTES << self._numbers // _BLOCKS_OF_A_SIZE

    def number(self) -> int:
        """Return the number of the next block.

        Raises:
            WriteError: the output is closed, a session cannot be opened, or it has as many blocks as MaxCompute takes.
        """
        with self._lock:
            if self._over:
                raise WriteError(f"output: {self.name} is committed, or given up")
            if self._free:
                return self._free.pop()
            if not self._numbers and time.monotonic() - self._since > _FRESH:
                with self._told("cannot open an upload session"):
                    self._open()
            if self._numbers >= _MOST_BLOCKS:
                raise WriteError(
                    f"output: {self.name}: MaxCompute takes {_MOST_BLOCKS:,} blocks of rows at a time, and that many were sent"
                )
            self._numbers += 1
            return self._numbers - 1

    def send(self, number: int, rows: pa.Table) -> None:
        """Send one whole block, again if an error may pass.

        Raises:
            WriteError: it cannot be sent.
        """
        session = self._session
        with self._told(f"cannot send block {number} ({rows.num_rows:,} rows)"):
            for again in _tries():
                with again:
                    # the writer holds the block in memory, and sends it when it is closed
                    writer = session.open_arrow_writer(initial_block_id=number, buffer_size=1 << 40)
                    for batch in rows.combine_chunks().to_batches() or [_empty(rows.schema)]:
                        writer.write(batch)
                    writer.close()

    def _told(self, what: str) -> Any:
        return ours(WriteError, f"output: {self.name}: {what}")

    def restart(self) -> None:
        with self._lock:
            parts, self._parts = list(self._parts.values()), {}
            for part in parts:
                part.drop()
            if self._numbers:
                with self._told("cannot open an upload session"):
                    self._open()

    def finish(self) -> list[int]:
        """Send the rows that are left, and empty the blocks of discarded rows. Returns the numbers of all blocks, sorted.

        Raises:
            WriteError: a block cannot be sent.
        """
        for part in list(self._parts.values()):
            part.close()
        blocks = [number for part in self._parts.values() for number in part.blocks]
        if self._overwrite and not blocks and not self._free:
            self._free = [self.number()]
        while self._free:
            # a block that was sent cannot be removed, but it can be made empty
            empty = self._free.pop()
            self.send(empty, self.info.columns.empty_table())
            blocks.append(empty)
        return sorted(blocks)

    def commit(self) -> None:
        commit([self])

    def check(self) -> None:
        """Check that the session still exists.

        Raises:
            WriteError: it does not.
        """
        with self._told("cannot commit its rows; the table is as it was"):
            self._session.reload()

    def put(self, blocks: list[int]) -> None:
        """Make the rows of these blocks visible.

        Raises:
            WriteError: it failed; the table is as it was.
        """
        self._over = True
        if not blocks:
            return
        with self._told("cannot commit its rows; the table is as it was"):
            for again in _tries():
                with again:
                    try:
                        self._session.commit(blocks)
                    except Exception:
                        if not self._is_committed():
                            raise

    def _is_committed(self) -> bool:
        """Whether the commit succeeded after all, and only the answer was lost."""
        with contextlib.suppress(Exception):
            self._session.reload()
            return str(getattr(self._session.status, "value", "")).upper() == "CLOSED"
        return False

    def abort(self) -> None:
        self._over = True
        for part in self._parts.values():
            part.drop()
        self._parts = {}


def commit(outputs: Sequence[TableOutput]) -> None:
    """Commit all outputs of a job. MaxCompute cannot commit several tables at once, so all rows are sent and checked before
    the first commit.

    Raises:
        WriteError: none is committed, or the message names those that are.
    """
    ours_ = [cast(MaxComputeOutput, output) for output in outputs]
    blocks = [output.finish() for output in ours_]
    if len(ours_) > 1:
        for output in ours_:
            output.check()
    done: list[str] = []
    for output, numbers in zip(ours_, blocks):
        try:
            output.put(numbers)
        except WriteError as e:
            if not done:
                raise
            raise WriteError(
                f"{e} ({', '.join(done)} {'was' if len(done) == 1 else 'were'} committed before: run the job again)"
            ) from e
        done.append(str(output.name))
        CHANGED.append(str(output.name))


def _empty(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in schema], schema=schema)


class _Try:
    """A context that suppresses errors after which another try may succeed.

    Attributes:
        failed: whether it suppressed one.
    """

    def __init__(self, last: bool) -> None:
        self._last = last
        self.failed = False

    def __enter__(self) -> None:
        self.failed = False

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> bool:
        self.failed = isinstance(error, Exception) and worth_another(error) and not self._last
        return self.failed


def _tries() -> Iterator[_Try]:
    """Yield tries until one succeeds or fails for good: `for again in _tries(): with again: ...`."""
    began = time.monotonic()
    for number in range(1, _TRIES + 1):
        one = _Try(number == _TRIES or time.monotonic() - began > _PATIENCE)
        yield one
        if not one.failed:
            return
        time.sleep(0.5 * 2**number)
