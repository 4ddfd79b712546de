"""A worker that tests fork (`tests/starts.py`) is what Python would have started."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

import akrunner
from tests import starts
from tests.conftest import Script

LOOKS = """
import gc, json, os, random, resource, signal, sys

def main(task_config):
    for batch in task_config.batches(10):
        task_config.output_writer.write_batch(batch)
    read = lambda name: open("/proc/self/" + name).read()
    print("out")
    print("err", file=sys.stderr)
    here = os.getcwd()
    seen = {
        "argv": sys.argv, "orig_argv": sys.orig_argv, "path": sys.path, "flags": str(sys.flags), "executable": sys.executable, "here": here,
        "files": {name: str(getattr(module, "__file__", "")) for name, module in sys.modules.items() if name.startswith(("akrunner", "__main__"))},
        "environ": dict(os.environ), "shown": read("environ").rstrip("\\0").split("\\0"), "words": read("cmdline").rstrip("\\0"),
        "group": os.getpgid(0) == os.getpid() == os.getsid(0), "parent": os.getppid(), "umask": os.umask(0o22), "nice": os.nice(0),
        "limits": read("limits"), "cores": sorted(os.sched_getaffinity(0)), "garbage": gc.get_threshold(), "recursion": sys.getrecursionlimit(),
        "handlers": [str(signal.getsignal(number)) for number in sorted(signal.valid_signals())],
        "streams": [(one.encoding, one.errors, one.line_buffering, one.isatty()) for one in (sys.stdin, sys.stdout, sys.stderr)],
        "descriptors": sorted((number, os.readlink(f"/proc/self/fd/{number}").partition(":")[0]) for number in map(int, os.listdir("/proc/self/fd")) if os.path.exists(f"/proc/self/fd/{number}")),
        "modules": sorted({name.partition(".")[0] for name in sys.modules}),
    }
    with open(task_config.user_params["path"], "w") as file:
        json.dump({"seen": seen, "random": random.random(), "pid": os.getpid()}, file)
"""


def seen(how: set[str], script: Script, path: Path) -> Any:
    starts.choose(how)
    result = akrunner.run(script(LOOKS), {"a": [1]}, data_format="columns", user_params={"path": str(path)})
    assert result.table.num_rows == 1
    text = path.read_text()
    # the work directory of each job has another name
    told = json.loads(text)
    work = told["seen"]["here"].partition("/tasks/")[0]
    return json.loads(text.replace(work, "WORK").replace(os.path.basename(work), "WORK"))


@pytest.mark.slow
def test_a_fork_is_what_python_would_have_started(script: Script, leaves_nothing: Path, tmp_path: Path) -> None:
    if not os.path.exists("/proc/self/fd"):
        pytest.skip("there are no forks")
    cold, forked, again = (seen(how, script, tmp_path / "seen") for how in ({"cold"}, set(), set()))
    assert starts.server() and forked["random"] != again["random"]
    both = [
        {name: one["seen"].pop(name) for name in ("environ", "shown", "modules", "files", "parent")} for one in (cold, forked)
    ]
    for name, value in cold["seen"].items():
        assert forked["seen"][name] == value, name
    started, made = both
    for one in both:
        # what differs from job to job
        one["shown"] = sorted(line for line in one["shown"] if not line.startswith("AKRUNNER_"))
        one["environ"] = {name: value for name, value in one["environ"].items() if not name.startswith("AKRUNNER_")}
    assert made["environ"] == started["environ"] and made["shown"] == started["shown"]
    assert made["parent"] == started["parent"] == os.getpid()
    # what jobs import later, and what the fork was made with
    assert made["files"].items() >= started["files"].items() and all(
        file.startswith("WORK/") for file in made["files"].values()
    )
    assert set(made["modules"]) - set(started["modules"]) <= {"socket", "_socket", "selectors", "fcntl"}
