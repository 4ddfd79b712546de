"""Faults of our own, of the machine and of those who look on, one for each kind of thread: the job fails at once and in akrunner's words, and
nothing is left. On the local engine; Flink's threads have a test of their own."""

from __future__ import annotations

import errno
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import akrunner
from akrunner.engines import feeder, group, jobrun, receiving, supervisor, workdir
from akrunner.engines.supervision import machine, stall
from akrunner.engines.tensorboard import EventFiles
from akrunner.io.sinks import MemorySink
from akrunner.launch import process
from akrunner.launch.logs import LogPump
from akrunner.launch.process import ChildProcess
from akrunner.launch.session import TaskSession
from akrunner.wire.ending import started
from tests.conftest import Script

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

#: it ends by itself only after a while; it writes, prints and reports
LONG = """
import time

def main(task_config):
    task_config.output_writer.write_batch({"id": [1], "p": [0.5]})
    task_config.output_writer.flush()
    print("a line", flush=True)
    task_config.report({"loss": 0.5})
    time.sleep(1000)
"""


def raises(error: BaseException) -> Callable[..., Any]:
    def injected(*args: Any, **options: Any) -> Any:
        raise error

    return injected


@pytest.fixture
def local(leaves_nothing: Path) -> Callable[..., Any]:
    def start(script: str, source: Any = None, **options: Any) -> Any:
        options.setdefault("output_schema", "id bigint, p double")
        return akrunner.run(script, {"a": list(range(10))} if source is None else source, **options)

    return start


#: thread -> what is broken in it
THREADS: dict[str, list[Any]] = {
    "feeder": [feeder.codec, "encode_frame"],
    "reader": [TaskSession, "_take"],
    "log": [LogPump, "_write"],
    "supervisor": [receiving.Receiver, "take"],
    "supervisor's look": [stall.Stall, "moved"],
}


@pytest.mark.parametrize("error", [AttributeError("injected"), MemoryError(), OSError(errno.EIO, "injected")], ids=repr)
@pytest.mark.parametrize("thread", THREADS)
def test_a_fault_of_ours(
    local: Callable[..., Any], script: Script, monkeypatch: pytest.MonkeyPatch, thread: str, error: BaseException
) -> None:
    if thread == "reader" and isinstance(error, OSError):
        pytest.skip("that is how a connection ends")
    if thread == "supervisor's look":
        monkeypatch.setattr(stall.Stall, "seen", raises(error))
    monkeypatch.setattr(*THREADS[thread], raises(error))
    with pytest.raises(akrunner.JobError) as caught:
        local(script(LONG))
    assert "could not go on" in str(caught.value) and ("injected" in str(caught.value) or "memory" in str(caught.value))
    assert "Traceback" in str(caught.value) and "in injected" in str(caught.value)
    assert ("a fault in akrunner itself" in str(caught.value)) == isinstance(error, AttributeError)


def test_a_fault_in_a_streams_feeder(leaves_nothing: Path, script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeder.codec, "encode_frame", raises(AttributeError("injected")))
    job = akrunner.stream(script("import time\ndef main(c):\n    time.sleep(1000)\n"), iter([{"a": 1}] * 5))
    with pytest.raises(akrunner.JobError, match="a fault in akrunner itself"), job:
        list(job)


def test_a_source_of_rows_that_runs_out_of_memory(leaves_nothing: Path, script: Script) -> None:
    def rows() -> Iterator[dict[str, int]]:
        yield {"a": 1}
        raise MemoryError

    job = akrunner.stream(script("import time\ndef main(c):\n    time.sleep(1000)\n"), rows())
    with pytest.raises(akrunner.JobError, match="source: .*there is not enough memory"), job:
        list(job)


def test_nobody_knows_how_a_process_ended(local: Callable[..., Any], script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process.os, "waitstatus_to_exitcode", raises(AttributeError("injected")))
    with pytest.raises(akrunner.TaskDiedError, match="an unknown exit code: waiting for it raised AttributeError: injected"):
        local(script("import os\ndef main(c):\n    os._exit(3)\n"))


