"""The task this process runs, for those who are given nothing: programs, and the names of Alink's lower packages."""

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
    """Args: context: what the host said; writer: the output writer; stream: a `RowStream`, or None."""
    _task.update(context=context, writer=writer, stream=stream)


def configured(config: TaskConfig) -> None:
    """From now on `current` returns it."""
    _task.update(config=config)


def current() -> Any:
    """The task config of the task this process runs: what `main(task_config)` is given, for scripts that have no such function.

        >>> from akrunner.worker import current
        >>> task_config = current()

    Returns:
        a `BatchTaskConfig`, `TrainTaskConfig` or `StreamTaskConfig`, as the job's mode says; for a type checker, annotate what it is assigned to.
    Raises:
        RuntimeError: this process runs no task; or the script is imported, and its rows are not all there yet.
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
    """Whether somebody has called `current`."""
    return "asked" in _task


def config() -> Any:
    """The task config, for ours. Raises: RuntimeError: there is none yet."""
    return _get("config")


def context() -> Context:
    """What the host said this task is. Raises: RuntimeError: this process runs none."""
    told: Context = _get("context")
    return told


def writer() -> OutputWriter:
    """Its output writer."""
    own: OutputWriter = _get("writer")
    return own


def stream() -> Optional[RowStream]:
    """Its rows as they arrive, None in a batch."""
    rows: Optional[RowStream] = _get("stream")
    return rows


def script_says(word: str) -> bool:
    """Whether the job's script has this word in it."""
    told = context()
    with open(os.path.join(told["work_dir"], *told["script"]["path"].split("/")), "rb") as f:
        return word.encode() in f.read()


def _get(name: str) -> Any:
    if name not in _task:
        raise RuntimeError("this process runs no task of a job")
    return _task[name]
