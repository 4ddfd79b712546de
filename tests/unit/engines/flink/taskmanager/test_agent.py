"""The agent beside a subtask, without a task's process: whom it obeys, what it says, and the bytes it passes on. (With processes it is in
test_hub.py.)"""

from __future__ import annotations

import contextlib
import io
import os
import socket
import tarfile
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from akrunner.cluster import ports
from akrunner.engines.flink import control_pb2 as pb
from akrunner.engines.flink.keys import Door, Keys
from akrunner.engines.flink.taskmanager import agent as agent_module
from akrunner.engines.flink.taskmanager.agent import HostGone, JobFailed, _Agent, places_of_scripts
from akrunner.engines.flink.taskmanager.feed import pass_to_part
from akrunner.io.shared import DISKS
from akrunner.launch.archives import UNREAD
from akrunner.launch.process import Exit

DOOR = Door("127.0.0.1", 1, 2, Keys("token"))


class Line(contextlib.AbstractContextManager["Line"]):
    """In place of the stream. Args: words: what the host says, then it is gone; an error is raised."""

    def __init__(self, *words: Any) -> None:
        self._words = list(words)
        self.said: list[dict[str, Any]] = []
        self.woken = threading.Event()
        self.address = "10.0.0.2"

    def hear(self) -> Any:
        if not self._words:
            raise HostGone("the job's host has gone")
        word = self._words.pop(0)
        if isinstance(word, BaseException):
            raise word
        return word

    def heard(self, seconds: float) -> Any:
        return self.hear()

    def wake(self) -> None:
        self.woken.set()

    def say(self, **word: Any) -> None:
        self.said.append(word)

    def __exit__(self, *error: object) -> None:
        pass


def agent(*words: Any, feed: Any = None) -> Any:
    made: Any = _Agent(DOOR, feed)
    made._line = Line(*words)
    return made


# -- whom it obeys


def test_it_runs_one_task_after_the_other_until_it_may_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    made = agent(
        pb.Told(ask=pb.Ask(python="/a")), pb.Told(signal=9), pb.Told(ask=pb.Ask(python="/b")), pb.Told(leave=pb.Leave())
    )
    monkeypatch.setattr(made, "_one", lambda ask: asked.append(ask.python))
    made._work()
    assert asked == ["/a", "/b"] and [list(word) for word in made._line.said] == [["over"], ["over"]]


@pytest.mark.parametrize("final", [True, False])
def test_a_job_that_failed_fails_in_the_hosts_words(final: bool) -> None:
    with pytest.raises(JobFailed, match="^ScriptFailedError: no$") as caught:
        agent(pb.Told(leave=pb.Leave(error="ScriptFailedError: no", final=final)))._work()
    assert caught.value.final is final


