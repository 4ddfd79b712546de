"""The directory of one job.

::

    bundle.zip                the code that the tasks run
    job.json                  the interpreter, the tasks, the result (`akrunner.engines.record`)
    rows.json                 the number of rows of each task
    splits.json               [workers, splits], the number of rows of each split
    tasks/chief-0/
        context.json          the context that the task was given
        dataset.tfrecord      its rows
        work/                 the script and its files; the task's current directory
        log.txt               the lines it printed
        tmp/                  its TMPDIR
        saved_model/          train: the model it exported; the chief's is the result
        latest_ckpt/          train, if asked for: its latest checkpoint
    checkpoints/              `checkpoint_dir`, unless the job names another
    stall.txt                 which task waited for what, when nothing moved
    attempt-0/tasks/          the tasks of a first attempt, after a restart

Only the user may read it. Without `keep` it is removed when the job has succeeded; when the job has failed, the logs are
first moved to the state directory, where the newest ones stay.
"""

from __future__ import annotations

import contextlib
import errno
import glob
import json
import os
import shutil
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from akrunner import leftovers
from akrunner.engines import record
from akrunner.errors import ConfigError, JobError, WriteError
from akrunner.foreign import in_words
from akrunner.launch.bundle import bundle_bytes
from akrunner.leftovers.private import private_dir, private_file, state_dir
from akrunner.spec import JobSpec, TaskSpec
from akrunner.wire.context import Context, TFConfig

_FAILED_KEPT = 20
_LOG = "log.txt"
_STALL = "stall.txt"
_RECORD = "job.json"


