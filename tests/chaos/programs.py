"""What the jobs of the harness run: scripts without TensorFlow that write every row they are given, and a TensorFlow that is none."""

from __future__ import annotations

from pathlib import Path

from tests.unit.test_signature import message, tensor

#: each task tells by a file where it is; every row goes back as it came
SCRIPT = """
import os, struct, time

PAUSE = float(os.environ["CHAOS_PAUSE"])


def tell(task_config, what):
    name = "%s-%s-%d" % (what, task_config.task_type, task_config.task_index)
    with open(os.path.join(os.environ["CHAOS_TOLD"], name), "w") as f:
        f.write(str(os.getpid()))


def records(path):
    with open(path, "rb") as f:
        while True:
            header = f.read(12)
            if len(header) < 12:
                return
            yield f.read(struct.unpack("<Q", header[:8])[0])
            f.read(4)


def of_chunks(stream):
    for count, payload in stream.chunks():
        if not count:
            continue
        lengths, at = struct.unpack_from("<%dI" % count, payload), 4 * count
        for length in lengths:
            yield bytes(payload[at : at + length])
            at += length


def examples(task_config, writer):
    path = getattr(task_config, "dataset_file", None)
    rows = records(path) if path is not None else of_chunks(task_config.dataset_fn.__self__)
    for number, row in enumerate(rows):
        writer.write(row)
        if number % 1000 == 0:
            time.sleep(PAUSE)


def columns(task_config, writer):
    for batch in task_config.batches(500):
        writer.write_batch({"id": batch["id"], "x": batch["x"]})
        time.sleep(PAUSE)


def main(task_config):
    tell(task_config, "main")
    if task_config.task_type == "ps":
        task_config._job.serve()  # of the public one's, what needs no TensorFlow
        return
    if task_config.task_type != "evaluator":
        (columns if os.environ["CHAOS_FORMAT"] == "columns" else examples)(task_config, task_config.output_writer)
    folder = getattr(task_config, "saved_model_dir", None)
    if folder is not None and task_config.task_type == "chief":
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, "saved_model.pb"), "wb") as f:
            f.write(open(os.environ["CHAOS_MODEL"], "rb").read())
    tell(task_config, "done")
"""

#: as much of TensorFlow as a prediction, and the look at a model that was trained, need: y = 2 x
TENSORFLOW = """
import os, time


class Value(object):
    def __init__(self, values):
        self.values = values

    def numpy(self):
        return self.values


class Signature(object):
    structured_outputs = {"y": None}

    def __call__(self, x):
        name = os.path.join(os.environ["CHAOS_TOLD"], "main-%d" % os.getpid())
        open(name, "w").close()
        time.sleep(float(os.environ["CHAOS_PAUSE"]))
        return {"y": Value(2 * x)}


class Loaded(object):
    signatures = {"serving_default": Signature()}


class saved_model(object):
    @staticmethod
    def load(path, tags=None):
        return Loaded()


def executing_eagerly():
    return True


def constant(values):
    return values
"""
LOADER = "def parse_saved_model(path):\n    return path\n"


def stand_in(folder: Path) -> str:
    """Write what stands for TensorFlow. Args: folder: to be on the module path. Returns: it."""
    package = folder / "tensorflow" / "python" / "saved_model"
    package.mkdir(parents=True)
    for parent in (package, package.parent):
        (parent / "__init__.py").write_text("")
    (folder / "tensorflow" / "__init__.py").write_text(TENSORFLOW)
    (package / "loader_impl.py").write_text(LOADER)
    return str(folder)


#: a program of a user's: argument 1 is JSON of what to call and how; 0: it succeeded, 1: an exception of akrunner's, 3: any other
HOST = """
import json, sys
import akrunner

order = json.loads(sys.argv[1])
try:
    if "engine" in order:
        from akrunner.engines.flink import FlinkEngine
        order["options"]["engine"] = FlinkEngine(**order["engine"])
    getattr(akrunner, order["call"])(*order["arguments"], **order["options"])
except akrunner.AkrunnerError as e:
    print(type(e).__name__, e, file=sys.stderr)
    sys.exit(1)
except BaseException as e:
    print("NOT OURS", type(e).__name__, e, file=sys.stderr)
    sys.exit(3)
"""


def model() -> bytes:
    """A saved_model.pb of nothing but a signature: a float x in, a float y out."""
    serving = message((1, tensor("x", 1, -1)), (2, tensor("y", 1, -1)), (3, "predict"))
    graph = message((1, message((4, "serve"))), (2, b""), (5, message((1, "serving_default"), (2, serving))))
    return message((1, 1), (2, graph))
