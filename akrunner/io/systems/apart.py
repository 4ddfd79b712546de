"""Opens a system's file in a process of its own, because another library of this process may have the file open.

A process loses all its locks on a file when any of its libraries closes that file (POSIX), and SQLite relies on those locks. A
program's own `sqlite3` and a driver that brings its own SQLite would write at the same time, and lose rows or break the file.

::

    this process                         the other one (`serve`)
    look | read | check | write ----->   opens the table, or the output
                                <-----   a schema; for `read` also rows, until an empty batch; {"error": ...} if it fails
    append, ..., ready, commit  ----->   `write`; each is answered by {}
    closes the pipe                      it rolls back what was not committed, and ends

A message is a line of JSON, which says how many bytes (`bytes`) follow it: a stream of Arrow.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import IO, Any

import pyarrow as pa

from akrunner import errors, leftovers
from akrunner.errors import AkrunnerError, SourceError
from akrunner.io.commits import last_step
from akrunner.io.limits import waited
from akrunner.io.sql import heard
from akrunner.io.systems.base import TableSink, Transaction, Url, made_meanwhile
from akrunner.io.systems.database_file import path_of
from akrunner.io.table import TableSource

#: modules that contain a SQLite
_LIBRARIES = ("_sqlite3", "apsw", "pysqlite2", "pysqlite3", "sqlcipher3")
#: the driver, and what it imports, import pandas and polars where they are installed, which takes longer than all else; rows come as Arrow's
_SERVER = """
import json, sys
sys.path[:] = json.loads(sys.stdin.buffer.readline())

