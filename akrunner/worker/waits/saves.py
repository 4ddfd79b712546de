"""What writes checkpoints and summaries: the time of it is told apart."""

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
#: the same of what writes summaries
_TELLS = (
    ("tensorflow.python.ops.summary_ops_v2", "_ResourceSummaryWriter", "flush"),
    ("tensorflow.python.ops.summary_ops_v2", "_ResourceSummaryWriter", "close"),
    ("tensorflow.python.ops.summary_ops_v2", "ResourceSummaryWriter", "flush"),
    ("tensorflow.python.ops.summary_ops_v2", "ResourceSummaryWriter", "close"),
    ("tensorflow.python.summary.writer.writer", "SummaryToEventTransformer", "add_summary"),
    ("tensorflow.python.summary.writer.writer", "EventFileWriter", "flush"),
)
#: modules by which a script, or Keras, calls the functions that write one: TensorBoard's stands for TensorFlow's before 2.13
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
    """Those that are there by now; called again, as Keras comes when it is used."""
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
        # AutoGraph is to call it as it is: it finds no source of ours
        vars(save).setdefault("autograph_info__", {})
    setattr(owner, name, save)
