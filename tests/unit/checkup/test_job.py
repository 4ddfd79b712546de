"""What became of a job, from records of all kinds and of none."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

import akrunner
from akrunner.checkup import job
from akrunner.checkup.advice import advice
from akrunner.checkup.lines import BROKEN, LOOK, OK
from akrunner.engines import record
from akrunner.engines.base import Outcome, Stats, TaskResult
from akrunner.engines.workdir import WorkDir
from akrunner.errors import JobError, ScriptFailedError, TaskFailure
from akrunner.schema import Schema
from akrunner.spec import ClusterSpec, JobSpec, ScriptSpec

NUMBERS: dict[str, Any] = dict(
    seconds=20.0, start_seconds=1.0, feed_seconds=0.5, main_seconds=18.0, rows_in=1000, bytes_in=1, rows_out=900, bytes_out=1,
    host_blocked_seconds=0.0, input_wait_seconds=0.1, output_blocked_seconds=0.0, bound="compute", shares=(500, 500),
)  # fmt: skip


def kept(folder: Path, end: dict[str, Any], log: str = "") -> Path:
    """A work directory as `WorkDir` makes one, with what a job's end puts into it."""
    spec = JobSpec(ScriptSpec("/home/me/train.py", "train.py"), Schema(()), "python", ClusterSpec(2, 0), work_dir=str(folder))
    work = WorkDir.of(spec)
    work.create(spec)
    (folder / "tasks" / "worker-0" / "log.txt").write_text(log)
    work.save_end(work.path, end)
    return folder


def succeeded(**stats: Any) -> dict[str, Any]:
    tasks = [
        TaskResult(name, 500, 450, seconds, 0.1, "exit code 0", 1 << 29, 30.0, "3.11", "said", None)
        for name, seconds in (("chief:0", 18.0), ("worker:0", 4.0))
    ]
    return record.succeeded(Outcome(tuple(tasks), Stats(**{**NUMBERS, **stats}), None))


def said(folder: Path) -> dict[str, Any]:
    found = akrunner.doctor(folder)
    return {line.about: line for line in reversed(found.lines)}


def test_a_job_that_succeeded(tmp_path: Path) -> None:
    lines = said(kept(tmp_path / "w", succeeded(warnings=["some password=hunter2secret"])))
    assert lines["job"].state == OK and "/home/me/train.py (batch; chief:0, worker:0)" in lines["job"].found
    assert "succeeded in 20.0 s: 1,000 rows in, 900 rows out" in lines["job"].found
    assert lines["time"].found == "1.0 s until main() was entered, 18.0 s in it, 1.0 s after it"
    assert "[chief:0] was in main() for 18.0 s, [worker:0] for 4.0 s" in lines["balance"].found
    assert lines["warning"].found == "some password=***"
    assert "512 MiB" in lines["tasks"].found and "start" not in lines
    assert lines["input"].state == OK and lines["input"].found.startswith("compute-bound: ")


def test_nothing_is_said_of_an_input_of_which_nothing_is_known(tmp_path: Path) -> None:
    assert "input" not in said(kept(tmp_path / "w", succeeded(bound="unknown")))


def test_where_the_time_went(tmp_path: Path) -> None:
    stats = dict(start_seconds=12.0, main_seconds=7.0, input_wait_seconds=6.0, output_blocked_seconds=5.0, attempt=1)
    lines = said(kept(tmp_path / "w", succeeded(**stats, starts={"chief:0": "cold: another keras="})))
    assert "60% of the time; no warm worker was taken: another keras=" in lines["start"].found
    assert "akrunner warm start" in lines["start"].do and "at the 2. attempt" in lines["job"].found
    assert "idle for 6.0 s" in lines["rows"].found and "write_batch" in lines["output"].do


def test_what_its_input_waited_for_is_said_by_the_input_doctor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job, "verdict", lambda stats: [f"waits: {stats['inputs']}"])
    lines = said(kept(tmp_path / "w", succeeded(inputs={"chief:0": {"wait": 1.5}})))
    assert lines["input"].state == LOOK and lines["input"].found == "waits: {'chief:0': {'wait': 1.5}}"


def test_what_the_input_of_a_job_that_failed_waited_for_is_kept_and_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job, "verdict", lambda body: [f"waits: {body['inputs']}"])
    lines = said(kept(tmp_path / "w", record.failed(JobError("it failed"), [], {"chief:0": {"wait": 1.5}})))
    assert lines["input"].state == LOOK and lines["input"].found == "waits: {'chief:0': {'wait': 1.5}}"