def test_an_error_without_words_is_an_error_too() -> None:
    with pytest.raises(JobFailed):
        agent(pb.Told(leave=pb.Leave(error="")))._work()


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (JobFailed("no"), False), (HostGone("gone"), False), (ConnectionResetError(104, "reset"), False),
        (AttributeError("no such thing"), True), (KeyboardInterrupt(), True),
    ],
)  # fmt: skip
def test_a_fault_of_its_own_is_told_to_the_host(error: BaseException, told: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    line = Line(error)
    lines: list[Any] = []

    def opened(door: Door, **who: Any) -> Line:
        lines.append((door, who))
        return line

    monkeypatch.setattr(agent_module, "Line", opened)
    monkeypatch.setattr(agent_module, "watch_java", lambda failed: None)
    monkeypatch.setattr(agent_module.leftovers, "keep_awake", lambda seconds: None)
    with pytest.raises(type(error)):
        agent_module.work(DOOR, "a feed", subtask=3)  # type: ignore[arg-type]
    ((door, who),) = lines
    assert door is DOOR and who["with_rows"] and who["subtask"] == 3 and len(who["agent"]) == 32
    assert ["broken" in word for word in line.said] == [True] * told
    if told:
        where = f"beside the task on {socket.gethostname()}"
        assert line.said[0]["broken"].startswith(f"akrunner's own thread 'agent' {where} failed:\nTraceback")


def test_only_its_first_fault_is_told() -> None:
    made = agent()
    for words in ("one", "two"):
        made._broke("log", ValueError(words))
    assert len(made._line.said) == 1 and "'log'" in made._line.said[0]["broken"] and str(made._broken) == "one"


@pytest.mark.parametrize(("platform", "held"), [("linux", True), ("darwin", False)])
def test_its_port_gives_way_to_the_task_once_that_is_started(
    platform: str, held: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ports, "sys", SimpleNamespace(platform=platform))
    guard = SimpleNamespace(watch_mark=lambda mark: None, remove=None)
    monkeypatch.setattr(agent_module, "Guard", lambda: contextlib.nullcontext(guard))
    monkeypatch.setattr(agent_module, "TaskFolder", lambda mark, remove: contextlib.nullcontext(str(tmp_path)))
    monkeypatch.setattr(agent_module, "sweep", lambda marks, began: None)
    hold, seen = ports.PortHold(1, "127.0.0.1", "10.0.0.2"), []
    made = agent(pb.Told(order=pb.Order()))
    monkeypatch.setattr(made, "_interpreter", lambda python: "python")
    monkeypatch.setattr(made, "_ports", lambda asked: hold)
    monkeypatch.setattr(made, "_start", lambda *given: seen.append(bool(hold._sockets)) or True)
    monkeypatch.setattr(made, "_attend", lambda *given: seen.append(bool(hold._sockets)))
    made._one(pb.Ask())
    assert made._line.said[0]["settled"].address == f"10.0.0.2:{hold.ports[0]}"
    assert seen == [True, held] and hold._sockets == [], "no other job takes it before, and none is held behind the task"


@pytest.mark.parametrize(
    ("advertised", "line", "host"),
    [("fd00::5", "10.0.0.2", "[fd00::5]"), ("", "fd00::6", "[fd00::6]"), ("", "10.0.0.2", "10.0.0.2")],
)
def test_others_reach_the_task_by_its_address_also_over_ipv6(advertised: str, line: str, host: str) -> None:
    made = agent()
    made._line.address = line
    hold = made._ports(pb.Ask(bind_host="127.0.0.1", advertised_host=advertised))
    assert hold is not None and hold.addresses == [f"{host}:{hold.ports[0]}"]
    hold.close()


# -- what it says


def test_an_address_that_is_not_this_machines_is_said() -> None:
    made = agent()
    assert made._ports(pb.Ask(bind_host="192.0.2.1")) is None
    failed = made._line.said[0]["failed"]
    assert failed.reason == made._pb.ADDRESS and "192.0.2.1" in failed.words
    assert failed.words.endswith(f" (on {socket.gethostname()})")


def test_an_interpreter_that_is_not_there_is_said(tmp_path: Path) -> None:
    made = agent()
    assert made._interpreter(str(tmp_path / "python")) is None
    failed = made._line.said[0]["failed"]
    assert failed.reason == made._pb.INTERPRETER and str(tmp_path) in failed.words
    assert failed.words.endswith(f" (on {socket.gethostname()})")


def test_it_looks_at_the_files_that_it_is_asked_for(tmp_path: Path) -> None:
    made = agent()
    assert made._look(pb.Ask()) == "" and made._place is None, "a parameter server reads none"
    (tmp_path / "a").write_bytes(b"123")
    there, not_there = pb.File(path=str(tmp_path / "a"), bytes=3), pb.File(path=str(tmp_path / "b"))
    assert made._look(pb.Ask(files=[there])) == "" and made._place is DISKS
    assert made._look(pb.Ask(files=[there, not_there])) == f"{tmp_path}/b is not there"


def test_there_is_a_core_at_least() -> None:
    assert agent_module._cores() >= 1


@pytest.mark.parametrize(
    ("order", "feed", "passes"),
    [
        (pb.Order(), "a feed", None),
        (pb.Order(output=pb.Output()), None, None),
        (pb.Order(output=pb.Output()), SimpleNamespace(pass_on="the feed's"), "the feed's"),
        (pb.Order(output=pb.Output(part="/out/part")), SimpleNamespace(pass_on="the feed's"), pass_to_part),
        (pb.Order(output=pb.Output(part="/out/part")), None, pass_to_part),
    ],
)
def test_what_a_task_writes_goes_to_the_host_to_flink_or_to_a_file(order: pb.Order, feed: Any, passes: Any) -> None:
    assert agent(feed=feed)._passing(order) == passes


# -- beside a process


class Process:
    """A task's process. Args: exit: how it has ended."""

    pid, sampled_memory, sampled_rss, sampled_cpu = 77, 4, 5, 1.5

    def __init__(self, exit: Exit | None = None) -> None:
        self.exit = exit
        self.done: list[Any] = []
        self.ends = threading.Event()

    def sample(self) -> None:
        self.done.append("sample")

    def tree_cpu(self) -> float:
        return 2.5

    def signal(self, number: int) -> None:
        self.done.append(number)

    def terminate(self) -> None:
        self.done.append("terminate")

    def kill(self) -> None:
        self.done.append("kill")

    def wait(self, seconds: float | None) -> None:
        """Until the end, which comes when a test says so."""
        self.ends.wait(60)


class Log:
    """The thread that passes on what is printed."""

    def __init__(self, said: list[dict[str, Any]]) -> None:
        self._said = said

    def join(self, seconds: float) -> None:
        self._said.append({"log": "its last lines"})


GUARD: Any = SimpleNamespace(check=lambda: None)
END = pb.Told(end=pb.Nothing())


def attending(process: Process, *words: Any) -> Any:
    made = agent(*words)
    made._process, made._logged = process, Log(made._line.said)
    return made


def test_signals_go_where_the_host_says() -> None:
    process = Process()
    made = attending(process, pb.Told(signal=10), pb.Told(group=pb.TERMINATE), pb.Told(group=pb.KILL), None, END)
    made._attend("/tmp/f", GUARD)
    assert [one for one in process.done if one != "sample"] == [10, "terminate", "kill"]
    sample = made._line.said[0]["sample"]
    assert (sample.rss, sample.cpu, sample.tree) == (5, 1.5, 2.5)


def test_its_end_is_told_once_behind_its_last_lines() -> None:
    process = Process(Exit(None, 9, 5, 1.5, 123, memory=7, out_of_memory=True))
    made = attending(process, None, None, END)
    made._attend("/tmp/f", GUARD)
    words = [next(iter(word)) for word in made._line.said]
    assert words == ["sample", "log", "exit"]
    told = made._line.said[-1]["exit"]
    assert (told.signal, told.peak_rss, told.cpu_seconds, told.time_ns) == (9, 5, 1.5, 123) and not told.HasField("code")
    assert (told.memory, told.out_of_memory) == (7, True)


def test_its_end_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_module, "_SAMPLE_SECONDS", 1000.0)
    process = Process()
    made = attending(process)

    def heard(seconds: float) -> Any:
        if not process.done:
            return None  # its first sample
        if process.exit is not None:
            return END if made._line.said[-1].get("exit") else None
        process.exit = Exit(3, None, 5, 1.5, 123)
        process.ends.set()
        assert made._line.woken.wait(60) and seconds > 900
        return None

    made._line.heard = heard
    made._attend("/tmp/f", GUARD)
    assert [next(iter(word)) for word in made._line.said] == ["sample", "log", "exit"]


