"""Whether all messages that a topic has have come, which tells a pause of a stream from messages that are on their way."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable, Mapping

#: seconds without a message after which partitions that do not tell their end are no longer waited for
PATIENCE_SECONDS = 30.0


class Ends:
    """The ends of the partitions that a consumer has, as the brokers tell them when they have no more messages.

    A partition whose broker is slow to answer, or is away while others are there, has not told its end.

    Args:
        name: the topic, in warnings.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        #: partition -> the offset behind its last message, when that was told last
        self._told: dict[int, int] = {}
        self._came = time.monotonic()
        self._warned = False

    def came(self) -> None:
        """Note that messages, or partitions, have come, or that brokers are back."""
        self._came = time.monotonic()

    def told(self, partition: int, offset: int) -> None:
        """Note that a partition has no messages from this offset on."""
        self._told[partition] = offset

    def forget(self, partitions: Iterable[int]) -> None:
        """Forget partitions that are given to, or taken from, the consumer."""
        for one in partitions:
            self._told.pop(one, None)

    def reached(self, partitions: Iterable[int], at: Mapping[int, int]) -> bool:
        """Whether all messages of these partitions have come; so it is taken to be, with a warning, if none came for long.

        Args:
            at: partition -> the offset of the next message, as far as that is known.
        """
        behind = [one for one in partitions if self._told.get(one, -1) < at.get(one, 0)]
        if not behind:
            return True
        if time.monotonic() - self._came < PATIENCE_SECONDS:
            return False
        if not self._warned:
            self._warned = True
            several = "s" * (len(behind) > 1)
            warnings.warn(
                f"source: {self._name}: the brokers have not told within {PATIENCE_SECONDS:g} s where partition{several} "
                f"{', '.join(map(str, sorted(behind)))} end{'s' * (not several)}, and sent no message; what may be there is left to the next job "
                "of the group",
                RuntimeWarning,
                stacklevel=2,
            )
        return True