def test_somebody_else_waits_for_children(local: Callable[..., Any], script: Script) -> None:
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        result = local(script('def main(c):\n    c.output_writer.write_batch({"id": [1], "p": [0.5]})\n'))
        with pytest.raises(akrunner.TaskDiedError, match="an unknown exit code"):
            local(script("import os\ndef main(c):\n    os._exit(3)\n"))
    finally:
        signal.signal(signal.SIGCHLD, before)
    assert result.table.num_rows == 1


class Watching:
    """Looks on, and fails at one thing."""

    def __init__(self, at: str) -> None:
        self.at = at

    def progress(self, progress: Any) -> None:
        if self.at == "progress":
            raise ZeroDivisionError("injected")

    def log(self, task: str, line: str) -> None:
        if self.at == "log":
            raise ZeroDivisionError("injected")


@pytest.mark.parametrize("at", ["progress", "log"])
def test_an_observer_that_raises(local: Callable[..., Any], script: Script, at: str) -> None:
    with pytest.raises(akrunner.JobError, match=rf"observer: {at}\(\) raised ZeroDivisionError: injected"):
        local(script(LONG), observer=Watching(at))


def test_a_sink_that_raises(local: Callable[..., Any], script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MemorySink, "write", raises(OSError(errno.ENOSPC, "No space left on device")))
    with pytest.raises(akrunner.WriteError, match="output"):
        local(script(LONG))


def test_the_end_is_reached_whatever_fails_in_it(
    local: Callable[..., Any], script: Script, tmp_path: Path, monkeypatch: Any
) -> None:
    close = EventFiles.close

    def closed(self: EventFiles, succeeded: bool) -> None:
        close(self, succeeded)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(EventFiles, "close", closed)
    with pytest.raises(akrunner.JobError, match="No space left"):
        local(script("def main(c):\n    c.report({'loss': 0.5})\n"), tensorboard=str(tmp_path / "board"))


@pytest.mark.parametrize("number", [errno.EAGAIN, errno.EMFILE, errno.ENOMEM])
def test_no_more_processes(local: Callable[..., Any], script: Script, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """The second task cannot be started: the first one goes."""
    start, started = ChildProcess.__init__, []

    def second(self: ChildProcess, *args: Any) -> None:
        if started:
            raise OSError(number, os.strerror(number))
        started.append(self)
        start(self, *args)

    monkeypatch.setattr(ChildProcess, "__init__", second)
    with pytest.raises(akrunner.StartError, match=r"worker:0\] cannot be started: .*ulimit"):
        local(script(LONG), num_workers=2)


def test_no_more_threads(local: Callable[..., Any], script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    start = threading.Thread.start

    def refused(self: threading.Thread) -> None:
        if self.name.startswith("akrunner-wait"):
            raise RuntimeError("can't start new thread")
        start(self)

    monkeypatch.setattr(threading.Thread, "start", refused)
    with pytest.raises(akrunner.StartError, match=r"ulimit -u"):
        local(script(LONG))


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EROFS])
@pytest.mark.parametrize("where", ["TMPDIR", "work_dir"])
def test_a_full_disk_before_anything_has_started(
    local: Callable[..., Any], script: Script, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, where: str
) -> None:
    monkeypatch.setattr(workdir, "bundle_bytes", raises(OSError(number, os.strerror(number))))
    given = {} if where == "TMPDIR" else {"work_dir": str(tmp_path / "work")}
    with pytest.raises(akrunner.ConfigError, match=rf"^{where}.*: cannot write .*: {os.strerror(number)}"):
        local(script(LONG), **given)
    assert not (tmp_path / "work").exists() or not os.listdir(tmp_path / "work")


#: the job of each limit is run by a fork, which has imported what one that was started has
FEW_FILES = """
import os, resource, sys, akrunner
import akrunner.api, akrunner.engines.local

def job(files):
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, 4096))
    try:
        akrunner.run(sys.argv[1], {"a": list(range(10))}, num_workers=3, output_schema="id bigint, p double")
    except akrunner.AkrunnerError as e:
        print(type(e).__name__, e)
        sys.exit(4)

for files in map(int, sys.argv[2:]):
    pid = os.fork()
    if pid == 0:
        job(files)
        sys.exit(0)
    print("ended:", files, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
"""
LIMITS = [6, 9, 12, 15, 18, 21, 24, 27, 30, 40]


