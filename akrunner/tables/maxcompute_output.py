"""What a job writes to a MaxCompute table, or to one partition.

::

    output         an upload session: nobody sees anything of it
    part(key)      batches -> blocks of about 16 MB -> the session; a block that fails is sent again, under its number
    commit         one call for all blocks: the rows are there, in place of the old ones if it overwrites
    abort, a kill  the session is forgotten, and the table as it was
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

#: of a block; later ones are larger: a session takes 20,000
_BLOCK_BYTES = 16 << 20
_BLOCKS_OF_A_SIZE = 4_000
_MOST_BLOCKS = 20_000
#: seconds after which a session without blocks is made anew: MaxCompute keeps one for a day
_FRESH = 3600.0
#: PyODPS tries again by itself; this is for what is left
_TRIES, _PATIENCE = 4, 60.0


class MaxComputePart:
    """See `store.TablePart`. Attributes: rows: how many were written; blocks: numbers of those that were sent."""

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
        """Nobody wants its rows. Returns: numbers of its blocks."""
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
    """See `store.TableOutput`."""

    def __init__(
        self, store: MaxComputeTables, name: TableName, info: TableInfo, partition: Partition, overwrite: bool
    ) -> None:
        """Open a session: whoever may not write learns it now. Raises: SinkError."""
        self.name, self.info = name, info
        self._store, self._partition, self._overwrite = store, partition, overwrite
        self._lock = threading.Lock()
        self._parts: dict[str, MaxComputePart] = {}
        #: numbers of blocks that hold what nobody wants; they are written again
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
        """Of the next block. Raises: WriteError."""
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
        """Send one block, whole; again if it has to be. Raises: WriteError."""
        session = self._session
        with self._told(f"cannot send block {number} ({rows.num_rows:,} rows)"):
            for again in _attempts():
                with again:
                    # it holds the block until it is closed, and sends it then
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
        """Send what is left. Returns: the numbers of all blocks. Raises: WriteError."""
        for part in list(self._parts.values()):
            part.close()
        blocks = [number for part in self._parts.values() for number in part.blocks]
        if self._overwrite and not blocks and not self._free:
            self._free = [self.number()]
        while self._free:
            # a block cannot be taken back: it is made empty
            empty = self._free.pop()
            self.send(empty, self.info.columns.empty_table())
            blocks.append(empty)
        return sorted(blocks)

    def commit(self) -> None:
        commit([self])

    def check(self) -> None:
        """Raises: WriteError: its session is there no more."""
        with self._told("cannot commit its rows; the table is as it was"):
            self._session.reload()

    def put(self, blocks: list[int]) -> None:
        """Have the rows be there. Raises: WriteError."""
        self._over = True
        if not blocks:
            return
        with self._told("cannot commit its rows; the table is as it was"):
            for again in _attempts():
                with again:
                    try:
                        self._session.commit(blocks)
                    except Exception:
                        if not self._is_committed():
                            raise

    def _is_committed(self) -> bool:
        """Whether it was done after all, and only the answer was lost."""
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
    """All of a job's outputs. MaxCompute has no commit of several tables: all is sent and checked before the first one counts.

    Raises: WriteError: none is committed, or it names those that are.
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


class _Attempt:
    """A context that swallows what is worth another attempt. Attributes: failed."""

    def __init__(self, last: bool) -> None:
        self._last = last
        self.failed = False

    def __enter__(self) -> None:
        self.failed = False

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> bool:
        self.failed = isinstance(error, Exception) and worth_another(error) and not self._last
        return self.failed


def _attempts() -> Iterator[_Attempt]:
    """`for again in _attempts(): with again: ...`: until it succeeds, or fails for good."""
    began = time.monotonic()
    for number in range(1, _TRIES + 1):
        attempt = _Attempt(number == _TRIES or time.monotonic() - began > _PATIENCE)
        yield attempt
        if not attempt.failed:
            return
        time.sleep(0.5 * 2**number)
