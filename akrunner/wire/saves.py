"""Where the saves of `task_config.checkpoint()` are. Tasks write them; a stream's host reads where its rows go on.

::

    checkpoint_dir/akrunner-saves/worker-0/00000002/     the second save of worker:0, complete as soon as it has this name
                                           position.json    which rows the model has been trained on
"""

import errno
import json
import os
from typing import Any, Dict, List, Sequence

#: directory of the saves below `checkpoint_dir`
FOLDER = "akrunner-saves"
POSITION = "position.json"
#: the version of `position.json`
VERSION = 1


def folder_of(checkpoint_dir: str, task: str) -> str:
    """Return the directory of a task's saves. Args: task: the task's name."""
    return os.path.join(checkpoint_dir, FOLDER, task.replace(":", "-"))


def name_of(number: int) -> str:
    """Return the name of a save's directory."""
    return "%08d" % number


def numbers(folder: str) -> List[int]:
    """Return the numbers of the complete saves in a task's directory, in order.

    Raises:
        ValueError: a file is in the place of the directory.
        OSError: it cannot be read.
    """
    try:
        names = os.listdir(folder)
    except NotADirectoryError:
        while not os.path.lexists(folder):
            folder = os.path.dirname(folder)
        raise ValueError(
            "checkpoint_dir: %s is a file, and the saves of checkpoint() belong into a directory of that name: remove the file, or "
            "name another checkpoint_dir" % folder
        ) from None
    except OSError as e:
        if e.errno != errno.ENOENT:
            raise
        return []
    return sorted(int(name) for name in names if name.isdigit())


def common(checkpoint_dir: str, tasks: Sequence[str]) -> List[int]:
    """Return the numbers of the saves that all these tasks have, in order. Raises: as `numbers`."""
    return sorted(set.intersection(*(set(numbers(folder_of(checkpoint_dir, task))) for task in tasks)))


def read(folder: str, number: int) -> Dict[str, Any]:
    """Return what `position.json` of a save says. Raises: ValueError: it is damaged."""
    path = os.path.join(folder, name_of(number))
    try:
        with open(os.path.join(path, POSITION)) as f:
            said: Dict[str, Any] = json.load(f)
            if isinstance(said, dict):
                return said
            why = "it is no JSON object"
    except (FileNotFoundError, NotADirectoryError, ValueError) as e:
        why = str(e)
    raise ValueError(
        "checkpoint_dir: %s is damaged: %s: %s; remove that directory, and the job goes on with the save before it"
        % (path, POSITION, why)
    )
