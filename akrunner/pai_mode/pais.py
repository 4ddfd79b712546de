"""What PAI calls the tasks: its worker 0 is the chief here, and its worker 1 is worker:0. Whoever comes from PAI looks for its numbers."""

from __future__ import annotations

import contextlib
import dataclasses
import re
from collections.abc import Iterator, Mapping

from akrunner.errors import JobError
from akrunner.spec import ClusterSpec

#: a task where it is named; not in a command line that wants its name alone
_TASK = re.compile(r"(?<!--task )(?<![\w/:.-])\[?((?:chief|worker):\d+)\b\]?(?!\]| \(PAI)")


def names(cluster: ClusterSpec) -> dict[str, str]:
    """Name of a task -> PAI's. Of a script that is told of no other task: none."""
    workers = [task for task in cluster.tasks if task.role in ("chief", "worker")] if cluster.flags else []
    return {task.name: f"PAI's worker {number}" for number, task in enumerate(workers)}


def both(text: str, known: Mapping[str, str]) -> str:
    """A text with PAI's name behind each task's. Args: known: `names`."""
    return _TASK.sub(lambda found: found[0] + (f" ({known[found[1]]})" if found[1] in known else ""), text)


@contextlib.contextmanager
def telling(known: Mapping[str, str]) -> Iterator[None]:
    """The error of a job has both names."""
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
