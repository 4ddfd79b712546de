"""Starts and drives the tasks of one attempt in subtasks on a Flink cluster."""

from __future__ import annotations

import contextlib
import functools
import os
import tarfile
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from akrunner.cluster.resources import TaskResources
from akrunner.engines.feeder import CountingFeeder, Given, StreamFeeder
from akrunner.engines.flink import control_pb2 as pb
from akrunner.engines.flink.host.databases import SharedTable
from akrunner.engines.flink.host.files import SharedFiles, must_not
from akrunner.engines.flink.host.remote import RemoteProcess
from akrunner.engines.flink.host.subtask import RemoteSubtask
from akrunner.engines.flink.host.subtasks import Subtasks
from akrunner.engines.flink.host.table import FlinkTable
from akrunner.engines.flink.schemas import schema_bytes
from akrunner.engines.flink.taskmanager.feed import pairs_word
from akrunner.engines.flink.taskmanager.sight import word_of
from akrunner.engines.workdir import WorkDir
from akrunner.errors import JobError, ReadError, StartError
from akrunner.foreign import in_words
from akrunner.io.sinks import PartsSink
from akrunner.launch import archives
from akrunner.launch.files import lay_out
from akrunner.launch.session import TaskSession
from akrunner.launch.trees import Blame
from akrunner.spec import JobSpec, TaskSpec
from akrunner.wire.context import Context, TFConfig

_LOOPBACK = "127.0.0.1"
#: names in a task's folder
_MODEL = "model"
_OVERLAY = "overlay"
#: Flink's words for the state of a job that it is ending
_ENDING = ("FAILING",)
_ENDING_SECONDS = 3.0
#: seconds that an agent may take to begin sending files
_GIVE_SECONDS = 60.0
#: the most files of a task that are named, if they could not be brought here
_NAMED = 8


class SubtaskLender(Protocol):
    """Lends an attempt its subtasks: the engine. Attributes: slot_timeout: seconds to wait for them."""

    slot_timeout: float

    def acquire(self, count: int, name: str) -> Subtasks:
        """Return subtasks for so many tasks, in a Flink job of that name."""
        ...

    def acquire_for(self, table: FlinkTable, job: JobSpec, name: str) -> Subtasks:
        """Return subtasks that a PyFlink table's rows come to."""
        ...

    def release(self, subtasks: Subtasks) -> None:
        """Take them back when the attempt has ended."""
        ...


