"""How soon a job begins: cold, warm, on many machines."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import List

import akrunner
from bench.measuring import Row

_TIMES = """
import time
import tensorflow as tf

def main(task_config):
    entered = time.time()
    task_config.report({"entered": entered, "left": time.time()})
"""


def start() -> List[Row]:
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


def warm() -> List[Row]:
    """The same with a worker that has waited, against the same with one that has not."""
    cold: List[float] = []
    ours: List[float] = []
    again: List[float] = []
    replaced: List[float] = []
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


def rendezvous() -> List[Row]:
    """A thousand tasks find each other; one falls silent."""
    from akrunner.cluster.rendezvous import RendezvousClient, RendezvousServer

    tasks, limit = [f"worker:{i}" for i in range(1000)], 3.0
    with RendezvousServer(tasks, "token", heartbeat_limit=limit) as server:
        clients = [RendezvousClient(f"127.0.0.1:{server.port}", "token", task) for task in tasks]
        began = time.perf_counter()
        for outcome in [one.registering("h", i) for i, one in enumerate(clients)]:
            assert len(outcome()) == len(tasks)
        took = time.perf_counter() - began
        signs = time.perf_counter()
        for one in clients[:-1]:
            one.beat()
        each = (time.perf_counter() - signs) / (len(clients) - 1)
        # since it registered
        silent = began + took
        while not server.failed:
            for one in clients[:-1]:
                one.beat()
        lost = time.perf_counter() - silent
        for one in clients:
            one.close()
    return [
        ("rendezvous of 1,000 tasks", f"{took:.2f} s", f"a sign of life from each: {1000 * each:.2f} s", "", "< 5 s", took < 5),
        (
            "one of 1,000 falls silent, until it is named",
            f"{lost:.1f} s",
            f"its limit: {limit:g} s",
            f"{lost - limit:+.1f} s",
            "<= +2 s",
            lost <= limit + 2,
        ),
    ]
