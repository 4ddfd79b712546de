"""The directory of one job.

::

    bundle.zip                what the tasks run
    job.json                  which interpreter, which tasks, for `akrunner replay`
    rows.json                 rows of each task
    tasks/chief-0/
        context.json          what the task was told
        dataset.tfrecord      its rows
        work/                 the script and its files; the task's current directory
        log.txt               what it printed
        tmp/                  its TMPDIR
        saved_model/          train: the model it exported; the chief's is the result
        latest_ckpt/          train, if asked for: its latest checkpoint
    checkpoints/              `checkpoint_dir`, unless the job names another
    stall.txt                 who waited for what, when nothing moved
    attempt-0/tasks/          the tasks of a first attempt, after a restart

Nobody but the user may look into it. Without `keep` it goes when the job has succeeded; when it has failed, the logs are
moved to the state directory first, where the newest ones stay.
"""

from __future__ import annotations

import glob
import json
import os
import shutil
import tempfile
import time
import uuid
from dataclasses import dataclass
from typing import Any, Dict, Mapping, Optional, Sequence

from akrunner.errors import ConfigError
from akrunner.launch.bundle import bundle_bytes
from akrunner.spec import JobSpec, TaskSpec

_FAILED_KEPT = 20
_LOG = "log.txt"
_STALL = "stall.txt"


@dataclass(frozen=True)
class WorkDir:
    """Attributes: path: the directory; keep: whether it stays."""

    path: str
    keep: bool

    @classmethod
    def create(cls, job: JobSpec) -> "WorkDir":
        """Make it. Raises: ConfigError: `work_dir` is there already and not empty, or cannot be made."""
        if job.work_dir is None:
            work = cls(tempfile.mkdtemp(prefix="akrunner-"), job.keep)
        else:
            path = os.path.abspath(os.path.expanduser(job.work_dir))
            try:
                os.makedirs(path, mode=0o700, exist_ok=True)
                if os.listdir(path):
                    raise ConfigError(f"work_dir: {path} is not empty; name a new directory")
            except OSError as e:
                raise ConfigError(f"work_dir: cannot make {path}: {e.strerror}") from None
            work = cls(path, True)
        work._make_tasks(job)
        with open(work.bundle, "wb") as f:
            f.write(bundle_bytes())
        work._write("job.json", {"python": job.python, "tasks": [task.name for task in job.cluster.tasks]})
        return work

    def _make_tasks(self, job: JobSpec) -> None:
        for task in job.cluster.tasks:
            os.makedirs(self.files_dir(task), mode=0o700)
            os.makedirs(self.temp_dir(task), mode=0o700)

    def restart(self, job: JobSpec, attempt: int) -> None:
        """After a failed attempt: the tasks' directories anew; of the old ones the logs stay, or everything if it is kept."""
        old = os.path.join(self.path, f"attempt-{attempt}")
        os.makedirs(old, mode=0o700)
        tasks = os.path.join(self.path, "tasks")
        if self.keep:
            os.rename(tasks, os.path.join(old, "tasks"))
        else:
            _move_logs(self.path, old)
            shutil.rmtree(tasks, ignore_errors=True)
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

    def context(
        self, job: JobSpec, task: TaskSpec, tf_config: Mapping[str, Any], attempt: int, cpus: Sequence[int]
    ) -> Dict[str, Any]:
        """What a task is told."""
        checkpoints = job.checkpoint_dir
        if checkpoints is None:
            checkpoints = os.path.join(self.path, "checkpoints")
            os.makedirs(checkpoints, mode=0o700, exist_ok=True)
        context = job.context(task, tf_config, self.task_dir(task), self.files_dir(task), checkpoints, attempt, cpus)
        for name in ("saved_model_dir", "latest_ckpt_dir"):
            if context[name] is not None:
                os.makedirs(context[name], mode=0o700)
        return context

    def save_context(self, task: TaskSpec, context: Mapping[str, Any]) -> None:
        """For a replay."""
        if self.keep:
            self._write(os.path.join("tasks", task.key, "context.json"), context)

    def moved_here(self, task: TaskSpec, folder: str) -> None:
        """A task's files were brought here from another machine: its context, for a replay, says so. Args: folder: there."""
        path = os.path.join(self.task_dir(task), "context.json")
        with open(path) as f:
            text = f.read()
        with open(path, "w") as f:
            f.write(text.replace(folder, self.task_dir(task)))

    def save_shares(self, rows: Mapping[str, int]) -> None:
        """For a replay: rows of each task, by its name."""
        if self.keep:
            self._write("rows.json", dict(rows))

    def take_model(self, job: JobSpec) -> None:
        """After success of a train job: the chief's model goes where the job wants it."""
        if job.model_dir is None:
            return
        chief = self.task_dir(job.cluster.tasks[0])
        for source, name in (("saved_model", "model"), ("latest_ckpt", "checkpoint")):
            path = os.path.join(chief, source)
            if os.path.isdir(path):
                copy = shutil.copytree if self.keep else shutil.move
                copy(path, os.path.join(job.model_dir, name))

    def close(self) -> None:
        """After success."""
        if not self.keep:
            shutil.rmtree(self.path, ignore_errors=True)

    def close_failed(self) -> str:
        """After a failure. Returns: the directory the tasks' logs are in."""
        if self.keep:
            return self.path
        kept = os.path.join(_state_dir(), time.strftime("%Y%m%d-%H%M%S-") + uuid.uuid4().hex[:6])
        try:
            _move_logs(self.path, kept)
            _forget_oldest(os.path.dirname(kept))
        except OSError:
            kept = ""  # nowhere to keep them; the error has their last lines
        shutil.rmtree(self.path, ignore_errors=True)
        return kept

    def save_stall(self, text: str) -> None:
        """Who waits for what."""
        with open(os.path.join(self.path, _STALL), "w") as f:
            f.write(text + "\n")

    def _write(self, name: str, value: Any) -> None:
        with open(os.path.join(self.path, name), "w") as f:
            json.dump(value, f, indent=1)


def log_in(kept: str, task: TaskSpec) -> str:
    """Path of a task's log in a directory `close_failed` returned."""
    return os.path.join(kept, "tasks", task.key, _LOG) if kept else ""


def _move_logs(source: str, target: str) -> None:
    for pattern in (f"tasks/*/{_LOG}", f"attempt-*/tasks/*/{_LOG}", _STALL):
        for name in glob.glob(pattern, root_dir=source):
            os.makedirs(os.path.join(target, os.path.dirname(name)), mode=0o700, exist_ok=True)
            shutil.move(os.path.join(source, name), os.path.join(target, name))


def _state_dir() -> str:
    base: Optional[str] = os.environ.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")
    return os.path.join(str(base), "akrunner", "failed")


def _forget_oldest(directory: str) -> None:
    for name in sorted(os.listdir(directory))[:-_FAILED_KEPT]:
        shutil.rmtree(os.path.join(directory, name), ignore_errors=True)
