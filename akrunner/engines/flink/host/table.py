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
from akrunner.engines.flink.host.client import Submission, write_package
from akrunner.engines.flink.threads import trace_of
from akrunner.errors import AkrunnerError, ConfigError
from akrunner.io.pairing import Pairing
from akrunner.io.table import TableSource
from akrunner.spec import JobSpec

_POLL_SECONDS = 0.2
_ENDED = ("FINISHED", "FAILED", "CANCELED")


@dataclass(frozen=True)
class FlinkTable(TableSource):
    """A PyFlink Table whose rows Flink brings to the tasks itself.

    Attributes: table: the Table; output: Arrow types of the Table that what the tasks write becomes, None when it comes here; pairs: what
    is kept of the rows beside it.
    """

    table: Any = None
    output: pa.Schema | None = None
    pairs: Pairing | None = None

    @classmethod
    def of(cls, source: Any) -> FlinkTable:
        """Args: source: a PyFlink Table or DataStream. Raises: ConfigError: neither, or of types Arrow does not have."""
        from akrunner.engines.flink.program import bridge

        table = bridge.table_of(source)
        return cls(bridge.arrow_schema(table), _not_here, "the PyFlink table", replayable=True, elsewhere=True, table=table)

    def check(self, mode: str) -> None:
        """Raises: ConfigError: its environment is set up so that a job of the mode cannot run in it."""
        from akrunner.engines.flink.program import bridge

        bridge.check(self.table, mode)

    @property
    def master(self) -> str:
        """Of its environment, as `FlinkEngine(master=)`."""
        from akrunner.engines.flink.program import bridge

        return bridge.master(self.table)

    def operators_compile(self) -> bool:
        """Whether its Flink takes the Java operators; warns when it does not."""
        from akrunner.engines.flink.program import bridge

        return bridge.operators_compile()

    @property
    def has_checkpoints(self) -> bool:
        """Whether its environment makes Flink take checkpoints."""
        from akrunner.engines.flink.program import bridge

        return bridge.has_checkpoints(self.table)

    def slots(self, job: JobSpec) -> int:
        """That its Flink job takes."""
        from akrunner.engines.flink.program import bridge

        return bridge.slots(self.table, job)

    def submitter(self, job: JobSpec, options: Mapping[str, str], in_java: bool) -> ProgramSubmitter:
        return ProgramSubmitter(self.table, job, options, in_java)


def _not_here() -> Iterator[pa.RecordBatch]:
    raise ConfigError("the rows of a PyFlink table do not come through this process")


@functools.cache
def _package() -> str:
    """akrunner as a zip, for as long as this process lives: an environment sends it with every later job of the program's too."""
    folder = leftovers.temp_folder("akrunner-flink-")
    atexit.register(leftovers.drop, folder)
    path = os.path.join(folder, "akrunner.zip")
    write_package(path)
    return path


@contextlib.contextmanager
def _explained() -> Iterator[None]:
    """Java's exceptions in words, as ConfigErrors."""
    try:
        yield
    except AkrunnerError:
        raise
    except Exception as e:
        from akrunner.engines.flink.program.submit import words

        raise ConfigError(f"source: Flink cannot run it: {words(e)}") from e


class ProgramSubmitter:
    """Submits one job, from within the user's own program; see `akrunner.engines.flink.host.client.Submitter`. Args: in_java: as for
    `akrunner.engines.flink.program.bridge.submit`."""

    def __init__(self, table: Any, job: JobSpec, options: Mapping[str, str], in_java: bool) -> None:
        self._table = table
        self._job = job
        self._options = options
        self._in_java = in_java
        self._running: Any = None
        self._watching: threading.Thread | None = None

    def submit(self, order: Mapping[str, Any]) -> Submission:
        """Raises: ConfigError: what Flink does not like about it."""
        from akrunner.engines.flink.program import bridge

        job = Submission()
        with _explained():
            self._running = bridge.submit(self._table, self._job, _package(), order, self._options, self._in_java)
        job.id = self._running.id
        self._watching = threading.Thread(target=self._watch, args=(job,), name="akrunner-flink", daemon=True)
        self._watching.start()
        return job

    def _watch(self, job: Submission) -> None:
        from akrunner.engines.flink.program.submit import words

        try:
            while job.state not in _ENDED:
                time.sleep(_POLL_SECONDS)
                job.state = self._running.state()
            if job.state == "FAILED":
                self._running.result()
        except BaseException as e:
            # Java's own words, or a fault of ours
            java = type(e).__module__.startswith(("py4j", "pyflink"))
            job.failed = words(e) if java else f"akrunner's own thread 'flink' failed:\n{trace_of(e)}"
        finally:
            job.ended.set()

    def cancel(self, job: Submission) -> None:
        if not job.ended.is_set():
            try:
                self._running.cancel()
            except BaseException:
                pass  # it has ended, or its cluster has gone; watching tells

    def close(self) -> None:
        if self._watching is not None:
            self._watching.join(10.0)
            self._running.close()


class ProgramGraph:
    """Builds places into the user's program, which runs them when it likes; see `akrunner.engines.flink.host.client.Submitter`.

    Args: schema: of what the tasks' rows become; in_java: as for `akrunner.engines.flink.program.bridge.submit`.
    Attributes: table: the PyFlink Table of what the tasks write; output: its Arrow types; both once `submit` has returned.
    """

    def __init__(self, table: Any, job: JobSpec, schema: pa.Schema, options: Mapping[str, str], in_java: bool) -> None:
        self._source = table
        self._job = job
        self._schema = schema
        self._options = options
        self._in_java = in_java
        self.table: Any = None
        self.output: pa.Schema | None = None

    def submit(self, order: Mapping[str, Any]) -> Submission:
        from akrunner.engines.flink.program import bridge

        with _explained():
            self.table, self.output = bridge.attach(
                self._source, self._job, _package(), order, self._options, self._in_java, self._schema
            )
        job = Submission()
        job.state = "waiting to be executed by its program"
        return job

    def cancel(self, job: Submission) -> None:
        """The program's to do."""

    def close(self) -> None:
        pass
