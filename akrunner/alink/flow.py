"""Stream operators: rows flow through them once `StreamOperator.execute()` is called, until the sources end.

::

    source thread -> select -> script (a queue, its worker processes, a thread that reads the rows they write) -> sink
"""

from __future__ import annotations

import numbers
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from akrunner.alink.environment import current
from akrunner.alink.operator import AlgoOperator, BatchOperator
from akrunner.alink.params import schema_text
from akrunner.alink.tables import DUCKDBS, Fields, arrow_table, names_of, queried, renamed
from akrunner.checks import shown
from akrunner.errors import ConfigError, ReadError
from akrunner.foreign import underway

_TICK = 0.1


class StreamOperator(AlgoOperator):
    """A stream of rows, or an operator that makes one from other streams."""

    #: whether `_take` may block, because it passes rows on to a running job
    WAITS = False

    def _kind(self) -> type:
        return StreamOperator

    @staticmethod
    def execute(jobName: str | None = None) -> None:
        """Run every stream that was linked to a sink or printed, until the sources end.

        The first error of any operator stops all streams and is raised.

        Args:
            jobName: ignored.
        Raises:
            ConfigError: no stream was linked to a sink or printed.
        """
        environment = current()
        sinks, environment.streams = environment.streams, []
        if not sinks:
            raise ConfigError("StreamOperator.execute(): nothing was linked to a sink or printed")
        Flow(sinks).run()

    @staticmethod
    def fromDataframe(frame: Any, schemaStr: str | None = None) -> StreamOperator:
        """Return a stream of the rows of a pandas DataFrame.

        Args:
            frame: the DataFrame.
            schemaStr: names and types for its columns, in their order; None: those of the DataFrame.
        Returns:
            an operator that gives those rows, once streams are executed.
        """
        stream: StreamOperator = StreamOperator._classes["TableStreamOp"](frame, schemaStr)
        return stream

    @staticmethod
    def setParallelism(parallelism: int) -> None:
        """Set the number of tasks of later jobs, as `BatchOperator.setParallelism` does.

        Args:
            parallelism: number of workers and parameter servers together.
        """
        BatchOperator.setParallelism(parallelism)

    def print(self, refreshInterval: int = 0, maxLimit: int = 0) -> StreamOperator:
        """Print the rows as they arrive, once streams are executed.

        Args:
            refreshInterval: ignored.
            maxLimit: ignored.
        Returns:
            this operator.
        """
        current().streams.append(PrintStreamOp(self))
        return self

    def select(self, fields: Fields) -> StreamOperator:
        """Select columns and SQL expressions: `"a, b + 1 AS c"`, or a list of columns.

        Args:
            fields: SQL text, or a list of column names.
        Returns:
            an operator that gives those rows, once streams are executed.
        """
        return SqlStreamOp(f"SELECT {DUCKDBS.fields(fields)} FROM {{input}}").linkFrom(self)

    def where(self, predicate: str) -> StreamOperator:
        """Keep the rows for which an SQL expression is true.

        Args:
            predicate: the SQL expression.
        Returns:
            an operator that gives those rows, once streams are executed.
        """
        return SqlStreamOp(f"SELECT * FROM {{input}} WHERE {DUCKDBS.text(predicate)}").linkFrom(self)

    def filter(self, predicate: str) -> StreamOperator:
        """Do the same as `where`.

        Args:
            predicate: the SQL expression.
        Returns:
            an operator that gives those rows, once streams are executed.
        """
        return self.where(predicate)

    def as_(self, names: Fields) -> StreamOperator:
        """Rename the columns.

        Args:
            names: a name for each column, as text ("a, b") or a list.
        Returns:
            an operator that gives those rows, once streams are executed.
        """
        return AliasStreamOp(names_of(names)).linkFrom(self)

    def alias(self, names: Fields) -> StreamOperator:
        """Do the same as `as_`.

        Args:
            names: a name for each column, as text ("a, b") or a list.
        Returns:
            an operator that gives those rows, once streams are executed.
        """
        return self.as_(names)

    def unionAll(self, *others: StreamOperator) -> StreamOperator:
        """Merge the rows of several streams as they arrive; columns are matched by position.

        Args:
            *others: the other streams.
        Returns:
            an operator that gives those rows, once streams are executed.
        """
        return UnionAllStreamOp().linkFrom(self, *others)

    def sample(self, ratio: float) -> StreamOperator:
        """Draw each row with the same probability.

        Args:
            ratio: the probability, 0 to 1.
        Returns:
            an operator that gives those rows, once streams are executed.
        Raises:
            ConfigError: an argument is wrong.
        """
        if not isinstance(ratio, numbers.Real) or not 0 <= ratio <= 1:
            raise ConfigError(f"sample: ratio={shown(ratio)}: give 0 to 1")
        return self.where(f"random() < {ratio}")

    # -- while it flows

    def _start(self, flow: Flow) -> None:
        """Prepare to take rows; called before the first row."""

    def _take(self, flow: Flow, batch: pa.RecordBatch) -> None:
        """Take a batch of rows of an input, and give the result to the operators linked to this one."""
        relation = self._compute([flow.relation(batch)], False)
        for out in arrow_table(relation).to_batches():
            flow.give(self, out)

    def _end(self, flow: Flow) -> None:
        """Called when every input has ended; by default, tells the next operators so."""
        flow.end(self)

    def _close(self) -> None:
        """Release resources; called when the flow is over, whether it succeeded or failed."""