def test_few_files_may_be_open(leaves_nothing: Path, script: Script) -> None:
    path = script('def main(c):\n    c.output_writer.write_batch({"id": [1], "p": [0.5]})\n')
    command = [sys.executable, "-c", FEW_FILES, path, *map(str, LIMITS)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    said = re.findall(r"(.*?)^ended: (\d+) (-?\d+)\n", done.stdout, re.DOTALL | re.MULTILINE)
    assert [int(files) for _, files, _ in said] == LIMITS
    named = re.compile("ulimit -n|Too many open files")
    wrong = [(files, code, words) for words, files, code in said if code != "0" and not (code == "4" and named.search(words))]
    assert not wrong, done.stderr


# -- how a script can end, after all is done and before


ODD = {
    "raises in an exit handler": ("atexit.register(lambda: 1 / 0)", "an exit handler (atexit) raised ZeroDivisionError: division by zero"),
    "exits in an exit handler": ("atexit.register(os._exit, 0)", "ended in an exit handler (os._exit?)"),
    "exits badly in an exit handler": ("atexit.register(os._exit, 3)", "had finished, and then ended with exit code 3"),
    "a thread": ("threading.Thread(target=time.sleep, args=(1000,), name='busy').start()", "a thread still ran (busy)"),
    "a process": ("subprocess.Popen(['sleep', '1000'])", "a process still ran (sleep, pid"),
    # the shell ends when its child is no shell any more
    "a grandchild": (
        "subprocess.call(['sh', '-c', 'sleep 1000 & until grep -qs sleep /proc/$!/comm; do :; done'])",
        "a process still ran (sleep, pid",
    ),
    "nothing odd": ("threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()", ""),
}  # fmt: skip


@pytest.mark.parametrize("what", ODD)
def test_an_odd_end(local: Callable[..., Any], script: Script, what: str) -> None:
    code, words = ODD[what]
    body = f"import atexit, os, subprocess, threading, time\ndef main(c):\n    {code}\n"
    warnings = local(script(body)).stats.warnings
    assert len(warnings) == bool(words) and words in "".join(warnings), warnings


def test_a_process_of_another_group_and_environment_is_ended_too(
    local: Callable[..., Any], script: Script, tmp_path: Path
) -> None:
    body = f"""
    import os, subprocess, time

    def main(c):
        run = "sleep 1000 & echo $! $$ > {tmp_path}/new && mv {tmp_path}/new {tmp_path}/pids && exec sleep 1000"
        subprocess.Popen(["sh", "-c", run], env={{}}, start_new_session=True)
        while not os.path.exists("{tmp_path}/pids"):
            time.sleep(0.01)
    """
    (warning,) = local(script(body)).stats.warnings
    assert "a process still ran (sleep, pid" in warning or "a process still ran (sh, pid" in warning
    assert not [pid for pid in (tmp_path / "pids").read_text().split() if started(int(pid))]


@pytest.mark.parametrize("read", [0, 700, 1000])
def test_exit_in_the_middle_is_said(local: Callable[..., Any], script: Script, read: int) -> None:
    body = f"""
    import sys

    def main(c):
        rows = 0
        for batch in c.batches(100):
            rows += len(batch["a"])
            if rows >= {read}:
                sys.exit(0)
    """
    result = local(script(body), {"a": list(range(1000))}, data_format="columns")
    (warning,) = result.stats.warnings
    assert "[chief:0] main() did not return, but called sys.exit(0)" in warning
    assert (f"after {max(read, 100)} of its 1000 rows" in warning) == (read < 1000), warning


def test_rows_that_main_returns_are_said_to_be_nobodys(local: Callable[..., Any], script: Script) -> None:
    (warning,) = local(script("def main(c):\n    return {'y': [1.0]}\n")).stats.warnings
    assert (
        "[chief:0] main() returned a dict, which nobody takes, and wrote no rows: task_config.output_writer.write_batch"
        in warning
    )
    wrote = "def main(c):\n    c.output_writer.write_batch({'id': [1], 'p': [1.0]})\n    return {'y': 1}\n"
    assert not local(script(wrote)).stats.warnings and not local(script("def main(c):\n    return 0\n")).stats.warnings


FORKS = """
import atexit, os, sys, threading, time

def handler():
    os.write(2, b"a handler ran\\n")
    if os.fork() == 0:
        return
    os.wait()

def ended(how, *args):
    pid = os.fork()
    if pid:
        return os.waitpid(pid, 0)[1]
    threading.Thread(target=lambda: (time.sleep(0.1), print("thread of a child"))).start()
    how(*args)
    raise Child

class Child(BaseException):
    pass

def raises(error):
    raise error

def forks(c):
    atexit.register(handler)
    try:
        codes = [
            ended(sys.exit), ended(sys.exit, 3), ended(sys.exit, "of an exit"), ended(raises, ValueError("of a child")),
            ended(os._exit, 4), ended(c.report, {"loss": 1.0}), ended(c.output_writer.write, b""),
            ended(c.output_writer.write_batch, {"w": [9]}), ended(lambda: None),
        ]
    except Child:
        return None
    return [code >> 8 for code in codes]
"""


@pytest.mark.parametrize("kind", ["main", "program", "importing"])
def test_a_forked_child_does_not_speak_for_its_task(local: Callable[..., Any], script: Script, kind: str) -> None:
    write = "codes = forks(c)\n{0}if codes is not None:\n{0}    c.output_writer.write_batch({{'w': codes}})\n"
    body = FORKS + "\ndef main(c):\n    " + write.format("    ")
    if kind == "program":
        body = FORKS + "\nfrom akrunner.worker import current\nc = current()\nprint()\n" + write.format("")
    elif kind == "importing":
        body = "import os, sys\nif os.fork() == 0:\n    sys.exit(5)\nCODE = os.wait()[1] >> 8\n"
        body += "def main(c):\n    c.output_writer.write_batch({'w': [CODE]})\n"
    result = local(script(body), output_schema="w bigint")
    assert result.table["w"].to_pylist() == ([5] if kind == "importing" else [0, 3, 1, 1, 4, 1, 1, 1, 0])
    log = result.tasks[0].log_tail
    warnings = list(result.stats.warnings)
    if kind == "importing":
        assert not warnings
    else:
        rows, reports = warnings
        assert "tried to write rows" in rows and "not in the result" in rows and "tried to report" in reports
        assert log.count("a handler ran") == 9
        assert log.count("thread of a child\n") == 8 and log.count("ValueError: of a child") == 1 and "\nof an exit\n" in log
        assert log.count("RuntimeError: output_writer: this process was forked from the task's") == 2
        assert log.count("this process was forked from the task's") == 3 and "akrunner/worker" not in log


# -- Ctrl-C


def interrupted(run: Callable[[], Any], files: Any, at: set[int]) -> tuple[int, type[BaseException] | None]:
    """(lines of these files that ran in this thread, what came out); Ctrl-C is pressed at some of them."""
    count = 0

    def line(frame: Any, event: str, arg: Any) -> Any:
        nonlocal count
        if event == "line":
            count += 1
            if count in at:
                signal.raise_signal(signal.SIGINT)
        return line

    def call(frame: Any, event: str, arg: Any) -> Any:
        return line if frame.f_code.co_filename in files else None

    sys.settrace(call)
    try:
        run()
        return count, None
    except BaseException as e:
        return count, type(e)
    finally:
        sys.settrace(None)


@pytest.mark.parametrize("share", [i / 16 for i in range(16)])
def test_interrupted_anywhere(local: Callable[..., Any], script: Script, share: float) -> None:
    """At a line of the supervisor or of what it makes and removes; and once more 20 lines later."""
    from akrunner.engines import attempts
    from akrunner.engines import local as engine

    files = {module.__file__ for module in (attempts, group, jobrun, machine, receiving, supervisor, engine, workdir)}
    path = script('def main(c):\n    c.output_writer.write_batch({"id": [1], "p": [0.5]})\n')
    lines, error = interrupted(lambda: local(path), files, set())
    assert error is None
    first = max(1, int(lines * share))
    _, error = interrupted(lambda: local(path), files, {first, first + 20})
    assert error in (KeyboardInterrupt, None)
    assert local(path).table.num_rows == 1