def failure(**other: Any) -> dict[str, Any]:
    first = TaskFailure(
        "worker:0", "raised ValueError in main(): bad", "Traceback\n  File x\nValueError: bad", "", "said", "", 1
    )
    others = [TaskFailure("chief:0", "was in main() and was stopped")]
    error = ScriptFailedError("[worker:0] raised ValueError", failure=first, others=others)
    return {**record.failed(error, ["attempt 0 failed"]), **other}


def test_a_job_that_failed(tmp_path: Path) -> None:
    folder = kept(tmp_path / "w", failure(), "begins\n\x1b[2Jlast words")
    lines = said(folder)
    assert "failed after" in lines["job"].found and "ScriptFailedError: [worker:0] raised ValueError" in lines["job"].found
    assert lines["first to fail"].state == BROKEN and "ValueError: bad" in lines["first to fail"].found
    assert "replay" not in lines["first to fail"].do, "it has no context"
    assert lines["log of worker:0"].found == "its last lines\nbegins\n\N{REPLACEMENT CHARACTER}[2Jlast words"
    assert lines["chief:0"].found == "was in main() and was stopped" and lines["before that"].found == "attempt 0 failed"
    (folder / "tasks/worker-0/context.json").write_text("{}")
    assert f"akrunner replay {folder} --task worker:0" in said(folder / "tasks/worker-0/log.txt")["first to fail"].do
    (folder / "tasks/worker-0/context.json").write_text('{"tables": {"inputs": ["odps://p/tables/t"], "outputs": []}}')
    assert "run its command again" in said(folder)["first to fail"].do


def test_of_the_other_tasks_those_that_failed_too_are_broken(tmp_path: Path) -> None:
    stacks = 'stacks:\nThread 0x1:\n  File "a.py", line 1 in a\n\nCurrent thread 0x2:\n  File "t.py", line 3 in main\n'
    others = [TaskFailure("worker:1", "raised ValueError in main(): bad", time_ns=2), TaskFailure("chief:0", "was done"),
              TaskFailure("worker:2", stacks), TaskFailure("worker:3", "stacks:\n")]  # fmt: skip
    error = ScriptFailedError("it failed", failure=TaskFailure("worker:0", "raised", time_ns=1), others=others)
    lines = said(kept(tmp_path / "w", record.failed(error, [])))
    assert (lines["worker:1"].state, lines["chief:0"].state) == (BROKEN, OK)
    assert lines["worker:2"].found == 'was still running, File "t.py", line 3 in main'
    assert lines["worker:3"].found == "was still running"


def test_tasks_that_did_the_same_are_one_line(tmp_path: Path) -> None:
    others = [TaskFailure(f"worker:{n}", "was in main() and was stopped") for n in range(1, 9)]
    others += [TaskFailure(f"worker:{n}", "died", time_ns=2) for n in range(9, 14)]
    error = ScriptFailedError("it failed", failure=TaskFailure("worker:0", "raised", time_ns=1), others=others)
    lines = [one for one in akrunner.doctor(kept(tmp_path / "w", record.failed(error, []))).lines if "other" in one.about]
    assert [(one.about, one.state, one.found) for one in lines] == [
        ("5 other tasks", BROKEN, "died"), ("8 other tasks", OK, "were in main() and were stopped")
    ]  # fmt: skip


def test_a_job_that_was_stopped_and_one_that_no_task_failed(tmp_path: Path) -> None:
    lines = said(kept(tmp_path / "a", record.failed(KeyboardInterrupt(), [])))
    assert lines["job"].state == LOOK and "was stopped after" in lines["job"].found
    lines = said(kept(tmp_path / "b", record.failed(JobError("the job could not go on: No space left on device"), [])))
    assert lines["job"].state == BROKEN and "make room" in lines["job"].do


