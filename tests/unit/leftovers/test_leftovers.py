"""What goes when a process dies: by its guard, and by the next start where the guard was killed, too."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest

from akrunner import leftovers
from akrunner.leftovers import journal, keeper
from akrunner.leftovers.private import private_dir, private_file, state_dir, temp_directory
from akrunner.wire import ending
from tests.conftest import ENDS

HOLD = """
import os, subprocess, sys, time
from akrunner import leftovers

def guard():
    return leftovers.keeper._keepers[0]._guard

for path in sys.argv[2:]:
    leftovers.register(path)
    os.makedirs(os.path.join(path, "in", "it"))
{more}
print(guard().pid, flush=True)
{last}
time.sleep(1000)
"""


@pytest.fixture
def state(leaves_nothing: Path) -> Path:
    return Path(os.environ["XDG_STATE_HOME"]) / "akrunner" / "leftovers"


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """This process holds nothing yet, whatever another test's engine holds for as long as tests run."""
    monkeypatch.setattr(keeper, "_keepers", [keeper._Keeper()])
    yield
    assert keeper._keepers[0]._guard is None and keeper._keepers[0]._journal is None


def guard_of_this() -> int:
    """The pid of the guard of what this process holds."""
    guard = keeper._keepers[0]._guard
    assert guard is not None and runs(guard.pid)
    return guard.pid