@dataclass(frozen=True)
class WorkDir:
    """The directory of one job.

    Attributes:
        path: its path.
        keep: whether it stays after the job.
        knob: the parameter that names another place for it.
        goes_on_with: see `Context`.
    """

    path: str
    keep: bool
    knob: str
    goes_on_with: int | None = None

    @classmethod
    def of(cls, job: JobSpec) -> WorkDir:
        """Return the job's directory. Makes nothing on disk.

        Raises:
            ConfigError: there is no temp directory.
        """
        if job.work_dir is not None:
            return cls(os.path.abspath(os.path.expanduser(job.work_dir)), True, "work_dir")
        try:
            temp = leftovers.temp_directory()
        except OSError as e:
            raise ConfigError(
                f"TMPDIR: there is no temp directory that can be written ({e.strerror}); set it, or work_dir="
            ) from None
        return cls(os.path.join(temp, "akrunner-" + uuid.uuid4().hex[:12]), job.keep, "TMPDIR, or work_dir=")

    def create(self, job: JobSpec) -> None:
        """Make the directory.

        It is removed again if it cannot be completed, or if this process dies before the directory is closed.

        Raises:
            ConfigError: `work_dir` exists and is not empty, or it cannot be made.
        """
        new = _not_there(self.path)
        try:
            with self._trouble(ConfigError, "make"):
                if job.work_dir is None:
                    leftovers.register(self.path)
                    os.mkdir(self.path, 0o700)
                private_dir(self.path)
                if os.listdir(self.path):
                    raise ConfigError(f"work_dir: {self.path} is not empty; name a new directory")
            with self._trouble(ConfigError, "write"):
                self._fill(job)
        except BaseException:
            for folder in new:
                # its parents too, unless something else is in them by now
                with contextlib.suppress(OSError):
                    os.rmdir(folder)
            raise
        if self.keep:
            leftovers.forget(self.path)

    def _fill(self, job: JobSpec) -> None:
        try:
            self._make_tasks(job)
            with private_file(self.bundle, "wb") as f:
                f.write(bundle_bytes())
            self._write(_RECORD, record.begun(job))
        except BaseException:
            for name in os.listdir(self.path):
                leftovers.remove(os.path.join(self.path, name))
            raise

    @contextlib.contextmanager
    def _trouble(self, kind: type[ConfigError | JobError], verb: str) -> Iterator[None]:
        """Turn an error of the file system into `kind`, with the directory and the parameter that names another."""
        try:
            yield
        except OSError as e:
            if e.errno == errno.EFBIG:
                # the file is larger than the system allows, so no other directory would take it either
                raise kind(f"cannot {verb} {e.filename or self.path}: {in_words(e)}") from e
            raise kind(f"{self.knob}: cannot {verb} {e.filename or self.path}: {e.strerror or e}") from e

    def _make_tasks(self, job: JobSpec) -> None:
        private_dir(os.path.join(self.path, "tasks"))
        for task in job.cluster.tasks:
            for folder in (self.task_dir(task), self.files_dir(task), self.temp_dir(task)):
                private_dir(folder)

    def restart(self, job: JobSpec, attempt: int) -> None:
        """Make the tasks' directories anew after a failed attempt. Of the old ones the logs stay, or everything if the
        directory is kept.

        Raises:
            WriteError: they cannot be made.
        """
        old = os.path.join(self.path, f"attempt-{attempt}")
        tasks = os.path.join(self.path, "tasks")
        with self._trouble(WriteError, "write"):
            private_dir(old)
            if self.keep:
                os.rename(tasks, os.path.join(old, "tasks"))
            else:
                _move_logs(self.path, old)
                leftovers.remove(tasks)
            self._make_tasks(job)

    @property
    def bundle(self) -> str:
        return os.path.join(self.path, "bundle.zip")

    def task_dir(self, task: TaskSpec) -> str:
        return os.path.join(self.path, "tasks", task.key)

    def files_dir(self, task: TaskSpec) -> str:
        return os.path.join(self.task_dir(task), "work")

    def temp_dir(self, task: TaskSpec) -> str:
        return os.path.join(self.task_dir(task), "tmp")

    def log_path(self, task: TaskSpec) -> str:
        return os.path.join(self.task_dir(task), _LOG)

    def checkpoint_dir(self, job: JobSpec) -> str:
        """Return the job's directory for checkpoints."""
        return job.checkpoint_dir if job.checkpoint_dir is not None else os.path.join(self.path, "checkpoints")

    def going_on_with(self, save: int | None) -> WorkDir:
        """Return the same directory for an attempt that begins with a save. Args: save: `goes_on_with`."""
        return replace(self, goes_on_with=save)

    def context(self, job: JobSpec, task: TaskSpec, tf_config: TFConfig, attempt: int, cpus: Sequence[int]) -> Context:
        """Return the context that a task is given."""
        checkpoints = self.checkpoint_dir(job)
        if job.checkpoint_dir is None:
            with self._trouble(WriteError, "make"):
                private_dir(checkpoints)
        context = job.context(task, tf_config, self.task_dir(task), self.files_dir(task), checkpoints, attempt, cpus)
        context["goes_on_with"] = self.goes_on_with
        for directory in (context["saved_model_dir"], context["latest_ckpt_dir"]):
            if directory is not None:
                with self._trouble(WriteError, "make"):
                    private_dir(directory)
        return context

    def save_context(self, task: TaskSpec, context: Context) -> None:
        """Save the context for a replay, if the directory is kept."""
        if self.keep:
            with self._trouble(WriteError, "write"):
                self._write(os.path.join("tasks", task.key, "context.json"), context)

    def moved_here(self, task: TaskSpec, folder: str) -> None:
        """Correct the paths in a task's saved context, which a replay reads, after its files were brought here from
        another machine.

        Args:
            folder: the task's directory on that machine.
        """
        path = os.path.join(self.task_dir(task), "context.json")
        with open(path) as f:
            text = f.read()
        with private_file(path) as f:
            f.write(text.replace(folder, self.task_dir(task)))

    def save_shares(self, rows: Mapping[str, int], splits: Sequence[Sequence[int]]) -> None:
        """Save for a replay the number of rows of each task, by its name, and of each split in each task that got rows.
        Does nothing if the directory is not kept."""
        if self.keep:
            with self._trouble(WriteError, "write"):
                self._write("rows.json", dict(rows))
                if splits:
                    self._write("splits.json", list(map(list, splits)))

    def take_model(self, job: JobSpec) -> None:
        """Put the chief's model where the job wants it, after a train job has succeeded."""
        if job.model_dir is None:
            return
        chief = self.task_dir(job.cluster.tasks[0])
        for source, name in (("saved_model", "model"), ("latest_ckpt", "checkpoint")):
            path = os.path.join(chief, source)
            if os.path.isdir(path):
                copy = shutil.copytree if self.keep else shutil.move
                try:
                    copy(path, os.path.join(job.model_dir, name))
                except (OSError, shutil.Error) as e:
                    raise WriteError(f"TMPDIR: cannot put the model into {job.model_dir}: {_first(e)}") from e

    def close(self) -> None:
        """Remove the directory after success, unless it is kept."""
        if not self.keep:
            leftovers.drop(self.path)

    def close_failed(self) -> str:
        """Remove the directory after a failure, unless it is kept; the logs are moved elsewhere first.

        Returns:
            The directory that the tasks' logs are in; "" if they could not be kept.
        """
        if self.keep:
            return self.path
        folder = state_dir("failed")
        kept = "" if folder is None else os.path.join(folder, time.strftime("%Y%m%d-%H%M%S-") + uuid.uuid4().hex[:6])
        try:
            if kept:
                _move_logs(self.path, kept)
                if os.path.isdir(kept):
                    shutil.move(os.path.join(self.path, _RECORD), os.path.join(kept, _RECORD))
                _forget_oldest(os.path.dirname(kept))
        except OSError:
            # there is no place to keep them; the error has their last lines
            leftovers.remove(kept)
            kept = ""
        leftovers.drop(self.path)
        return kept

    def save_end(self, kept: str, end: Mapping[str, Any]) -> None:
        """Add the result of the job to its record. An error here does not fail the job.

        Args:
            kept: the directory that stays; "" if none does.
        """
        path = os.path.join(kept, _RECORD)
        with contextlib.suppress(OSError, ValueError):
            if not kept or not os.path.isdir(kept):
                return
            with open(path) as f:
                known = json.load(f)
            with private_file(path + ".new") as f:
                json.dump({**known, **end}, f, indent=1)
            os.replace(path + ".new", path)

    def save_stall(self, text: str) -> None:
        """Save which task waits for what. Ignores an error: the job's exception says the same."""
        with contextlib.suppress(OSError), private_file(os.path.join(self.path, _STALL)) as f:
            f.write(text + "\n")

    def _write(self, name: str, value: Any) -> None:
        with private_file(os.path.join(self.path, name)) as f:
            json.dump(value, f, indent=1)