def test_a_job_that_runs_and_one_whose_host_was_killed(tmp_path: Path) -> None:
    folder = kept(tmp_path / "w", {}, "working")
    lines = said(folder)
    assert lines["job"].state == LOOK and f"still runs (pid {os.getpid()})" in lines["job"].found
    assert lines["log of worker:0"].found.endswith("working") and "is below" in lines["job"].found
    assert said(kept(tmp_path / "silent", {}))["job"].found.endswith("its tasks have printed nothing yet")
    body = json.loads((folder / "job.json").read_text())
    for host, state, words in (
        ({**body["host"], "started": "1"}, BROKEN, "is gone without a word"),
        ({**body["host"], "machine": "elsewhere"}, LOOK, "it runs, or ran, on elsewhere"),
    ):
        (folder / "job.json").write_text(json.dumps({**body, "host": host}))
        lines = said(folder)
        assert lines["job"].state == state and words in lines["job"].found


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{", "5", '{"state": "failed"}', '{"state": "succeeded", "tasks": 5}', '{"state": "running", "host": 1, "tasks": []}',
     '{"state": "failed", "tasks": ["../../../etc"], "began": "x"}', '{"tasks": {}}', '{"state": ["failed"]}', "[" * 100_000],
)  # fmt: skip
def test_damaged_records(tmp_path: Path, text: str) -> None:
    folder = kept(tmp_path / "w", failure(), "its words")
    (folder / "job.json").write_text(text)
    found = akrunner.doctor(folder)
    assert found.lines[0].about == "job" and found.lines[0].state == BROKEN and "damaged" in found.lines[0].found
    assert any("its words" in line.found for line in found.lines[1:]), "the logs are there"


def test_a_record_of_an_earlier_akrunner(tmp_path: Path) -> None:
    folder = kept(tmp_path / "w", {}, "its words")
    (folder / "job.json").write_text('{"python": "/usr/bin/python3", "tasks": ["worker:0"]}')
    lines = said(folder)
    assert lines["job"].state == LOOK and "under /usr/bin/python3" in lines["job"].found
    assert "its words" in lines["log of worker:0"].found


def test_what_is_no_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(path: Path) -> str:
        with pytest.raises(akrunner.ConfigError) as told:
            akrunner.doctor(path)
        return str(told.value)

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert refused(tmp_path / "nowhere").startswith(f"work_dir: there is no {tmp_path}/nowhere. Jobs keep theirs")
    os.mkfifo(tmp_path / "pipe")
    assert f"; did you mean '{tmp_path}/pipe'? Jobs keep theirs" in refused(tmp_path / "pipes")
    for path in (tmp_path, tmp_path / "pipe"):
        assert "is no work directory of a job" in refused(path) and "--debug" in refused(path)
    (tmp_path / "tasks/mine").mkdir(parents=True)
    assert "is no work directory of a job" in refused(tmp_path), "others call their directories so, too"
    (tmp_path / "tasks/chief-0").mkdir()
    (tmp_path / "tasks/chief-0/log.txt").write_text("its words")
    assert "it is not there" in said(tmp_path)["job"].found and "its words" in said(tmp_path)["log of chief:0"].found
    (tmp_path / "tasks/chief-0/log.txt").unlink()
    (tmp_path / "state/akrunner/failed/20260101-000000-ab").mkdir(parents=True)
    assert "failed left" in refused(tmp_path)


def _numbers(value: Any) -> Any:
    """The same with a number in place of each text."""
    if isinstance(value, dict):
        return {name: _numbers(one) for name, one in value.items()}
    return [_numbers(one) for one in value] if isinstance(value, list) else -1 if isinstance(value, str) else value


def test_numbers_in_place_of_texts(tmp_path: Path) -> None:
    folder = kept(tmp_path / "w", failure(), "its words")
    body = json.loads((folder / "job.json").read_text())
    asked = [_numbers(body), {**_numbers(body), "state": body["state"]}, {**body, "state": -1}]
    asked += [{**body, name: _numbers(value)} for name, value in body.items() if _numbers(value) != value]
    asked += [{name: value for name, value in _numbers(body).items() if name != "state"}]
    for one in asked:
        (folder / "job.json").write_text(json.dumps(one))
        found = akrunner.doctor(folder)
        assert not found.ok and "damaged" in found.lines[0].found and "-1" not in found.lines[0].found.replace(str(folder), "")


def test_pipes_in_place_of_files(tmp_path: Path) -> None:
    folder = kept(tmp_path / "w", failure(), "its words")
    (folder / "job.json").unlink()
    os.mkfifo(folder / "job.json")
    lines = said(folder)
    assert "damaged: it is no file" in lines["job"].found and "its words" in lines["log of worker:0"].found
    (folder / "tasks/chief-0/log.txt").unlink(missing_ok=True)
    os.mkfifo(folder / "tasks/chief-0/log.txt")
    assert "log of chief:0" not in said(folder)


@pytest.mark.slow
def test_texts_in_place_of_lists_and_lists_without_end(tmp_path: Path) -> None:
    for name in ("warnings", "others", "tasks"):
        folder = kept(tmp_path / name, failure(**{name: "x" * 100_000}))
        found = akrunner.doctor(folder)
        assert "damaged" in found.lines[0].found and len(str(found)) < 10_000
    folder = kept(tmp_path / "many", failure(warnings=["w" * 10_000] * 1000, others=failure()["others"] * 10_000))
    found = akrunner.doctor(folder)
    assert "failed after" in found.lines[0].found and len(str(found)) < 60_000
    assert [line.found for line in found.lines if line.about == "before that"][-1] == "992 more"


