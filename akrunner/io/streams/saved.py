"""Where a stream goes on: the newest save of `task_config.checkpoint()`, and its place in the stream."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from akrunner.errors import ConfigError
from akrunner.foreign import ours
from akrunner.wire import saves


@dataclass(frozen=True)
class Newest:
    """With which save an attempt begins.

    Attributes:
        number: the number of the save; 0: there is none.
        place: its place in the stream; None: the rows begin as if there were no save.
    """

    number: int = 0
    place: Mapping[str, Any] | None = None


def newest_of(checkpoint_dir: str, tasks: Sequence[str], resume: bool, run_id: str) -> Newest:
    """Return the newest save that all tasks have made in the same attempt.

    Args:
        checkpoint_dir: the job's directory for checkpoints.
        tasks: the names of the tasks that get rows.
        resume: whether an earlier job's saves count, too.
        run_id: what tells this job from every other one.
    Raises:
        ConfigError: a save is damaged, or is none of a stream.
    """
    with ours(ConfigError, f"checkpoint_dir: the saves in {checkpoint_dir} cannot be read"):
        try:
            number = saves.newest(checkpoint_dir, tasks)
            if not number:
                return Newest()
            every = [saves.read(saves.folder_of(checkpoint_dir, task), number) for task in tasks]
        except ValueError as e:
            raise ConfigError(str(e)) from None
    if not resume and every[0].get("run_id") != run_id:
        # the task says that they are in the way, if the script saves at all
        return Newest()
    places: list[Any] = [said.get("place") for said in every]
    if not all(isinstance(one, Mapping) for one in places):
        raise ConfigError(
            f"checkpoint_dir: {os.path.join(checkpoint_dir, saves.FOLDER)} holds the saves of a job over a table (run, train), and "
            "a stream cannot go on there: name another checkpoint_dir"
        )
    if any(one != places[0] for one in places):
        # all tasks save at the same marks, so that somebody has changed them
        raise ConfigError(
            f"checkpoint_dir: the saves {saves.name_of(number)} of {', '.join(tasks)} are of different places in the stream: "
            "remove them, and the job goes on with those before"
        )
    return Newest(number, places[0])
