"""Stream operators: rows flow through them once `StreamOperator.execute()` is called, until the sources end.

::

    source thread -> select -> script (a queue, its worker processes, a thread that takes what they write) -> sink
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from akrunner.alink.environment import current
from akrunner.alink.operator import AlgoOperator, BatchOperator
from akrunner.alink.tables import DUCKDBS, Fields, arrow_table, names_of, queried, renamed
from akrunner.errors import ConfigError

_TICK = 0.1


class StreamOperator(AlgoOperator):
    """A table that flows."""

    #: whether taking rows may wait for somebody
    WAITS = False

    def _kind(self) -> type:
        return StreamOperator

    @staticmethod
    def execute(jobName: str | None = None) -> None:
        """Run everything that was linked to a sink or printed, until the sources end. The first error of any operator is raised; everything is stopped then.

        Args:
            jobName: ignored.
        Raises:
            ConfigError: nothing was linked to a sink, or printed.
        """
        environment = current()
        sinks, environment.streams = environment.streams, []
        if not sinks:
            raise ConfigError("StreamOperator.execute(): nothing was linked to a sink or printed")
        Flow(sinks).run()

    @staticmethod
    def fromDataframe(frame: Any, schemaStr: str | None = None) -> StreamOperator:
        """The rows of a pandas DataFrame.

        Args:
            frame: its rows.
            schemaStr: names and types of its columns, in their order; None: its own.
        Returns:
            an operator of those rows, computed when somebody looks.
        """
        stream: StreamOperator = StreamOperator._classes["TableStreamOp"](frame, schemaStr)
        return stream

    @staticmethod
    def setParallelism(parallelism: int) -> None:
        """As `BatchOperator.setParallelism`.

        Args:
            parallelism: how many.
        """
        BatchOperator.setParallelism(parallelism)

    def print(self, refreshInterval: int = 0, maxLimit: int = 0) -> StreamOperator:
        """Print rows as they come, once something is executed.

        Args:
            refreshInterval: ignored.
            maxLimit: ignored.
        Returns:
            this operator.
        """
        current().streams.append(PrintStreamOp(self))
        return self

    def select(self, fields: Fields) -> StreamOperator:
        """Columns and expressions, SQL: `"a, b + 1 AS c"`, or a list of columns.

        Args:
            fields: text, or a list.
        Returns:
            an operator of those rows, computed when somebody looks.
        """
        return SqlStreamOp(f"SELECT {DUCKDBS.fields(fields)} FROM {{input}}").linkFrom(self)

    def where(self, predicate: str) -> StreamOperator:
        """Rows for which an SQL expression is true.

        Args:
            predicate: the expression.
        Returns:
            an operator of those rows, computed when somebody looks.
        """
        return SqlStreamOp(f"SELECT * FROM {{input}} WHERE {DUCKDBS.text(predicate)}").linkFrom(self)

    def filter(self, predicate: str) -> StreamOperator:
        """As `where`.

        Args:
            predicate: the expression.
        Returns:
            an operator of those rows, computed when somebody looks.
        """
        return self.where(predicate)

    def as_(self, names: Fields) -> StreamOperator:
        """The same columns under other names.

        Args:
            names: as many, as text or a list.
        Returns:
            an operator of those rows, computed when somebody looks.
        """
        return AliasStreamOp(names_of(names)).linkFrom(self)

    def alias(self, names: Fields) -> StreamOperator:
        """As `as_`.

        Args:
            names: as many, as text or a list.
        Returns:
            an operator of those rows, computed when somebody looks.
        """
        return self.as_(names)

    def unionAll(self, *others: StreamOperator) -> StreamOperator:
        """The rows of all, as they come; columns by their place.

        Args:
            *others: the other streams.
        Returns:
            an operator of those rows, computed when somebody looks.
        """
        return UnionAllStreamOp().linkFrom(self, *others)

    def sample(self, ratio: float) -> StreamOperator:
        """Each row with this probability.

        Args:
            ratio: 0 to 1.
        Returns:
            an operator of those rows, computed when somebody looks.
        Raises:
            ConfigError: an argument is wrong.
        """
        if not 0 <= ratio <= 1:
            raise ConfigError(f"sample: ratio={ratio}: give 0 to 1")
        return self.where(f"random() < {ratio}")

    # -- while it flows

    def _start(self, flow: Flow) -> None:
        """Called before the first row."""

    def _take(self, flow: Flow, batch: pa.RecordBatch) -> None:
        """Rows of an input."""
        relation = self._compute([flow.relation(batch)], False)
        for out in arrow_table(relation).to_batches():
            flow.give(self, out)

    def _end(self, flow: Flow) -> None:
        """Every input has ended."""
        flow.end(self)

    def _close(self) -> None:
        """The flow is over, well or not."""


class Flow:
    """One execution. Args: sinks: what is to get rows."""

    def __init__(self, sinks: Sequence[StreamOperator]) -> None:
        self._takers: dict[StreamOperator, list[StreamOperator]] = {}
        self._open: dict[StreamOperator, int] = {}
        self._order: list[StreamOperator] = []
        self._threads: list[threading.Thread] = []
        self._lock = threading.RLock()
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
        """Until every source has ended, or something failed."""
        try:
            # sinks first, so that whoever gives rows finds takers
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
        """Run something until it ends or the flow is stopped; what it raises is the flow's error."""

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
        """For a query over a batch."""
        return current().connection.from_arrow(pa.Table.from_batches([batch]))

    def give(self, operator: StreamOperator, batch: pa.RecordBatch) -> None:
        """Rows of an operator, to all that take them. One at a time: DuckDB's connection is shared."""
        if self.stopped.is_set():
            raise Stopped
        for taker in self._takers.get(operator, ()):
            if taker.WAITS:
                taker._take(self, batch)  # may wait, so others must not wait for it
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
    """The flow was stopped."""


class SqlStreamOp(StreamOperator):
    """A query over each batch."""

    def __init__(self, query: str) -> None:
        super().__init__()
        self._query = query

    def _compute(self, inputs: list[Any], dry: bool) -> Any:
        return queried(self._query, input=inputs[0])


class AliasStreamOp(StreamOperator):
    """Other names."""

    def __init__(self, names: list[str]) -> None:
        super().__init__()
        self._names = names

    def _compute(self, inputs: list[Any], dry: bool) -> Any:
        return renamed(inputs[0], self._names)


class UnionAllStreamOp(StreamOperator):
    """The rows of all inputs."""

    INPUTS = (1, None)

    def _compute(self, inputs: list[Any], dry: bool) -> Any:
        return inputs[0]

    def _take(self, flow: Flow, batch: pa.RecordBatch) -> None:
        flow.give(self, batch.cast(self._inputs[0]._schema()) if batch.schema.names else batch)


class PrintStreamOp(StreamOperator):
    """Prints a line of names, then a line a row."""

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