def test_nothing_of_a_record_reaches_a_terminal_that_it_obeys(tmp_path: Path) -> None:
    body = failure(warnings=["\x1b]0;title\a"], message="bad\x1b[2J\r\nok         job: fine")
    body["failure"] = {**body["failure"], "what": "\a\x9b31m", "task": "x\x1b[1m"}
    text = str(akrunner.doctor(kept(tmp_path / "w", {**body, "script": "\x1b[2J"})))
    assert all(letter.isprintable() or letter in "\t\n" for letter in text) and "\nok         job: fine" not in text


def test_a_names_way_out_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_text("secret of another directory")
    folder = kept(tmp_path / "w", {})
    body = json.loads((folder / "job.json").read_text())
    (folder / "job.json").write_text(json.dumps({**body, "tasks": ["..", "../..", "worker:0/../.."]}))
    assert "secret" not in str(akrunner.doctor(folder))


def test_the_scripts_own_line_is_named_and_none_of_those_it_called() -> None:
    """A generator that raises: its traceback is in the words of TensorFlow's error, which ends in a node's name."""
    outer = 'Traceback (most recent call last):\n  File "/home/me/train.py", line 11, in main\n    for x in rows:\n'
    outer += '  File "/env/lib/python3.11/site-packages/tensorflow/python/framework/ops.py", line 6, in raise_from\n'
    inner = "tensorflow.InvalidArgumentError: ValueError: bad row\nTraceback (most recent call last):\n\n"
    inner += '  File "/env/lib/python3.11/site-packages/tensorflow/python/ops/script_ops.py", line 269, in __call__\n\n'
    inner += '  File "/home/me/rows.py", line 7, in gen\n    raise ValueError("bad row")\n\n'
    inner += (
        '  File "/tmp/__autograph_generated_file1x.py", line 9, in tf__gen\n\nValueError: bad row\n\n\t [[{{node PyFunc}}]]\n'
    )

    def told(traceback: str) -> str:
        return advice({"error": "ScriptFailedError", "failure": {"what": "raised", "traceback": traceback}}, "")

    assert told(outer).startswith("mend train.py:11: ") and told(outer + inner).startswith("mend rows.py:7: ")
    assert told("Traceback\nValueError: bad") == "mend the line of the script that the traceback ends at"


@pytest.mark.parametrize(
    "error, what, log, told",
    [
        ("TaskDiedError", "SIGKILL (exit code 137): killed, likely out of memory", "", "less memory"),
        (
            "TaskDiedError",
            "SIGKILL (exit code 137): killed from outside, by a person; peak RSS 34 MiB of 23 GiB",
            "",
            "used little",
        ),
        ("TaskDiedError", "ended", "ModuleNotFoundError: No module named 'x'", "--requirements"),
        ("TaskDiedError", "ended", "", "its last words"),
        ("ScriptFailedError", "raised ImportError: x", "", "--requirements"),
        ("ScriptFailedError", "raised KeyError: x", "out of memory, said the script", "the line of the script"),
        ("JobTimeoutError", "", "", "--timeout"),
        ("ReadError", "row 7", "", "mend the row"),
        ("SomethingElse", "", "", ""),
    ],
)
def test_what_to_change(error: str, what: str, log: str, told: str) -> None:
    found = advice({"error": error, "message": "", "failure": {"what": what}}, log)
    assert told in found and bool(told) == bool(found)


@pytest.mark.parametrize(
    ("waited", "starts", "words"),
    [
        (11.0, {}, "its rows take that long"),
        (0.5, {}, "the submission and the wait for free slots (on Flink), or what the script imports, takes"),
        (0.5, {"chief:0": "warm"}, "what the script imports, or does before main(), takes that long"),
        (11.0, {"chief:0": "warm"}, "its rows take that long"),
        (0.5, {"chief:0": "cold"}, "akrunner warm start"),
    ],
)
def test_a_long_start_is_put_down_to_what_took_long(tmp_path: Path, waited: float, starts: dict[str, str], words: str) -> None:
    lines = said(
        kept(tmp_path / "w", succeeded(start_seconds=12.0, main_seconds=7.0, input_wait_seconds=waited, starts=starts))
    )
    assert words in lines["start"].do and ("rows" in lines) == ("rows" in words)
