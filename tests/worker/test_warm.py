"""Warm workers on real TensorFlows: what a script sees is what it sees in one that was started cold."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import akrunner
from akrunner.launch.interpreters import Interpreter
from tests import models
from tests.conftest import Script

SNAPSHOT = """
import tensorflow as tf
import atexit, contextlib, ctypes, faulthandler, gc, json, locale, logging, os, random, resource, signal, socket, stat, sys, tempfile, threading, uuid
import warnings
import numpy as np

C = ctypes.CDLL(None)
C.getenv.restype = ctypes.c_char_p

def kind(fd):
    mode = os.fstat(fd).st_mode
    return "pipe" if stat.S_ISFIFO(mode) else "null" if stat.S_ISCHR(mode) else os.readlink("/proc/self/fd/%d" % fd)

def descriptors():
    there = []
    for name in os.listdir("/proc/self/fd"):
        try:
            there.append(kind(int(name)))
        except OSError:
            pass  # of the listing itself
    return sorted(there)

def main(task_config):
    mask = os.umask(0o22)
    os.umask(mask)
    ours = {name: vars(module).get("__file__") for name, module in sys.modules.items() if name.startswith("akrunner")}
    told = {
        "environment": dict(os.environ),
        "environment of C": {name: (C.getenv(name.encode()) or b"").decode() for name in os.environ},
        "directory": os.getcwd(),
        "module path": sys.path,
        "arguments": [sys.argv, getattr(sys, "orig_argv", [])[:3]],
        "flags": str(sys.flags),
        "modules": sorted(sys.modules),
        "ours": ours,
        "their specs": {n: [repr(sys.modules[n].__spec__.origin), list(getattr(sys.modules[n], "__path__", []))] for n in ours},
        "main": [str(vars(sys.modules["__main__"]).get(name)) for name in ("__file__", "__name__", "__package__")],
        "finders": [[getattr(f, "__name__", type(f).__name__) for f in sys.meta_path], len(sys.path_hooks)],
        "signals": {int(n): str(signal.getsignal(n)) for n in signal.Signals},
        "blocked": sorted(map(int, signal.pthread_sigmask(signal.SIG_BLOCK, []))),
        "descriptors": descriptors(),
        "inheritable": [fd for fd in range(3, 64) if inheritable(fd)],
        "streams": [[s.encoding, s.errors, s.line_buffering, s.seekable(), s.isatty()] for s in (sys.stdout, sys.stderr)],
        "umask": mask,
        "limits": {n: resource.getrlimit(getattr(resource, n)) for n in dir(resource) if n.startswith("RLIMIT_")},
        "threads": sorted(t.name for t in threading.enumerate()),
        "main thread": [threading.current_thread() is threading.main_thread(), threading.get_ident() == threading.main_thread().ident],
        "warnings": [str(one) for one in warnings.filters],
        "logging": [str(logging.root), str(logging.root.handlers), logging.root.disabled],
        "locale": locale.setlocale(locale.LC_ALL),
        "cores": sorted(os.sched_getaffinity(0)),
        "nice": os.getpriority(os.PRIO_PROCESS, 0),
        "leads its session and group": [os.getsid(0) == os.getpid(), os.getpgrp() == os.getpid()],
        "temp directory": tempfile.gettempdir(),
        "faults": faulthandler.is_enabled(),
        "collector": [gc.isenabled(), gc.get_threshold()],
        "hooks": [repr(sys.excepthook), repr(sys.displayhook), sys.getrecursionlimit(), sys.getswitchinterval()],
        "exit handlers": atexit._ncallbacks(),
        "sockets": socket.getdefaulttimeout(),
        "eager": tf.executing_eagerly() if hasattr(tf, "executing_eagerly") else None,
        "devices": [d.name for d in tf.config.experimental.list_physical_devices()],
    }
    with open(task_config.user_params["out"], "w") as f:
        json.dump([told, drawn()], f)

def drawn():
    layer = tf.keras.layers.Dense(1)
    with tf.compat.v1.Session() if not tf.executing_eagerly() else contextlib.nullcontext() as session:
        uniform, weights = tf.random.uniform([]), layer(tf.ones([1, 2]))
        if session is not None:
            session.run(tf.compat.v1.global_variables_initializer())
            uniform, weights = session.run([uniform, weights])
        name = os.path.basename(tempfile.mktemp())
        return [random.random(), float(np.random.rand()), str(uuid.uuid4()), name, float(uniform), float(weights[0][0])]

