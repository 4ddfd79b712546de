"""Python that the input pipeline calls (generators, `py_function`, `numpy_function`): how long it took, and how long it computed meanwhile.

What took long and did not compute has waited: for a network, a lock, a clock.
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
    """Attributes: calls; wall, computed: ns of all of them together, which may be more than there were: several run at once."""

    def __init__(self) -> None:
        self.calls = self.wall = self.computed = 0

    def record(self) -> Dict[str, Any]:
        """JSON, seconds."""
        return {"calls": self.calls, "wall": self.wall * 1e-9, "computed": self.computed * 1e-9}


def _of_thread() -> int:
    """ns that this thread has computed."""
    try:
        return _computed()
    except OSError:
        # a machine that does not tell: it is as if everything waited
        return 0


def install(calls: Calls) -> None:
    """Have TensorFlow's calls of Python counted."""
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