class Flow:
    """One execution of streams. Args: sinks: the operators at their ends, to which rows flow."""

    def __init__(self, sinks: Sequence[StreamOperator]) -> None:
        self._takers: dict[StreamOperator, list[StreamOperator]] = {}
        self._open: dict[StreamOperator, int] = {}
        self._order: list[StreamOperator] = []
        self._threads: list[threading.Thread] = []
        self._lock = threading.RLock()
        #: of each thread: the rows that it passes on when it has let go of the lock
        self._held = threading.local()
        self.stopped = threading.Event()
        self.error: BaseException | None = None
        for sink in sinks:
            self._add(sink)

    def _add(self, operator: StreamOperator) -> None:
        if operator in self._open:
            return
        operator._check_linked()
        operator._check_required()
        self._open[operator] = len(operator._inputs)
        for source in operator._inputs:
            self._add(source)
            self._takers.setdefault(source, []).append(operator)
        self._order.append(operator)

    def run(self) -> None:
        """Run until every source has ended or an operator has failed. Raises: the first error of any operator."""
        try:
            # sinks first, so that operators which give rows find the next ones ready
            for operator in reversed(self._order):
                operator._start(self)
            while any(thread.is_alive() for thread in list(self._threads)):
                for thread in list(self._threads):
                    thread.join(_TICK)
        except BaseException as e:
            self.fail(e)
            raise
        finally:
            self.stopped.set()
            for thread in list(self._threads):
                thread.join(30)
            for operator in self._order:
                operator._close()
        if self.error is not None:
            raise self.error

    def thread(self, name: str, target: Callable[[], None]) -> None:
        """Run `target` in a thread of the flow. An exception it raises becomes the flow's error; `Stopped` just ends it."""

        def run() -> None:
            try:
                target()
            except Stopped:
                pass
            except BaseException as e:
                self.fail(e)

        thread = threading.Thread(target=run, name=f"akrunner-{name}", daemon=True)
        self._threads.append(thread)
        thread.start()

    def fail(self, error: BaseException) -> None:
        if self.error is None:
            self.error = error
        self.stopped.set()

    def relation(self, batch: pa.RecordBatch) -> Any:
        """Return a DuckDB relation over a batch, for a query."""
        return current().connection.from_arrow(pa.Table.from_batches([batch]))

    def give(self, operator: StreamOperator, batch: pa.RecordBatch) -> None:
        """Pass rows that an operator gives to every operator linked to it; those that may not block take them one at a time.

        One at a time, because all operators share DuckDB's connection. An operator that may block takes its rows once this
        thread has let go of the lock: the thread that makes room for them may need it. Raises: Stopped: the flow was stopped.
        """
        if self.stopped.is_set():
            raise Stopped
        held: list[tuple[StreamOperator, pa.RecordBatch]] | None = getattr(self._held, "rows", None)
        if held is not None:
            self._give(operator, batch, held)
            return
        held = self._held.rows = []
        try:
            self._give(operator, batch, held)
        finally:
            self._held.rows = None
        for taker, rows in held:
            taker._take(self, rows)

    def _give(self, operator: StreamOperator, batch: pa.RecordBatch, held: list[tuple[StreamOperator, pa.RecordBatch]]) -> None:
        """Pass rows on; note in `held` those for operators that may block."""
        for taker in self._takers.get(operator, ()):
            if taker.WAITS:
                held.append((taker, batch))
                continue
            with self._lock:
                taker._take(self, batch)

    def end(self, operator: StreamOperator) -> None:
        for taker in self._takers.get(operator, ()):
            with self._lock:
                self._open[taker] -= 1
                last = self._open[taker] == 0
            if last:
                taker._end(self)


class Stopped(Exception):
    """Raised in the threads of a flow when the flow was stopped."""


class SqlStreamOp(StreamOperator):
    """Runs a query over each batch."""

    def __init__(self, query: str) -> None:
        super().__init__()
        self._query = query

    def _compute(self, inputs: list[Any], dry: bool) -> Any:
        return queried(self._query, input=inputs[0])


class AliasStreamOp(StreamOperator):
    """Renames the columns."""

    def __init__(self, names: list[str]) -> None:
        super().__init__()
        self._names = names

    def _compute(self, inputs: list[Any], dry: bool) -> Any:
        return renamed(inputs[0], self._names)


class UnionAllStreamOp(StreamOperator):
    """Gives the rows of all inputs; columns are matched by position."""

    INPUTS = (1, None)

    def _compute(self, inputs: list[Any], dry: bool) -> Any:
        for other in inputs[1:]:
            if len(other.columns) != len(inputs[0].columns):
                raise ConfigError(f"unionAll: {len(inputs[0].columns)} columns and {len(other.columns)} columns")
        return inputs[0]

    def _start(self, flow: Flow) -> None:
        # rows of other sources may flow already, and all operators share DuckDB's connection
        with flow._lock:
            self._wanted = self._schema()

    def _take(self, flow: Flow, batch: pa.RecordBatch) -> None:
        named = batch.rename_columns(self._wanted.names)
        with underway(ReadError, f"unionAll: rows do not fit the columns of the first stream ({schema_text(self._wanted)})"):
            out = named.cast(self._wanted)
        flow.give(self, out)


class PrintStreamOp(StreamOperator):
    """Prints a line with the column names, then a line for each row."""

    def __init__(self, operator: StreamOperator) -> None:
        super().__init__()
        self.linkFrom(operator)

    def _compute(self, inputs: list[Any], dry: bool) -> Any:
        return inputs[0]

    def _start(self, flow: Flow) -> None:
        print("|".join(self._inputs[0].getColNames()), flush=True)

    def _take(self, flow: Flow, batch: pa.RecordBatch) -> None:
        lines = ("|".join("null" if v is None else str(v) for v in row.values()) for row in batch.to_pylist())
        sys.stdout.write("".join(line + "\n" for line in lines))
        sys.stdout.flush()
