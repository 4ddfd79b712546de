"""A job built into a PyFlink program: it runs when the program executes it."""

from __future__ import annotations

import threading
from typing import Any, Callable, Optional

from akrunner.engines.base import Outcome
from akrunner.engines.flink.subtasks import Subtasks
from akrunner.errors import AkrunnerError, JobError


class Attached:
    """Attributes: table: PyFlink Table of what the scripts write. Executing it, once, runs the tasks."""

    def __init__(self, table: Any, subtasks: Subtasks, run: Callable[[], Outcome]) -> None:
        """Args: run: the gang, from the first place having come to its end."""
        self.table = table
        self._subtasks = subtasks
        self._run = run
        self._outcome: Optional[Outcome] = None
        self._error: Optional[BaseException] = None
        self._thread = threading.Thread(target=self._work, name="akrunner-attached", daemon=True)
        self._thread.start()

    def _work(self) -> None:
        self._subtasks.wait_for_first()
        try:
            self._outcome = self._run()
            self._subtasks.leave()
        except BaseException as e:
            self._error = e
            # Flink's job fails with it, and so tells whoever waits for that
            self._subtasks.leave(f"{type(e).__name__}: {e}")
        finally:
            self._subtasks.disconnect()

    def wait(self, seconds: Optional[float] = None) -> Outcome:
        """What became of the tasks, once the program has executed the table and they have ended.

        Raises: JobError: they failed; TimeoutError: they have not ended within that time.
        """
        self._thread.join(seconds)
        if self._thread.is_alive():
            raise TimeoutError("the tasks have not ended; have you executed the table?")
        if self._error is not None:
            raise self._error if isinstance(self._error, AkrunnerError) else JobError(str(self._error))
        assert self._outcome is not None
        return self._outcome