def held(more: str = "", last: str = "", *paths: Any) -> tuple[subprocess.Popen[str], int]:
    """(a process that holds the paths, its guard's pid)"""
    code = HOLD.format(more=more, last=last).replace("leftovers.keeper", "sys.modules['akrunner.leftovers.keeper']")
    process = subprocess.Popen([sys.executable, "-c", code, "-", *map(str, paths)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, int(process.stdout.readline())


def soon(what: Callable[[], bool], seconds: float = ENDS) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        # once is enough: a process that is just being started has no command line for a moment
        if what():
            return True
        time.sleep(0.01)
    return what()


def runs(pid: int) -> bool:
    return bool(ending.started(pid))


def watches(guard: int) -> bool:
    """Whether it has its host's pidfd."""
    fds = Path(f"/proc/{guard}/fd")
    with contextlib.suppress(OSError):
        return any("pidfd" in os.readlink(fd) for fd in fds.iterdir())
    return False


def stop(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait()
    assert process.stdout is not None
    process.stdout.close()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["plain", "with\na newline", "caf\udce9", 'a "quote" \\ and é', "x" * 200])
def test_the_guard_removes_what_a_killed_process_held(state: Path, tmp_path: Path, name: str) -> None:
    process, guard = held("", "", tmp_path / name, tmp_path / "other")
    assert len(os.listdir(tmp_path)) == 2 and len(os.listdir(state)) == 1
    stop(process)
    assert soon(lambda: not os.listdir(tmp_path) and not os.listdir(state) and not runs(guard))


def test_the_guard_ends_groups_and_marked_processes(state: Path, tmp_path: Path) -> None:
    more = """
group = subprocess.Popen(["sleep", "1000"], start_new_session=True)
leftovers.watch(group.pid)
leftovers.mark("guard-test-mark")
far = subprocess.Popen(["sleep", "1000"], start_new_session=True, env={**os.environ, "AKRUNNER_JOB": "guard-test-mark"})
print(group.pid, far.pid, flush=True)
"""
    process = subprocess.Popen([sys.executable, "-c", HOLD.format(more=more, last="").replace("leftovers.keeper", "sys.modules['akrunner.leftovers.keeper']"), "-"], stdout=subprocess.PIPE, text=True)  # fmt: skip
    assert process.stdout is not None
    pids = [int(pid) for pid in process.stdout.readline().split()] + [int(process.stdout.readline())]
    assert all(map(runs, pids))
    stop(process)
    assert soon(lambda: not any(map(runs, pids)))


def test_a_child_made_by_fork_does_not_keep_the_guard(state: Path, tmp_path: Path) -> None:
    more = """
child = os.fork()
if child == 0:
    os.setsid()
    leftovers.register(sys.argv[2] + "-child")   # its own, with a guard of its own
    os.mkdir(sys.argv[2] + "-child")
    leftovers.remove(sys.argv[2] + "-child")
    leftovers.forget(sys.argv[2] + "-child")
    os.close(1)
    time.sleep(1000)
print(child, flush=True)
"""
    process = subprocess.Popen([sys.executable, "-W", "ignore", "-c", HOLD.format(more=more, last="").replace("leftovers.keeper", "sys.modules['akrunner.leftovers.keeper']"), "-", str(tmp_path / "held")], stdout=subprocess.PIPE, text=True)  # fmt: skip
    assert process.stdout is not None
    child, guard = int(process.stdout.readline()), int(process.stdout.readline())
    try:
        stop(process)
        assert soon(lambda: not runs(guard)) and runs(child)
        # by the guard, or by the child, which starts to hold something about now, and looks for what the dead have left
        assert soon(lambda: not (tmp_path / "held").exists())
    finally:
        os.kill(child, signal.SIGKILL)
    assert soon(lambda: not os.path.exists(tmp_path / "held-child"))


def test_a_stopped_guard_is_woken(state: Path, tmp_path: Path) -> None:
    process, guard = held("", "", tmp_path / "held")
    # before it has asked for it, nobody can wake it but the next start; it watches its host after that
    assert soon(lambda: watches(guard))
    os.kill(guard, signal.SIGSTOP)
    stop(process)
    assert soon(lambda: not runs(guard)) and not os.listdir(tmp_path)


@pytest.mark.slow
def test_a_host_that_was_stopped_is_killed_if_it_wants_to_be(state: Path, tmp_path: Path) -> None:
    other, guard_of_other = held("", "", tmp_path / "another's")
    process, guard = held("leftovers.keep_awake(0.1)", "", tmp_path / "held")
    for one in (other, process):
        one.send_signal(signal.SIGSTOP)
    assert soon(lambda: not runs(guard) and not runs(process.pid))
    assert os.listdir(tmp_path) == ["another's"] and runs(other.pid) and runs(guard_of_other)
    stop(process)
    stop(other)
    assert soon(lambda: not runs(guard_of_other)) and not os.listdir(tmp_path)


def test_the_guard_ignores_polite_signals_and_leaves_with_its_host(state: Path, tmp_path: Path) -> None:
    process, guard = held("", "", tmp_path / "held")
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        os.kill(guard, number)
    time.sleep(0.1)
    assert runs(guard)
    process.terminate()  # polite: Python has no word in it
    stop(process)
    assert soon(lambda: not runs(guard)) and not os.listdir(tmp_path)


def test_the_next_start_removes_what_host_and_guard_left(state: Path, tmp_path: Path) -> None:
    process, guard = held("", "", tmp_path / "held", tmp_path / "too")
    os.kill(guard, signal.SIGKILL)
    stop(process)
    assert len(os.listdir(tmp_path)) == 2
    journal.clear_dead()
    assert not os.listdir(tmp_path) and not os.listdir(state)


@pytest.mark.slow
def test_a_guard_that_was_told_nothing_goes_by_the_journal(state: Path, tmp_path: Path) -> None:
    last = """
group = subprocess.Popen(["sleep", "1000"], start_new_session=True)
leftovers.watch(group.pid)
print(group.pid, flush=True)

def dies_first(self, line):
    os.kill(os.getpid(), 9)

first = leftovers.keeper._keepers[0]._guard
os.kill(first.pid, 9)
os.waitid(os.P_PID, first.pid, os.WEXITED | os.WNOWAIT)
leftovers.keeper._Guard.say = dies_first
leftovers.guards()
"""
    process, _ = held("", last, tmp_path / "held")
    assert process.stdout is not None
    group = int(process.stdout.readline())
    assert process.wait(60) == -signal.SIGKILL
    stop(process)
    assert soon(lambda: not os.listdir(state))
    assert not os.listdir(tmp_path) and soon(lambda: not runs(group))
    # its guards: nobody else's have this pid
    assert soon(lambda: not [p for p in psutil.process_iter() if {"-S", str(process.pid)} <= set(_words_of(p))])


def test_what_the_journal_forgot_last_stays_whatever_the_guard_was_told(state: Path, tmp_path: Path) -> None:
    last = f"""
def dies_first(self, line):
    os.kill(os.getpid(), 9)

leftovers.keeper._Guard.say = dies_first
leftovers.forget({str(tmp_path / "kept")!r})
"""
    process, guard = held("", last, tmp_path / "held", tmp_path / "kept")
    assert process.wait(60) == -signal.SIGKILL
    stop(process)
    assert soon(lambda: not runs(guard))
    assert os.listdir(tmp_path) == ["kept"] and not os.listdir(state)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ([], [])),
        ('{"pid": 7}\n', ([], [])),
        ('{"pid": 7}\n["+", "path", "/a"]\n["+", "path", "/b"]\n["-", "path", "/a"]\n', (["/b"], [])),
        ('{"pid": 7}\n["+", "path", "/a"]\n["+", "path", "/bcd', (["/a"], [])),
        ('{"pid": 7}\n["+", "group", 8, "9"]\n["+", "group", GUARD, "9"]\n', ([], [8])),
        ('{"pid": 7}\n["+", "path", "/a"]\nnot of ours\n', None),
        ('{"pid": 7}\n["+", "other", "/a"]\n', None),
        ('{"pid": 7}\n7\n', None),
        ('{"pid": 7}\n["+", "path", 3]\n', None),
        ('{"pid": 7}\n["+", "group", "x", "y"]\n', None),
        ('{"pid": 7}\n' + "[" * 100_000 + "\n", None),
    ],
)
def test_what_a_guard_reads_in_a_journal(tmp_path: Path, text: str, expected: tuple[list[str], list[int]] | None) -> None:
    written = tmp_path / "journal"
    written.write_text(text.replace("GUARD", str(os.getpid())))
    found = ending._written(str(written))
    assert (None if found is None else (list(found.paths), list(found.groups))) == expected
    assert ending._written(str(tmp_path / "none")) is None and ending._written("") is None


