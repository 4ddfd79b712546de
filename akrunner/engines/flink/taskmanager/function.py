"""The functions that Flink runs. Each of their subtasks runs tasks, or a detached job's host."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any

from pyflink.datastream import ProcessFunction, RuntimeContext

#: the kinds of elements that `ArrowPack.java` sends
HELLO, ROWS, END, TICK, BARRIER = range(5)
#: an element that begins with this byte holds the words with which `ArrowUnpack.java` makes the job fail for good
FINAL = b"\0"
_TICK = 0.05
_HOST_SECONDS = 5.0


class Subtask(ProcessFunction):  # type: ignore[misc, unused-ignore]
    """A subtask that runs tasks whose rows come from the host, if they get any. Its only element keeps it busy for as
    long as they live.

    Args:
        door: the host's door, as `Door.carried` gives it.
    """

    def __init__(self, door: Mapping[str, Any]) -> None:
        self._door = door

    def open(self, runtime_context: RuntimeContext) -> None:
        self._who = _who(runtime_context)

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        from akrunner.engines.flink.keys import Door
        from akrunner.engines.flink.taskmanager import agent

        agent.work(Door.of(self._door), **self._who)
        return iter(())


def _who(runtime_context: RuntimeContext) -> dict[str, Any]:
    return {"subtask": runtime_context.get_index_of_this_subtask(), "attempt": runtime_context.get_attempt_number()}


class HostSubtask(ProcessFunction):  # type: ignore[misc, unused-ignore]
    """The subtask of a detached job's host. Its first element starts the host and tells the other subtasks where it is;
    its second waits for the host's end.

    Args:
        count: how many other subtasks there are.
        module: the module that the host process runs.
        tag: marks its lines in the log.
        secrets: values that the host gets through a pipe only.
    """

    def __init__(self, count: int, module: str, tag: str, secrets: Mapping[str, Any]) -> None:
        self._count = count
        self._module = module
        self._tag = tag
        self._secrets = secrets

    def process_element(self, value: Any, ctx: Any) -> Iterator[str]:
        from akrunner.engines.flink.taskmanager import detached_host

        if value == detached_host.START:
            self._host = detached_host.Host(self._module, self._tag, self._secrets)
            yield from [self._host.told()] * self._count
        else:
            self._host.wait()


class DetachedSubtask(ProcessFunction):  # type: ignore[misc, unused-ignore]
    """A subtask that runs a task of a detached job. Its only element says where the host is.

    Args:
        keys: the agents' keys.
    """

    def __init__(self, keys: Mapping[str, str]) -> None:
        self._keys = keys

    def open(self, runtime_context: RuntimeContext) -> None:
        self._who = _who(runtime_context)

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        from akrunner.engines.flink.keys import Keys
        from akrunner.engines.flink.taskmanager import agent, detached_host

        try:
            agent.work(detached_host.reached(value, Keys(**self._keys)), **self._who)
        except (agent.HostGone, OSError):
            # if the host was killed, the connection ends, or is reset. The host's own subtask knows why, and is to fail first
            time.sleep(_HOST_SECONDS)
            raise
        return iter(())


class FedSubtask(ProcessFunction):  # type: ignore[misc, unused-ignore]
    """A subtask that runs a task whose rows come to the subtask itself, as `ArrowPack.java` sends them.

    Args:
        door: as for `Subtask`.
        goes_on: whether its output goes through `ArrowUnpack.java` into the job's own sinks, so that checkpoints must
            wait for it.
    """

    def __init__(self, door: Mapping[str, Any], goes_on: bool) -> None:
        self._door = door
        self._goes_on = goes_on

    def open(self, runtime_context: RuntimeContext) -> None:
        self._who = _who(runtime_context)
        self._agent: threading.Thread | None = None
        self._failed: BaseException | None = None
        self._barrier = 0
        self._unanswered = False

    def process_element(self, value: Any, ctx: Any) -> Iterator[bytes]:
        kind, data = value
        if self._agent is None:
            from akrunner.engines.flink.taskmanager.feed import Feed

            self._feed = Feed()
            job = bytes(data).decode() if kind == HELLO else ""
            self._agent = threading.Thread(target=self._work, args=(job,), name="akrunner-agent", daemon=True)
            self._agent.start()
        if kind in (ROWS, END):
            self._unanswered = True
            yield from self._put(data if kind == ROWS else None)
        while kind == END and self._agent.is_alive():
            yield from self._feed.taken(_TICK)
        if kind == BARRIER and self._unanswered and self._goes_on:
            yield from self._drain(self._agent)
        yield from self._feed.taken()
        if self._failed is not None:
            yield from self._fail(self._failed)

    def _put(self, what: Any) -> Iterator[bytes]:
        # a task that waits until its output is taken takes no rows
        while not self._feed.put(what, _TICK):
            yield from self._feed.taken()

    def _drain(self, agent: threading.Thread) -> Iterator[bytes]:
        """Wait until the task has answered every row that it was given: a checkpoint counts them as done."""
        self._barrier += 1
        yield from self._put(self._barrier)
        while not self._feed.answered(self._barrier) and agent.is_alive():
            yield from self._feed.taken(_TICK)
        self._unanswered = False

    def _fail(self, error: BaseException) -> Iterator[bytes]:
        from akrunner.engines.flink.taskmanager.agent import JobFailed

        if not (self._goes_on and isinstance(error, JobFailed) and error.final):
            raise error
        # an exception in Python would make Flink start the job again
        yield FINAL + str(error).encode()

    def _work(self, job: str) -> None:
        from akrunner.engines.flink.keys import Door
        from akrunner.engines.flink.taskmanager import agent

        try:
            agent.work(Door.of(self._door), self._feed, job=job, **self._who)
        except BaseException as e:
            self._failed = e
        finally:
            self._feed.close()
