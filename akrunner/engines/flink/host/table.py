"""A table of the user's own PyFlink program, as a source of rows."""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from akrunner import leftovers
from akrunner.engines.flink.host.client import PACKAGE, Submission, write_package
from akrunner.engines.flink.program.submit import NOT_TAKEN_OVER, SUSPENDED, TAKE_OVER_SECONDS, Order, States, words
from akrunner.engines.flink.threads import words_of
from akrunner.errors import AkrunnerError, ClusterError, ConfigError
from akrunner.io.pairing import Pairing
from akrunner.io.table import TableSource
from akrunner.spec import JobSpec, Mode

#: seconds between two questions about a job: of whose end something is expected, since somebody has asked for it a short time ago; that has been
#: submitted a short time ago; that merely runs. Each is work for the JobManager, and has Java make a client of its own
_EXPECTED_POLL_SECONDS, _BEGINS_POLL_SECONDS, _RUNS_POLL_SECONDS = 0.2, 0.5, 2.0
_SHORT_SECONDS = 15.0


@dataclass(frozen=True)
class FlinkTable(TableSource):
    """A PyFlink Table whose rows Flink itself brings to the tasks.

    Attributes:
        table: the PyFlink Table.
        output: the Arrow types of the Table that the tasks' rows become; None if these rows come to the host.
        pairs: says which columns of the input rows are kept and put beside the answers; None for none.
    """

    table: Any = None
    output: pa.Schema | None = None
    pairs: Pairing | None = None

    @classmethod
    def of(cls, source: Any) -> FlinkTable:
        """Return the table as a source.

        Args:
            source: a PyFlink Table or DataStream.
        Raises:
            ConfigError: it is neither, or has types that Arrow does not have.
        """
        from akrunner.engines.flink.program import bridge

        table = bridge.table_of(source)
        return cls(bridge.arrow_schema(table), _not_here, "the PyFlink table", replayable=True, elsewhere=True, table=table)

    def check(self, mode: Mode) -> None:
        """Check that a job of this mode can run in the table's environment.

        Raises:
            ConfigError: the environment's settings do not allow it.
        """
        from akrunner.engines.flink.program import bridge

        bridge.check(self.table, mode)

    @property
    def master(self) -> str:
        """The cluster of its environment, as for `FlinkEngine(master=)`."""
        from akrunner.engines.flink.program import bridge

        return bridge.master(self.table)

    def operators_compile(self) -> bool:
        """Whether its Flink accepts the Java operators; warns if it does not."""
        from akrunner.engines.flink.program import bridge

        return bridge.operators_compile()

    @property
    def has_checkpoints(self) -> bool:
        """Whether Flink takes checkpoints in its environment."""
        from akrunner.engines.flink.program import bridge

        return bridge.has_checkpoints(self.table)

    def slots(self, job: JobSpec) -> int:
        """Return the number of slots that its Flink job takes."""
        from akrunner.engines.flink.program import bridge

        return bridge.slots(self.table, job)

    def submitter(self, job: JobSpec, options: Mapping[str, str], in_java: bool) -> ProgramSubmitter:
        return ProgramSubmitter(self.table, job, options, in_java)


def _not_here() -> Iterator[pa.RecordBatch]:
    raise ConfigError("the rows of a PyFlink table do not come through this process")


@functools.cache
def _package() -> str:
    """Return the path of akrunner as a zip, which stays until this process ends: an environment sends it with every later
    job of the program, too."""
    folder = leftovers.temp_folder("akrunner-flink-")
    atexit.register(leftovers.drop, folder)
    path = os.path.join(folder, PACKAGE)
    write_package(path)
    return path


@contextlib.contextmanager
def _explained() -> Iterator[None]:
    """Turn Java's exceptions into ConfigErrors, in words."""
    try:
        yield
    except AkrunnerError:
        raise
    except Exception as e:
        raise ConfigError(f"source: Flink cannot run it: {words(e)}") from e


def _watched(job: Submission, running: Any, hurried: threading.Event) -> threading.Thread:
    """Start a thread that notes what becomes of a job, and return it. Args: running: a `bridge.Running`; hurried: set when the job's end is expected."""
    job.id = running.id
    watching = threading.Thread(target=_watch, args=(job, running, hurried), name="akrunner-flink", daemon=True)
    watching.start()
    return watching


