"""Times the Python code that the input pipeline calls (generators, `py_function`, `numpy_function`), and how long it computed.

Code that took long and did not compute has waited: for a network, a lock or a clock.
"""

from __future__ import annotations

import functools
import sys
import time
from typing import Any, Dict

from akrunner.worker.waits import shown

_clock = time.perf_counter_ns
_computed = time.thread_time_ns


class Calls(object):
    """The calls of Python code by the pipelines.

    Attributes:
        calls: their number.
        wall, computed: ns of all calls together, and ns of processor time. They may exceed the time that has passed, because
            several calls run at once.
    """

    def __init__(self) -> None:
        self.calls = self.wall = self.computed = 0

    def record(self) -> Dict[str, Any]:
        """Return the numbers as JSON values, with times in seconds."""
        return {"calls": self.calls, "wall": self.wall * 1e-9, "computed": self.computed * 1e-9}


def _of_thread() -> int:
    """Return the ns that this thread has computed."""
    try:
        return _computed()
    except OSError:
        # this machine does not tell: all time counts as waiting
        return 0


def install(calls: Calls) -> None:
    """Have TensorFlow's calls of Python code counted and timed."""
    kind = sys.modules["tensorflow.python.ops.script_ops"].FuncRegistry
    real = kind.__call__

    @functools.wraps(real)
    @shown.named
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        began, computed = _clock(), _of_thread()
        try:
            return real(self, *args, **kwargs)
        finally:
            calls.calls += 1
            calls.computed += _of_thread() - computed
            calls.wall += _clock() - began

    kind.__call__ = call
