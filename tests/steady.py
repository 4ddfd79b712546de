"""The process that keeps warm workers for tests: as that of `akrunner warm start`, but it learns nothing from jobs.

A test's job that wants other workers starts cold, and would have them imported for jobs to come; none of those wants the same. Nor does it mind in
which state directory a job's runs are kept, which no import reads.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests import hosts

_PROGRAM = "from tests import steady; steady.keep()"


def start(options: Mapping[str, Any], environ: Mapping[str, str]) -> str:
    """Start it. Args: options: of `akrunner.warm`. Returns: what went wrong."""
    words = [sys.executable, "-c", _PROGRAM, json.dumps(options)]
    root = Path(__file__).parents[1]
    done = hosts.run(words, env=environ, cwd=root, stdin=hosts.DEVNULL, stdout=hosts.PIPE, stderr=hosts.STDOUT, text=True)
    return str(done.stdout) if done.returncode else ""


def keep() -> None:
    """In a host: have a process that belongs to nobody keep them, and end when it listens."""
    read, write = os.pipe()
    if os.fork():
        os.close(write)
        with open(read) as file:
            said = file.read()
        print(said, end="", flush=True)
        os._exit(0 if said == "listens" else 1)
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nothing, number)
    os.chdir("/")
    try:
        _serve(write)
    except BaseException:
        os.write(write, traceback.format_exc().encode())
        raise


def _serve(write: int) -> None:
    from akrunner import warming
    from akrunner.spares import wanted as wanted_of_a_job
    from akrunner.spares.pool import Pool
    from akrunner.spares.wanted import Wanted

    learns = Pool.note

    def note(pool: Pool, wanted: Wanted) -> str:
        others = [one.other(wanted) for one in pool._wanted]
        return others[0] if all(others) else learns(pool, wanted)

    Pool.note = note  # type: ignore[method-assign]
    wanted_of_a_job._LATE |= {"XDG_STATE_HOME"}

    def listens() -> None:
        os.write(write, b"listens")
        os.close(write)

    warming.keep({**json.loads(sys.argv[1]), "env": {}}, listens)