def _words_of(process: psutil.Process) -> list[str]:
    try:
        return list(process.cmdline())
    except psutil.Error:
        return []


def test_the_next_start_leaves_alone_what_the_living_hold(state: Path, tmp_path: Path) -> None:
    process, guard = held("", "", tmp_path / "held")
    try:
        journal.clear_dead()
        assert (tmp_path / "held").exists() and len(os.listdir(state)) == 1
    finally:
        stop(process)
    assert soon(lambda: not runs(guard))


def written(state: Path, paths: Sequence[Path | str], **host: Any) -> Path:
    """A dead process's journal."""
    state.mkdir(parents=True, exist_ok=True)
    head: dict[str, Any] = {"pid": 2**22 + 5, "start": "1", **journal._here(), **host}
    path = state / "dead"
    path.write_text("\n".join([json.dumps(head), *(json.dumps(["+", "path", str(p)]) for p in paths), '["+", "pa']))
    return path


def test_links_are_not_followed(state: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "mine")
    written(state, [tmp_path / "link", tmp_path / "link" / "file"])
    journal.clear_dead()
    assert os.listdir(tmp_path / "mine") == ["file"] and not (tmp_path / "link").is_symlink()


@pytest.mark.parametrize("path", ["mine/.", "mine/in/..", "mine/", "/mine", "mine/in/../in", "a\0b", "\ud800"])
def test_paths_no_process_of_ours_would_hold_are_left_alone(state: Path, tmp_path: Path, path: str) -> None:
    (tmp_path / "mine" / "in").mkdir(parents=True)
    written(state, [f"{tmp_path}/{path}"])
    journal.clear_dead()
    assert (tmp_path / "mine" / "in").is_dir()


