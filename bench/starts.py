"""How soon a job begins: cold, warm, on many machines."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import akrunner
from bench.measuring import Row

_TIMES = """
import time
import tensorflow as tf

def main(task_config):
    entered = time.time()
    task_config.report({"entered": entered, "left": time.time()})
"""


def start() -> list[Row]:
    """A tiny job: to main() and back."""
    import_code = "import time; a = time.time(); import tensorflow; print(time.time() - a)"
    # the package is imported once, as in a notebook
    assert callable(akrunner.run)
    ours, back, bare = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "times.py")
        script.write_text(_TIMES)
        for _ in range(7):
            began = time.time()
            subprocess.run([sys.executable, "-c", import_code], check=True, capture_output=True)
            bare.append(time.time() - began)
            began = time.time()
            result = akrunner.run(script, {"a": [1, 2, 3]})
            ended = time.time()
            ours.append(result.stats.reports[0]["entered"] - began)
            back.append(ended - result.stats.reports[0]["left"])
    over = statistics.median([a - b for a, b in zip(ours, bare, strict=True)])
    after = statistics.median(back)
    base = statistics.median(bare)
    return [
        (
            "run() to main()",
            f"{statistics.median(ours):.2f} s",
            f'python -c "import tensorflow": {base:.2f} s',
            f"{over:+.2f} s",
            "<= +0.5 s",
            over <= 0.5,
        ),
        ("main() returned to run() returned", f"{after:.2f} s", "", "", "<= 0.3 s", after <= 0.3),
    ]


def warm() -> list[Row]:
    """The same with a worker that has waited, against the same with one that has not."""
    cold: list[float] = []
    ours: list[float] = []
    again: list[float] = []
    replaced: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "times.py")
        script.write_text(_TIMES)

        def to_main(how: str) -> float:
            began = time.time()
            result = akrunner.run(script, {"a": [1, 2, 3]})
            if result.stats.starts != {"chief:0": how}:
                raise RuntimeError(f"it was to be {how}: {result.stats.starts}")
            return float(result.stats.reports[0]["entered"]) - began

        to_main("cold")
        for _ in range(7):
            cold.append(to_main("cold"))
        with akrunner.warm(workers=1) as kept:
            if not kept.wait():
                raise RuntimeError(f"none came: {kept}")
            for _ in range(7):
                asked = time.time()
                ours.append(to_main("warm"))
                if not kept.wait():
                    raise RuntimeError(f"none came: {kept}")
                replaced.append(float(kept.status()["spares"][0]["since"]) - asked)
            for _ in range(7):
                # nobody waits until the one before has been replaced
                again.append(to_main("warm"))
    first, then, second, late = map(statistics.median, (cold, ours, again, replaced))
    goal = 0.1 * first
    return [
        (
            f"run() to main(), {what}",
            f"{seconds:.2f} s",
            f"cold: {first:.2f} s",
            f"{seconds / first:.3f} x",
            "<= 0.1 x",
            seconds <= goal,
        )
        for what, seconds in (("a warm worker", then), ("a warm worker, right after another", second))
    ] + [
        (
            "run() to another warm worker in its place",
            f"{late:.2f} s",
            f"cold: {first:.2f} s",
            f"{late / first:.3f} x",
            "<= 0.1 x",
            late <= goal,
        )
    ]


def agents() -> list[Row]:
    """A hundred agents come to a host on Flink, one after the other, as certificates and handshakes have it."""
    from akrunner.engines.flink.host.control_server import ControlServer
    from akrunner.engines.flink.host.issue import issued
    from akrunner.engines.flink.taskmanager.line import Line

    count, took = 100, {}
    for tls in (True, False):
        keys = issued(tls)
        control = ControlServer("127.0.0.1", keys.host, agents=count)
        try:
            began = time.perf_counter()
            lines = [Line(control.door("127.0.0.1", keys.agents), place=str(number)) for number in range(count)]
            for _ in lines:
                control.arrived.get(timeout=60)
            took[tls] = time.perf_counter() - began
        finally:
            control.close()
        for line in lines:
            line.__exit__(None, None, None)
    return [
        (
            f"{count} agents come to a host on Flink, TLS",
            f"{took[True]:.2f} s",
            f"without TLS: {took[False]:.2f} s",
            f"{took[True] / took[False]:.1f} x",
            "< 5 s",
            took[True] < 5,
        )
    ]
