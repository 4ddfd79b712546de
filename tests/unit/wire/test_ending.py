"""What is cleaned up after a dead host, beside a stand-in for the system's processes: no process is started or ended here."""

from __future__ import annotations

import ast
import builtins
import json
import os
import shutil
import signal
import stat
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from akrunner.wire import ending

OWN, HOST = 1000, 999
#: moments of a host, as its guard sees them: nothing was written; the host has died, and a child holds the pipe open
QUIET, DEAD = None, ""


class System:
    """Processes that exist only in a directory that stands for /proc, a clock, and the pipe of a host to its guard."""

    def __init__(self, proc: Path) -> None:
        self.proc = proc
        self.ended: list[tuple[str, int]] = []
        self.slept = 0
        self.clock = 0.0
        self.parent = HOST
        self.pipe: list[bytes | str | None] = []
        self.waited: list[tuple[list[int], float]] = []
        self.pidfd = True
        #: called with the pid of each process that is killed
        self.dying: Callable[[int], object] = self.gone
        own: dict[str, Any] = {
            name: getattr(self, name) for name in ("listdir", "kill", "killpg", "getppid", "read", "set_blocking", "pidfd_open")
        }
        self.os = types.SimpleNamespace(**{**vars(os), **own, "getpid": lambda: OWN})
        self.time = types.SimpleNamespace(sleep=self.sleep, monotonic=lambda: self.clock)
        proc.mkdir()
        (proc / "meminfo").write_text("")

    def runs(self, pid: int, start: str = "50", state: str = "S", mark: str = "", name: str = "python") -> None:
        folder = self.proc / str(pid)
        folder.mkdir(exist_ok=True)
        fields = [state, *["0"] * 18, start, *["0"] * 32]
        (folder / "stat").write_text(f"{pid} ({name}) {' '.join(fields)}\n")
        (folder / "environ").write_bytes(b"A=1\0" + (f"AKRUNNER_JOB={mark}\0".encode() if mark else b"") + b"B=2\0")

    def gone(self, pid: int) -> None:
        shutil.rmtree(self.proc / str(pid))

    def open(self, path: str, mode: str = "r") -> Any:
        return builtins.open(path.replace("/proc", str(self.proc), 1) if path.startswith("/proc/") else path, mode)

    def listdir(self, path: str) -> list[str]:
        return os.listdir(self.proc if path == "/proc" else path)

    def kill(self, pid: int, number: int) -> None:
        assert number == signal.SIGKILL
        self.ended.append(("process", pid))
        self.dying(pid)

    def killpg(self, group: int, number: int) -> None:
        assert number == signal.SIGKILL
        self.ended.append(("group", group))

    def sleep(self, seconds: float) -> None:
        self.slept += 1
        self.clock += seconds

    def set_blocking(self, fd: int, blocking: bool) -> None:
        assert (fd, blocking) == (0, False)

    def pidfd_open(self, pid: int) -> int:
        assert pid == HOST
        if not self.pidfd:
            raise OSError("not on this system")
        return 77

    def getppid(self) -> int:
        return self.parent

    def select(self, watched: list[int], _w: list[int], _x: list[int], seconds: float) -> None:
        self.waited.append((list(watched), seconds))
        self.clock += seconds

    def read(self, fd: int, _size: int) -> bytes:
        assert fd == 0
        said = self.pipe.pop(0) if self.pipe else b""
        if isinstance(said, bytes):
            return said
        if said == DEAD:
            self.parent = 1
        raise BlockingIOError


@pytest.fixture
def system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> System:
    made = System(tmp_path / "proc")
    monkeypatch.setattr(ending, "os", made.os)
    monkeypatch.setattr(ending, "time", made.time)
    monkeypatch.setattr(ending, "select", types.SimpleNamespace(select=made.select))
    monkeypatch.setattr(ending, "open", made.open, raising=False)
    monkeypatch.setattr(ending, "wake_when_parent_dies", lambda: None)
    return made


def said(*lines: list[Any]) -> bytes:
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def test_the_guard_is_this_file_and_nothing_else() -> None:
    tree = ast.parse(Path(ending.__file__).read_text())
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    names |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert names <= set(sys.stdlib_module_names)


def test_what_is_held_follows_the_lines_and_can_be_told_again() -> None:
    held = ending.Held()
    assert not held and held.lines() == []
    for line in (["+", "path", "/a"], ["+", "path", "/b"], ["+", "group", 7, "50"], ["+", "mark", "m"], ["-", "path", "/a"]):
        held.take(line)
    held.take(["-", "path", "/never"])
    assert held and (list(held.paths), held.groups, list(held.marks)) == (["/b"], {7: "50"}, ["m"])
    other = ending.Held()
    for line in held.lines():
        other.take(ending.checked(json.loads(json.dumps(line))))
    assert (other.paths, other.groups, other.marks) == (held.paths, held.groups, held.marks)
    for line in (["-", "path", "/b"], ["-", "group", 7], ["-", "mark", "m"]):
        assert other
        other.take(line)
    assert not other


