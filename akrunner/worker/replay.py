"""Runs one task's `main` again from the files that its job left in the work directory, in the foreground or under a debugger.

It needs `context.json`, the spool and the user's files only. It counts the rows that the script writes and throws them away.
"""

from __future__ import annotations

import json
import os
import struct
import sys
from typing import Any, Dict, List, Optional, Tuple

from akrunner.wire import column_layout
from akrunner.wire.context import Context
from akrunner.wire.context import read as read_context
from akrunner.worker import running, task
from akrunner.worker.output import OutputWriter


class _Sink(object):
    """Stands in for the pipe to the host: counts the rows and bytes that the script writes."""

    def __init__(self) -> None:
        self.rows = 0
        self.bytes = 0

    def write(self, kind: int, payload: Any = b"", count: int = 0) -> None:
        parts = payload if isinstance(payload, list) else [payload]
        self.rows += count
        self.bytes += sum(memoryview(part).nbytes for part in parts)


class _Job(object):
    replayed = True

    def __init__(self, shares: List[int], splits: List[List[int]]) -> None:
        self.shares = shares
        self.splits = splits

    def report(self, metrics: Dict[str, float], step: Optional[int], steps: Optional[int] = None) -> None:
        print("[replay] report step=%s %s" % (step, metrics))

    def serve(self) -> None:
        print("[replay] serve(): there is nobody to serve in a replay")

    def uneven(self, **rows: int) -> None:
        pass

    def note(self, what: str) -> None:
        print("[replay] %s" % what)


def main(argv: List[str]) -> int:
    """Run the replay and return the exit code. Exceptions of the script are not caught, so that a debugger can catch them.

    Args:
        argv: `TASK_DIR [--cluster]`.
    """
    directory = os.path.abspath(argv[0])
    with open(os.path.join(directory, "context.json")) as f:
        context = read_context(json.load(f))
    asked = context.get("tables") or {}
    if asked.get("inputs") or asked.get("outputs"):
        print(
            "[replay] the script asks for tables, and in a replay nobody answers: run its command again, with --debug for its "
            "log (%s)" % ", ".join(asked["inputs"] + asked["outputs"])
        )
        return 2
    tf_config = context["tf_config"]
    if context["num_workers"] > 1 and "--cluster" not in argv:
        name = "%s:%d" % (tf_config["task"]["type"], tf_config["task"]["index"])
        print("[replay] %s alone: TF_CONFIG names no other task, so that nothing waits for one" % name)
        tf_config = {"cluster": {"chief": ["127.0.0.1:0"]}, "task": {"type": "chief", "index": 0}}
    task.enter(context, tf_config)
    sink = _Sink()
    writer = OutputWriter(sink, context["output_schema"], inferred=context["output_inferred"])
    rows, shares = _rows(directory, context)
    job = _Job(shares, _splits(directory) if context["splits"] else [])
    # the copy, not the user's file, which may have been changed since
    path = os.path.join(context["work_dir"], *context["script"]["path"].split("/"))
    entry = task.load_entry(context, path)
    config = task.build_config(context, rows, writer, job)
    config.cluster = tf_config["cluster"]
    running.configured(config)
    entry(config)
    if os.path.exists(context["output_file"]):
        writer.write_file(context["output_file"])
    writer.close()
    print("[replay] main() returned; it wrote %d rows (%d bytes), which a replay throws away" % (sink.rows, sink.bytes))
    sys.stdout.flush()
    return 0


def _rows(directory: str, context: Context) -> Tuple[int, List[int]]:
    """Return (number of this task's rows, number of each worker's rows)."""
    try:
        with open(os.path.join(directory, "..", "..", "rows.json")) as f:
            told = json.load(f)
    except OSError:
        count = _count_columns if context["data_format"] == "columns" else _count
        rows = count(context["dataset_file"])
        print("[replay] the job had failed before all rows were there; this is main() with the %d that were" % rows)
        return rows, [rows]
    return told[context["task"]], [told[task] for task in context["fed"]]


def _splits(directory: str) -> List[List[int]]:
    """Return the number of rows, [workers, splits]; [] if the job did not get so far as to write them down."""
    try:
        with open(os.path.join(directory, "..", "..", "splits.json")) as f:
            told: List[List[int]] = json.load(f)
            return told
    except OSError:
        return []


def _count_columns(path: str) -> int:
    """Return the number of rows in a file of column chunks; if its last chunk is incomplete, cut it off."""
    from akrunner.worker import chunks

    rows, at, size = 0, 0, os.path.getsize(path) if os.path.exists(path) else 0
    with open(path, "a+b") as f:
        while at + chunks.LENGTH.size <= size:
            f.seek(at)
            (length,) = chunks.LENGTH.unpack(f.read(chunks.LENGTH.size))
            if at + chunks.LENGTH.size + length > size:
                break
            rows += column_layout.unpack(f.read(length))[0]
            at += chunks.LENGTH.size + length
        f.truncate(at)
    return rows


def _count(path: str) -> int:
    """Return the number of records in a TFRecord file; if its last record is incomplete, cut it off."""
    if not os.path.exists(path):
        open(path, "wb").close()
    rows, at, size = 0, 0, os.path.getsize(path)
    with open(path, "r+b") as f:
        while at + 12 <= size:
            f.seek(at)
            (length,) = struct.unpack("<Q", f.read(8))
            if at + 16 + length > size:
                break
            at += 16 + length
            rows += 1
        f.truncate(at)
    return rows