class WithoutFrames:
    @staticmethod
    def find_spec(name, *_):
        if name in ("pandas", "polars"):
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, WithoutFrames)
from akrunner.io.systems import apart
apart.serve(sys.stdin.buffer, sys.stdout.buffer)
"""
_POLITE = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
#: seconds that a rollback may take; if the process is killed, the next one that opens the file rolls back
_END_SECONDS = 5.0


def needed() -> bool:
    """Whether another library of this process may have a SQLite file open."""
    return any(name in sys.modules for name in _LIBRARIES)


class Apart:
    """The tables of one system, opened in another process.

    Args:
        module: the name of the system's module in `akrunner.io.systems`.
    """

    def __init__(self, module: str) -> None:
        self._module = module

    def open(self, url: str, query: str | None, columns: Sequence[str] | None) -> TableSource:
        """Return a table, as `System.open` does."""
        asked = {"url": url, "query": query, "columns": None if columns is None else list(columns)}
        with self._server({**asked, "do": "look"}) as server:
            schema = server.hear().schema
        shown = Url.parse(url).shown
        reading: list[_Server] = []

        def batches() -> Iterator[pa.RecordBatch]:
            with self._server({**asked, "do": "read"}) as server:
                reading.append(server)
                try:
                    if server.hear().schema != schema:
                        raise SourceError(f"source: cannot read {shown}: somebody has written values of another type meanwhile")
                    while (rows := server.hear()).num_rows:
                        yield from rows.to_batches()
                finally:
                    reading.remove(server)

        def stop() -> None:
            for server in list(reading):
                server.kill()

        return TableSource(schema, batches, shown, replayable=True, stop=stop)

    def output(self, url: str, schema: pa.Schema, overwrite: bool) -> TableSink:
        """Return a sink, as `System.output` does."""
        asked: dict[str, Any] = {"url": url, "overwrite": overwrite}
        with self._server({**asked, "do": "check"}, schema.empty_table()) as server:
            is_new: bool = server.hear()["is_new"][0].as_py()
        asked.update(do="write", must_be_new=is_new)
        return TableSink(
            Url.parse(url).shown,
            schema,
            lambda: _Writing(self._server(asked, schema.empty_table()), Url.parse(url).shown),
            path_of(Url.parse(url), self._module),
            is_new,
        )

    def _server(self, asked: dict[str, Any], rows: pa.Table | None = None) -> _Server:
        server = _Server()
        try:
            server.say({**asked, "module": self._module}, rows)
        except BaseException:
            server.close()
            raise
        return server


class _Writing(Transaction):
    """A transaction in the other process."""

    def __init__(self, server: _Server, shown: str) -> None:
        self._server, self._shown = server, shown
        try:
            server.hear()
        except BaseException:
            server.close()
            raise

    def append(self, rows: pa.Table) -> None:
        self._server.say({"do": "append"}, rows)
        self._server.hear()

    def ready(self) -> None:
        self._server.say({"do": "ready"})
        self._server.hear()

    def commit(self) -> None:
        self.ready()
        last_step(self._shown, self._ask, elsewhere=True)

    def _ask(self) -> None:
        self._server.say({"do": "commit"})
        self._server.hear()

    def close(self) -> None:
        self._server.close()


class _Server:
    """The other process, as this one sees it; `close` ends it.

    Raises:
        OSError: it cannot be started.
    """

    def __init__(self) -> None:
        # only this process handles Ctrl-C: the signals are blocked in the other one from its first instruction
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _POLITE)
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-c", _SERVER],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        leftovers.watch(self._process.pid)
        assert self._process.stdin is not None and self._process.stdout is not None
        self._to, self._from = self._process.stdin, self._process.stdout
        # if the process has already ended, `hear` reports it
        with contextlib.suppress(BrokenPipeError):
            self._to.write(json.dumps(sys.path).encode() + b"\n")

    def __enter__(self) -> _Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        self.close()

    def say(self, told: dict[str, Any], rows: pa.Table | None = None) -> None:
        """Send a message.

        Args:
            rows: the rows to send with it.
        """
        with contextlib.suppress(BrokenPipeError):
            heard(lambda: _put(self._to, told, rows), self.kill)

    def hear(self) -> pa.Table:
        """Return the rows of the next answer, or a table without columns if the answer has none.

        Raises:
            AkrunnerError: the error that the other process reports.
            RuntimeError: the other process has ended, or reports an error that is not one of akrunner's.
        """
        told, rows = waited(lambda: _got(self._from), self.kill, "the database")
        if told is None:
            raise RuntimeError("the process that has the database open has ended")
        if "error" in told:
            kind = getattr(errors, told["kind"], None)
            raise (kind or RuntimeError)(told["error"])
        return rows

    def kill(self) -> None:
        """Kill the process at once; a thread that waits for its answer gets an error."""
        self._process.kill()

    def close(self) -> None:
        """End the process, which rolls back what was not committed."""
        with contextlib.suppress(BrokenPipeError):
            self._to.close()
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._from.close()
        leftovers.unwatch(self._process.pid)


def _put(stream: IO[bytes], told: dict[str, Any], rows: pa.Table | None = None) -> None:
    sink = pa.BufferOutputStream()
    if rows is not None:
        with pa.ipc.new_stream(sink, rows.schema) as writer:
            writer.write_table(rows)
    data = sink.getvalue()
    stream.write(json.dumps({**told, "bytes": data.size}).encode() + b"\n")
    stream.write(data)
    stream.flush()


def _got(stream: IO[bytes]) -> tuple[dict[str, Any] | None, pa.Table]:
    """Return the next message and its rows; (None, no rows) if the process at the other end is gone."""
    nothing = pa.table({})
    line = stream.readline()
    if not line.endswith(b"\n"):
        return None, nothing
    told: dict[str, Any] = json.loads(line)
    data = stream.read(told["bytes"])
    if len(data) < told["bytes"]:
        return None, nothing
    if not data:
        return told, nothing
    with pa.ipc.open_stream(data) as reader:
        return told, reader.read_all()


def serve(asks: IO[bytes], answers: IO[bytes]) -> None:
    """Serve requests in the other process, until the pipe is closed.

    Args:
        asks: the pipe with requests.
        answers: the pipe for the answers.
    """
    # keep what a library prints out of the answers
    answers = os.fdopen(os.dup(answers.fileno()), "wb")
    os.dup2(2, 1)
    try:
        told, rows = _got(asks)
        if told is not None:
            _serve(told, rows, asks, lambda rows: _put(answers, {}, rows))
    except BrokenPipeError:
        pass
    except Exception as e:
        with contextlib.suppress(BrokenPipeError):
            _put(answers, {"error": str(e), "kind": type(e).__name__ if isinstance(e, AkrunnerError) else ""})
    # leave without flushing, as the pipe may have no reader any more
    os._exit(0)


def _serve(told: dict[str, Any], rows: pa.Table, asks: IO[bytes], answer: Callable[[pa.Table | None], None]) -> None:
    system = importlib.import_module(f"akrunner.io.systems.{told['module']}").SYSTEM
    if told["do"] in ("look", "read"):
        table = system.open(told["url"], told["query"], told["columns"])
        answer(table.schema.empty_table())
        if told["do"] == "read":
            for batch in table.open():
                if batch.num_rows:
                    answer(pa.Table.from_batches([batch]))
            answer(table.schema.empty_table())
        return
    sink = system.output(told["url"], rows.schema, told["overwrite"])
    if told["do"] == "check":
        answer(pa.table({"is_new": [sink.is_new]}))
        return
    if told["must_be_new"] and not sink.is_new:
        raise made_meanwhile(sink.path)
    transaction = sink.begin()
    try:
        answer(None)
        while (said := _got(asks))[0] is not None:
            if said[0]["do"] == "append":
                transaction.append(said[1])
            elif said[0]["do"] == "ready":
                transaction.ready()
            else:
                transaction.commit()
            answer(None)
    finally:
        transaction.close()
