"""The host of a detached job: the lines it writes, what it runs, and its end with the subtask."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import socket
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from akrunner import verbs
from akrunner.detached import engine as detached_engine
from akrunner.detached import host
from akrunner.detached.host import Lines
from akrunner.detached.kept import apart
from akrunner.engines.base import Progress
from akrunner.engines.flink.schemas import schema_text
from akrunner.errors import JobError, TaskFailure
from akrunner.serving import verbs as serving


class Clock:
    """In place of `time`. Attributes: now: the seconds."""

    def __init__(self) -> None:
        self.now = 100.0
        self.slept: list[float] = []

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return 1e9 + self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(host, "time", made)
    return made


@contextlib.contextmanager
def stdout_is(path: Path) -> Iterator[None]:
    """Has the system's own stdout lead to a file."""
    kept = os.dup(1)
    try:
        with open(path, "ab") as file:
            os.dup2(file.fileno(), 1)
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


@pytest.fixture
def lines(out: Path, clock: Clock) -> Iterator[Lines]:
    with stdout_is(out):
        made = Lines()
    yield made
    made._out.close()


def said(out: Path) -> list[Any]:
    return [json.loads(line) for line in out.read_text().splitlines()]


def test_each_word_is_a_line_and_there_at_once(lines: Lines, out: Path) -> None:
    lines.say(done=True)
    assert said(out) == [{"done": True}]
    lines.log("worker-0", 'é "x"\n')
    assert said(out)[1:] == [{"log": '[worker-0] é "x"\n'}]


def test_what_a_library_prints_is_not_among_the_lines(out: Path) -> None:
    with stdout_is(out):
        lines = Lines()
        where = os.fstat(1).st_ino
    assert where == os.fstat(2).st_ino != out.stat().st_ino
    lines.say(port=5)
    lines._out.close()
    assert said(out) == [{"port": 5}]


def test_a_subtask_that_is_gone_is_no_error(lines: Lines) -> None:
    kept = lines._out
    with open("/dev/full", "w") as full:
        lines._out = full
        lines.say(log="x")
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, full.fileno())
        os.close(null)
    lines._out = kept


def test_a_warning_is_said_once(lines: Lines, out: Path) -> None:
    lines.warn(["a"])
    lines.warn(["a", "b", "c"])
    lines.warn([])
    lines.warn(["a", "b", "c"])
    assert said(out) == [{"log": f"warning: {word}"} for word in "abc"]


def test_each_line_of_a_warning_is_a_record_as_only_those_are_found_again(lines: Lines, out: Path) -> None:
    lines.warn(["nothing has moved for 5 s\n  [chief:0] in main()\n\nstacks of [chief:0]:"])
    assert [word["log"] for word in said(out)] == [
        "warning: nothing has moved for 5 s", "  [chief:0] in main()", "", "stacks of [chief:0]:",
    ]  # fmt: skip


def test_only_what_tasks_print_is_limited(lines: Lines, out: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "_LOG_LINES", 2)
    lines.log("chief:0", "1")
    lines.warn(["odd"])
    for line in ("2\r3", "4", "5"):
        lines.log("chief:0", line)
    lines.warn(["odd", "very", "a\nb\nc", "d\ne", "f"])
    lines.tell("done")
    found = [word["log"] for word in said(out)]
    assert found[:5] == ["[chief:0] 1", "warning: odd", "[chief:0] 2\r3", host._MANY, "warning: very"]
    # of warnings, the first lines always come
    assert found[5:] == ["warning: a", "b", "c", host._MANY_WARNINGS, "warning: d", "warning: f", "done"]
    assert "work_dir= (--work-dir)" in host._MANY


def test_progress_is_said_now_and_then(lines: Lines, out: Path, clock: Clock) -> None:
    progress = types.SimpleNamespace(
        warnings=["odd"], states={"chief": "running", "ps-0": "ready"}, seconds=12.4, rows_in=12345, rows_out=0
    )
    lines.progress(progress)
    assert said(out) == [{"log": "warning: odd"}]
    clock.now += host._PROGRESS_SECONDS
    lines.progress(progress)
    assert len(said(out)) == 1
    clock.now += 0.1
    lines.progress(progress)
    lines.progress(progress)
    assert said(out)[1:] == [{"log": "12 s: 12,345 rows in, 0 rows out; [chief] running [ps-0] ready"}]


def test_users_see_their_own_files_and_the_machine_of_the_logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    order = {"real": {"lib/a.py": "/home/me/a.py", "train.py": "~/train.py"}}
    assert (
        host._named(f'File "{tmp_path}/work/lib/a.py" and {tmp_path}/work/train.py', order)
        == 'File "/home/me/a.py" and ~/train.py'
    )
    assert host._named("it failed", {}) == "it failed"
    assert (
        host._named("it failed; full log: /tmp/l", order)
        == f"it failed; full log: /tmp/l\n(logs are on {socket.gethostname()})"
    )


def test_what_is_missing_is_told_with_the_interpreter_that_lacks_it() -> None:
    words = host._lacking(ImportError("No module named 'grpc'"))
    assert words.startswith("ConfigError: ") and "No module named 'grpc'" in words and "--flink-worker-python" in words
    assert host.sys.executable in words and socket.gethostname() in words


class Ended(Exception):
    pass