@pytest.mark.parametrize("line", ['["+", "path", 1]', '["+", "mark", ""]', '["+", "mark", "a\\u00e9"]', '["+", "group", "x", ""]', '["+", "group", 1, ""]', "[" * 100_000, "[]", '"x"', '["?", "path", "x"]'])  # fmt: skip
def test_a_line_that_is_none_of_ours_spoils_a_journal_and_nothing_else(state: Path, tmp_path: Path, line: str) -> None:
    (tmp_path / "held").mkdir()
    path = written(state, [tmp_path / "held"])
    path.write_text(path.read_text() + f'th", "/x"]\n{line}\n')
    journal.clear_dead()
    assert (tmp_path / "held").is_dir() and path.exists()


@pytest.mark.parametrize("pid", ["1e999", "NaN", "-1", "1" * 30, "true", '"1"'])
def test_a_number_no_process_can_have(state: Path, tmp_path: Path, pid: str) -> None:
    (tmp_path / "held").mkdir()
    path = written(state, [tmp_path / "held"], start="")
    path.write_text(path.read_text().replace(f'"pid": {2**22 + 5}', f'"pid": {pid}'))
    journal.clear_dead()
    assert (tmp_path / "held").is_dir() and path.exists()


def test_a_pipe_among_the_journals_is_not_waited_for_and_a_huge_file_not_read(state: Path) -> None:
    state.mkdir(parents=True)
    os.mkfifo(state / "fifo")
    with open(state / "huge", "wb") as f:
        f.truncate(2**40)
    journal.clear_dead()
    assert sorted(os.listdir(state)) == ["fifo", "huge"]


def test_a_journal_that_does_not_fit_the_disk_goes(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    short = journal.Journal()
    monkeypatch.setattr(os, "write", lambda fd, line: len(line) - 1)
    short.write(b'["+", "path", "/x"]\n')
    assert not short.path and not os.listdir(state)


@pytest.mark.parametrize("host", [{"boot": "another"}, {"machine": "another"}, {"namespace": "another"}, {"pid": 2**22 + 6}])
def test_other_machines_are_none_of_ours(state: Path, tmp_path: Path, host: dict[str, Any]) -> None:
    (tmp_path / "held").mkdir()
    path = written(state, [tmp_path / "held"], **host)
    journal.clear_dead()
    assert (tmp_path / "held").exists() == ("pid" not in host) and path.exists() == ("pid" not in host)


@pytest.mark.parametrize("text", ["", "{}", "[]\n", "nonsense\n", '{"pid": 1}\n', "\0\0"])
def test_what_is_no_journal_is_left_alone(state: Path, text: str) -> None:
    state.mkdir(parents=True)
    (state / "odd").write_text(text)
    journal.clear_dead()
    assert (state / "odd").read_text() == text


def test_a_process_of_the_same_number_is_not_ended(state: Path) -> None:
    with subprocess.Popen(["sleep", "1000"], start_new_session=True) as other:
        try:
            ending.end([(other.pid, "1")], ())
            assert other.poll() is None
            ending.end([(other.pid, ending.started(other.pid))], ())
            assert other.wait(60) == -signal.SIGKILL
        finally:
            other.kill()


def test_a_killed_guard_is_replaced(state: Path, fresh: None, tmp_path: Path) -> None:
    path = str(tmp_path / "held")
    leftovers.register(path)
    try:
        guard = guard_of_this()
        os.kill(guard, signal.SIGKILL)
        assert soon(lambda: leftovers.guards() == 1)
        other = guard_of_this()
        assert other != guard
    finally:
        leftovers.forget(path)
    assert not runs(guard) and not runs(other)
    assert not os.listdir(state)


def test_what_modes_a_script_gave_does_not_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    root = os.geteuid() == 0
    if root:
        # who may do anything would not notice
        os.chown(".", 65534, -1)
        os.seteuid(65534)
    try:
        Path("a/b").mkdir(parents=True)
        Path("a/b/file").write_text("")
        Path("mine").mkdir(mode=0o500)
        Path("a/link").symlink_to("../mine")
        for folder in ("a/b", "a"):
            os.chmod(folder, 0)
        assert leftovers.remove("a") and os.listdir(".") == ["mine"]
        assert mode("mine") == 0o500
    finally:
        if root:
            os.seteuid(0)


def mode(path: str | Path) -> int:
    return stat.S_IMODE(os.stat(path).st_mode)


@pytest.mark.parametrize("umask", [0, 0o022, 0o777])
def test_private_whatever_the_umask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, umask: int) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    (tmp_path / "akrunner").mkdir()
    (tmp_path / "wide").mkdir()
    os.chmod(tmp_path / "akrunner", 0o755)
    os.chmod(tmp_path / "wide", 0o777)
    before = os.umask(umask)
    try:
        private_dir(str(tmp_path / "wide"))
        with private_file(str(tmp_path / "wide" / "file")) as f:
            f.write("x")
        made = state_dir("failed")
    finally:
        os.umask(before)
    assert made == str(tmp_path / "akrunner" / "failed")
    assert [mode(tmp_path / "wide"), mode(tmp_path / "akrunner"), mode(made)] == [0o700] * 3
    assert mode(tmp_path / "wide" / "file") == 0o600