class FlinkLauncher:
    """Runs the tasks of one attempt in subtasks; see `akrunner.engines.base.Launcher`."""

    def __init__(
        self,
        engine: SubtaskLender,
        job: JobSpec,
        work: WorkDir,
        resources: Mapping[TaskSpec, TaskResources],
        table: FlinkTable | None = None,
        given: Subtasks | None = None,
        files: SharedFiles | SharedTable | None = None,
        parts: PartsSink | None = None,
    ) -> None:
        """Make a launcher; the subtasks are taken when its block begins.

        Args:
            table: the table whose rows Flink brings to the tasks; None if the host feeds them.
            given: the subtasks, if this launcher is not to make and end them itself.
            files: the files, or the table in a database, that the tasks' machines read, if all of them can. Those that are closed, since
                an earlier attempt could not read them, are left alone.
            parts: the sink whose files the tasks' machines write, if all of them can.
        """
        self._engine = engine
        self._job = job
        self._work = work
        self._resources = resources
        self._table = table
        self._given = given
        self._files = files if files is not None and not files.closed else None
        self._parts = parts
        self._remotes: dict[TaskSpec, RemoteSubtask] = {}
        self._ending: float | None = None
        self._notes: list[str] = []
        self._package_path = os.path.join(work.path, "package.tar")

    def __enter__(self) -> FlinkLauncher:
        name = "akrunner " + os.path.basename(self._job.script.name)
        if self._given is not None:
            self._subtasks = self._given
        elif self._table is None:
            self._subtasks = self._engine.acquire(len(self._job.cluster.tasks), name)
        else:
            self._subtasks = self._engine.acquire_for(self._table, self._job, name)
        return self

    def addresses(self) -> Mapping[TaskSpec, str]:
        """Wait until every subtask has come, and return the tasks' addresses.

        Raises:
            StartError: some did not come, or Flink failed.
            ConfigError: `bind_host` is wrong, or the tasks' machines have to read the table, and cannot.
        """
        with self._explained():
            return self._addresses()

    def _addresses(self) -> Mapping[TaskSpec, str]:
        remotes = self._subtasks.come(self._engine.slot_timeout)
        with_rows = self._job.cluster.with_rows if self._table is not None else ()
        receiving = sorted((remote for remote in remotes if remote.with_rows), key=lambda remote: remote.subtask)
        others = [remote for remote in remotes if not remote.with_rows]
        self._remotes = {task: (receiving if task in with_rows else others).pop(0) for task in self._job.cluster.tasks}
        if self._parts is not None:
            self._parts.open()
        for task, remote in self._remotes.items():
            files = self._files if self._files is not None and task in self._job.cluster.with_rows else None
            output = self._parts.partial if self._parts is not None else None
            asked, store = (files.asked, word_of(files.place)) if files is not None else ((), None)
            remote.ask(self._job.python, self._job.bind_host, self._job.advertised_host, asked, output, store)
        for remote in self._remotes.values():
            remote.settle()
        if self._files is not None and not self._can_read(self._files):
            # who waits for the state's transaction, to change the table, would be waited for by the submitter that reads it
            self._files.close()
            self._files = None
        if not all(remote.writes_output for remote in self._remotes.values()):
            self._parts = None
        return {task: remote.address for task, remote in self._remotes.items()}

    def _can_read(self, files: SharedFiles | SharedTable) -> bool:
        """Whether the tasks' machines read the files themselves. If they cannot, and that matters, the user is told.

        Raises:
            ConfigError: they have to, and cannot.
            ReadError: they have begun to, and cannot any more.
        """
        blind = next((remote for remote in self._remotes.values() if not remote.reads_files), None)
        if blind is not None:
            why = f"on {blind.machine}, {blind.unread}"
        elif files.shares is None:
            why = files.undivided
        else:
            return True
        if files.begun:
            raise ReadError(f"source: the job cannot start again with the state of the table that it has begun with: {why}")
        if files.must:
            raise must_not(why)
        # of a file on a disk, reading it here says it better
        if (blind is not None or (files.place.away and files.broken)) and files.is_worth_it:
            self._notes.append(
                f"source: the TaskManagers do not read the table themselves ({why.rstrip('.')}), so its rows come from this "
                "process; files_there=True (--flink-files-there) makes that an error"
            )
        return False

    def notes(self) -> Sequence[str]:
        return self._notes

    def context(self, task: TaskSpec, tf_config: TFConfig, attempt: int) -> Context:
        folder = self._remotes[task].folder
        checkpoints = self._job.checkpoint_dir
        if checkpoints is None and self._remotes[task].address.startswith(_LOOPBACK):
            # on this machine every task can reach that directory
            checkpoints = os.path.join(self._work.path, "checkpoints")
            os.makedirs(checkpoints, mode=0o700, exist_ok=True)
        attempt += self._remotes[task].attempt
        told = self._job.context(task, tf_config, folder, f"{folder}/work", checkpoints, attempt)
        if told["model"]:
            told["model"] = f"{folder}/{_MODEL}"
        if told["overlay"]:
            told["overlay"] = f"{folder}/{_OVERLAY}"
        # Flink may take a checkpoint, or a savepoint, at any time
        told["barriers"] = self._job.mode == "stream" and self._table is not None and self._table.output is not None
        return told

    def start(self, task: TaskSpec) -> RemoteProcess:
        job, remote = self._job, self._remotes[task]
        beside = [other for other in self._remotes.values() if other.machine == remote.machine]
        order = pb.Order(
            streaming=job.mode == "stream",
            data_format=job.data_format,
            chunk_rows=job.chunk_rows,
            chunk_bytes=job.chunk_bytes,
            output=self._output(task),
            files=self._reads(task),
            pairs=pairs_word(self._table.pairs) if self._table is not None and self._table.pairs is not None else None,
            threads=max(1, remote.cores // len(beside)),
            env={**self._resources[task].env, **job.task_env},
            directories=["work", "tmp", *(["saved_model"] if job.mode == "train" else [])]
            + (["latest_ckpt"] if job.save_latest_checkpoint else []),
        )
        with self._explained():
            try:
                return RemoteProcess(remote, self._package, order, job.supervision.start_timeout)
            except OSError as e:
                raise StartError(f"[{task.name}] could not be started: {e}") from None

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        """Raise an error that says why a subtask is gone, if that is known: it says more than that it is gone."""
        try:
            yield
        except JobError:
            self._subtasks.explain()
            raise

    def _reads(self, task: TaskSpec) -> pb.Files | None:
        """Return the files that the task's machine reads; None if it reads none, because its rows come another way."""
        if self._files is None or task not in self._job.cluster.with_rows:
            return None
        return self._files.order(self._job.cluster.with_rows.index(task))

    def _output(self, task: TaskSpec) -> pb.Output | None:
        """Return what the agent has to do with the rows that the task writes; None if they all come to the host."""
        if self._job.output_schema is None:
            return None
        schema = schema_bytes(self._job.output_schema.arrow)
        if self._table is not None and self._table.output is not None:
            return pb.Output(schema=schema, rows=schema_bytes(self._table.output))
        if self._parts is not None:
            return pb.Output(schema=schema, rows=schema, part=self._parts.file_of(task), format=self._parts.format)
        return None

    @property
    def _shipped(self) -> dict[str, str]:
        """The directories of this machine that the task reads: name in the task's folder -> path."""
        return {name: path for name, path in ((_MODEL, self._job.model), (_OVERLAY, self._job.overlay)) if path}

    @functools.cached_property
    def _package(self) -> str:
        """The path of a tar of the bundle, the script and its files, and what else a task reads. It is the same for every
        task."""
        files = self._work.files_dir(self._job.cluster.tasks[0])
        lay_out(self._job.script, files)
        path = self._package_path
        with tarfile.open(path, mode="w") as archive:
            archive.add(self._work.bundle, "bundle.zip")
            archive.add(files, "work")
            for name, directory in self._shipped.items():
                archive.add(directory, name)
        return path

    def starts(self) -> Mapping[str, str]:
        return {}

    def feeder(self, sessions: Mapping[TaskSpec, TaskSession]) -> StreamFeeder | None:
        source = self._table or (self._files.source if self._files is not None else None)
        if source is None:
            return None

        def given(session: TaskSession) -> Given:
            assert isinstance(session.process, RemoteProcess)
            return session.process.given

        return CountingFeeder(self._job, source, sessions, given)

    def ready(self) -> None:
        pass

    def check(self) -> None:
        """Check that the job and its subtasks are well.

        Raises:
            JobError: Flink has ended the job.
            AkrunnerError: as `Subtasks.check`.
        """
        self._subtasks.check()
        told = self._subtasks.submitted
        if not told.ended.is_set() and told.state not in _ENDING:
            return
        # mostly the tasks' own ends are reported first, and say more
        self._ending = self._ending or time.monotonic()
        if time.monotonic() - self._ending > _ENDING_SECONDS:
            self._subtasks.explain()
            raise JobError(f"Flink ended the job: {told.failed or told.state}")

    def explain(self) -> None:
        self._subtasks.explain()

    def ended(self) -> None:
        """Fetch the files of the tasks that are to be kept. The agents clean up when they are told to leave, so this
        comes before. The job is as good without them: what cannot come is a note."""
        if not self._work.keep:
            return
        for task, remote in self._remotes.items():
            if remote.process is None:
                continue
            if remote.gone.is_set():
                self._notes.append(
                    f"[{task.name}] its machine was lost, or the agent on it; work_dir= has none of the files of that attempt"
                )
            else:
                self._keep(task, remote)

    def _keep(self, task: TaskSpec, remote: RemoteSubtask) -> None:
        """Fetch the files of one task that are to be kept. Note which could not be brought here."""
        left_out: list[Exception] = []
        whole = True
        spooled = ["dataset.tfrecord", "dataset.columns"]
        try:
            self._fetch(task, ["work", *spooled, *(f"{name}.splits" for name in spooled)], left_out.append)
        except JobError as e:
            self._notes.append(f"{e}; work_dir= has not all of its files")
            whole = False
        self._notes += [f"{why}; work_dir= is without it" for why in left_out[:_NAMED]]
        if len(left_out) > _NAMED:
            self._notes.append(f"[{task.name}] work_dir= is without {len(left_out) - _NAMED} more of its files")
        if not whole:
            return
        try:
            self._work.moved_here(task, remote.folder)
        except OSError as e:
            self._notes.append(f"[{task.name}] its context.json in work_dir= has the paths of {remote.machine}: {in_words(e)}")

    def take_model(self) -> None:
        if self._job.model_dir is not None:
            self._fetch(self._job.cluster.tasks[0], ["saved_model", "latest_ckpt"])
            self._work.take_model(self._job)

    def _fetch(self, task: TaskSpec, names: list[str], left_out: archives.LeftOut | None = None) -> None:
        """Copy files and directories of a task into the task's directory here.

        Args:
            left_out: as for `archives.unpack`.
        Raises:
            JobError: the task's machine is gone, or something cannot be brought here.
        """
        remote = self._remotes[task]
        remote.tell(give=pb.Give(names=names))
        blame = Blame(f"[{task.name}] its files", JobError, "the task's directory")
        try:
            with remote.opened(pb.Opening.GIVE, _GIVE_SECONDS) as connection, connection.makefile("rb") as stream:
                shown = "what its TaskManager gives"
                archives.unpack(stream, self._work.task_dir(task), blame, shown=shown, left_out=left_out)
        except OSError as e:
            raise JobError(f"[{task.name}] its files could not be brought here: {e!r}") from None

    def __exit__(self, *error: Any) -> None:
        self._subtasks.clear()
        if os.path.exists(self._package_path):
            os.unlink(self._package_path)
        if self._given is None:
            self._engine.release(self._subtasks)
