"""A thread that reads items ahead, for another thread that takes them.

::

    reader thread   items -> one slot -> next()   consuming thread
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Generic, TypeVar

Item = TypeVar("Item")


class Late(Exception):
    """No item has come in time."""


class _End:
    def __init__(self, error: BaseException | None) -> None:
        self.error = error


class Reader(Generic[Item]):
    """A thread that reads one item ahead. It closes `items` when they end, and when `stop` is called."""

    def __init__(self, items: Iterator[Item], name: str) -> None:
        """Start the thread. Args: items: the items to read, none of which may be None; name: name of the thread."""
        self._items = items
        self._changed = threading.Condition()
        self._place: list[Item | _End] = []
        self._over = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def next(self, seconds: float | None = None) -> Item | None:
        """Return the next item, None after the last one.

        Args: seconds: how long to wait for the item, None: without limit.
        Raises: an exception of `items`, after all items that came before it; Late: no item came within `seconds`.
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
        """Tell the thread that no more items are wanted, and wait until it has closed `items`.

        Args: seconds: how long to wait at most. A thread that is stuck in a library ends later, when the library returns.
        """
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
        # in any case, as the consuming thread may wait for it
        self._put(_End(last))

    def _put(self, item: Item | _End) -> bool:
        """Put an item into the slot once it is empty. Returns: whether items are still wanted; if not, this one is dropped."""
        with self._changed:
            self._changed.wait_for(lambda: self._over or not self._place)
            if not self._over:
                self._place.append(item)
                self._changed.notify_all()
            return not self._over