@pytest.mark.parametrize(
    "line",
    [
        ["+", "path", "/é"],
        ["-", "path", "/a"],
        ["+", "group", 2, ""],
        ["+", "group", 7, "50"],
        ["-", "group", 7],
        ["+", "mark", "m"],
        ["-", "mark", "m"],
    ],
)
def test_a_line_of_a_host(line: list[Any]) -> None:
    assert ending.checked(line) == line


@pytest.mark.parametrize(
    "line",
    [
        [], ["+"], ["+", "path"], ["*", "path", "/a"], ["+", "other", "/a"], ["+", "path", 3], ["+", "path", None], ["!"], ["awake", 5],
        ["+", "group", 7], ["+", "group", 7, 50], ["+", "group", "7", "50"], ["+", "group", True, "50"], ["+", "group", 1, "50"],
        ["+", "group", 0, "50"], ["-", "group", -7], ["+", "mark", ""], ["+", "mark", "é"], ["+", "mark", 3], 7, None, "+path",
    ],
)  # fmt: skip
def test_a_line_no_host_writes(line: Any) -> None:
    with pytest.raises((ValueError, TypeError, IndexError)):
        ending.checked(line)


@pytest.mark.parametrize("name", ["python", "a b", "a) S 1 2 (", ")"])
def test_when_a_process_started_whatever_its_name_is(system: System, name: str) -> None:
    system.runs(7, "123456", name=name)
    assert ending.started(7) == "123456"


def test_what_does_not_run_has_no_start(system: System) -> None:
    assert ending.started(7) == ""
    for state in "ZX":
        system.runs(8, state=state)
        assert ending.started(8) == ""
    (system.proc / "8" / "stat").write_text("")
    assert ending.started(8) == ""


@pytest.mark.parametrize(
    ("group", "start", "now", "ends"),
    [
        (7, "50", "50", True),
        (7, "50", "", True),  # its leader has ended, others of the group may not have
        (7, "", "60", True),
        (7, "50", "60", False),
        (1, "50", "50", False),
        (0, "", "", False),
        (-7, "", "", False),
    ],
)
def test_a_group_is_ended_unless_its_number_is_anothers_by_now(
    system: System, group: int, start: str, now: str, ends: bool
) -> None:
    if now:
        system.runs(group, now)
    ending.end([(group, start)], [])
    assert system.ended == ([("group", group)] if ends else [])


def test_a_group_that_is_gone_or_may_not_be_ended_keeps_no_other(system: System) -> None:
    def refused(group: int, number: int) -> None:
        system.ended.append(("group", group))
        raise ProcessLookupError if group == 7 else PermissionError

    system.os.killpg = refused
    ending.end([(7, "50"), (8, "50"), (9, "50")], [])
    assert system.ended == [("group", 7), ("group", 8), ("group", 9)]


def test_those_that_carry_a_mark_are_found(system: System) -> None:
    system.runs(7, mark="job")
    system.runs(8, mark="job2")
    system.runs(9, mark="")
    system.runs(10, mark="job", state="Z")
    system.runs(OWN, mark="job")
    system.runs(11, mark="job")
    (system.proc / "12").mkdir()  # one that ends at this moment
    assert sorted(ending.carrying("job")) == [7, 11] and ending.carrying("job2") == [8] and ending.carrying("jo") == []
    shutil.rmtree(system.proc)
    assert ending.carrying("job") == []


def test_marked_processes_are_ended_with_those_they_start_meanwhile(system: System) -> None:
    def dying(pid: int) -> None:
        system.gone(pid)
        if pid < 9:
            system.runs(pid + 1, mark="job")

    system.dying = dying
    system.runs(7, mark="job")
    system.runs(20, mark="other")
    ending.end([], ["job"])
    assert system.ended == [("process", 7), ("process", 8), ("process", 9)]


def test_a_process_that_does_not_end_is_not_waited_for_for_ever(system: System) -> None:
    system.dying = lambda pid: None
    system.runs(7, mark="job")
    ending.end([], ["job"])
    assert 1 < len(system.ended) < 100 and system.clock < 1


def test_a_file_a_directory_and_what_is_not_there_are_gone(tmp_path: Path, system: System) -> None:
    file, folder, none = tmp_path / "file", tmp_path / "folder", tmp_path / "none"
    file.write_text("x")
    (folder / "in" / "it").mkdir(parents=True)
    (folder / "in" / "file").write_text("x")
    assert all(ending.remove(str(path)) for path in (file, folder, none))
    assert sorted(os.listdir(tmp_path)) == ["proc"] and not system.slept


