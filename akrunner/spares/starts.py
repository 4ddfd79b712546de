"""How the tasks of one attempt are started: by a warm worker where there is one that fits, else cold."""

from __future__ import annotations

import os
from typing import Dict, List, Mapping, Optional, Sequence

from akrunner.launch.process import ChildProcess, worker_process
from akrunner.spares import registry
from akrunner.spares.hazards import hazard
from akrunner.spares.wanted import Wanted, surroundings

OFF = "AKRUNNER_WARM"
WARM = "warm"
COLD = "cold"


class Starts:
    """Of one attempt.

    Attributes:
        told: task -> "warm"; "cold", where there are no warm workers; or "cold: " and why.
        marks: of the warm workers taken, beside the job's own (`akrunner.wire.ending.MARK`); since: when the oldest was started.
    """

    def __init__(self, python: str, overlay: str, task_env: Mapping[str, str], since: float) -> None:
        self.told: Dict[str, str] = {}
        self.marks: List[str] = []
        self.since = since
        self._python = python
        self._overlay = overlay
        self._task_env = task_env
        self._hazard: Optional[str] = None

    def start(self, task: str, env: Mapping[str, str], cpus: Sequence[int], cwd: str, bundle: str) -> ChildProcess:
        """Start a task's process. Args: env: all of its environment; cwd: where the job's files are laid out.

        Raises: OSError: it cannot be started.
        """
        self.told[task] = COLD
        if os.environ.get(OFF) == "0":
            return worker_process(self._python, bundle, env, cwd)
        wanted = Wanted(self._python, dict(env), self._overlay, tuple(cpus), dict(self._task_env), surroundings())
        why = ""
        for pool in registry.pools():
            if pool.preload and self._hazard is None:
                self._hazard = hazard(cwd)
            pool.note(wanted)
            why = self._hazard if pool.preload and self._hazard else ""
            if not why:
                spare, why = pool.take(wanted, os.listdir(cwd))
                if spare is not None:
                    self.told[task] = WARM
                    self.marks.append(spare.mark)
                    self.since = min(self.since, spare.began)
                    return spare.order(env, cwd, bundle)
        if why:
            self.told[task] = f"{COLD}: {why}"
        return worker_process(self._python, bundle, env, cwd)
