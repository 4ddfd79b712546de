"""Starts the tasks of one attempt: with a warm worker if there is one that fits, else cold."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from akrunner.launch.process import LocalProcess, worker_process
from akrunner.spares import client, registry
from akrunner.spares.client import Handed
from akrunner.spares.hazards import hazard
from akrunner.spares.spare import Spare
from akrunner.spares.wanted import Wanted, surroundings

OFF = "AKRUNNER_WARM"
WARM = "warm"
COLD = "cold"


class Starts:
    """Starts the worker processes of one attempt.

    Attributes:
        told: task -> "warm"; "cold" if there are no warm workers; or "cold: " and the reason.
        marks: the marks of the warm workers that were taken; the job's own mark is not among them
            (`akrunner.wire.ending.MARK`).
        since: the time at which the oldest of these workers was started, if that is before the time it was made with.
    """

    def __init__(self, python: str, overlay: str, task_env: Mapping[str, str], since: float) -> None:
        self.told: dict[str, str] = {}
        self.marks: list[str] = []
        self.since = since
        self._python = python
        self._overlay = overlay
        self._task_env = task_env
        self._hazard: str | None = None
        self._wants: list[Wanted] = []

    def start(self, task: str, env: Mapping[str, str], cpus: Sequence[int], cwd: str, bundle: str) -> LocalProcess:
        """Start a task's worker process.

        Args:
            env: the whole environment of the process.
            cwd: the directory with the job's files.
        Raises:
            OSError: it cannot be started.
        """
        if os.environ.get(OFF) != "0":
            spare, why = self._taken(env, cpus, cwd)
            if spare is not None:
                self.told[task] = WARM
                self.marks.append(spare.mark)
                self.since = min(self.since, spare.began)
                return spare.order(env, cwd, bundle)
            self.told[task] = f"{COLD}: {why}" if why else COLD
        else:
            self.told[task] = COLD
        return worker_process(self._python, bundle, env, cwd)

    def ended(self) -> None:
        """Note that the attempt's processes have ended."""
        registry.after_job(self._wants)

    def _taken(self, env: Mapping[str, str], cpus: Sequence[int], cwd: str) -> tuple[Spare | Handed | None, str]:
        """Return a warm worker for a task, or None and the reason, in words.

        The worker comes from a pool of this process if there is one, else from the process that keeps workers for all
        (`akrunner warm start`).
        """
        pools = registry.pools(self._python)
        nobody = not pools and not client.is_there()
        if nobody and not registry.in_notebook():
            return None, ""
        if self._hazard is None:
            self._hazard = relative(env.get("PYTHONPATH", "")) or hazard(cwd)
        if self._hazard and (not pools or pools[0].preload):
            return None, self._hazard if not nobody else ""
        wanted = Wanted(self._python, dict(env), self._overlay, tuple(cpus), dict(self._task_env), surroundings())
        if nobody:
            self._wants.append(wanted)
            return None, ""
        names = os.listdir(cwd)
        if not pools:
            return client.take(wanted, names)
        noted = pools[0].note(wanted)
        reasons = []
        for pool in pools:
            spare, why = pool.take(wanted, names, noted)
            if spare is not None:
                return spare, ""
            reasons.append(why)
        return None, reasons[0]


def relative(module_path: str) -> str:
    """Return why PYTHONPATH rules a warm worker out, in words; "" if it does not. Each task has a directory of its own, so a
    relative entry means another directory for each.
    """
    entries = [entry for entry in module_path.split(os.pathsep) if entry not in ("", ".") and not os.path.isabs(entry)]
    return f"PYTHONPATH has {entries[0]!r}, which is another directory for each task" if entries else ""
