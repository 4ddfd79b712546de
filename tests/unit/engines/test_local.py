"""Tasks on this machine: what is checked before a job, and what each process is started with. No process is started."""

from __future__ import annotations

import socket
import types
from pathlib import Path
from typing import Any

import pytest

from akrunner.cluster import ports
from akrunner.cluster.resources import TaskResources
from akrunner.engines import local
from akrunner.engines.local import LocalEngine, LocalLauncher
from akrunner.errors import ConfigError
from akrunner.launch import devices
from akrunner.schema import Schema
from akrunner.spec import ClusterSpec, JobSpec, ResourceSpec, ScriptSpec, TaskSpec
from akrunner.wire.ending import MARK

CHIEF, WORKER = TaskSpec("chief", 0), TaskSpec("worker", 0)


def job(**fields: Any) -> JobSpec:
    return JobSpec(fields.pop("script", ScriptSpec("s.py", "s.py")), Schema(()), "python", ClusterSpec(2), **fields)


class Guard:
    """Attributes: held: what it watches."""

    def __init__(self) -> None:
        self.held: list[Any] = []

    def watch(self, group: int) -> None:
        self.held.append(group)

    watch_mark = watch

    def forget(self, group: int) -> None:
        self.held.remove(group)

    forget_mark = forget


class Starts:
    """Attributes: started: the arguments of each start; taken: the marks of warm workers, one for each task."""

    def __init__(self, *given: Any) -> None:
        self.given = given
        self.started: list[tuple[Any, ...]] = []
        self.marks: list[str] = []
        self.told = {"chief:0": "warm"}
        self.since = 5.0
        self.is_over = False

    def start(self, *given: Any) -> Any:
        self.started.append(given)
        self.marks.append(f"warm {len(self.started)}")
        return types.SimpleNamespace(pid=100 + len(self.started))

    def ended(self) -> None:
        self.is_over = True


class Work:
    """A job's directory."""

    keep = False
    bundle = "/work/bundle.zip"

    def __init__(self, root: Path) -> None:
        self.path = str(root)

    def files_dir(self, task: TaskSpec) -> str:
        folder = Path(self.path, task.key)
        folder.mkdir(exist_ok=True)
        return str(folder)

    def temp_dir(self, task: TaskSpec) -> str:
        return f"{self.path}/{task.key}-tmp"

    def context(self, *given: Any) -> Any:
        return given


@pytest.fixture
def launched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """(fields of the job) -> its launcher, its guard."""
    monkeypatch.setattr(local, "Starts", Starts)
    swept: list[Any] = []
    monkeypatch.setattr(local, "sweep", lambda marks, since: swept.append((marks, since)))

    def made(**fields: Any) -> Any:
        guard, work = Guard(), Work(tmp_path)
        resources = {CHIEF: TaskResources((0,), {"OMP_NUM_THREADS": "1", "A": "machine"}), WORKER: TaskResources((1,))}
        launcher = LocalLauncher(job(**fields), work, guard, resources)  # type: ignore[arg-type]
        return types.SimpleNamespace(it=launcher, guard=guard, work=work, starts=launcher._starts, swept=swept)

    return made


def test_a_job_that_fits_is_found_to_be_right_and_holds_nothing() -> None:
    LocalEngine().check(job())


@pytest.mark.parametrize(
    "fields, why",
    [
        ({"bind_host": "192.0.2.1"}, "^bind_host='192.0.2.1': cannot bind a port there"),
        ({"resources": ResourceSpec(cpus_per_worker=16000)}, "^cpus_per_worker=16000: 2 workers need 32000 cores"),
        ({"resources": ResourceSpec(gpus_per_worker=1)}, "^gpus_per_worker=1: 2 workers need 2 graphics cards, this machine has 1"),
    ],
)  # fmt: skip
def test_what_this_machine_does_not_have_is_told_before_the_job(
    fields: dict[str, Any], why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(devices, "gpus", lambda: ["0"])
    with pytest.raises(ConfigError, match=why):
        LocalEngine().check(job(**fields))


def test_a_job_that_cannot_have_its_cores_is_refused_by_run_as_well() -> None:
    with pytest.raises(ConfigError, match="^cpus_per_worker=16000"):
        LocalEngine().run(job(resources=ResourceSpec(cpus_per_worker=16000)), None, None, None)  # type: ignore[arg-type]


def test_each_task_has_a_port_of_its_own_while_the_attempt_lasts(launched: Any) -> None:
    made = launched()
    with made.it as launcher:
        addresses = dict(launcher.addresses())
        assert list(addresses) == [CHIEF, WORKER] and len(set(addresses.values())) == 2
        host, port = addresses[CHIEF].split(":")
        with socket.socket() as taken, pytest.raises(OSError):
            taken.bind((host, int(port)))
    with socket.socket() as free:
        free.bind((host, int(port)))


def test_the_address_that_others_are_told_may_be_another_name(launched: Any) -> None:
    with launched(advertised_host="me.example").it as launcher:
        assert all(address.startswith("me.example:") for address in launcher.addresses().values())


def test_a_process_has_its_files_its_cores_and_its_environment(
    launched: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "s.py").write_text("print()\n")
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    made = launched(script=ScriptSpec("s.py", "s.py", ((str(tmp_path / "s.py"), "s.py"),)), env={"A": "job", "B": "2"})
    with made.it as launcher:
        process = launcher.start(CHIEF)
        assert process.pid == 101
        ((name, env, cpus, cwd, bundle),) = made.starts.started
        assert (name, cpus, cwd, bundle) == ("chief:0", (0,), f"{tmp_path}/chief-0", "/work/bundle.zip")
        assert Path(cwd, "s.py").read_text() == "print()\n"
        # the user's own comes before what the machine says
        assert (env["A"], env["B"], env["OMP_NUM_THREADS"]) == ("job", "2", "1")
        assert env["TMPDIR"] == f"{tmp_path}/chief-0-tmp" and env[MARK] in made.guard.held


def test_whoever_starts_later_is_watched_from_the_start_until_the_end(launched: Any) -> None:
    made = launched()
    with made.it as launcher:
        (mark,) = made.guard.held
        launcher.start(CHIEF)
        launcher.start(WORKER)
        assert {101, 102, "warm 1", "warm 2", mark} == set(made.guard.held)
        made.guard.held = list(dict.fromkeys(made.guard.held))
        launcher.ended()
    assert made.guard.held == [] and made.starts.is_over
    # who has left its process group is found by a mark
    assert made.swept == [([mark, "warm 1", "warm 2"], 5.0)]


def test_a_task_is_told_which_cores_it_has(launched: Any) -> None:
    made = launched()
    assert made.it.context(WORKER, {"task": {}}, 3) == (made.it._job, WORKER, {"task": {}}, 3, (1,))
    assert made.it.starts() == {"chief:0": "warm"} and made.it.feeder({}) is None


@pytest.mark.parametrize("platform, held", [("linux", True), ("darwin", False)])
def test_ports_are_let_go_where_tasks_could_not_bind_them_otherwise(
    launched: Any, monkeypatch: pytest.MonkeyPatch, platform: str, held: bool
) -> None:
    made = launched()
    with made.it as launcher:
        monkeypatch.setattr(ports, "sys", types.SimpleNamespace(platform=platform))
        launcher.ready()
        assert bool(launcher._ports._sockets) == held