def test_a_fault_beside_it_ends_it() -> None:
    made = attending(Process(), None, END)
    made._broken = ValueError("no such row")
    with pytest.raises(HostGone, match="a thread beside the task failed") as caught:
        made._attend("/tmp/f", GUARD)
    assert caught.value.__cause__ is made._broken


def test_files_that_are_there_are_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "saved_model").mkdir()
    (tmp_path / "saved_model" / "a").write_text("the model")
    ours, theirs = socket.socketpair()
    monkeypatch.setattr(agent_module, "opened", lambda door, place, kind: theirs if kind == pb.Opening.GIVE else None)
    made = attending(Process(), pb.Told(give=pb.Give(names=["saved_model", "latest_ckpt"])), END)
    with ours:
        made._attend(str(tmp_path), GUARD)
        ours.settimeout(10)
        data = b""
        while piece := ours.recv(1 << 16):
            data += piece
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        assert archive.getnames() == ["saved_model", "saved_model/a"]


def test_what_cannot_be_read_is_named_among_what_is_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work = tmp_path / "work"
    (work / "d").mkdir(parents=True)
    for name in ("a", "d/secret", "z"):
        (work / name).write_text(name)
    os.link(work / "a", work / "again")
    os.mkfifo(work / "pipe")
    os.symlink("/shared/x", work / "latest")
    with socket.socket(socket.AF_UNIX) as listening, contextlib.chdir(work):
        listening.bind("socket")

    def opens(path: str, mode: str) -> Any:
        if path.endswith("secret"):
            raise PermissionError(13, "Permission denied", path)
        return open(path, mode)

    monkeypatch.setattr(agent_module, "open", opens, raising=False)
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w|") as archive:
        agent_module._add(archive, str(tmp_path), "work")
    out.seek(0)
    with tarfile.open(fileobj=out) as archive:
        members = {info.name: info for info in archive}
        assert archive.extractfile("work/again").read() == b"a"  # type: ignore[union-attr]
    assert list(members) == [
        "work", "work/a", "work/again", "work/d", "work/d/secret", "work/latest", "work/pipe", "work/socket", "work/z",
    ]  # fmt: skip
    unread = {name: info.pax_headers.get(UNREAD) for name, info in members.items() if UNREAD in info.pax_headers}
    assert unread == {"work/d/secret": "Permission denied", "work/socket": "it is a socket"}


