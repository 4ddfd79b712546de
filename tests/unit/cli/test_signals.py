"""When a signal's exception is raised."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import akrunner
from akrunner.cli import signals
from akrunner.outcomes import head

NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGALRM)


@pytest.fixture
def watched() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in NUMBERS}
    hook = sys.unraisablehook
    signals.watch()
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    # what has come is forgotten
    signals.watch()
    for number, handler in before.items():
        signal.signal(number, handler)
    sys.unraisablehook = hook


@pytest.mark.parametrize("number", NUMBERS[:-1])
def test_not_in_the_middle_of_an_import(
    watched: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    """An extension module may end the process that raises in it."""
    name = f"akrunner_signals_{number}"
    reached: list[str] = []
    monkeypatch.setattr(signals, "reached", reached, raising=False)
    (tmp_path / f"{name}.py").write_text(
        f"import signal\nfrom akrunner.cli import signals\nsignal.raise_signal({int(number)})\n"
        "signals.reached.append('the end of the module')\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    kind: Any = signals.Interrupted if number == signal.SIGINT else signals.Terminated
    with pytest.raises(kind):
        __import__(name)
        reached.append("behind the import")
        signal.sigtimedwait([], 10)
        reached.append("ten seconds later")
    assert reached[0] == "the end of the module" and "ten seconds later" not in reached
    assert name in sys.modules and signals.seen() == number
    del sys.modules[name]


def test_an_import_without_end_is_interrupted(watched: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signals, "_AT_MOST", 0.0)
    (tmp_path / "akrunner_signals_endless.py").write_text("import signal\nsignal.raise_signal(2)\nwhile True: pass\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(signals.Interrupted):
        __import__("akrunner_signals_endless")


def test_at_once_where_nothing_is_imported(watched: None) -> None:
    with pytest.raises(signals.Terminated) as first:
        signal.raise_signal(signal.SIGHUP)
    # a second one interrupts no cleaning up
    signal.raise_signal(signal.SIGTERM)
    with pytest.raises(signals.Interrupted) as second:
        signal.raise_signal(signal.SIGINT)
    # the first decides on the exit code
    assert first.value.signal_number == second.value.signal_number == signal.SIGHUP


@pytest.mark.parametrize(
    ("options", "out", "err"), [([], "", "akrunner: interrupted; nothing was started\n"), (["--json"], '"exit_code": 130', "")]
)
def test_before_anything_remembers_it(options: list[str], out: str, err: str) -> None:
    """Ctrl-C while the module that hears it is being imported."""
    code = (
        "import signal, sys\n"
        "class Finder:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'akrunner.cli': signal.raise_signal(2)\n"
        "from akrunner.__main__ import main\n"
        "sys.meta_path.insert(0, Finder())\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code, *options], capture_output=True, text=True)
    assert done.returncode == 130 and out in done.stdout and done.stderr == err, done
    assert not options or json.loads(done.stdout) == head("Interrupted", "interrupted; nothing was started", 130)


@pytest.mark.slow
@pytest.mark.parametrize("number", [2, 15])
@pytest.mark.parametrize("options", [[], ["--json"]])
def test_between_what_is_loaded_and_what_is_run(number: int, options: list[str]) -> None:
    """Nobody there expects it."""
    code = (
        "import signal, akrunner.__main__ as program, akrunner.cli.main\n"
        f"akrunner.cli.main.main = lambda: signal.raise_signal({number})\n"
        "program.main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code, *options], capture_output=True, text=True)
    word = {2: "interrupted", 15: "terminated"}[number]
    assert done.returncode == 128 + number and "Traceback" not in done.stderr, done
    if options:
        assert json.loads(done.stdout) == head(word.capitalize(), word, 128 + number)
    else:
        assert (done.stdout, done.stderr) == ("", f"akrunner: {word}\n")


def test_little_is_imported_before_ctrl_c_is_heard() -> None:
    root = str(Path(akrunner.__file__).parents[1])
    code = f"import sys; sys.path.insert(0, {root!r}); import akrunner.__main__; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True)
    assert not {"typing", "json", "inspect"} & set(done.stdout.split())
    assert [name for name in done.stdout.split() if name.startswith("akrunner")] == ["akrunner", "akrunner.__main__"]


def test_the_first_signal_may_only_set_a_mark_and_the_command_ends_by_it_all_the_same(watched: None) -> None:
    marks: list[str] = []
    with pytest.raises(signals.Terminated), signals.instead(lambda: marks.append("told")):
        signal.raise_signal(signal.SIGTERM)
        # as the progress of a job does, again and again
        signals.check()
        marks.append("went on")
    assert marks == ["told", "went on"]


def test_a_second_signal_raises(watched: None) -> None:
    marks: list[str] = []
    with pytest.raises(signals.Terminated), signals.instead(lambda: marks.append("told")):
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGTERM)
        marks.append("went on")
    assert marks == ["told"]


def test_what_python_drops_of_a_signal_is_not_printed_and_raised_later(watched: None, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Any] = []
    monkeypatch.setattr(signals, "_unraisable", lambda what: told.append(what.exc_type))

    class Last:
        def __init__(self, ends: Callable[[], object]) -> None:
            self.ends = ends

        def __del__(self) -> None:
            self.ends()

    Last(lambda: signal.raise_signal(signal.SIGINT))
    assert told == []
    with pytest.raises(signals.Interrupted):
        time.sleep(60)
    Last(lambda: 1 // 0)
    assert told == [ZeroDivisionError]


def test_without_a_signal_nothing_is_called(watched: None) -> None:
    marks: list[str] = []
    with signals.instead(lambda: marks.append("told")):
        pass
    with pytest.raises(signals.Interrupted):
        signal.raise_signal(signal.SIGINT)
    assert marks == []


#: a command whose last output nobody reads: `code` as of `last_output`
STUCK = """
import fcntl, os, sys
from akrunner.cli import signals
from akrunner.outcomes import head
reads, writes = os.pipe()
fcntl.fcntl(writes, fcntl.F_SETPIPE_SZ, 4096)
signals._LAST_SECONDS = 0.2
signals.watch()
with signals.last_output({code}):
    print("at it", flush=True)
    while True:
        os.write(writes, bytes(100_000))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="it makes a pipe small")
