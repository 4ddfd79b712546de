"""Ways to go wrong x when it happens. For each: the right exception, soon, with the script's own words; every process gone,
nothing left in the temp directory (the `run` fixture checks both), and a second job in the same host unharmed."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import akrunner
from tests import hosts, starts
from tests.conftest import ENDS, Script, ends

from .conftest import Run, hangs

pytestmark = pytest.mark.slow

SCRIPT = """
import atexit, os, signal, sys, time

WHEN = {when!r}

def happens():
    {event}

if WHEN == "importing":
    happens()

def main(task_config):
    writer = task_config.output_writer
    if WHEN == "reading":
        with open(task_config.dataset_file, "rb") as f:
            f.read(os.path.getsize(task_config.dataset_file) // 2)
            happens()
    if WHEN == "main":
        happens()
    writer.write_batch({{"id": [1, 2], "p": [0.5, 1.5]}})
    if WHEN == "writing":
        happens()
    writer.write_batch({{"id": [3], "p": [2.5]}})
    if WHEN == "after":
        atexit.register(happens)
"""

RAISE = "raise RuntimeError('boom')"
EXIT3 = "sys.exit(3)"
SILENT = "os._exit(0)"
SEGFAULT = "import ctypes; ctypes.string_at(0)"
ABORT = "os.abort()"
KILL = "os.kill(os.getpid(), signal.SIGKILL)"
FLOOD = "[sys.stderr.write('x' * 1048575 + chr(10)) for _ in range(100)]; sys.stderr.flush()"
BINARY = "os.write(1, bytes(range(256)) * 64)"
GRANDCHILD = "import subprocess; subprocess.Popen(['sleep', '1000'])"
DAEMON = "import subprocess; subprocess.Popen(['sleep', '1000'], start_new_session=True)"
FORKED = (
    "import multiprocessing; multiprocessing.get_context('fork').Process(target=time.sleep, args=(1000,), daemon=True).start()"
)
STUBBORN = "signal.signal(signal.SIGTERM, signal.SIG_IGN); raise RuntimeError('boom')"
#: its descriptors have the numbers that they have in the host, which may have many open
CLOSES = "os.closerange(3, 1 << 16)"

BEFORE_DONE = ["importing", "reading", "main", "writing"]
ALWAYS = [*BEFORE_DONE, "after"]

#: event -> (code, expected exception, words its message must have)
FATAL: dict[str, tuple[str, type[akrunner.JobError], tuple[str, ...]]] = {
    "raises": (RAISE, akrunner.ScriptFailedError, ("RuntimeError: boom", "train.py", "line 7")),
    "sys.exit(3)": (EXIT3, akrunner.ScriptFailedError, ("sys.exit(3)", "train.py")),
    "os._exit(0)": (SILENT, akrunner.TaskDiedError, ("exit code 0", "without saying")),
    "segfault": (SEGFAULT, akrunner.TaskDiedError, ("SIGSEGV", "segmentation fault", "train.py")),
    "abort": (ABORT, akrunner.TaskDiedError, ("SIGABRT", "train.py")),
    "SIGKILL": (KILL, akrunner.TaskDiedError, ("SIGKILL", "137", "out-of-memory killer", "peak RSS")),
    "ignores SIGTERM": (STUBBORN, akrunner.ScriptFailedError, ("RuntimeError: boom",)),
}
HARMLESS = {
    "floods stderr": FLOOD,
    "prints binary": BINARY,
    "leaves a grandchild": GRANDCHILD,
    "leaves a daemon": DAEMON,
    "leaves a fork": FORKED,
}


def crash(when: str, event: str) -> str:
    return SCRIPT.format(when=when, event=event)


def check_unharmed(run: Run, script: Script, **options: Any) -> None:
    """A job in the same host, right after. It is not the one whose end is looked at: its worker process may be a fork."""
    starts.choose(set())
    result = run(script(crash("never", "pass"), "second.py"), **options)
    assert result.table.to_pydict() == {"id": [1, 2, 3], "p": [0.5, 1.5, 2.5]}


@pytest.mark.parametrize("when", BEFORE_DONE)
@pytest.mark.parametrize("event", FATAL)
def test_fatal(run: Run, script: Script, event: str, when: str) -> None:
    code, error, words = FATAL[event]
    with ends(), pytest.raises(error) as caught:
        run(script(crash(when, code)))
    text = str(caught.value)
    for word in words:
        if word == "without saying" and when == "importing":
            continue
        assert word in text, text
    assert caught.value.failure is not None and caught.value.failure.task == "chief:0"
    assert os.path.exists(caught.value.failure.log_path)
    check_unharmed(run, script)


@pytest.mark.parametrize("event", ["raises", "sys.exit(3)", "os._exit(0)", "segfault", "SIGKILL"])
def test_after_main(run: Run, script: Script, event: str) -> None:
    """It had said that it was done, and every row was there: a success, with a word about the exit."""
    result = run(script(crash("after", FATAL[event][0])))
    assert result.table.num_rows == 3
    if event in ("segfault", "SIGKILL"):
        assert "SIG" in result.stats.warnings[0]
    check_unharmed(run, script)


@pytest.mark.parametrize("when", ALWAYS)
@pytest.mark.parametrize("event", HARMLESS)
def test_harmless(run: Run, script: Script, event: str, when: str) -> None:
    result = run(script(crash(when, HARMLESS[event])))
    assert result.table.num_rows == 3
    assert result.stats.rows_in == 10


def test_binary_output_is_readable_in_the_log(run: Run, script: Script) -> None:
    result = run(script(crash("main", "os.write(1, b'caf\\xc3\\xa9 \\xff\\xfe\\n')")))
    assert result.tasks[0].log_tail == "café \\xff\\xfe"


@pytest.mark.parametrize("when", ["importing", "reading", "main", "writing"])
def test_hang(run: Run, script: Script, when: str) -> None:
    path = script(crash(when, "time.sleep(1000)"))
    hangs(lambda seconds: run(path, timeout=seconds), "in happens")
    check_unharmed(run, script)


def test_hang_after_main(run: Run, script: Script) -> None:
    with ends():
        result = run(script(crash("after", "time.sleep(1000)")))
    assert result.table.num_rows == 3 and any("SIGTERM" in warning for warning in result.stats.warnings)


def test_hang_that_ignores_sigterm(run: Run, script: Script) -> None:
    code = "signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(1000)"
    with ends(), pytest.raises(akrunner.JobTimeoutError):
        run(script(crash("main", code)), timeout=1)


@pytest.mark.parametrize("when", ["reading", "main", "writing"])
def test_closes_our_pipes(run: Run, script: Script, when: str) -> None:
    with pytest.raises(akrunner.JobError):
        run(script(crash(when, CLOSES + "; time.sleep(0.5)")), timeout=5)
    check_unharmed(run, script)


def test_never_reads_its_data(run: Run, script: Script) -> None:
    result = run(script("def main(task_config):\n    pass\n"), output_schema=None)
    assert result.table is None and result.stats.rows_in == 10


def test_reads_half_and_returns(run: Run, script: Script) -> None:
    body = """
    import os

    def main(task_config):
        with open(task_config.dataset_file, "rb") as f:
            half = f.read(os.path.getsize(task_config.dataset_file) // 2)
        task_config.output_writer.write_batch({"id": [len(half)], "p": [0.5]})
    """
    result = run(script(body), num_workers=2)
    assert result.table.num_rows == 2 and result.stats.rows_in == 10
    check_unharmed(run, script)


@pytest.mark.parametrize("code", ["0", "None"])
def test_sys_exit_0_is_a_return(run: Run, script: Script, code: str) -> None:
    result = run(script(crash("writing", f"sys.exit({code})")))
    assert result.table.num_rows == 2, "what was written before it arrives"


def test_sys_exit_0_while_importing_is_a_failure(run: Run, script: Script) -> None:
    with pytest.raises(akrunner.ScriptFailedError, match="while importing the script"):
        run(script(crash("importing", "sys.exit(0)")))


def cgroup_with(limit: int) -> Path | None:
    """A memory cgroup of ours, None where the machine does not let us make one."""
    try:
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers == "memory":
                group, name = Path("/sys/fs/cgroup/memory" + path) / f"akrunner-{os.getpid()}", "memory.limit_in_bytes"
                break
        else:
            group, name = Path("/sys/fs/cgroup" + path) / f"akrunner-{os.getpid()}", "memory.max"
        group.mkdir()
        (group / name).write_text(str(limit))
        return group
    except OSError:
        return None


@pytest.mark.parametrize("when", BEFORE_DONE)
def test_out_of_memory_kill(run: Run, script: Script, when: str) -> None:
    """The kernel's own killer where a cgroup can be made; else the same signal from the script, with memory taken."""
    group = cgroup_with(120 << 20)
    enter = f"open({str(group / 'cgroup.procs')!r}, 'w').write(str(os.getpid()))" if group else "pass"
    event = f"{enter}; hog = [b'x' * (1 << 20) for _ in range(300)]; os.kill(os.getpid(), signal.SIGKILL)"
    try:
        with pytest.raises(akrunner.TaskDiedError, match="137") as caught:
            run(script(crash(when, event)))
        assert "out of memory" in str(caught.value) or "out-of-memory" in str(caught.value)
        assert "peak RSS" in str(caught.value) and "MiB" in str(caught.value)
        # the failure's own words for the process are not others than those of the error
        assert caught.value.failure.exit in str(caught.value)
    finally:
        if group:
            group.rmdir()


WRONG_ROWS = {
    "a wrong type": ("w.write_batch({'id': ['one'], 'p': [1.0]})", akrunner.OutputError, "'id'"),
    "a value that does not fit": ("w.write_batch({'id': [1.5], 'p': [1.0]})", akrunner.OutputError, "row 0"),
    "a missing column": ("w.write_batch({'id': [1]})", akrunner.ScriptFailedError, "lacks column 'p'"),
    "an extra column": ("w.write_batch({'id': [1], 'p': [1.0], 'q': [1]})", akrunner.ScriptFailedError, "'q'"),
    "unequal columns": ("w.write_batch({'id': [1, 2], 'p': [1.0]})", akrunner.ScriptFailedError, "1 rows"),
    "a dict": ("w.write({'id': 1})", akrunner.ScriptFailedError, "write_batch"),
    "bytes that are no Example": ("w.write(b'\\xff\\xff\\xff')", akrunner.OutputError, "not a tf.train.Example"),
    "an Example of a wrong type": ("w.write(EX(b'\\x0a\\x03\\x0a\\x01a'))", akrunner.OutputError, "bytes_list"),
    "an Example with an extra feature": ("w.write(EX(b'\\x1a\\x03\\x0a\\x01\\x01', b'idd'))", akrunner.OutputError, "'idd'"),
    "an Example without a NOT NULL column": ("w.write(b'')", akrunner.OutputError, "NOT NULL"),
}


@pytest.mark.parametrize("what", WRONG_ROWS)
def test_wrong_row(run: Run, script: Script, what: str) -> None:
    code, error, words = WRONG_ROWS[what]
    body = f"""
    def EX(feature, name=b"id"):
        entry = b"\\x0a" + bytes([len(name)]) + name + b"\\x12" + bytes([len(feature)]) + feature
        inner = b"\\x0a" + bytes([len(entry)]) + entry
        return b"\\x0a" + bytes([len(inner)]) + inner

    def main(task_config):
        w = task_config.output_writer
        {code}
    """
    with pytest.raises(error) as caught:
        run(script(body), output_schema="id bigint not null, p double")
    assert words in str(caught.value), str(caught.value)


def test_writing_without_a_schema(run: Run, script: Script) -> None:
    body = "def main(task_config):\n    w = task_config.output_writer\n    w.write(b'')\n"
    with pytest.raises(akrunner.OutputError, match=r"the first batch has no columns; give output_schema= \(--output-schema\)"):
        run(script(body), output_schema=None)


@pytest.mark.parametrize("event", ["raises", "SIGKILL", "os._exit(0)"])
@pytest.mark.parametrize("other", ["time.sleep(1000)", "while True: pass", "os.read(os.pipe()[0], 1)"])
def test_one_of_two_fails(run: Run, script: Script, event: str, other: str) -> None:
    """The first failing task ends the job, whatever the other one is doing."""
    code, error, _ = FATAL[event]
    body = f"""
    import os, signal, sys, time

    def main(task_config):
        if task_config.task_type == "worker":
            time.sleep(0.3)
            {code}
        {other}
    """
    with ends(), pytest.raises(error) as caught:
        run(script(body), num_workers=2)
    assert caught.value.failure is not None and caught.value.failure.task == "worker:0"
    assert [other.task for other in caught.value.others] == ["chief:0"]
    assert "was stopped" in str(caught.value)


@pytest.mark.parametrize("kind", [OSError, BrokenPipeError, ValueError, SystemExit])
def test_source_that_raises(run: Run, script: Script, kind: type[BaseException]) -> None:
    def rows() -> Iterator[Any]:
        for i in range(20_000):
            if i == 15_000:
                raise kind("the disk is gone")
            yield {"a": i}

    with pytest.raises(akrunner.ReadError, match="the disk is gone") as caught:
        run(script("def main(task_config):\n    pass\n"), rows())
    assert isinstance(caught.value.__cause__, (kind, akrunner.SourceError))


def test_value_that_cannot_cross(run: Run, script: Script) -> None:
    with pytest.raises(akrunner.DataError, match=r"row 2, column 'x': 1e\+300 does not fit a float32"):
        run(script("def main(task_config):\n    pass\n"), {"x": [1.0, 2.0, 1e300]}, num_workers=2)


HOST = """
import os, sys, akrunner
from akrunner.engines.flink import FlinkEngine

engine = FlinkEngine(sys.argv[2], python=sys.argv[3]) if sys.argv[2:] else "local"
akrunner.run(sys.argv[1], {"a": list(range(10))}, num_workers=2, output_schema="id bigint", engine=engine, env={"OUT": os.environ["OUT"]})
"""
LONG = """
import os, subprocess, sys, time

def main(task_config):
    child = subprocess.Popen(["sleep", "1000"])
    with open(os.path.join(task_config.user_params["out"] if task_config.user_params else os.environ["OUT"], task_config.task_type), "w") as f:
        f.write("%d %d" % (os.getpid(), child.pid))
    BUSY
"""


@pytest.mark.parametrize("busy", ["time.sleep(1000)", "while True: pass", "os.kill(os.getpid(), 19)"])
def test_host_killed(engine: Any, leaves_nothing: Path, script: Script, tmp_path: Path, busy: str) -> None:
    """A dead host takes its children with it, grandchildren, stopped ones and the temp directory included."""

    path = script(LONG.replace("BUSY", busy))
    out = tmp_path / "pids"
    out.mkdir()
    where = [] if engine == "local" else [engine.master, engine.python]
    with hosts.Popen([sys.executable, "-c", HOST, path, *where], env={**os.environ, "OUT": str(out)}) as host:
        pids = wait_for_pids(out, 2)
        host.kill()
    assert gone(pids), "still running after the host was killed"
    deadline = time.monotonic() + ENDS
    while os.listdir(leaves_nothing) and time.monotonic() < deadline:
        time.sleep(0.05)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_interrupted_on_the_command_line(
    leaves_nothing: Path,
    script,
    tmp_path: Path,
    number: int,
    code: int,
) -> None:
    import subprocess

    (tmp_path / "t.csv").write_text("a\n1\n2\n")
    out = tmp_path / "pids"
    out.mkdir()
    command = [
        sys.executable,
        "-m",
        "akrunner",
        "run",
        script(LONG.replace("BUSY", "time.sleep(1000)")),
        "-i",
        str(tmp_path / "t.csv"),
    ]
    with subprocess.Popen(command, env={**os.environ, "OUT": str(out)}, stderr=subprocess.PIPE, text=True) as cli:
        pids = wait_for_pids(out, 1)
        cli.send_signal(number)
        _, err = cli.communicate(timeout=ENDS)
    assert cli.returncode == code
    assert "every task was stopped; its logs: /" in err and "Traceback" not in err
    assert os.path.isfile(os.path.join(err.rpartition("its logs: ")[2].splitlines()[0], "job.json"))
    assert "akrunner show r" in err.splitlines()[-1]
    assert gone(pids)


def wait_for_pids(out: Path, count: int) -> list[int]:
    deadline = time.monotonic() + ENDS
    while time.monotonic() < deadline:
        texts = [p.read_text() for p in out.iterdir()]
        if len(texts) == count and all(texts):
            return [int(pid) for text in texts for pid in text.split()]
        time.sleep(0.05)
    raise AssertionError("the tasks did not start")


def gone(pids: list[int]) -> bool:
    import psutil

    def there(pid: int) -> bool:
        try:
            return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
        except psutil.NoSuchProcess:
            return False

    deadline = time.monotonic() + ENDS
    while time.monotonic() < deadline:
        if not any(map(there, pids)):
            return True
        time.sleep(0.05)
    return False


WRAPPER = """#!/bin/sh
# an interpreter that answers when it is asked what it is, and then does not do its work
case "$1" in -c) exec {python} "$@" ;; esac
{does}
"""


@pytest.mark.parametrize(
    ("does", "words"),
    [
        ("echo 'libfoo.so: cannot open' >&2; exit 7", ("before it said that it had started", "exit code 7", "libfoo.so")),
        ("sleep 1000", ("said nothing for 2 s after it was started", "start_timeout=")),
        ("kill -SEGV $$", ("before it said that it had started", "SIGSEGV")),
    ],
)
def test_never_says_opened(run: Run, script: Script, tmp_path: Path, does: str, words: tuple[str, ...]) -> None:
    python = tmp_path / "python"
    python.write_text(WRAPPER.format(python=sys.executable, does=does))
    python.chmod(0o755)
    with ends(), pytest.raises(akrunner.StartError) as caught:
        run(script("def main(c):\n    pass\n"), python_env=str(python), start_timeout=2)
    for word in words:
        assert word in str(caught.value), str(caught.value)