@pytest.mark.parametrize("why", ["the host hangs up", "nobody answers"])
def test_files_that_cannot_be_sent_do_not_end_the_task(why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open(tmp_path / "large", "wb") as large:
        large.truncate(8 << 20)

    def opened(door: Door, place: str, kind: int) -> socket.socket:
        if why == "nobody answers":
            raise ConnectionRefusedError(111, "Connection refused")
        ours, theirs = socket.socketpair()
        ours.close()
        return theirs

    monkeypatch.setattr(agent_module, "opened", opened)
    made = attending(Process(), pb.Told(give=pb.Give(names=["large"])), END)
    made._attend(str(tmp_path), GUARD)


def test_what_is_printed_is_said_to_its_last_word() -> None:
    source, printed = os.pipe()
    os.write(printed, "ü\n".encode())
    os.close(printed)
    made = agent()
    made._log(source)
    os.close(source)
    logs = [word["log"] for word in made._line.said]
    assert [(log.data, log.last) for log in logs] == [("ü\n".encode(), False), (b"", True)]


# -- bytes


def test_a_package_is_saved_and_the_rows_behind_it_are_left(tmp_path: Path) -> None:
    one, other = socket.socketpair()
    with one, other:
        other.settimeout(10)
        one.sendall(b"the filesrows")
        agent_module._save(other, 9, str(tmp_path / "package"))
        assert (tmp_path / "package").read_bytes() == b"the files" and other.recv(10) == b"rows"


def test_a_package_that_is_cut_is_the_submitters_end(tmp_path: Path) -> None:
    one, other = socket.socketpair()
    with other:
        with one:
            one.sendall(b"the")
        with pytest.raises(HostGone):
            agent_module._save(other, 9, str(tmp_path / "package"))


def test_ends_are_passed_on() -> None:
    done = threading.Thread(target=lambda: None)
    done.start()
    one, other = socket.socketpair()
    with one, other:
        other.settimeout(10)
        agent_module._close_out(done, one)
        assert other.recv(1) == b""
        other.sendall(b"x")
        assert one.recv(1) == b"x", "only its own direction has ended"
    reads, writes = os.pipe()
    agent_module._close_in(done, writes)
    assert os.read(reads, 1) == b""
    os.close(reads)


# -- its TaskManager


class Machine:
    """In place of /proc. Attributes: processes: pid -> (name, state, parent, start time)."""

    def __init__(self, **processes: tuple[str, str, int, str]) -> None:
        self.processes = {int(pid[1:]): process for pid, process in processes.items()}

    def open(self, path: str) -> io.StringIO:
        _, _, pid, what = path.split("/")
        if int(pid) not in self.processes:
            raise FileNotFoundError(2, "No such file", path)
        name, state, parent, start = self.processes[int(pid)]
        if what == "comm":
            return io.StringIO(name + "\n")
        return io.StringIO(f"{pid} ({name}) {state} {parent} " + " ".join(["0"] * 17) + f" {start} 0 0\n")


def on(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> Machine:
    monkeypatch.setattr(agent_module, "open", machine.open, raising=False)
    monkeypatch.setattr(agent_module.os, "getppid", lambda: 30)
    return machine


@pytest.mark.parametrize(
    ("machine", "found"),
    [
        (Machine(p30=("java", "S", 1, "500")), (30, "500")),
        (Machine(p30=("bash) (x", "S", 20, "600"), p20=("java", "S", 1, "500")), (20, "500")),
        (Machine(p30=("bash", "S", 20, "600"), p20=("init", "S", 1, "500")), None),
        (Machine(p30=("bash", "S", 20, "600")), None),
        (Machine(p30=("java", "Z", 1, "500")), None),
        (Machine(), None),
    ],
)
def test_its_taskmanager_is_the_java_above_it(
    machine: Machine, found: tuple[int, str] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    on(machine, monkeypatch)
    assert agent_module._java_ancestor() == found


@pytest.mark.parametrize("told", [True, False])
@pytest.mark.parametrize("how", ["gone", "zombie", "another"])
def test_it_ends_with_its_taskmanager(how: str, told: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Args: told: whether the system tells its end."""
    machine = on(Machine(p30=("java", "S", 1, "500")), monkeypatch)
    ended: list[int] = []
    failed: list[Any] = []
    waits: list[str] = []

    def opened(pid: int) -> int:
        assert pid == 30
        if not told:
            raise OSError(38, "Function not implemented")
        return 1000

    def readable(end: int, seconds: None) -> bool:
        assert (end, seconds) == (1000, None)
        waits.append("for its end")
        change()
        return True

    def sleep(seconds: float) -> None:
        waits.append("a while")
        change()

    def change() -> None:
        if how == "gone":
            machine.processes.clear()
        else:
            machine.processes[30] = ("java", "Z", 1, "500") if how == "zombie" else ("java", "S", 1, "501")

    monkeypatch.setattr(agent_module.os, "_exit", ended.append)
    monkeypatch.setattr(agent_module.os, "pidfd_open", opened, raising=False)
    monkeypatch.setattr(agent_module, "ready", SimpleNamespace(readable=readable))
    monkeypatch.setattr(agent_module, "time", SimpleNamespace(sleep=sleep))
    # in this thread
    monkeypatch.setattr(agent_module.threads, "started", lambda name, failed, target: target())
    agent_module.watch_java(lambda *given: failed.append(given))
    assert ended == [1] and failed == [] and waits == ["for its end" if told else "a while"]


def test_where_there_is_no_java_nobody_watches(monkeypatch: pytest.MonkeyPatch) -> None:
    on(Machine(), monkeypatch)
    started: list[Any] = []
    monkeypatch.setattr(agent_module.threads, "started", lambda *given: started.append(given))
    agent_module.watch_java(lambda *given: None)
    assert started == []


def test_processes_of_a_script_do_not_get_what_agents_import(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    package = str(tmp_path / "akrunner.pyz")
    monkeypatch.setattr(agent_module, "__file__", f"{package}/akrunner/engines/flink/taskmanager/agent.py")
    assert places_of_scripts({"PYTHONPATH": f"/a{os.pathsep}{package}{os.pathsep}/b"}) == {"PYTHONPATH": f"/a{os.pathsep}/b"}
    assert places_of_scripts({"PYTHONPATH": "/a"}) == places_of_scripts({}) == {}, "nothing is set that was not"
