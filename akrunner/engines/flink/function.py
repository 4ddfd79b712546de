"""What runs in Flink: a function whose only element keeps it for as long as its task lives."""

from __future__ import annotations

from typing import Any, Iterator, Tuple

from pyflink.datastream import ProcessFunction


class Subtask(ProcessFunction):  # type: ignore[misc, unused-ignore]
    """One task's place."""

    def __init__(self, address: Tuple[str, int], token: str) -> None:
        self._address = address
        self._token = token

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        from akrunner.engines.flink import agent

        agent.work(self._address, self._token)
        return iter(())
