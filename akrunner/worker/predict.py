"""Runs a SavedModel over the rows: the worker processes of `akrunner.predict` run this in place of a user's script.

It answers every chunk of rows with one batch of output columns, so that the host can put both side by side again.
"""

from __future__ import annotations

import os
import threading
from typing import Any, Callable, Dict, List, Optional

import numpy as np

from akrunner.wire.context import Context
from akrunner.worker import chunks

#: seconds between checks for a new model
_LOOK = 0.2


def prepare(context: Context) -> Callable[[Any], None]:
    """Load the model, before any row is sent. Args: context: the task's context. Returns: the task's `main(task_config)`."""
    params = context["user_params"]
    using = _Using(_checked_model(context["model"], params), params)

    def main(task_config: Any) -> None:
        using.watch()
        try:
            for rows, columns in task_config._rows.chunks():
                if columns is None:
                    continue
                try:
                    outputs = _predicted(using.model, rows, columns, params)
                    task_config.output_writer.answer(outputs)
                except Exception as e:
                    if not params["answer_errors"]:
                        raise
                    task_config._job.refuse(e)
        finally:
            using.close()

    return main


def _checked_model(path: str, params: Dict[str, Any]) -> Any:
    model = _load(path, params["tags"], params["signature"])
    missing = [o["name"] for o in params["outputs"] if o["name"] not in model.outputs]
    if missing:
        raise ValueError("the model gives no output %r, only %s" % (missing[0], ", ".join(sorted(model.outputs))))
    return model


class _Using(object):
    """The model in use.

    New models, which the host puts into the directory `watch` (1/, 2/, ...), are loaded beside it and then replace it.
    """

    def __init__(self, model: Any, params: Dict[str, Any]) -> None:
        self.model = model
        self._params = params
        self._stop = threading.Event()
        self._thread: Optional[threading.Thread] = None

    def watch(self) -> None:
        if self._params.get("watch"):
            self._thread = threading.Thread(target=self._run, name="akrunner-models")
            self._thread.daemon = True
            self._thread.start()

    def close(self) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        folder, number = self._params["watch"], 0
        while not self._stop.wait(_LOOK):
            try:
                newest = max([int(name) for name in os.listdir(folder) if name.isdigit()] or [0])
            except OSError:
                # the directory is gone, because the stream ends
                return
            if newest <= number:
                continue
            number = newest
            try:
                self.model = _checked_model(os.path.join(folder, str(number)), self._params)
                print("model %d of the stream is in use" % number)
            except Exception as e:
                self._failed(folder, "%d-%d" % (number, os.getpid()), e)

    def _failed(self, folder: str, name: str, error: Exception) -> None:
        print("model %s of the stream could not be loaded: %s" % (name, error))
        try:
            with open(os.path.join(folder, name + ".partial"), "w") as f:
                f.write("%s: %s" % (type(error).__name__, error))
            os.rename(os.path.join(folder, name + ".partial"), os.path.join(folder, name + ".failed"))
        except OSError:
            pass


def _predicted(model: Any, rows: int, columns: Dict[str, Any], params: Dict[str, Any]) -> Dict[str, Any]:
    """Return a chunk's predictions: {output column: array [rows, ...]}."""
    feeds = {spec["name"]: _fed(spec, [columns[name] for name in spec["columns"]], rows) for spec in params["inputs"]}
    size = params["batch_size"]
    parts = []
    for at in range(0, rows, size):
        batch = {name: values[at : at + size] for name, values in feeds.items()}
        parts.append(_checked(model(batch), min(size, rows - at), params["outputs"]))
    return {name: np.concatenate([part[name] for part in parts]) if len(parts) > 1 else parts[0][name] for name in parts[0]}


def _fed(spec: Dict[str, Any], columns: List[Any], rows: int) -> Any:
    """Return the values of one input of the model, [rows, ...]. Args: columns: the columns that feed it."""
    values = columns[0]
    if len(columns) > 1:
        return np.stack(columns, axis=1)
    if isinstance(values, chunks.Ragged):
        lengths = values.lengths
        if rows and not (lengths == lengths[0]).all():
            odd = int(np.flatnonzero(lengths != lengths[0])[0])
            raise ValueError(
                "input %r wants as many values in every row; %d rows after one with %d values comes one with %d"
                % (spec["name"], odd, lengths[0], lengths[odd])
            )
        values = values.values.reshape(rows, -1)
    if spec["shape"] is not None:
        try:
            values = values.reshape([rows] + spec["shape"])
        except ValueError:
            raise ValueError(
                "input %r wants %s a row, the column has %d values" % (spec["name"], spec["shape"], values[:1].size)
            )
    return values


def _checked(outputs: Dict[str, Any], rows: int, wanted: List[Dict[str, Any]]) -> Dict[str, Any]:
    found = {}
    for output in wanted:
        values = outputs[output["name"]]
        if values.ndim == 0 or len(values) != rows:
            raise ValueError(
                "output %r has shape %s for %d rows: it is not one entry a row" % (output["name"], list(values.shape), rows)
            )
        found[output["column"]] = values
    return found


def _load(path: str, tags: List[str], key: str) -> Any:
    """Return the signature as a callable {input: array} -> {output: array}, whose `outputs` are the names of the outputs."""
    import tensorflow as tf

    if tf.executing_eagerly():
        return _Function(tf, path, tags, key)
    return _Graph(tf, path, tags, key)


class _Function(object):
    """A signature in TensorFlow 2."""

    def __init__(self, tf: Any, path: str, tags: List[str], key: str) -> None:
        # the signature works only as long as the loaded model lives
        self._loaded = tf.saved_model.load(path, tags=tags)
        self._signature = self._loaded.signatures[key]
        self._constant = tf.constant
        self.outputs = list(self._signature.structured_outputs)

    def __call__(self, feeds: Dict[str, Any]) -> Dict[str, Any]:
        outputs = self._signature(**{name: self._constant(values) for name, values in feeds.items()})
        return {name: value.numpy() for name, value in outputs.items()}


class _Graph(object):
    """A signature in TensorFlow 1."""

    def __init__(self, tf: Any, path: str, tags: List[str], key: str) -> None:
        v1 = tf.compat.v1
        self._session = v1.Session(graph=tf.Graph())
        # the class behind the public name, which would print a warning that it is deprecated
        from tensorflow.python.saved_model.loader_impl import SavedModelLoader

        with self._session.graph.as_default():
            graph = SavedModelLoader(path).load(self._session, tags)
        signature = graph.signature_def[key]
        self._inputs = {name: info.name for name, info in signature.inputs.items()}
        self._outputs = {name: info.name for name, info in signature.outputs.items()}
        self.outputs = list(self._outputs)

    def __call__(self, feeds: Dict[str, Any]) -> Dict[str, Any]:
        outputs: Dict[str, Any] = self._session.run(self._outputs, {self._inputs[name]: one for name, one in feeds.items()})
        return outputs
