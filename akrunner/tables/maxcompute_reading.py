"""One state of a MaxCompute table: a download session for each partition (or the table), read in ranges by several threads.

::

    read(columns, start, rows)   ranges of about 8 MB -> threads, each with a connection of its own -> batches, in the table's
                                 order
    a range that fails           is read again as a whole; a session that has expired is opened anew, if the table has not
                                 changed
"""

from __future__ import annotations

import collections
import functools
import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from akrunner.errors import SourceError
from akrunner.foreign import ours
from akrunner.tables import types
from akrunner.tables.local_reading import fields_of
from akrunner.tables.names import Partition, TableName
from akrunner.tables.store import Reading, TableInfo, key_scalar

if TYPE_CHECKING:
    from akrunner.tables.maxcompute import MaxComputeTables

#: how many ranges of one reading are requested at a time; each holds its rows in memory until the caller takes them
THREADS = 4
_RANGE_BYTES = 8 << 20
_FIRST_RANGE, _SHORTEST_RANGE, _LONGEST_RANGE = 20_000, 1_000, 1_000_000
#: rows in a batch that has only partition columns
_BATCH = 65_536
#: PyODPS itself tries again (five times if the server fails, after longer and longer pauses); these limits are for errors that
#: remain
_TRIES, _PATIENCE = 4, 60.0
_GONE = ("NoSuchDownload", "InvalidDownloadId", "SessionExpired", "DownloadSessionExpired")


class _Short(Exception):
    """Raised if fewer rows came than were requested, although the stream ended as a whole one does."""


@dataclass
class _Part:
    """One download session.

    Attributes:
        partition: the partition it reads; () for a table without partitions.
        session: PyODPS's session.
        rows: how many rows it has.
        modified: the time at which the rows last changed, as the server reports it.
    """

    partition: Partition
    session: Any
    rows: int
    modified: Any


#: (the part, the range's first row in it, how many rows)
_Range = tuple[_Part, int, int]


class MaxComputeReading(Reading):
    """One state of a table in MaxCompute, to be read. See `store.Reading`."""

    def __init__(
        self, store: MaxComputeTables, name: TableName, info: TableInfo, partitions: Sequence[Partition], threads: int
    ) -> None:
        """Open the sessions.

        Raises:
            SourceError: a session cannot be opened.
        """
        self.info, self._store, self._name = info, store, name
        self._pool = _Pool(threads)
        #: one permit for each range that is requested before the caller needs it; all iterators share them
        self._ahead = threading.Semaphore(threads)
        self._lock = threading.Lock()
        self._row_bytes = 0.0
        try:
            opened = [self._pool.submit(functools.partial(self._opened, one)) for one in partitions]
            self._parts: list[_Part] = [one.result() for one in opened]
        except BaseException:
            self._pool.close()
            raise
        self.rows: int = sum(part.rows for part in self._parts)

    def _opened(self, partition: Partition) -> _Part:
        with self._told("cannot open it"):
            modified = self._store.modified(self._name, partition)
            session = self._store.download(self._name, partition)
            return _Part(partition, session, int(session.count), modified)

    def _told(self, what: str) -> Any:
        return ours(SourceError, f"source: {self._name}: {what}")

    def read(self, columns: Sequence[str] | None = None, start: int = 0, rows: int | None = None) -> Iterator[pa.RecordBatch]:
        """Yield rows. See `store.Reading.read`."""
        fields = fields_of(self._name, self.info, columns)
        stop = self.rows if rows is None else min(self.rows, start + rows)
        return self._read(fields, max(0, start), stop)

    def _read(self, fields: list[pa.Field], start: int, stop: int) -> Iterator[pa.RecordBatch]:
        schema = pa.schema([field.remove_metadata() for field in fields])
        own = list(dict.fromkeys(field.name for field in fields if field.name not in self.info.partitions))
        if not own:
            yield from self._of_keys(schema, start, stop)
            return
        ranges = self._ranges(start, stop)
        waiting: collections.deque[tuple[Future[list[pa.RecordBatch]], bool]] = collections.deque()
        try:
            while True:
                # one range is always requested; more of them while there are permits
                while not waiting or self._ahead.acquire(blocking=False):
                    one, ahead = next(ranges, None), bool(waiting)
                    if one is None:
                        if ahead:
                            self._ahead.release()
                        break
                    waiting.append((self._pool.submit(functools.partial(self._fetched, one, own, schema)), ahead))
                if not waiting:
                    return
                future, ahead = waiting[0]
                try:
                    batches = future.result()
                except CancelledError:
                    raise SourceError(f"source: {self._name}: the reading was closed") from None
                waiting.popleft()
                if ahead:
                    self._ahead.release()
                yield from batches
        finally:
            for future, ahead in waiting:
                future.cancel()
                if ahead:
                    self._ahead.release()

    def _ranges(self, start: int, stop: int) -> Iterator[_Range]:
        """Yield the ranges to request; their length follows the size of the rows read so far."""
        first = 0
        for part in self._parts:
            at, end = max(start - first, 0), min(stop - first, part.rows)
            while at < end:
                fit = int(_RANGE_BYTES / self._row_bytes) if self._row_bytes else _FIRST_RANGE
                count = min(end - at, max(_SHORTEST_RANGE, min(fit, _LONGEST_RANGE)))
                yield part, at, count
                at += count
            first += part.rows

    def _of_keys(self, schema: pa.Schema, start: int, stop: int) -> Iterator[pa.RecordBatch]:
        """Yield rows that have only partition columns."""
        first = 0
        for part in self._parts:
            at, end = max(start - first, 0), min(stop - first, part.rows)
            while at < end:
                count = min(_BATCH, end - at)
                yield _with_keys(pa.record_batch({"": pa.nulls(count)}), schema, part.partition, str(self._name))
                at += count
            first += part.rows

    def _fetched(self, one: _Range, columns: list[str], schema: pa.Schema) -> list[pa.RecordBatch]:
        """Return the rows of a range.

        Raises:
            SourceError: they cannot be read.
        """
        part, first, count = one
        with self._told(f"cannot read its rows from {first:,} on"):
            batches = self._tried(part, first, count, columns)
        made = [_with_keys(batch, schema, part.partition, str(self._name)) for batch in batches if batch.num_rows]
        self._row_bytes = max(1.0, sum(batch.nbytes for batch in made) / count)
        return made

    def _tried(self, part: _Part, first: int, count: int, columns: list[str]) -> list[pa.RecordBatch]:
        began = time.monotonic()
        renewed = False
        for number in range(1, _TRIES + 1):
            session = part.session
            try:
                return self._asked(session, first, count, columns)
            except Exception as e:
                if any(one in f"{getattr(e, 'code', '')} {type(e).__name__} {e}" for one in _GONE):
                    if renewed:
                        raise
                    self._renew(part, session)
                    renewed = True
                    continue
                if not worth_another(e) or number == _TRIES or time.monotonic() - began > _PATIENCE:
                    raise
            if self._pool.over.wait(0.5 * 2**number):
                break
        raise SourceError(f"source: {self._name}: the reading was closed")

    def _asked(self, session: Any, first: int, count: int, columns: list[str]) -> list[pa.RecordBatch]:
        batches: list[pa.RecordBatch] = []
        came = 0
        with session.open_arrow_reader(first, count, columns=columns) as reader:
            for batch in reader:
                batches.append(batch)
                came += batch.num_rows
                if self._pool.over.is_set():
                    break
        if came != count and not self._pool.over.is_set():
            raise _Short(f"{came:,} of {count:,} rows came, and the answer ended as if it were whole")
        return batches

    def _renew(self, part: _Part, lost: Any) -> None:
        """Open another session in place of one that has expired.

        Raises:
            SourceError: the table has changed since.
        """
        with self._lock:
            if part.session is not lost:
                return
            again = self._opened(part.partition)
            if (again.rows, again.modified) != (part.rows, part.modified):
                raise SourceError(
                    f"source: {self._name} was changed while it was read (it had {part.rows:,} rows, and has {again.rows:,}), "
                    "and its download session has expired: run the job again"
                )
            part.session = again.session

    def close(self) -> None:
        self._pool.close()


