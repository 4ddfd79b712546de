"""PAI's names of the tasks: its worker 0 is the chief here, and its worker 1 is worker:0.

Users who come from PAI look for its numbers, so errors show both names.
"""

from __future__ import annotations

import contextlib
import dataclasses
import re
from collections.abc import Iterator, Mapping

from akrunner.errors import JobError
from akrunner.spec import ClusterSpec

#: a task's name in a text; not where a command line must have the name alone (`--task chief:0`)
_TASK = re.compile(r"(?<!--task )(?<![\w/:.-])\[?((?:chief|worker):\d+)\b\]?(?!\]| \(PAI)")


def names(cluster: ClusterSpec) -> dict[str, str]:
    """Return a dict: a task's name -> PAI's name of it. It is empty if the script is not told of other tasks."""
    workers = [task for task in cluster.tasks if task.role in ("chief", "worker")] if cluster.flags else []
    return {task.name: f"PAI's worker {number}" for number, task in enumerate(workers)}


def both(text: str, known: Mapping[str, str]) -> str:
    """Return a text with PAI's name after the name of each task. Args: known: as `names` returns them."""
    return _TASK.sub(lambda found: found[0] + (f" ({known[found[1]]})" if found[1] in known else ""), text)


@contextlib.contextmanager
def telling(known: Mapping[str, str]) -> Iterator[None]:
    """Put PAI's names into a `JobError` that the block raises. Args: known: as `names` returns them."""
    try:
        yield
    except JobError as e:
        e.args = (both(str(e.args[0]), known), *e.args[1:]) if e.args else e.args
        e.others = tuple(
            dataclasses.replace(one, what=f"({known[one.task]}) {one.what}") if one.task in known else one for one in e.others
        )
        e.warnings = tuple(both(one, known) for one in e.warnings)
        raise


__all__ = ["both", "names", "telling"]
