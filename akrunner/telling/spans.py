"""A job as spans of OpenTelemetry, where the program around it has set OpenTelemetry up (`opentelemetry-instrument akrunner run ...`, say).

::

    the span around the call, if there is one
      akrunner run                    from the call to its end
        starting, importing, ready,   what each task is doing, one span after the other, by the words of `TaskState`;
        running, finished, ...        none for a state that is over before the next look, which comes ten times a second

akrunner chooses no exporter: it asks the program's own provider for a tracer.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from akrunner.engines.base import Progress

_LIBRARY = "opentelemetry.trace"
#: attribute of a job's span -> the number among its stats
_NUMBERS = {
    "akrunner.rows_in": "rows_in",
    "akrunner.rows_out": "rows_out",
    "akrunner.bytes_in": "bytes_in",
    "akrunner.bytes_out": "bytes_out",
}


class Spans:
    """The spans of one job.

    Args: verb, script: what runs.
    """

    what: ClassVar[str] = "spans"

    def __init__(self, verb: str, script: str) -> None:
        from opentelemetry import trace

        self._trace = trace
        self._tracer = trace.get_tracer("akrunner")
        self._job = self._tracer.start_span(f"akrunner {verb}", attributes={"akrunner.script": script})
        self._inside = trace.set_span_in_context(self._job)
        #: task -> what it is doing, by (attempt, state), and the span of that
        self._tasks: dict[str, tuple[tuple[int, str], Any]] = {}
        self._warned = 0

    @staticmethod
    def wanted() -> bool:
        """Whether the program has imported OpenTelemetry. If it has set up no provider, the spans are none, and cost nothing."""
        return _LIBRARY in sys.modules

    def begun(self, run: str | None) -> None:
        """Take the name under which the run is kept."""
        if run is not None:
            self._job.set_attribute("akrunner.run", run)

    def progress(self, progress: Progress) -> None:
        """Begin a span for each task that does something else now."""
        for warning in progress.warnings[self._warned :]:
            self._job.add_event("warning", {"message": warning})
        self._warned = max(self._warned, len(progress.warnings))
        for task, state in progress.states.items():
            doing = (progress.attempt, state)
            before = self._tasks.get(task)
            if before is not None and before[0] == doing:
                continue
            if before is not None:
                before[1].end()
            about = {"akrunner.task": task, "akrunner.attempt": progress.attempt}
            self._tasks[task] = doing, self._tracer.start_span(state, self._inside, attributes=about)

    def log(self, task: str, line: str) -> None:
        """Do nothing: lines are no spans."""

    def ended(self, body: Mapping[str, Any]) -> None:
        """End all spans. Args: body: as `Listener.ended` has it."""
        for _, span in self._tasks.values():
            span.end()
        self._job.set_attribute("akrunner.exit_code", body["exit_code"])
        if body["ok"]:
            for name, field in _NUMBERS.items():
                self._job.set_attribute(name, body["stats"].get(field, 0))
        else:
            what = f"{body['error']}: {body['message']}"
            trace = (body["failure"] or {}).get("traceback", "")
            about = {"exception.type": body["error"], "exception.message": body["message"], "exception.stacktrace": trace}
            self._job.add_event("exception", about)
            self._job.set_status(self._trace.Status(self._trace.StatusCode.ERROR, what))
        self._job.end()