def _not_there(path: str) -> list[str]:
    """Return the directories that making `path` is going to make, `path` first, then its parents."""
    new = []
    while not os.path.exists(path):
        new.append(path)
        path = os.path.dirname(path)
    return new


def log_in(kept: str, task: TaskSpec) -> str:
    """Return the path of a task's log in a directory that `close_failed` returned."""
    return os.path.join(kept, "tasks", task.key, _LOG) if kept else ""


def _move_logs(source: str, target: str) -> None:
    for pattern in (f"tasks/*/{_LOG}", f"attempt-*/tasks/*/{_LOG}", _STALL):
        for name in glob.glob(pattern, root_dir=source):
            folder = target
            for part in ("", *os.path.dirname(name).split("/")):
                folder = os.path.join(folder, part)
                private_dir(folder)
            shutil.move(os.path.join(source, name), os.path.join(target, name))


def _first(error: OSError) -> str:
    """Return the message of an OSError. An error of `shutil.copytree` holds one for each file; of these, the first is
    returned."""
    many = error.args[0] if isinstance(error, shutil.Error) and error.args else None
    return str(many[0][2] if isinstance(many, list) and many else error.strerror or error)


def _forget_oldest(directory: str) -> None:
    def began(name: str) -> tuple[str, int]:
        # the name holds the time to the second, and something random
        with contextlib.suppress(OSError):
            return name[: len("20260101-120000")], os.stat(os.path.join(directory, name)).st_mtime_ns
        return "", 0

    for name in sorted(os.listdir(directory), key=began)[:-_FAILED_KEPT]:
        leftovers.remove(os.path.join(directory, name))
