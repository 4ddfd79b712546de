"""Watches whether a cluster's JobManager is there, and what it says of a job: it is asked every second, whatever else may
hang."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from akrunner.engines.flink.rest import Address, Rest
from akrunner.errors import ClusterError, JobManagerLostError

_EVERY_SECONDS = 1.0
#: seconds that one question may take
_ASK_SECONDS = 4.0
#: seconds without an answer after which the JobManager counts as gone, and how often it must have been asked in vain
_GONE_SECONDS = 8.0
_GONE_ASKS = 2


class Watch:
    """Asks a JobManager in a thread of its own. Must be closed.

    Args:
        master: the cluster's address.
        job: returns Flink's id of the job; "" while it is not known: the cluster itself is asked then.
    Attributes:
        state: Flink's latest word for the job's state; "" before the first.
    """

    def __init__(self, master: Address, job: Callable[[], str]) -> None:
        self._rest = Rest(master, _ASK_SECONDS, keep=True)
        self._job = job
        self.state = ""
        self._answered: float | None = None
        self._unanswered = 0
        self._why = ""
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._work, name="akrunner-watch", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._closed.set()

    def check(self) -> None:
        """Check that the JobManager answers.

        Raises:
            JobManagerLostError: it has not answered for some seconds. Not raised if it never has answered.
        """
        silent = self._answered is not None and time.monotonic() - self._answered > _GONE_SECONDS
        if silent and self._unanswered >= _GONE_ASKS:
            raise JobManagerLostError(
                f"the JobManager at {self._rest.master} is gone: {self._why}; what it ran has ended with it, or cannot be known"
            )

    def asked(self) -> bool:
        """Ask now, besides the thread. Returns whether there was an answer, or never was one."""
        self._ask()
        return self._unanswered == 0 or self._answered is None

    def _work(self) -> None:
        while not self._closed.wait(_EVERY_SECONDS):
            try:
                self._ask()
            except Exception as e:
                # a fault of akrunner counts as silence, and is given as the reason
                self._missed(f"{type(e).__name__}: {e}")
        self._rest.close()

    def _ask(self) -> None:
        job = self._job()
        try:
            if job:
                self.state = self._rest.state(job)
            else:
                self._rest.overview()
            self._answered, self._unanswered = time.monotonic(), 0
        except ClusterError as e:
            self._missed(
                f"one that does not know the job {job} answers in its place" if e.missing else str(e).partition(": ")[2]
            )

    def _missed(self, why: str) -> None:
        self._unanswered += 1
        self._why = why
