"""What one thread reads, and another draws.

::

    reader thread   items -> one place -> whoever draws
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Generic, TypeVar

Item = TypeVar("Item")


class Late(Exception):
    """Nothing has come in time."""


class _End:
    def __init__(self, error: BaseException | None) -> None:
        self.error = error


class Reader(Generic[Item]):
    """A thread that is one item ahead. It closes `items` when they end, and when nobody wants more."""

    def __init__(self, items: Iterator[Item], name: str) -> None:
        """Start it. Args: items: none of them None; name: of the thread."""
        self._items = items
        self._changed = threading.Condition()
        self._place: list[Item | _End] = []
        self._over = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def next(self, seconds: float | None = None) -> Item | None:
        """The next item, None behind the last one. Args: seconds: to wait for it, None: as long as it takes.

        Raises: what `items` raises, behind all that came before it; Late.
        """
        with self._changed:
            if not self._changed.wait_for(lambda: self._place, seconds):
                raise Late
            item = self._place[0]
            if not isinstance(item, _End):
                self._place.clear()
                self._changed.notify_all()
                return item
        if item.error is not None:
            raise item.error
        return None

    def stop(self, seconds: float) -> None:
        """Nobody wants more: wait until `items` are closed. Args: seconds: at most; a thread that is stuck in a library ends when that returns."""
        with self._changed:
            self._over = True
            self._changed.notify_all()
        self._thread.join(seconds)

    def _run(self) -> None:
        last: BaseException | None = None
        try:
            try:
                for item in self._items:
                    if not self._put(item):
                        break
            finally:
                close = getattr(self._items, "close", None)
                if close is not None:
                    close()
        except BaseException as e:
            last = e
        # whatever happened: somebody waits for it
        self._put(_End(last))

    def _put(self, item: Item | _End) -> bool:
        """Whether it is still wanted."""
        with self._changed:
            self._changed.wait_for(lambda: self._over or not self._place)
            if not self._over:
                self._place.append(item)
                self._changed.notify_all()
            return not self._over
