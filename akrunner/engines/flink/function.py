"""What runs in Flink: functions whose subtasks are tasks' places."""

from __future__ import annotations

import threading
import time
from typing import Any, Iterator, Optional, Tuple

from pyflink.datastream import ProcessFunction, RuntimeContext

#: what `ArrowPack.java` sends
ROWS, END = 1, 2
_TICK = 0.05
_HOST_SECONDS = 5.0


class Subtask(ProcessFunction):  # type: ignore[misc, unused-ignore]
    """A place for tasks whose rows come from the submitter, if any do: its only element keeps it for as long as they live."""

    def __init__(self, address: Tuple[str, int], token: str) -> None:
        self._address = address
        self._token = token

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        from akrunner.engines.flink import agent

        agent.work(self._address, self._token)
        return iter(())


class HostSubtask(ProcessFunction):  # type: ignore[misc, unused-ignore]
    """The host of a detached job: its first element starts it and tells the places where it is, its second waits for its end."""

    def __init__(self, count: int, tag: str) -> None:
        self._count = count
        self._tag = tag

    def process_element(self, value: Any, ctx: Any) -> Iterator[str]:
        from akrunner.engines.flink import hosting

        if value == hosting.START:
            self._host = hosting.Host(self._tag)
            yield from [self._host.told()] * self._count
        else:
            self._host.wait()


class HostedSubtask(ProcessFunction):  # type: ignore[misc, unused-ignore]
    """A place for a task of a detached job; its only element says where the host is."""

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        from akrunner.engines.flink import agent, hosting

        try:
            agent.work(*hosting.reached(value))
        except agent.SubmitterGone:
            # the host's own subtask knows why, and is heard first then
            time.sleep(_HOST_SECONDS)
            raise
        return iter(())


class FedSubtask(ProcessFunction):  # type: ignore[misc, unused-ignore]
    """A place for a task whose rows come to the subtask itself, as `ArrowPack.java` sends them."""

    def __init__(self, address: Tuple[str, int], token: str) -> None:
        self._address = address
        self._token = token

    def open(self, runtime_context: RuntimeContext) -> None:
        self._number = runtime_context.get_index_of_this_subtask()
        self._agent: Optional[threading.Thread] = None
        self._failed: Optional[BaseException] = None

    def process_element(self, value: Any, ctx: Any) -> Iterator[bytes]:
        if self._agent is None:
            from akrunner.engines.flink.feed import Feed

            self._feed = Feed()
            self._agent = threading.Thread(target=self._work, name="akrunner-agent", daemon=True)
            self._agent.start()
        if value[0] in (ROWS, END):
            # a task that waits for its output to be taken takes no rows
            while not self._feed.put(value[1] if value[0] == ROWS else None, _TICK):
                yield from self._feed.taken()
        while value[0] == END and self._agent.is_alive():
            yield from self._feed.taken(_TICK)
        yield from self._feed.taken()
        if self._failed is not None:
            raise self._failed

    def _work(self) -> None:
        from akrunner.engines.flink import agent

        try:
            agent.work(self._address, self._token, self._number, self._feed)
        except BaseException as e:
            self._failed = e
        finally:
            self._feed.close()
