"""A worker or a guard that tests fork (`tests/starts.py`, `tests/forked/worker_forks.py`, `tests/guard_forks.py`) is what Python would have started."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest

import akrunner
from akrunner.engines.flink import FlinkEngine
from akrunner.leftovers import keeper
from tests import guard_forks, hosts, starts
from tests.conftest import Script, wait_for

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
        json.dump({"seen": seen, "random": [one.random() for one in (random, getattr(sys.modules.get("numpy"), "random", random))], "pid": os.getpid(), "above": int(read("stat").rpartition(")")[2].split()[1])}, file)
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


def differ(one: Any, other: Any) -> bool:
    """Whether each draws random numbers of its own, Python's and numpy's."""
    return all(x != y for x, y in zip(one["random"], other["random"], strict=True))


def test_a_fork_is_what_python_would_have_started(script: Script, leaves_nothing: Path, tmp_path: Path) -> None:
    if not os.path.exists("/proc/self/fd"):
        pytest.skip("there are no forks")
    cold, forked, again = (seen(how, script, tmp_path / "seen") for how in ({"cold"}, set(), set()))
    assert starts.server() and differ(forked, again)
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


#: what each agent has of its own
AGENTS = ("AKRUNNER_", "LOGGING_API_", "CONTROL_API_", "PIPELINE_OPTIONS", "BOOT_LOG_DIR", "WORKER_ID")


def of_one(text: str, folder: str) -> Any:
    """What a worker process saw, without what each has of its own. Args: folder: that each has of its own."""
    # so are the directories of its job and of its task, and the numbers of descriptors
    text = text.replace(folder, "FOLDER").replace(os.path.basename(folder), "FOLDER")
    told = json.loads(re.sub(r"python-dist-[-0-9a-f]+", "DIST", text))
    seen = told["seen"]
    seen["descriptors"] = [kind for _, kind in seen["descriptors"]]
    for name in ("argv", "orig_argv"):
        seen[name] = ["N" if word.isdigit() else word for word in seen[name]]
    seen["words"] = re.sub(r"\0\d+", "\0N", seen["words"])
    told["host"] = json.loads(seen["environ"]["AKRUNNER_HOST"])["pid"]
    assert seen.pop("parent") == told["host"]
    seen["environ"] = {name: value for name, value in seen["environ"].items() if not name.startswith(AGENTS)}
    seen["shown"] = sorted(line for line in seen["shown"] if not line.startswith(AGENTS))
    return told


def are_alike(cold: Any, forked: Any, again: Any) -> None:
    """Three worker processes, of which the first was started, and the others have another parent."""
    assert cold["above"] == cold["host"] and forked["above"] == again["above"] != forked["host"] and differ(forked, again)
    started, made = [{name: one["seen"].pop(name) for name in ("modules", "files")} for one in (cold, forked)]
    for name, value in cold["seen"].items():
        assert forked["seen"][name] == value, name
    assert made["files"].items() >= started["files"].items()
    assert all(file.startswith("FOLDER/") for file in made["files"].values())
    assert set(made["modules"]) - set(started["modules"]) <= {"socket", "_socket", "selectors", "fcntl", "pwd"}


@pytest.mark.tensorflow
@pytest.mark.parametrize("module", ["numpy", "tensorflow"])
def test_a_fork_on_flink_is_what_its_agent_would_have_started(
    module: str, flink: FlinkEngine, script: Script, leaves_nothing: Path, tmp_path: Path
) -> None:
    def on_flink(how: set[str]) -> Any:
        starts.choose({"flink", *how})
        path = tmp_path / "seen"
        path.unlink(missing_ok=True)
        options: dict[str, Any] = {"data_format": "columns", "user_params": {"path": str(path)}, "engine": flink}
        result = akrunner.run(script(f"import {module}\n{LOOKS}"), {"a": [1]}, **options)
        assert result.table.num_rows == 1
        text = path.read_text()
        return of_one(text, os.path.dirname(json.loads(text)["seen"]["here"]))

    are_alike(*(on_flink(how) for how in ({"cold"}, set[str](), set[str]())))


#: a host and its job
HOST = "import sys, akrunner; akrunner.run(sys.argv[1], {'a': [1]}, data_format='columns', user_params={'path': sys.argv[2]})"


def in_host(path: str, seen: Path, folder: str) -> str:
    """What a host of a job prints on stderr. Args: folder: as of `hosts.forks`."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(hosts, "forks", folder)
        done = hosts.run([sys.executable, "-c", HOST, path, str(seen)], capture_output=True, text=True)
    return str(done.stderr)