@pytest.mark.parametrize("pieces", [[b'{"port": 5}\n'], [b'{"po', b"rt", b'": 5}\n'], [b'{"port": 5}\nrest']])
def test_a_line_of_stdin_is_handed_over_whole_and_its_end_ends_everything(
    pieces: list[bytes], clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    did: list[Any] = []

    def exits(code: int) -> None:
        did.append(("exit", code))
        raise Ended

    system = types.SimpleNamespace(
        read=lambda fd, size: pieces.pop(0) if pieces else b"",
        kill=lambda *given: did.append(given),
        getpid=lambda: 7,
        _exit=exits,
    )
    monkeypatch.setattr(host, "os", system)
    secrets: queue.Queue[bytes] = queue.Queue()
    with pytest.raises(Ended):
        host._end_with_the_subtask(secrets)
    assert secrets.get_nowait() == b'{"port": 5}' and secrets.empty()
    # asked first, and ended when nothing has happened for a while
    assert did == [(7, signal.SIGTERM), ("exit", 1)] and clock.slept == [host._END_SECONDS]


@pytest.mark.parametrize("mode", ["run", "train", "predict"])
def test_a_job_is_run_as_it_was_ordered(
    mode: str, lines: Lines, out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = pa.schema([("a", pa.int64()), ("é", pa.list_(pa.string()))])
    called: list[Any] = []
    stats = types.SimpleNamespace(warnings=["slow"], seconds=3.21, rows_in=1000, rows_out=2)

    def runs(name: str) -> Any:
        def call(what: str, source: str, **given: Any) -> Any:
            called.append((name, what, source, given))
            return types.SimpleNamespace(stats=stats, output="/out.csv")

        return call

    for name in ("run", "train"):
        monkeypatch.setattr(verbs, name, runs(name))
    monkeypatch.setattr(serving, "predict", runs("predict"))
    monkeypatch.setattr(detached_engine, "DetachedEngine", lambda *given: ("engine", *given))
    (tmp_path / "work" / "lib").mkdir(parents=True)
    (tmp_path / "work" / "train.py").touch()
    monkeypatch.chdir(tmp_path)
    order = {
        "mode": mode, "source": "/in.csv", "script": "lib/train.py", "files_there": {"a": "b"}, "keeps": False,
        "arguments": {"num_workers": 2, "output_schema": None, "input_schema": schema_text(schema)},
    }  # fmt: skip
    secrets: queue.Queue[bytes] = queue.Queue()
    secrets.put(b'{"keys": {"k": "v"}, "port": 5}')
    assert host._run(order, lines, secrets) == "done in 3.2 s: 1,000 rows in, 2 rows out; output: /out.csv"
    ((name, what, source, given),) = called
    assert (name, source) == (mode, "/in.csv")
    assert given["engine"] == ("engine", lines.say, {"a": "b"}, {"k": "v"}, 5, None) and given["observer"] is lines
    assert given["num_workers"] == 2 and given["output_schema"] is None
    assert given["input_schema"] == schema
    if mode == "predict":
        assert what == f"{tmp_path}/model" and "user_files" not in given
    else:
        assert what == f"{tmp_path}/work/lib/train.py"
        assert given["user_files"] == [f"{tmp_path}/work/lib", f"{tmp_path}/work/train.py"]
    assert said(out) == [{"log": "warning: slow"}]


@pytest.mark.parametrize("fails", [False, True])
def test_the_course_of_a_job_that_is_kept_is_told_to_its_end(
    lines: Lines, out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    stats = types.SimpleNamespace(warnings=[], reports=[], seconds=1.0, rows_in=1, rows_out=1)

    def run(*_: Any, **given: Any) -> Any:
        (tmp_path / "kept" / "metrics.jsonl").write_text('{"task": "chief:0", "time_ns": 1, "loss": 0.5}\n')
        given["observer"].progress(Progress(1.0, 0, 0, 0, 0, {}, {}))
        if fails:
            raise JobError("it failed", failure=TaskFailure("chief:0", "raised"))
        return types.SimpleNamespace(stats=stats, tasks=(), output="/out.csv")

    monkeypatch.setattr(verbs, "run", run)
    monkeypatch.setattr(detached_engine, "DetachedEngine", lambda *given: given)
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path)
    order = {
        "mode": "batch",
        "source": "/in",
        "script": "t.py",
        "files_there": None,
        "keeps": True,
        "arguments": dict.fromkeys(("output_schema", "input_schema")),
    }
    secrets: queue.Queue[bytes] = queue.Queue()
    secrets.put(b'{"keys": {}, "port": null}')
    with pytest.raises(JobError) if fails else contextlib.nullcontext():
        host._run(order, lines, secrets)
    told = apart(word["log"] for word in said(out))
    assert [json.loads(one)["loss"] for one in told.files["metrics.jsonl"]] == [0.5]
    assert told.record["state"] == ("failed" if fails else "succeeded")
    assert not fails or told.record["failure"]["task"] == "chief:0"


def test_a_package_that_is_missing_is_missing_on_the_host_s_machine() -> None:
    words = host._named("WriteError: output: s3://b/m: the package s3fs is missing: pip install s3fs", {})
    assert words.endswith(
        f"\n(missing in the TaskManagers' Python: {sys.executable} on {socket.gethostname()}, where the job's host runs)"
    )
    assert host._named("WriteError: x", {}) == "WriteError: x"
