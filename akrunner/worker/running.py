"""The task of this process, for code that receives no task config: programs, and the modules of Alink's lower packages."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Dict, Optional

if TYPE_CHECKING:
    from akrunner.wire.context import Context
    from akrunner.worker.config import TaskConfig
    from akrunner.worker.output import OutputWriter
    from akrunner.worker.stream import RowStream

_task: Dict[str, Any] = {}


def enter(context: Context, writer: OutputWriter, stream: Optional[RowStream]) -> None:
    """Remember the task of this process. Args: stream: the task's rows in a stream; None in another mode."""
    _task.update(context=context, writer=writer, stream=stream)


def configured(config: TaskConfig) -> None:
    """Remember the task config, which `current` returns from now on."""
    _task.update(config=config)


def current() -> Any:
    """Return the task config of this process, for scripts that have no `main(task_config)` to receive it.

        >>> from akrunner.worker import current
        >>> task_config = current()

    Returns:
        a `BatchTaskConfig`, `TrainTaskConfig` or `StreamTaskConfig`, according to the job's mode. Annotate the variable that
        you assign it to, for type checkers.
    Raises:
        RuntimeError: this process runs no task, or the script is still being imported, while its rows arrive.
    """
    if "config" in _task:
        _task.update(asked=True)
        return _task["config"]
    if "AKRUNNER_TASK" in os.environ:
        raise RuntimeError(
            "current() has no task config yet: the rows arrive while the script is imported; call it in main(), or under "
            'if __name__ == "__main__":'
        )
    raise RuntimeError(
        "this process runs no task of a job: run the script by akrunner.run(...) or `akrunner run SCRIPT --input TABLE`"
    )


def asked() -> bool:
    """Whether `current` has returned the task config to the script."""
    return "asked" in _task


def config() -> Any:
    """Return the task config, for akrunner's own modules. Raises: RuntimeError: there is none yet."""
    return _get("config")


def context() -> Context:
    """Return the task's context. Raises: RuntimeError: this process runs no task."""
    told: Context = _get("context")
    return told


def writer() -> OutputWriter:
    """Return the task's output writer. Raises: RuntimeError: this process runs no task."""
    own: OutputWriter = _get("writer")
    return own


def stream() -> Optional[RowStream]:
    """Return the rows of a stream's task, None in another mode. Raises: RuntimeError: this process runs no task."""
    rows: Optional[RowStream] = _get("stream")
    return rows


def script_says(word: str) -> bool:
    """Whether the source of the job's script contains a word."""
    told = context()
    with open(os.path.join(told["work_dir"], *told["script"]["path"].split("/")), "rb") as f:
        return word.encode() in f.read()


def _get(name: str) -> Any:
    if name not in _task:
        raise RuntimeError("this process runs no task of a job")
    return _task[name]