@pytest.mark.slow
def test_a_fork_of_a_host_is_what_that_would_have_started(
    script: Script, leaves_nothing: Path, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    def of_host(folder: str) -> Any:
        said = in_host(script(LOOKS), tmp_path / "seen", folder)
        assert (tmp_path / "seen").exists(), said
        text = (tmp_path / "seen").read_text()
        return of_one(text, json.loads(text)["seen"]["here"].partition("/tasks/")[0])

    forks = str(tmp_path_factory.getbasetemp())
    are_alike(*(of_host(folder) for folder in ("", forks, forks)))


#: how the code of a script ends its process
ENDINGS = ["os._exit(7)", "os.kill(os.getpid(), signal.SIGSEGV)", "os.kill(os.getpid(), signal.SIGKILL)"]


def ends(end: str) -> str:
    return f"import os, signal, sys\n\ndef main(task_config):\n    {end}\n"


def of_any(text: str) -> str:
    """How much memory it had had, and where its log is, differs."""
    return re.sub(r"peak RSS \S+ \S+ of|\d{4}-\d{6}-[0-9a-f]{6}|\br\d+\b|\d+\.\d s\b", "", text)


@pytest.mark.parametrize("end", ENDINGS)
def test_how_a_fork_on_flink_has_ended(end: str, flink: FlinkEngine, script: Script, leaves_nothing: Path) -> None:
    def error(how: set[str]) -> str:
        starts.choose({"flink", *how})
        with pytest.raises(akrunner.TaskDiedError) as caught:
            akrunner.run(script(ends(end)), {"a": [1]}, engine=flink)
        return of_any(str(caught.value).splitlines()[0])

    assert error(set()) == error({"cold"})


@pytest.mark.slow
@pytest.mark.parametrize("end", [*ENDINGS, "os.abort()", "raise RuntimeError('boom')", "sys.exit(3)"])
def test_how_a_fork_has_ended(
    end: str, script: Script, leaves_nothing: Path, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """That of a job of this process, and of a host."""
    path = script(ends(end))

    def error(how: set[str]) -> str:
        starts.choose(how)
        with pytest.raises(akrunner.JobError) as caught:
            akrunner.run(path, {"a": [1]}, data_format="columns")
        # where its threads were, which the rest says, differs
        return of_any(str(caught.value).splitlines()[0])

    assert error(set()) == error({"cold"})
    cold, forked = (
        of_any(next(line for line in in_host(path, tmp_path, folder).splitlines() if line.startswith("akrunner.errors.")))
        for folder in ("", str(tmp_path_factory.getbasetemp()))
    )
    assert cold == forked and "[chief:0]" in cold


#: what others see of a process' state
STATUS = ("Name", "Umask", "PPid", "Threads", "SigBlk", "SigIgn", "SigCgt")


def guard_of(held: Path, how: set[str]) -> Any:
    """What others see of a guard, which removes the directory when its pipe ends as that of a dead host does."""
    guard_forks.choose(how, "")
    held.mkdir()
    guard = keeper._Guard("")
    guard.say(json.dumps(["+", "path", str(held)]).encode() + b"\n")
    proc = Path(f"/proc/{guard.pid}")

    def descriptors() -> list[str]:
        # what is no file has a number there
        found = [f"{one.name} {os.readlink(one).partition(':')[0]}" for one in (proc / "fd").iterdir()]
        # it watches its host
        return found if any("anon_inode" in one for one in found) else []

    seen = {
        "descriptors": sorted(wait_for(descriptors)),
        "status": [line for line in (proc / "status").read_text().splitlines() if line.startswith(STATUS)],
        "session": os.getsid(guard.pid) == os.getpgid(guard.pid) == guard.pid,
        "words": (proc / "cmdline").read_text().rstrip("\0"),
        "environ": (proc / "environ").read_text().rstrip("\0"),
        "limits": (proc / "limits").read_text(),
        "places": [os.readlink(proc / name) for name in ("cwd", "root", "exe")],
        "nice": os.getpriority(os.PRIO_PROCESS, guard.pid),
    }
    assert held.exists()
    guard.drop()
    assert os.waitpid(guard.pid, 0) == (guard.pid, 0) and not held.exists()
    return seen


def test_a_guard_that_is_forked_is_what_python_would_have_started(leaves_nothing: Path, tmp_path: Path) -> None:
    if not hasattr(os, "pidfd_open"):
        pytest.skip("there are no forks")
    started, forked, again = (guard_of(tmp_path / "held", how) for how in ({"cold"}, set[str](), set[str]()))
    assert guard_forks.server() and forked == again
    for name, value in started.items():
        assert forked[name] == value, name