@pytest.mark.parametrize("base", ["/proc/nowhere", "/dev/null"])
def test_no_state_directory(monkeypatch: pytest.MonkeyPatch, fresh: None, tmp_path: Path, base: str) -> None:
    """It works without: the guard is there all the same."""
    monkeypatch.setenv("XDG_STATE_HOME", base)
    assert state_dir("leftovers") is None
    leftovers.register(str(tmp_path / "held"))
    guard = guard_of_this()
    leftovers.forget(str(tmp_path / "held"))
    assert not runs(guard)


def test_one_guard_for_what_is_held_one_after_the_other(state: Path, fresh: None, tmp_path: Path) -> None:
    with leftovers.together():
        assert keeper._keepers[0]._guard is None
        leftovers.register(str(tmp_path / "one"))
        guard = guard_of_this()
        leftovers.forget(str(tmp_path / "one"))
        with leftovers.together():
            leftovers.register(str(tmp_path / "two"))
            leftovers.forget(str(tmp_path / "two"))
        assert guard_of_this() == guard and len(os.listdir(state)) == 1
    assert not psutil.pid_exists(guard) and os.listdir(state) == []


@pytest.mark.slow
def test_a_child_made_by_fork_ends_no_block_of_its_parent(state: Path, tmp_path: Path) -> None:
    code = """
import os, sys
from akrunner import leftovers

held, journals = sys.argv[1:]
with leftovers.together():
    leftovers.register(held)
    leftovers.forget(held)
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        print(len(os.listdir(journals)))
if child:
    print(len(os.listdir(journals)))
"""
    words = [sys.executable, "-W", "ignore", "-c", code, str(tmp_path / "held"), str(state)]
    assert subprocess.check_output(words, text=True).split() == ["1", "0"]


def test_a_temp_folder_is_registered_before_it_is_made(state: Path, fresh: None, monkeypatch: pytest.MonkeyPatch) -> None:
    mkdir, held_then = os.mkdir, []

    def refuse(path: str, mode: int = 0o777) -> None:
        if "akrunner-test-" not in path:
            return mkdir(path, mode)
        held_then.append(path in keeper._keepers[0]._held.paths)
        raise PermissionError(13, "no", path)

    with monkeypatch.context() as refused, pytest.raises(PermissionError):
        refused.setattr(os, "mkdir", refuse)
        leftovers.temp_folder("akrunner-test-")
    assert held_then == [True]
    folder = leftovers.temp_folder("akrunner-test-")
    assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700
    (Path(folder) / "file").touch()
    leftovers.drop(folder)
    assert not os.path.exists(folder) and os.listdir(state) == []


