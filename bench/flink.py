"""On Flink: a table through a script, against PyFlink's own row function; files, against the local engine; a stream's delay."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

import akrunner
from akrunner.engines.flink import FlinkEngine
from akrunner.engines.flink.host import cluster
from akrunner.engines.flink.host.java import java_home
from bench import tables

ROOT = Path(__file__).parents[1]
FLINK = ROOT / ".envs" / "flink" / "bin" / "python"
PROGRAM = ROOT / ".envs" / "program" / "bin" / "python"
TOUCH = """
def main(task_config):
    total = 0
    for batch in task_config.batches(8192):
        total += int(next(iter(batch.values())).sum())
"""
ECHO = """
def main(task_config):
    for record in task_config.dataset_fn():
        task_config.output_writer.write(record.numpy())
"""


def measured(what: str, folder: str, rows: int) -> Any:
    """What the program printed."""
    environ = {**os.environ, "JAVA_HOME": java_home(str(FLINK))}
    command = [str(PROGRAM), str(ROOT / "bench" / "flink_program.py"), what, sys.executable, folder, str(rows)]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, cwd=folder)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    return json.loads(done.stdout.splitlines()[-1])


def speed(what: str, folder: str, few: int, many: int) -> float:
    """Rows a second, the start subtracted: between a small and a large number of rows."""
    return (many - few) / (measured(what, folder, many) - measured(what, folder, few))


def rows_a_second(engine: Any, script: Path, few: Path, many: Path) -> float:
    """Of the whole job, the start subtracted."""
    seconds, counts = [], []
    for path in (few, many):
        stats = akrunner.run(script, path, num_workers=2, data_format="columns", engine=engine).stats
        seconds.append(stats.seconds)
        counts.append(stats.rows_in)
    return (counts[1] - counts[0]) / (seconds[1] - seconds[0])


def flink(ratio_row: Any) -> list[Any]:
    if not PROGRAM.exists():
        print("NOT MEASURED: Flink; scripts/flink prepares it", file=sys.stderr)
        return []
    with tempfile.TemporaryDirectory() as folder:
        touch = Path(folder, "touch.py")
        touch.write_text(TOUCH)
        Path(folder, "echo.py").write_text(ECHO)
        rows = []
        ours = statistics.median(speed("table", folder, 500_000, 8_000_000) for _ in range(3))
        theirs = statistics.median(speed("rows", folder, 50_000, 650_000) for _ in range(3))
        rows.append(
            ratio_row("Flink: table to script, two tasks", ours, theirs, 8, "PyFlink's row ProcessFunction, two subtasks")
        )
        files = {}
        for count in (1, 10):
            files[count] = Path(folder, f"{count}.parquet")
            with pq.ParquetWriter(files[count], tables.numbers(1).schema) as writer:
                for seed in range(count):
                    writer.write_batch(tables.numbers(1_000_000, seed), row_group_size=100_000)
        # encrypted and decrypted on the cores that compute
        for tls, goal in ((True, 0.4), (False, 0.7)):
            with FlinkEngine(python=str(FLINK), tls=tls) as engine:
                akrunner.run(touch, files[1], num_workers=2, data_format="columns", engine=engine)
                pairs = [
                    (rows_a_second(engine, touch, files[1], files[10]), rows_a_second("local", touch, files[1], files[10]))
                    for _ in range(3)
                ]
            ours, theirs = (statistics.median(values) for values in zip(*pairs, strict=True))
            what = f"Flink: from a file, two tasks, {'TLS' if tls else 'tls=False'}"
            rows.append(ratio_row(what, ours, theirs, goal, "the local engine, two workers"))
        late = measured("latency", folder, 40_000)
        p50, p99 = np.percentile(late, [50, 99])
        rows.append(
            (
                "Flink: stream, row in to result out, p50",
                f"{p50:.0f} ms",
                "1,000 rows/s, two tasks",
                "",
                "<= 100 ms",
                p50 <= 100,
            )
        )
        rows.append(("the same, p99", f"{p99:.0f} ms", "", "", "<= 300 ms", p99 <= 300))
        running = cluster.start(os.path.join(folder, "cluster"), str(FLINK), taskmanagers=2, slots=1, port=0)
        try:
            with FlinkEngine(running.address, python=str(FLINK)) as engine:
                akrunner.run(touch, files[1], num_workers=2, data_format="columns", engine=engine)
                there = statistics.median(rows_a_second(engine, touch, files[1], files[10]) for _ in range(3))
        finally:
            running.stop()
        rows.append(
            ratio_row("Flink: from a file, read by two TaskManagers", there, theirs, 0.7, "the local engine, two workers")
        )
    return rows
