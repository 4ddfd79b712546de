"""The engine in the host of a detached job: it uses subtasks that it neither starts nor ends."""

from __future__ import annotations

import dataclasses
import socket
import threading
from collections.abc import Callable, Mapping

import psutil

from akrunner.engines.base import Observer, Outcome, RowSink, RowSource
from akrunner.engines.flink.host.client import Submission
from akrunner.engines.flink.host.engine import FlinkEngine
from akrunner.engines.flink.host.issue import JobKeys
from akrunner.engines.flink.host.subtasks import Subtasks
from akrunner.engines.flink.host.table import FlinkTable
from akrunner.engines.flink.keys import Keys
from akrunner.engines.flink.program.submit import Order
from akrunner.spec import JobSpec

_EVERYWHERE = "0.0.0.0"


class DetachedEngine(FlinkEngine):
    """Runs the job in the host of a detached job.

    Args:
        say: called once with where the subtasks find this process: `addresses`, `port`, `rows`, `machine`.
        files_there, port: as for `FlinkEngine`.
        keys: the keys of this end, as plain values.
        kept: the directory in which it keeps the course of the job; None: nowhere.
    """

    def __init__(
        self,
        say: Callable[..., None],
        files_there: bool | None,
        keys: Mapping[str, str],
        port: int | None,
        kept: str | None = None,
    ) -> None:
        super().__init__(files_there=files_there, port=port)
        # the agents have their keys from the submitter
        self._keys = JobKeys(Keys(**keys), Keys(""))
        self.tls = self._keys.host.tls
        # no cluster's address, as nothing is submitted, and not "local": its tasks are on other machines
        self.master = "detached"
        self._say = say
        self._course = kept

    def run(
        self,
        job: JobSpec,
        source: RowSource,
        sink: RowSink | None,
        observer: Observer | None,
        cancel: threading.Event | None = None,
    ) -> Outcome:
        self._subtasks = Subtasks(_Told(self._say), _EVERYWHERE, len(job.cluster.tasks), {}, self._keys, port=self.port)
        try:
            return super().run(dataclasses.replace(job, kept=self._course), source, sink, observer, cancel)
        finally:
            # the host itself reports how the job went
            self._subtasks.leave()
            self._subtasks.disconnect()

    def check(self, job: JobSpec, table: FlinkTable | None = None) -> None:
        """Check the resources only: the submitter has checked all else."""
        self._check_resources(job)

    def acquire(self, count: int, name: str) -> Subtasks:
        """Return the same subtasks for every attempt."""
        return self._subtasks

    def release(self, subtasks: Subtasks) -> None:
        """Do nothing: the subtasks stay until the job ends."""


class _Told:
    """Takes the place of a submitter: Flink runs the job already."""

    def __init__(self, say: Callable[..., None]) -> None:
        self._say = say

    def submit(self, order: Order) -> Submission:
        door = order["door"]
        self._say(addresses=addresses(), port=door["port"], rows=door["rows"], machine=socket.gethostname())
        return Submission()

    def cancel(self, job: Submission) -> None:
        pass

    def hurry(self, job: Submission) -> None:
        pass

    def close(self) -> None:
        pass


def addresses() -> list[str]:
    """Return this machine's addresses; those that other machines can reach come first."""
    found = [
        address.address
        for name, every in psutil.net_if_addrs().items()
        for address in every
        if address.family == socket.AF_INET and psutil.net_if_stats()[name].isup
    ]
    return sorted(found, key=lambda address: address.startswith("127."))