def test_a_journal_that_was_never_begun_goes(state: Path, fresh: None, tmp_path: Path) -> None:
    folder = Path(str(leftovers.state_dir("leftovers")))
    old, new = folder / "1-old", folder / "1-new"
    for path in (old, new):
        path.touch()
    os.utime(old, (0, 0))
    leftovers.register(str(tmp_path / "held"))
    leftovers.forget(str(tmp_path / "held"))
    assert new.exists() and not old.exists()


def test_many_journals_of_dead_processes_are_read_a_few_at_a_time(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    private_dir(str(state))
    about = {"pid": 2**31 - 1, "start": "1", **journal._here()}
    for i in range(40):
        (state / f"{2**31 - 1}-{i:08x}").write_text(json.dumps(about) + "\n")
    mine = journal.Journal()
    read: list[str] = []

    def reads(path: str, wholly: bool = True) -> Any:
        if wholly:
            read.append(os.path.basename(path))
        return real(path, wholly)

    clock = iter(range(10_000))
    monkeypatch.setattr(journal, "_READING", 10)
    monkeypatch.setattr(journal, "_BUDGET", 1000)
    monkeypatch.setattr(journal.time, "monotonic", lambda: next(clock))
    real = journal._read
    monkeypatch.setattr(journal, "_read", reads)
    journal.clear_dead()
    assert os.path.basename(mine.path) == read[0], "what the living hold is known before anything is removed"
    assert 5 < 40 - (len(os.listdir(state)) - 1) < 15
    for _ in range(5):
        journal.clear_dead()
    assert os.listdir(state) == [os.path.basename(mine.path)]
    read.clear()
    journal.clear_dead()
    assert read == [], "nobody has died: what the living hold is not asked for"
    mine.close()


def test_the_temp_directory_is_found_without_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`tempfile` writes one to find out, of a name of chance, which stayed when the host and its guard were killed then."""
    chosen, other = tmp_path / "chosen", tmp_path / "other"
    for folder in (chosen, other):
        folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", None)
    for name, value in (("TMPDIR", str(chosen)), ("TEMP", str(other)), ("TMP", "")):
        monkeypatch.setenv(name, value)

    def opened(*args: Any, **options: Any) -> Any:
        raise AssertionError("a file")

    monkeypatch.setattr(os, "open", opened)
    assert temp_directory() == str(chosen)
    monkeypatch.setenv("TMPDIR", str(tmp_path / "nowhere"))
    assert temp_directory() == str(other)
    assert tempfile.tempdir is None
    monkeypatch.setattr(tempfile, "tempdir", str(chosen))
    assert temp_directory() == str(chosen), "what a program has chosen"


def test_no_temp_directory_can_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(os, "access", lambda *args, **options: False)
    with pytest.raises(FileNotFoundError):
        temp_directory()


def test_a_guard_imports_no_more_than_it_needs_until_its_host_is_dead() -> None:
    """Each job has one: `json`, `shutil`, `signal`, `typing` and `ctypes` would take most of its time."""
    bare, guard = (
        subprocess.run(
            [sys.executable, "-I", "-S", "-X", "importtime", "-c", code, str(os.getpid()), ""],
            input=b'["+", "mark", "nobody"]\n["!"]\n', capture_output=True, check=True, env={}, cwd="/",
        )
        for code in ("", keeper.program())
    )  # fmt: skip
    names = [{line.rpartition(b"|")[2].strip().decode() for line in done.stderr.splitlines()} for done in (bare, guard)]
    assert names[1] - names[0] <= {
        "__future__", "os", "stat", "_stat", "posixpath", "genericpath", "os.path", "_collections_abc", "select", "_ctypes",
    }  # fmt: skip
