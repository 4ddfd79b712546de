"""`FlinkEngine`: the choice of the cluster to submit to, and the checks before a job is submitted."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import importlib.util
import os
import sys
import threading
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from akrunner.checks import check_count, check_flag, check_host, check_path, check_seconds, check_settings, shown
from akrunner.cluster.resources import THREADS, TaskResources, assign
from akrunner.engines.attempts import run_attempts
from akrunner.engines.base import Observer, Outcome, RowSink, RowSource
from akrunner.engines.flink.host import kept
from akrunner.engines.flink.host.client import Client, Submitter
from akrunner.engines.flink.host.issue import check_libraries, issued
from akrunner.engines.flink.host.java import java_home
from akrunner.engines.flink.host.table import FlinkTable, ProgramGraph
from akrunner.engines.flink.host.there import check_slots, check_version, pyflink_version, reachable_host
from akrunner.engines.flink.program.submit import Order
from akrunner.engines.flink.rest import Address, Rest
from akrunner.engines.workdir import WorkDir
from akrunner.errors import ClusterError, ConfigError, StartError
from akrunner.io.pairing import Pairing
from akrunner.io.sinks import PartsSink
from akrunner.io.table import TableSource
from akrunner.launch.guard import Guard
from akrunner.spec import Capabilities, JobSpec, TaskSpec

if TYPE_CHECKING:
    # these need gRPC, which may be missing where only a job's state is asked for
    from akrunner.engines.flink.host.attached import Attached
    from akrunner.engines.flink.host.databases import SharedTable
    from akrunner.engines.flink.host.files import SharedFiles
    from akrunner.engines.flink.host.launcher import FlinkLauncher
    from akrunner.engines.flink.host.subtasks import Subtasks

_LAST_PORT = 65535


class FlinkEngine:
    """Runs tasks on an Apache Flink cluster; see `akrunner.engines.base.Engine`. As a context manager it keeps the Flink
    job and its slots between akrunner's jobs; each of them starts some seconds sooner then.

    Args:
        master: "local" for a cluster that is started and ended with the job, or a session cluster's REST address:
            "host:port", or a URL ("https://host/flink"). Put its credentials into the environment:
            AKRUNNER_FLINK_CREDENTIALS=user:password.
        python: the interpreter on this machine that has PyFlink; None for this process's own. It needs nothing of akrunner's.
        python_executable: the interpreter that TaskManagers run PyFlink with; None for the same as `python`.
        parallelism: the number of workers and parameter servers together, of a job that gives neither number; None for
            one worker.
        host: the address of this machine that TaskManagers can reach; None to find it out.
        port: the port that TaskManagers connect to; they use the next port too, for rows. For a detached job these are
            ports on the machine of its host. None for two free ports.
        tls: both ends prove themselves with certificates of the job's own, and nothing is sent in clear text. False is
            for a network you trust; both ends still prove that they know the job's token.
        slot_timeout: seconds that it may take until all subtasks have come.
        files_there: None: let the TaskManagers read large tables of files that all of them have under the same path, or reach
            in a store, and tables of PostgreSQL (each task gets blocks in turn, and the numbers of rows differ by at most one), and write the files of
            an output directory that all of them have. True: the same, and it is an error if they cannot read the table.
            False: this process does both, row by row.
        java_operators: bring the rows of a PyFlink table to the tasks in Arrow chunks, by two Java operators. False: row
            by row through Python, which is some ten times slower. That also happens, with a warning, if Flink's compiler
            does not accept the operators.
        options: Flink's own configuration, key -> value.
    Raises:
        ConfigError: an argument is wrong.
    """

    name = "flink"

    def __init__(
        self,
        master: str = "local",
        *,
        python: str | None = None,
        python_executable: str | None = None,
        parallelism: int | None = None,
        host: str | None = None,
        port: int | None = None,
        tls: bool = True,
        slot_timeout: float = 120.0,
        files_there: bool | None = None,
        java_operators: bool = True,
        options: Mapping[str, str] | None = None,
    ) -> None:
        if not isinstance(master, str):
            raise ConfigError(f"master must be text, not {shown(master)}")
        if host is not None:
            check_host("host", host, empty=False)
        python = check_path("python", python) if python is not None else None
        python_executable = check_path("python_executable", python_executable) if python_executable is not None else None
        parallelism = check_count("parallelism", parallelism, 1) if parallelism is not None else None
        # the rows use the next port
        port = check_count("port", port, 1, _LAST_PORT - 1) if port is not None else None
        check_flag("tls", tls)
        if files_there is not None:
            check_flag("files_there", files_there)
        check_flag("java_operators", java_operators)
        slot_timeout = check_seconds("slot_timeout", slot_timeout) or slot_timeout
        #: has the credentials, which are never shown
        self._address = Address.of(master) if master != "local" else None
        self.master = self._address.shown if self._address is not None else master
        self.python = os.path.abspath(python) if python is not None else sys.executable
        self.python_executable = python_executable or self.python
        self.parallelism = parallelism
        self.host = host
        self.port = port
        self.tls = tls
        self.slot_timeout = slot_timeout
        self.files_there = files_there
        self.java_operators = java_operators
        self.options = check_settings("options", options if options is not None else {})
        # another process may have another directory; None stays None: its own interpreter
        python = self.python if python is not None else None
        self._given: dict[str, Any] = {"master": master, "python": python, "python_executable": python_executable, "host": host}
        self._given.update(parallelism=parallelism, slot_timeout=slot_timeout, files_there=files_there, options=self.options)
        self._given.update(java_operators=java_operators, port=port, tls=tls)
        self._keeps = False
        #: the number of jobs under way
        self._running = 0
        self._client: Client | None = None
        self._kept: list[Subtasks] = []
        self._version: str | None = None
        self._lock = threading.Lock()

    @property
    def capabilities(self) -> Capabilities:
        """See `Engine.capabilities`."""
        cluster = self.master != "local"
        return Capabilities(here=False, unpacks=cluster, pyflink=True, detaches=cluster, parallelism=self.parallelism)

    def __reduce__(self) -> tuple[Any, ...]:
        """Make the same engine in another process, without what this one runs. The pickled form must be kept unreadable
        for others: the cluster's address may hold credentials."""
        return functools.partial(type(self), **self._given), ()

    def run(
        self,
        job: JobSpec,
        source: RowSource,
        sink: RowSink | None,
        observer: Observer | None,
        cancel: threading.Event | None = None,
    ) -> Outcome:
        """Run a job, as `Engine.run` does.

        Args:
            job: the job to run.
            source: its rows.
            sink: takes the rows that the tasks write; None if they write none.
            observer: is told the progress; None for no observer.
            cancel: an event that ends the job when it is set.
        Returns:
            the outcome of the job.
        Raises:
            ConfigError: there is no PyFlink, no Java or no cluster, or there are too few free slots.
        """
        table = source if isinstance(source, FlinkTable) else None
        self.check(job, table)
        resources = self._resources(job)
        files, parts = self._files(job, source), self._parts(sink)

        from akrunner.engines.flink.host.launcher import FlinkLauncher

        def launcher(work: WorkDir, guard: Guard) -> FlinkLauncher:
            return FlinkLauncher(self, job, work, resources, table, None, files, parts)

        with self._client_kept(), contextlib.closing(files) if files is not None else contextlib.nullcontext():
            return run_attempts(job, source, sink, observer, cancel, launcher)

    def _files(self, job: JobSpec, source: RowSource) -> SharedFiles | SharedTable | None:
        """Return the files, or the table of a database, that the tasks' machines may read, or None. With the local cluster their machine is this one,
        where one reader is enough: the host.

        Raises:
            ConfigError: they have to, and cannot.
        """
        if self.files_there is False or isinstance(source, FlinkTable):
            return None
        from akrunner.engines.flink.host.databases import SharedTable
        from akrunner.engines.flink.host.files import SharedFiles, must_not

        here = "the local cluster is on this machine" if self.master == "local" else None
        here = "a stream's rows go through this process" if job.mode == "stream" else here
        if here is not None and self.files_there:
            raise must_not(here)
        if here is not None:
            return None
        how = len(job.cluster.with_rows), self.tls, bool(self.files_there)
        if isinstance(source, TableSource) and source.held is not None:
            return SharedTable.of(source, *how)
        return SharedFiles.of(source, *how)

    def _parts(self, sink: RowSink | None) -> PartsSink | None:
        """Return the sink whose files the tasks' machines may write, or None."""
        if not isinstance(sink, PartsSink) or not sink.spread or self.files_there is False or self.master == "local":
            return None
        return sink

    def attach(
        self,
        job: JobSpec,
        source: FlinkTable,
        observer: Observer | None,
        restarts: int = 0,
        schema: pa.Schema | None = None,
        pairs: Pairing | None = None,
    ) -> Attached:
        """Build a job's tasks into the program of its table; they run when the program runs.

        Args:
            job: the job to run.
            source: the program's table.
            observer: is told the progress; None for no observer.
            restarts: how often Flink may start a stream's script that fails again, from its last checkpoint.
            schema: the schema of the table of what the tasks write; None for the job's output schema.
            pairs: says which columns of the input rows are kept and put beside what the tasks write; None for none.
        Returns:
            the job, with the table of what the tasks write.
        Raises:
            ConfigError: it cannot be run that way.
        """
        check_count("max_restarts", restarts, 0)
        check_libraries(self.tls)
        from akrunner.engines.flink.host.attached import Attached
        from akrunner.engines.flink.host.launcher import FlinkLauncher

        source.check(job.mode)
        in_java = self._in_java(source)
        again = job.mode == "stream" and source.has_checkpoints
        if again and not in_java:
            raise ConfigError(
                "java_operators: without them no checkpoint would have the rows on their way; leave out "
                "execution.checkpointing.interval"
            )
        if job.supervision.max_restarts or (restarts and not again):
            raise ConfigError(
                "max_restarts: Flink starts a program's own job again from a checkpoint only; leave it out, or have a stream "
                "and execution.checkpointing.interval"
            )
        if again and len(job.cluster.with_rows) != len(job.cluster.tasks):
            raise ConfigError(
                "num_ps=, evaluator=: tasks without rows hold up Flink's checkpoints; leave them out, or "
                "execution.checkpointing.interval"
            )
        self._check_resources(job)
        if schema is None:
            assert job.output_schema is not None
            schema = job.output_schema.arrow
        graph = ProgramGraph(source.table, job, schema, self.options, in_java)
        address = Address.of(source.master) if source.master != "local" else None
        if address is not None:
            with contextlib.suppress(ClusterError):
                # a program may be built before its cluster is started
                self._check_version(Rest(address))
        subtasks = self._subtasks_of(graph, len(job.cluster.tasks), {"name": "akrunner"}, address, len(job.cluster.with_rows))
        rows = dataclasses.replace(source, output=graph.output, pairs=pairs)
        resources = self._resources(job)

        def launcher(work: WorkDir, guard: Guard) -> FlinkLauncher:
            return FlinkLauncher(self, job, work, resources, rows, subtasks)

        def run() -> Outcome:
            return run_attempts(job, rows, None, observer, None, launcher)

        return Attached(graph.table, subtasks, run, address, restarts if again else None, self.slot_timeout, graph.executed)

    def _in_java(self, table: FlinkTable) -> bool:
        return self.java_operators and table.operators_compile()

    def _resources(self, job: JobSpec) -> Mapping[TaskSpec, TaskResources]:
        # cores and cards are those of other machines, which this one does not know: the agents divide them
        return assign(job.cluster, job.resources, [], [], {name: "" for name in THREADS})

    def sql(self, parallelism: int) -> Any | None:
        """Return Flink's SQL in this process.

        Args:
            parallelism: the parallelism of queries.
        Returns:
            an `akrunner.engines.flink.host.sql.Sql`; None if this process has no PyFlink.
        """
        if self.python != sys.executable or importlib.util.find_spec("pyflink") is None:
            return None
        from akrunner.engines.flink.host.sql import Sql

        os.environ.setdefault("JAVA_HOME", java_home(self.python))
        if self._address is not None:
            self._check_version(Rest(self._address))
        return Sql(self._address, self.options, parallelism)

    def __enter__(self) -> FlinkEngine:
        """Keep the Flink job, with its slots, for akrunner's jobs one after the other, until the block ends."""
        self._keeps = True
        return self

    def __exit__(self, *error: Any) -> None:
        self._keeps = False
        self._take_kept(1 << 30)
        if self._client is not None:
            kept.over(self._client)
            self._client = None

    def acquire(self, count: int, name: str) -> Subtasks:
        """Return subtasks for an attempt's tasks: those that are kept, or those of a new Flink job. The caller has to
        give them back.

        Args:
            count: how many there must be at least.
            name: the name of the Flink job.
        Returns:
            the subtasks, some of which may not have come yet.
        """
        taken = self._take_kept(count)
        if taken is None:
            client = self._live_client()
            order: Order = {"python": self.python_executable, "options": self.options, "name": name}
            try:
                taken = self._subtasks_of(client, count, order, self._address)
            except BaseException:
                # nobody else knows of a client that is not kept
                if client is not self._client:
                    client.close()
                raise
        return taken

    def _subtasks_of(
        self, client: Submitter, count: int, order: Order, cluster: Address | None, with_rows: int = 0
    ) -> Subtasks:
        """Return the subtasks of a Flink job, with keys of its own. The arguments are as for `Subtasks`."""
        from akrunner.engines.flink.host.subtasks import Subtasks

        host = self.host or reachable_host(cluster)
        return Subtasks(client, host, count, order, issued(self.tls), cluster, self.port, with_rows)

    def acquire_for(self, table: FlinkTable, job: JobSpec, name: str) -> Subtasks:
        """Return subtasks to which a table's rows come, in a Flink job of the table's own program. The caller has to give
        them back.

        Args:
            table: the table.
            job: the job whose tasks run in them.
            name: the name of the Flink job.
        Returns:
            the subtasks, one for each task.
        """
        address = Address.of(table.master) if table.master != "local" else None
        submitter = table.submitter(job, self.options, self._in_java(table))
        return self._subtasks_of(submitter, len(job.cluster.tasks), {"name": name}, address, len(job.cluster.with_rows))

    def detach(self, job: JobSpec, module: str, archive: str, name: str, tag: str) -> str:
        """Submit a job whose host is a process beside one of its own subtasks.

        Args:
            job: the job to run.
            module: the module that the host process runs, as `python -m` takes it.
            archive: the path of a zip that tells the host what to do.
            name: the name of the Flink job.
            tag: marks the job's lines in logs.
        Returns:
            Flink's id of the job.
        Raises:
            ConfigError: as `run`.
            StartError: Flink did not take it.
        """
        self._check_resources(job)
        self._check_cluster(len(job.cluster.tasks))
        client = self._live_client()
        try:
            keys = issued(self.tls)
            host = {"keys": dataclasses.asdict(keys.host), "port": self.port}
            submitted = client.submit(
                Order(
                    python=self.python_executable,
                    options=self.options,
                    name=name,
                    subtasks=len(job.cluster.tasks),
                    module=module,
                    archive=archive,
                    tag=tag,
                    host=host,
                    agents=dataclasses.asdict(keys.agents),
                )
            )
            submitted.known.wait()
            if not submitted.id:
                refused = StartError(f"Flink did not take the job: {submitted.failed}")
                refused.fault = submitted.fault
                raise refused
            return submitted.id
        finally:
            if client is not self._client:
                kept.over(client)

    @contextlib.contextmanager
    def _client_kept(self) -> Iterator[None]:
        """Keep the process with Java for all attempts of a job, so that it is started only once. Jobs that run at the
        same time have a process each, so that none ends another's."""
        with self._lock:
            self._running += 1
        try:
            yield
        finally:
            with self._lock:
                self._running -= 1
                client = None
                if not self._keeps and not self._running:
                    client, self._client = self._client, None
            if client is not None:
                kept.over(client)

    def _live_client(self) -> Client:
        """Return the client that is kept, or a new one."""
        self._close_dead()
        with self._lock:
            client = self._client
            alone = self._running == 1
            if client is None or not (self._keeps or alone):
                client = kept.start(self.python, java_home(self.python), self._address)
                # with a cluster inside the client's process, what a job leaves there goes only when that process ends
                if self._keeps or (alone and self._address is not None):
                    self._client = client
            return client

    def _close_dead(self) -> None:
        """Close the client that is kept if its process has died: its folder and its log are still there."""
        with self._lock:
            if self._client is None or self._client.alive:
                return
            dead, self._client = self._client, None
        dead.close()

    def release(self, subtasks: Subtasks) -> None:
        """Take back the subtasks of an attempt that has ended. They have no task any more.

        Args:
            subtasks: the subtasks that the attempt had.
        """
        with self._lock:
            if self._keeps and subtasks.can_be_used() and subtasks.client is self._client:
                self._kept.append(subtasks)
                return
        subtasks.close()
        with self._lock:
            client = self._client
            well = not subtasks.lost and subtasks.submitted.ended.is_set()
            if client is not None and subtasks.client is client and not (well and client.alive):
                # the client was killed, or is stuck; or Flink's own client goes on asking the JobManager for a minute
                client = self._client = None
        if subtasks.client is not client:
            subtasks.client.close()

    def _take_kept(self, count: int) -> Subtasks | None:
        """Return kept subtasks that can be used. If none can, close all that are kept, as their slots may be needed, and
        return None."""
        with self._lock:
            for kept in self._kept:
                if kept.can_be_used() and kept.count >= count:
                    self._kept.remove(kept)
                    return kept
            unfit, self._kept = self._kept, []
        for kept in unfit:
            kept.close()
        return None

    def check(self, job: JobSpec, table: FlinkTable | None = None) -> None:
        """Check, as `Engine.check` does, that PyFlink, Java, a cluster with Flink of the same version, and enough slots
        are there.

        Args:
            job: the job to run.
            table: a table of a program, whose cluster is checked; None for the engine's cluster.
        Raises:
            ConfigError: something is missing.
        """
        self._check_resources(job)
        check_libraries(self.tls)
        if table is not None:
            table.check(job.mode)
            if table.master != "local":
                cluster = Rest(table.master)
                self._check_version(cluster)
                check_slots(cluster, table.slots(job))
            return
        count = len(job.cluster.tasks)
        kept = self._take_kept(count)
        if kept is not None:
            with self._lock:
                self._kept.append(kept)
            return
        self._check_cluster(count)

    def _check_cluster(self, count: int) -> None:
        if self._version is None:
            java_home(self.python)
            self._version = pyflink_version(self.python)
        if self._address is not None:
            cluster = Rest(self._address)
            self._check_version(cluster)
            check_slots(cluster, count)

    def _check_version(self, cluster: Rest) -> None:
        if self._version is None:
            self._version = pyflink_version(self.python)
        check_version(cluster, self.python, self._version)

    def _check_resources(self, job: JobSpec) -> None:
        if job.resources.gpus_per_worker or job.resources.cpus_per_worker:
            raise ConfigError(
                "gpus_per_worker, cpus_per_worker: on Flink a slot's share is the cluster's to say; leave them out"
            )
