"""Where the saves of `task_config.checkpoint()` are. Tasks write them; a stream's host reads where its rows go on.

::

    checkpoint_dir/akrunner-saves/worker-0/00000002/     the second save of worker:0, complete as soon as it has this name
                                           position.json    which rows the model has been trained on
"""

import errno
import json
import os
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

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


def stamp(said: Dict[str, Any]) -> Tuple[Any, Any]:
    """Return what tells the attempt that has made a save from every other one. Args: said: the save's `position.json`."""
    return said.get("run_id"), said.get("attempt")


def newest(checkpoint_dir: str, tasks: Sequence[str], counts: Optional[Callable[[Tuple[Any, Any]], bool]] = None) -> int:
    """Return the number of the newest saves that belong together: all these tasks have made them, in the same attempt.

    An attempt that fails early leaves saves of the attempt before to some tasks, while others have saved anew under these
    numbers: such saves are of different rows, and count for nothing.

    Args:
        checkpoint_dir: the job's directory for checkpoints.
        tasks: the names of the tasks.
        counts: whether saves with a stamp count; None: they all do.
    Returns:
        0 if there are none.
    Raises:
        ValueError, OSError: as `numbers` and `read`.
    """
    folders = [folder_of(checkpoint_dir, task) for task in tasks]
    for number in sorted(set.intersection(*(set(numbers(folder)) for folder in folders)), reverse=True):
        stamps = [_stamp(folder, number) for folder in folders]
        if stamps[0] is not None and stamps.count(stamps[0]) == len(stamps) and (counts is None or counts(stamps[0])):
            return number
    return 0


def _stamp(folder: str, number: int) -> Optional[Tuple[Any, Any]]:
    """Return the stamp of a save; None if its task has just removed it. Raises: ValueError: it is damaged."""
    try:
        return stamp(read(folder, number))
    except ValueError:
        if os.path.isdir(os.path.join(folder, name_of(number))):
            raise
        return None


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