def _with_keys(batch: pa.RecordBatch, schema: pa.Schema, partition: Partition, table: str) -> pa.RecordBatch:
    """Return the columns of the schema, in its order: the batch's columns, and the partition columns.

    Raises:
        SourceError: a column came in another type than the table's.
    """
    values = dict(partition)
    columns = []
    for field in schema:
        if field.name in values:
            columns.append(pa.repeat(key_scalar(field, values[field.name]), batch.num_rows))
            continue
        column = batch.column(field.name)
        if column.type != field.type:
            try:
                column = column.cast(field.type)
            except pa.ArrowException as e:
                words = types.words_of(field)
                raise SourceError(f"source: {table}: column {field.name!r} is {words}, and {column.type} came: {e}") from None
        columns.append(column)
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def worth_another(error: BaseException) -> bool:
    """Whether a request that failed with this error may succeed if it is made again: the network or the server failed, and not
    the request.
    """
    status = getattr(error, "status_code", None)
    if isinstance(status, int):
        return status in (408, 429) or status >= 500
    named = {kind.__name__ for kind in type(error).__mro__}
    if named & {"BaseODPSError"}:
        return bool(named & {"InternalServerError", "ChecksumError", "StreamTruncatedException", "TimeoutError"})
    return isinstance(error, (OSError, EOFError, _Short, pa.ArrowInvalid)) or "HTTPError" in named


class _Pool:
    """Threads that do the work of one reading. They do not keep the process from ending, even if a server does not answer.

    Attributes:
        over: set when the pool is closed.
    """

    def __init__(self, threads: int) -> None:
        self.over = threading.Event()
        self._threads = threads
        self._started: list[threading.Thread] = []
        # reentrant, because a finalizer may close the pool within any of these methods
        self._lock = threading.RLock()
        self._work: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = queue.SimpleQueue()

    def submit(self, does: Callable[[], Any]) -> Future[Any]:
        """Have a thread call `does`, and return the future of its result.

        Raises:
            SourceError: the pool is closed.
        """
        future: Future[Any] = Future()
        with self._lock:
            if self.over.is_set():
                raise SourceError("source: the reading is closed")
            self._work.put((future, does))
            if len(self._started) < self._threads:
                self._started.append(
                    threading.Thread(target=_work, args=(self._work, self.over), name="akrunner-maxcompute", daemon=True)
                )
                self._started[-1].start()
        return future

    def close(self) -> None:
        with self._lock:
            self.over.set()
            for _ in range(len(self._started)):
                self._work.put(None)


def _work(
    work: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None],
    over: threading.Event,
) -> None:
    while (item := work.get()) is not None:
        future, does = item
        if over.is_set():
            future.cancel()
        if not future.set_running_or_notify_cancel():
            continue
        try:
            future.set_result(does())
        except BaseException as e:
            future.set_exception(e)
        del future, does, item
