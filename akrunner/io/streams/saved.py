"""Where a stream goes on: the place in it that the newest save of `task_config.checkpoint()` has."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from akrunner.errors import ConfigError
from akrunner.foreign import ours
from akrunner.wire import saves


def place_of(checkpoint_dir: str, tasks: Sequence[str], resume: bool, run_id: str) -> Mapping[str, Any] | None:
    """Return the place that the newest save has which all tasks have; None if the rows begin as if there were none.

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
            found = saves.common(checkpoint_dir, tasks)
            if not found:
                return None
            every = [saves.read(saves.folder_of(checkpoint_dir, task), found[-1]) for task in tasks]
        except ValueError as e:
            raise ConfigError(str(e)) from None
    if not resume and every[0].get("run_id") != run_id:
        # the task says that they are in the way, if the script saves at all
        return None
    places: list[Any] = [said.get("place") for said in every]
    if not all(isinstance(one, Mapping) for one in places):
        raise ConfigError(
            f"checkpoint_dir: {os.path.join(checkpoint_dir, saves.FOLDER)} holds the saves of a job over a table (run, train), and "
            "a stream cannot go on there: name another checkpoint_dir"
        )
    if any(one != places[0] for one in places):
        raise ConfigError(
            f"checkpoint_dir: the saves {saves.name_of(found[-1])} of {', '.join(tasks)} are of different places in the stream: "
            "remove them, and the job goes on with those before"
        )
    place: Mapping[str, Any] = places[0]
    return place
