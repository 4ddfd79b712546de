"""`scripts/bench [NAME ...]`: run all measurements (the soak takes ten minutes), or those whose names begin so; prints a table in
Markdown."""

from __future__ import annotations

import argparse
import os
import platform
import sys
import tempfile
from collections.abc import Callable

import pyarrow as pa

from bench.asked import asked
from bench.batches import codec, columns, memory, output, spool
from bench.databases import databases
from bench.doctor import doctor
from bench.flink import flink
from bench.maxcompute import maxcompute
from bench.measuring import Row, ratio_row
from bench.pack import pack
from bench.predicting import predict
from bench.reading import reading
from bench.starts import agents, start, warm
from bench.streams import soak, stream

MEASUREMENTS: dict[str, Callable[[], list[Row]]] = {
    "codec": codec,
    "spool": spool,
    "start": start,
    "warm": warm,
    "memory": memory,
    "output": output,
    "stream": stream,
    "soak": soak,
    "columns": columns,
    "reading": lambda: reading(ratio_row),
    "predict": predict,
    "agents": agents,
    "pack": pack,
    "asked": asked,
    "doctor": doctor,
    "databases": databases,
    "maxcompute": lambda: maxcompute(ratio_row),
    "flink": lambda: flink(ratio_row),
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__)
    parser.add_argument("names", nargs="*", help="of " + ", ".join(MEASUREMENTS))
    chosen = parser.parse_args().names
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, pyarrow {pa.__version__}\n")
    print("| what | measured | against | ratio | goal | |\n| --- | --- | --- | --- | --- | --- |")
    met = True
    with tempfile.TemporaryDirectory() as state:
        # warm workers that somebody keeps (`akrunner warm start`) are not what is measured
        os.environ["XDG_STATE_HOME"] = state
        for name, measure in MEASUREMENTS.items():
            if not chosen or any(name.startswith(one) for one in chosen):
                for *cells, good in measure():
                    met &= bool(good)
                    print("| " + " | ".join([*map(str, cells), "met" if good else "NOT MET"]) + " |", flush=True)
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
