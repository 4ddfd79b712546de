"""What writes checkpoints: the time of it is told apart."""

from __future__ import annotations

import functools
import sys
from typing import Any, Set, Tuple

from akrunner.worker.waits import shown, timing

#: (module, class, method) of what writes checkpoints
_SAVES = (
    ("tensorflow.python.training.saver", "Saver", "save"),
    ("tensorflow.python.checkpoint.checkpoint", "TrackableSaver", "save"),
    ("tensorflow.python.training.tracking.util", "TrackableSaver", "save"),
    ("tf_keras.src.engine.training", "Model", "save"),
    ("tf_keras.src.engine.training", "Model", "save_weights"),
    ("keras.src.models.model", "Model", "save"),
    ("keras.src.models.model", "Model", "save_weights"),
    ("tensorflow.python.keras.engine.training", "Model", "save"),
    ("tensorflow.python.keras.engine.training", "Model", "save_weights"),
    ("tensorflow.python.keras.engine.network", "Network", "save"),
    ("tensorflow.python.keras.engine.network", "Network", "save_weights"),
)
_watched: Set[Tuple[str, str, str]] = set()


def watch() -> None:
    """Those that are there by now; called again, as Keras comes when it is used."""
    for module, name, method in _SAVES:
        kind = vars(sys.modules[module]).get(name) if module in sys.modules else None
        if kind is not None and method in vars(kind) and (module, name, method) not in _watched:
            _watched.add((module, name, method))
            _watch_save(kind, method)


def _watch_save(kind: Any, method: str) -> None:
    real = getattr(kind, method)

    @functools.wraps(real)
    @shown.named
    def save(self: Any, *args: Any, **kwargs: Any) -> Any:
        with timing.spending("checkpoint"):
            return real(self, *args, **kwargs)

    setattr(kind, method, save)