def test_a_link_is_removed_and_never_its_target(tmp_path: Path, system: System) -> None:
    target = tmp_path / "target"
    target.mkdir()
    (target / "kept").write_text("x")
    (tmp_path / "folder").mkdir()
    for place in ("link", "folder/link"):
        (tmp_path / place).symlink_to(target)
    (tmp_path / "broken").symlink_to(tmp_path / "none")
    assert all(ending.remove(str(tmp_path / name)) for name in ("link", "folder", "broken"))
    assert sorted(os.listdir(tmp_path)) == ["proc", "target"] and os.listdir(target) == ["kept"]


def test_a_directory_that_others_still_write_into_is_tried_again(
    tmp_path: Path, system: System, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, other, tries = tmp_path / "folder", tmp_path / "other", []
    (folder / "closed").mkdir(parents=True, mode=0)
    other.mkdir(mode=0o500)
    (folder / "link").symlink_to(other)

    def rmtree(path: str, ignore_errors: bool) -> None:
        assert ignore_errors
        tries.append(stat.S_IMODE(os.stat(folder / "closed").st_mode))
        if len(tries) == 3:
            removes(path)

    removes = shutil.rmtree
    monkeypatch.setattr(shutil, "rmtree", rmtree)
    assert ending.remove(str(folder)) and not folder.exists()
    assert tries == [0, 0o700, 0o700] and system.slept == 2
    assert stat.S_IMODE(os.stat(other).st_mode) == 0o500, "what a link leads to stays as it is"


def test_what_cannot_be_removed_is_given_up_after_a_second_or_so(
    tmp_path: Path, system: System, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(path: str) -> None:
        raise PermissionError(path)

    system.os.unlink = refused
    (tmp_path / "file").write_text("x")
    assert not ending.remove(str(tmp_path / "file")) and 0.5 < system.clock < 5
    monkeypatch.setattr(shutil, "rmtree", lambda path, ignore_errors: None)
    (tmp_path / "folder").mkdir()
    assert not ending.remove(str(tmp_path / "folder"))
    system.os.lstat = refused
    assert not ending.remove(str(tmp_path / "none")), "nobody knows whether it is there"


def test_processes_are_ended_before_paths_are_removed_and_once_more_after(tmp_path: Path, system: System) -> None:
    there, seen = [tmp_path / name for name in "ab"], []
    held = ending.Held()
    for line in (["+", "group", 7, "50"], ["+", "mark", "job"], *(["+", "path", str(path)] for path in there)):
        held.take(line)
    for path in there:
        path.write_text("x")
    system.runs(8, mark="job")

    def unlink(path: str) -> None:
        seen.append(list(system.ended))
        os.unlink(path)
        system.runs(9, mark="job")

    system.os.unlink = unlink
    assert held.clear() and not any(path.exists() for path in there)
    assert seen[0] == [("group", 7), ("process", 8)] and system.ended == [*seen[0], ("process", 9)]


def test_one_path_that_stays_is_told_and_keeps_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    removed: list[str] = []
    monkeypatch.setattr(ending, "remove", lambda path: removed.append(path) or path != "/a")
    held = ending.Held()
    for path in ("/a", "/b"):
        held.take(["+", "path", path])
    assert held.clear() is False and removed == ["/a", "/b"]
    held.take(["-", "path", "/a"])
    assert held.clear() is True


def files(folder: Path, *names: str) -> list[str]:
    for name in names:
        (folder / name).write_text("x")
    return [str(folder / name) for name in names]


@pytest.mark.parametrize("journal", [True, False])
def test_a_guard_that_is_told_to_leave_removes_nothing(tmp_path: Path, system: System, journal: bool) -> None:
    a, written = files(tmp_path, "a", "journal")
    Path(written).write_bytes(b"{}\n" + said(["+", "path", a]))
    system.pipe = [said(["+", "path", a], ["!"], ["+", "path", written])]
    ending.guard(HOST, written if journal else "")
    assert os.path.exists(a) and os.path.exists(written)


def test_without_a_journal_a_guard_removes_what_it_was_told(tmp_path: Path, system: System) -> None:
    a, b, c, d = files(tmp_path, "a", "b", "c", "d")
    told = said(["+", "path", a], ["+", "path", b], ["-", "path", b], ["+", "path", c], ["+", "path", d])
    # it may come in pieces; a line that was cut short by the host's death does not count
    system.pipe = [told[:30], QUIET, told[30:31], told[31:-1]]
    ending.guard(HOST, "")
    assert [os.path.exists(path) for path in (a, b, c, d)] == [False, True, False, True]


def test_a_journal_counts_for_more_than_what_a_guard_was_told_and_goes_last(tmp_path: Path, system: System) -> None:
    a, b, written = files(tmp_path, "a", "b", "journal")
    Path(written).write_bytes(b'{"pid": 999}\n' + said(["+", "path", a], ["+", "group", 7, "50"], ["+", "group", OWN, "50"]))
    system.pipe = [said(["+", "path", b], ["+", "group", 8, "50"])]
    ending.guard(HOST, written)
    assert [os.path.exists(path) for path in (a, b, written)] == [False, True, False]
    assert system.ended == [("group", 7)], "and never the guard itself"


def test_a_journal_stays_if_anything_it_names_does(tmp_path: Path, system: System) -> None:
    a, written = files(tmp_path, "a", "journal")
    Path(written).write_bytes(b"{}\n" + said(["+", "path", a]))

    def unlink(path: str) -> None:
        raise PermissionError(path)

    system.os.unlink = unlink
    ending.guard(HOST, written)
    assert os.path.exists(a) and os.path.exists(written)


def test_a_journal_that_cannot_be_read_is_left_and_what_was_told_counts(tmp_path: Path, system: System) -> None:
    a, written = files(tmp_path, "a", "journal")
    Path(written).write_bytes(b"{}\nnot ours\n")
    system.pipe = [said(["+", "path", a])]
    ending.guard(HOST, written)
    assert not os.path.exists(a) and os.path.exists(written)


def test_a_host_is_dead_though_its_child_holds_the_pipe_open(tmp_path: Path, system: System) -> None:
    (a,) = files(tmp_path, "a")
    system.pipe = [said(["+", "path", a]), QUIET, DEAD, QUIET, said(["-", "path", a])]
    ending.guard(HOST, "")
    assert not os.path.exists(a) and len(system.pipe) == 1


@pytest.mark.parametrize("pidfd", [True, False])
def test_a_guard_hears_of_its_hosts_death_or_looks_often(system: System, pidfd: bool) -> None:
    system.pidfd, system.pipe = pidfd, [QUIET]
    ending.guard(HOST, "")
    assert system.waited == [([0, 77], 1.0) if pidfd else ([0], 0.1)] * 2


@pytest.mark.parametrize(
    ("state", "awake", "ends"), [("T", 5, True), ("T", 50, False), ("S", 5, False), ("T", None, False), ("", 5, False)]
)
def test_only_a_host_that_is_stopped_for_too_long_is_killed(system: System, state: str, awake: int | None, ends: bool) -> None:
    if state:
        system.runs(HOST, state=state)
    system.pipe = [b"" if awake is None else said(["awake", awake]), *[QUIET] * 20]
    if awake is None:
        system.pipe.pop(0)
    system.dying = lambda pid: system.pipe.clear()
    ending.guard(HOST, "")
    assert system.ended == ([("process", HOST)] if ends else [])
    if ends:
        assert 5 < system.clock < 10


def test_a_host_that_goes_on_in_between_is_not_killed(system: System) -> None:
    states = iter("TTTTSTTTT")
    system.pipe = [said(["awake", 5]), *[QUIET] * 8]
    select = system.select

    def waits(*given: Any) -> None:
        select(*given)
        system.runs(HOST, state=next(states, "S"))

    ending.select.select = waits  # type: ignore[assignment]
    ending.guard(HOST, "")
    assert not system.ended


def test_the_kernel_is_asked_to_continue_a_guard_whose_host_dies(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, ...]] = []

    def without(library: int, name: str) -> int:
        raise OSError(f"undefined symbol: {name}")

    functions = {"dlopen": lambda name, flags: 7, "call_function": lambda function, given: asked.append(given)}
    with_it = types.SimpleNamespace(**functions, dlsym=lambda library, name: {(7, "prctl"): 8}[library, name])
    for there in (with_it, types.SimpleNamespace(**functions, dlsym=without), None):
        # the second is a system without it, the third a Python without ctypes
        monkeypatch.setitem(sys.modules, "_ctypes", there)
        ending.wake_when_parent_dies()
    assert asked == [(1, signal.SIGCONT, 0, 0, 0)]


def test_a_link_is_removed_and_never_its_target_also_with_a_slash_at_its_end(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.mkdir()
    (target / "kept").write_text("x")
    (tmp_path / "link").symlink_to(target)
    assert ending.remove(f"{tmp_path}/link/") and not (tmp_path / "link").exists()
    assert (target / "kept").read_text() == "x"


@pytest.mark.parametrize(("path", "gone"), [("file/x", True), ("a\0b", False), ("\udc80\ud800", False)])
def test_a_path_that_cannot_be_there_is_told_as_gone_or_not(tmp_path: Path, path: str, gone: bool) -> None:
    (tmp_path / "file").write_text("x")
    assert ending.remove(f"{tmp_path}/{path}") is gone