def inheritable(fd):
    try:
        return os.get_inheritable(fd)
    except OSError:
        return False
"""
#: the same as a program with a command line, which has modules, flags and pickles under the name of __main__
PROGRAM = (
    SNAPSHOT.replace("def main(task_config):", "def look(task_config):").replace(
        "    with open(task_config",
        """
    told["itself"] = [vars(sys.modules["__main__"]) is globals(), pickle.dumps(look).decode("latin-1"), __name__, __file__]
    told["its own"] = sorted(globals())
    told["command line"] = [flags.FLAGS.epochs, flags.FLAGS.find_module_defining_flag("epochs"), sorted(flags.FLAGS)]
    told["children"] = [multiprocessing.get_context("spawn").Process(target=print).name, multiprocessing.current_process().name]
    with open(task_config""",
    )
    + """
if __name__ == "__main__":
    import multiprocessing, pickle
    from absl import app, flags
    from akrunner.worker import current
    flags.DEFINE_integer("epochs", 1, "how often")
    app.run(lambda rest: look(current()))
"""
)


def snapshot(script: str, out: Path, starts: str, **options: Any) -> Any:
    result = akrunner.run(script, {"a": [1]}, user_params={"out": str(out)}, **options)
    assert result.stats.starts == {"chief:0": starts}
    told, drawn = json.loads(out.read_text())
    # of every job its own
    names = {told["directory"]: "WORK", told["temp directory"]: "TMP", str(Path(told["directory"]).parents[2]): "JOB"}
    for name in ("AKRUNNER_JOB", "AKRUNNER_HOST"):
        names[json.dumps(told["environment"][name])[1:-1]] = name
    for environment in ("environment", "environment of C"):
        told[environment].pop("PYTEST_CURRENT_TEST", None)
    text = json.dumps(told)
    for given, name in names.items():
        text = text.replace(json.dumps(given)[1:-1], name)
    return json.loads(text), drawn


@pytest.mark.cold
@pytest.mark.matrix
def test_a_script_sees_what_it_sees_cold(
    matrix_python: Interpreter, leaves_nothing: Path, script: Script, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, program = script(SNAPSHOT), script(PROGRAM, "program.py")
    options: dict[str, Any] = dict(python_env=matrix_python.path, env={"OMP_NUM_THREADS": "2"})
    line: dict[str, Any] = dict(options, script_args=["--epochs", "3"])
    # the host is a task itself: nothing of it is this one's
    monkeypatch.setenv("TF_CONFIG", "{}")
    monkeypatch.setenv("AKRUNNER_DATASET_LENGTH", "7")
    cold, _ = snapshot(path, tmp_path / "cold.json", "cold", **options)
    cold_program, _ = snapshot(program, tmp_path / "cold_program.json", "cold", **line)
    with akrunner.warm(matrix_python.path, workers=2, env=options["env"]) as warm:
        assert warm.wait()
        status = warm.status()
        assert len(status["templates"]) == 1 and not status["alone"] and len(status["spares"]) == 2
        first, drawn = snapshot(path, tmp_path / "first.json", "warm", **options)
        second, other = snapshot(program, tmp_path / "second.json", "warm", **line)
    assert {**cold, **first} == cold and {**cold_program, **second} == cold_program
    assert second["command line"][:2] == [3, program] and "TF_CONFIG" not in second["environment"]
    assert not set(drawn) & set(other), "no two begin with the same random state"


@pytest.mark.cold
@pytest.mark.tensorflow
def test_predictions_and_streams_take_them(leaves_nothing: Path, script: Script, saved_model: Callable[[str], str]) -> None:
    model = saved_model(models.DOUBLE)
    body = """
    import tensorflow as tf

    def main(task_config):
        for batch in task_config.dataset(2):
            task_config.output_writer.write_batch({"y": 3 * batch["x"].numpy()})
    """
    with akrunner.warm(workers=3) as warm:
        assert warm.wait(120)
        result = akrunner.predict(model, {"x": [1.0, 2.0]}, output_schema="y float")
        assert result.stats.starts == {"chief:0": "warm"} and result.table["y"].to_pylist() == [2.0, 4.0]
        with akrunner.LocalPredictor(model) as predictor:
            assert predictor.predict({"x": 1.5}) == {"y": 3.0}
        with akrunner.stream(script(body), [{"x": 1.0}, {"x": 2.0}], output_schema="y float") as job:
            assert [y for batch in job for y in batch["y"].to_pylist()] == [3.0, 6.0]
        assert warm.status()["taken"] == 3
