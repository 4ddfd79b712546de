"""Adds PAI's names to TensorFlow, where PAI's scripts look for them. Used once TensorFlow is imported.

This is done only if the job has tables. Nothing that TensorFlow itself has is replaced.
"""

from __future__ import annotations

import importlib
import sys
import types
from typing import Any, Callable, Dict, List, NoReturn

import tensorflow

from akrunner.worker.tables.dataset import TableRecordDataset
from akrunner.worker.tables.errors import OnlyOnPai, OutOfRangeException
from akrunner.worker.tables.queues import TableRecordReader
from akrunner.worker.tables.reader import TableReader
from akrunner.worker.tables.work import WorkQueue
from akrunner.worker.tables.writer import TableWriter

#: the names under which TensorFlow's top module may be in sys.modules
_TOPS = (
    "tensorflow",
    "tensorflow.compat.v1",
    "tensorflow._api.v1",
    "tensorflow_core",
    "tensorflow_core._api.v1",
    "tensorflow.compat.v2",
    "tensorflow._api.v2.compat.v1",
    "tensorflow._api.v2.compat.v2",
)
#: operations that only PAI's TensorFlow has
_ABSENT = (
    "trans_csv_id2sparse",
    "trans_csv_id2dense",
    "trans_csv_kv2sparse",
    "trans_csv_kv2dense",
    "trans_csv_to_dense",
    "decode_kv2dense",
    "decode_kv2sparse",
)
_WORK_QUEUE = "tensorflow.python.ops.work_queue"


def into_tensorflow() -> None:
    """Add PAI's names to TensorFlow's modules."""
    # import these first: TensorFlow 2.3 would make new modules when the script imports them
    for name in ("tensorflow.compat.v1", "tensorflow.compat.v2"):
        importlib.import_module(name)
    datasets = {"TableRecordDataset": TableRecordDataset}
    rows: Dict[str, Any] = {"TableReader": TableReader, "TableWriter": TableWriter, "OutOfRangeException": OutOfRangeException}
    tops: Dict[str, Any] = {"TableRecordReader": TableRecordReader}
    tops.update((name, _absent(name)) for name in _ABSENT)
    tops["TableRecordWriter"] = rows["TableRecordWriter"] = record_writer
    for top in _modules():
        _add(top, tops)
        for name, more in (("data", datasets), ("python_io", rows)):
            module = getattr(top, name, None)
            if module is not None:
                _add(module, more)
            elif name == "python_io":
                setattr(top, name, _module("tensorflow." + name, rows))
    for name in list(sys.modules):
        if name.startswith("tensorflow") and name.endswith((".data", ".data_api")) and ("_api" in name or ".compat." in name):
            _add(sys.modules[name], datasets)
        elif name.startswith("tensorflow") and name.endswith(".python_io"):
            _add(sys.modules[name], rows)
    for name, more in (("data", datasets), ("python_io", rows)):
        sys.modules.setdefault("tensorflow." + name, getattr(tensorflow, name))
        _add(sys.modules["tensorflow." + name], more)
    _add(sys.modules.get("tensorflow.python.data.ops.readers"), datasets)
    _add(sys.modules.get("tensorflow.python.ops.io_ops"), tops)
    sys.modules.setdefault(_WORK_QUEUE, _module(_WORK_QUEUE, {"WorkQueue": WorkQueue}))
    _add(sys.modules.get("tensorflow.python.ops"), {"work_queue": sys.modules[_WORK_QUEUE]})


def _modules() -> List[Any]:
    """Return TensorFlow's top modules: TensorFlow itself, and its `compat.v1` and `compat.v2`."""
    found = [tensorflow]
    compat = getattr(tensorflow, "compat", None)
    found += [getattr(compat, name) for name in ("v1", "v2") if hasattr(compat, name)]
    found += [sys.modules[name] for name in _TOPS if name in sys.modules]
    return found


def _add(module: Any, names: Dict[str, Any]) -> None:
    for name, value in names.items():
        if module is not None and name not in vars(module):
            setattr(module, name, value)


def _module(name: str, names: Dict[str, Any]) -> types.ModuleType:
    module = types.ModuleType(name, "PAI's, in TensorFlow.")
    vars(module).update(names)
    return module


def record_writer(*args: Any, **kwargs: Any) -> NoReturn:
    """Refuse `tf.TableRecordWriter`, whose operations write from the graph. Raises: OnlyOnPai: always."""
    raise OnlyOnPai(
        "tf.TableRecordWriter, which writes from the graph, is not here; use tf.python_io.TableWriter: "
        "writer = tf.python_io.TableWriter(table, slice_id=task_index), writer.write(zip(*session.run([...])), indices=[0, "
        "1]), writer.close()"
    )


def _absent(name: str) -> Callable[..., Any]:
    def absent(*args: Any, **kwargs: Any) -> NoReturn:
        raise OnlyOnPai(
            "tf.%s is an operation that only PAI's own TensorFlow has; parse the column with tf.strings.split and "
            "tf.strings.to_number (in a map of the dataset), or write what it gives into columns of the table" % name
        )

    absent.__name__ = absent.__qualname__ = name
    return absent
