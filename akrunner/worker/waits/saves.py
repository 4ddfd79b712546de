"""Times the functions that write checkpoints and summaries, so that their time is reported apart."""

from __future__ import annotations

import functools
import sys
from typing import Any, Set, Tuple

from akrunner.worker.waits import shown, timing

#: (module, class, method) of functions that write checkpoints
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
#: (module, class, method) of functions that write summaries
_TELLS = (
    ("tensorflow.python.ops.summary_ops_v2", "_ResourceSummaryWriter", "flush"),
    ("tensorflow.python.ops.summary_ops_v2", "_ResourceSummaryWriter", "close"),
    ("tensorflow.python.ops.summary_ops_v2", "ResourceSummaryWriter", "flush"),
    ("tensorflow.python.ops.summary_ops_v2", "ResourceSummaryWriter", "close"),
    ("tensorflow.python.summary.writer.writer", "SummaryToEventTransformer", "add_summary"),
    ("tensorflow.python.summary.writer.writer", "EventFileWriter", "flush"),
)
#: modules through which a script, or Keras, calls functions that write summaries: before 2.13, TensorFlow uses TensorBoard's
_SUMMARIES = (
    "tensorboard.summary._tf.summary",
    "tensorflow.python.ops.summary_ops_v2",
    "tensorflow._api.v2.summary",
    "tensorflow._api.v2.compat.v2.summary",
    "tensorflow_core._api.v2.summary",
    "tensorflow_core._api.v2.compat.v2.summary",
)
_WRITES = ("scalar", "histogram", "image", "text", "audio", "write", "flush", "graph")
_watched: Set[Tuple[str, str, str]] = set()


def watch() -> None:
    """Watch the functions of the modules that are imported by now. Call it again: Keras is imported only when it is used."""
    for what, some in (("checkpoint", _SAVES), ("summary", _TELLS)):
        for module, name, method in some:
            kind = vars(sys.modules[module]).get(name) if module in sys.modules else None
            if kind is not None and method in vars(kind) and (module, name, method) not in _watched:
                _watched.add((module, name, method))
                _watch_one(kind, method, what)
    for module in _SUMMARIES:
        there = sys.modules.get(module)
        for name in _WRITES if there is not None else ():
            if name in vars(there) and (module, "", name) not in _watched:
                _watched.add((module, "", name))
                _watch_one(there, name, "summary")


def _watch_one(owner: Any, name: str, what: str) -> None:
    real = getattr(owner, name)

    @functools.wraps(real)
    @shown.named
    def save(*args: Any, **kwargs: Any) -> Any:
        with timing.spending(what):
            return real(*args, **kwargs)

    if what == "summary":
        # AutoGraph must call this function unchanged, as it cannot find its source
        vars(save).setdefault("autograph_info__", {})
    setattr(owner, name, save)