def _watch(job: Submission, running: Any, hurried: threading.Event) -> None:
    pause, since = _BEGINS_POLL_SECONDS, time.monotonic()
    try:
        states = States(running.state)
        ended = False
        while not ended:
            if hurried.wait(pause if time.monotonic() < since + _SHORT_SECONDS else _RUNS_POLL_SECONDS):
                hurried.clear()
                pause, since = _EXPECTED_POLL_SECONDS, time.monotonic()
            ended = states.ended()
            job.state = states.state or job.state
        if job.state == SUSPENDED:
            job.failed = NOT_TAKEN_OVER.format(TAKE_OVER_SECONDS)
        if job.state == "FAILED":
            running.result()
    except BaseException as e:
        # words of Java, a cluster that does not answer any more, or a fault of akrunner
        job.fault = not (isinstance(e, ClusterError) or type(e).__module__.startswith(("py4j", "pyflink")))
        job.failed = words_of("flink", e) if job.fault else words(e)
    finally:
        job.ended.set()


class ProgramSubmitter:
    """Submits one job from within the user's own program; see `akrunner.engines.flink.host.client.Submitter`.

    Args:
        in_java: as for `akrunner.engines.flink.program.bridge.submit`.
    """

    def __init__(self, table: Any, job: JobSpec, options: Mapping[str, str], in_java: bool) -> None:
        self._table = table
        self._job = job
        self._options = options
        self._in_java = in_java
        self._running: Any = None
        self._watching: threading.Thread | None = None
        self._hurried = threading.Event()

    def submit(self, order: Order) -> Submission:
        """Submit the job.

        Raises:
            ConfigError: Flink refuses it.
        """
        from akrunner.engines.flink.program import bridge

        job = Submission()
        with _explained():
            self._running = bridge.submit(self._table, self._job, _package(), order, self._options, self._in_java)
        self._watching = _watched(job, self._running, self._hurried)
        return job

    def cancel(self, job: Submission) -> None:
        if not job.ended.is_set():
            try:
                self._running.cancel()
            except BaseException:
                pass  # it has ended, or its cluster is gone; the watching thread reports that
            self._hurried.set()

    def hurry(self, job: Submission) -> None:
        """Learn of the job's end without delay: it is about to end, or may have ended."""
        self._hurried.set()

    def close(self) -> None:
        from akrunner.engines.flink.program import planner

        if self._watching is not None:
            self._watching.join(10.0)
            self._running.close()
        planner.be_ready(self._table)  # for the program's next query


class ProgramGraph:
    """Builds subtasks into the user's program, which runs them when it executes its table; see
    `akrunner.engines.flink.host.client.Submitter`.

    Args:
        schema: the schema of the table that the tasks' rows become.
        in_java: as for `akrunner.engines.flink.program.bridge.submit`.
    Attributes:
        table: the PyFlink Table of what the tasks write; None until `submit` has returned.
        output: the Arrow types of that Table; None until then.
    """

    def __init__(self, table: Any, job: JobSpec, schema: pa.Schema, options: Mapping[str, str], in_java: bool) -> None:
        self._source = table
        self._job = job
        self._schema = schema
        self._options = options
        self._in_java = in_java
        self.table: Any = None
        self.output: pa.Schema | None = None
        self._submission = Submission()
        self._watching: threading.Thread | None = None
        self._hurried = threading.Event()

    def submit(self, order: Order) -> Submission:
        from akrunner.engines.flink.program import bridge

        with _explained():
            self.table, self.output = bridge.attach(
                self._source, self._job, _package(), order, self._options, self._in_java, self._schema
            )
        self._submission.state = "waiting to be executed by its program"
        return self._submission

    def executed(self, result: Any) -> None:
        """Note that the program has executed the table, and watch the Flink job.

        Args:
            result: the TableResult, or JobClient, that PyFlink returned.
        Raises:
            ConfigError: it names no Flink job.
        """
        from akrunner.engines.flink.program import bridge

        running = bridge.running(result, self._source)
        if self._watching is None:
            self._watching = _watched(self._submission, running, self._hurried)

    def cancel(self, job: Submission) -> None:
        """Do nothing: the program itself cancels its job."""

    def hurry(self, job: Submission) -> None:
        """Learn of the job's end without delay: it is about to end, or may have ended."""
        self._hurried.set()

    def close(self) -> None:
        pass
