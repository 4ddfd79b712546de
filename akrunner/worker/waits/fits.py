"""Follows Keras's `fit`, so that the host can be told how far it is: its list of callbacks is told of epochs and batches."""

from __future__ import annotations

import functools
import sys
from typing import Any, Callable, Set

from akrunner.worker import reached
from akrunner.worker.waits import shown, timing

#: the modules that may have Keras's list of callbacks
_LISTS = (
    "keras.src.callbacks.callback_list",
    "keras.src.callbacks",
    "keras.callbacks",
    "tf_keras.src.callbacks",
    "tf_keras.callbacks",
    "tensorflow.python.keras.callbacks",
    "tensorflow_core.python.keras.callbacks",
)
_watched: Set[type] = set()
_fits = reached.Fits()


def watch() -> None:
    """Watch the lists of the modules that are imported by now. Call it again: Keras is imported only when it is used."""
    for module in _LISTS:
        kind = vars(sys.modules[module]).get("CallbackList") if module in sys.modules else None
        if isinstance(kind, type) and kind not in _watched:
            _watched.add(kind)
            _watch_one(kind, "on_epoch_begin", _epoch_begins)
            _watch_one(kind, "on_train_batch_end", _batch_ended)
            _watch_one(kind, "on_train_end", _ended)


def _watch_one(kind: Any, method: str, then: Callable[..., None]) -> None:
    real = vars(kind).get(method)
    if real is None:
        return

    @functools.wraps(real)
    @shown.named
    def told(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            then(self, *args[:1])
        except Exception as e:
            timing.off(e)
        return real(self, *args, **kwargs)

    setattr(kind, method, told)


def _epoch_begins(callbacks: Any, epoch: Any) -> None:
    given = getattr(callbacks, "params", None) or {}
    _fits.epoch_begins(id(callbacks), int(epoch), given.get("epochs"), given.get("steps"))


def _ended(_: Any, logs: Any = None) -> None:
    _fits.ended()


def _batch_ended(_: Any, batch: Any) -> None:
    made = timing.running()
    _fits.batch_ended(int(batch), made.batches if made is not None else None)