@pytest.mark.parametrize(
    ("code", "numbers", "ends"), [("124", (), 124), ("None", (15,), 143), ("None", (2,), 130), ("143", (2, 15), 143)]
)
def test_last_output_that_nobody_reads_ends_behind_a_limit_or_a_signal(code: str, numbers: tuple[int, ...], ends: int) -> None:
    with subprocess.Popen([sys.executable, "-c", STUCK.format(code=code)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "at it\n"
        for number in numbers:
            process.send_signal(number)
        assert process.wait(60) == ends


#: a command that fails, or has reached a limit, while another thread is stuck in a print to stderr and holds its lock
LOCKED = """
import logging, os, sys, threading, time
import akrunner, akrunner.__main__ as program
from akrunner.cli import signals
from akrunner.outcomes import head
from akrunner.cli.guarded import ended
signals._LAST_SECONDS = 0.5
def noise():
    while True:
        print("x" * 1000, file=sys.stderr)
def fail():
    threading.Thread(target=noise, daemon=True).start()
    time.sleep(0.5)
    os.write(1, b"at it\\n")
    raise akrunner.{error}("this is why " * 10_000)
program._run = lambda: ended(fail, False)
program.main()
"""


@pytest.mark.parametrize(
    ("error", "numbers", "ends"), [("JobError", (15,), 143), ("JobError", (2,), 130), ("JobTimeoutError", (), 124)]
)
def test_a_thread_that_is_stuck_in_a_print_outlives_no_limit_and_no_signal(
    error: str, numbers: tuple[int, ...], ends: int
) -> None:
    # without buffers there is no lock
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    reading, writing = os.pipe()
    code = LOCKED.format(error=error)
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=writing, env=environ, text=True
    ) as process:
        os.close(writing)
        assert process.stdout is not None and process.stdout.readline() == "at it\n"
        for number in numbers:
            process.send_signal(number)
        assert process.wait(60) == ends
    os.close(reading)


#: a command that reaches its limit with a stdout that is full
FULL = """
import os, sys
import akrunner, akrunner.__main__ as program
from akrunner.cli import guarded
guarded._READER_SECONDS = 0.01
def fail():
    os.set_blocking(1, False)
    try:
        while True:
            os.write(1, b" " * 512)
    except BlockingIOError:
        os.set_blocking(1, True)
    os.write(2, b"at it\\n")
    raise akrunner.JobTimeoutError("over")
program._run = lambda: guarded.ended(fail, {as_json})
program.main()
"""


@pytest.mark.parametrize("as_json", [True, False])
def test_a_reader_that_pauses_has_the_object_of_json_all_the_same(as_json: bool) -> None:
    lines = FULL.format(as_json=as_json)
    with subprocess.Popen([sys.executable, "-c", lines], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stderr is not None and process.stderr.readline() == "at it\n"
        time.sleep(0.5)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 124
    if as_json:
        assert json.loads(out)["error"] == "JobTimeoutError" and not err
    else:
        assert not out.strip() and "JobTimeoutError: over" in err


@pytest.mark.parametrize("seen", [True, False])
def test_ctrl_c_ends_the_process_itself_also_if_nobody_reads(seen: bool) -> None:
    """So that the loop of a shell ends, too."""
    lines = STUCK.format(code="130" if seen else "None").replace("signals.watch()", "signals.watch(); signals.end_by_it()")
    with subprocess.Popen([sys.executable, "-c", lines], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "at it\n"
        if not seen:
            process.send_signal(signal.SIGINT)
        assert process.wait(60) == -signal.SIGINT


def test_a_signal_does_not_cut_last_output_that_somebody_reads(watched: None) -> None:
    with signals.last_output(None):
        signal.raise_signal(signal.SIGTERM)
        with signals.last_output(None):
            pass
        assert signals._ending is not None, "the inner block does not end the patience of the outer one"
    assert signals._ending is None
