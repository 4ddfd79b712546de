"""What is asked about a detached job whose cluster goes away meanwhile."""

from __future__ import annotations

import contextlib
import datetime
import json
import socket
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from akrunner import detached
from akrunner.detached import jobs
from akrunner.engines.flink.host.engine import FlinkEngine
from akrunner.errors import ClusterError, ConfigError, JobManagerLostError
from akrunner.io.limits import check_time
from akrunner.options import naming, of_verb
from akrunner.options.declared import Option
from tests.unit.engines.flink.test_rest import answering, saying

JOB = {"jid": "abc", "name": "akrunner a.py [12]", "start-time": 1, "duration": 1, "tasks": {"total": 2, "running": 2}}


ANY_JOB: Any = SimpleNamespace(python="/python3")


def known(state: str, **other: Any) -> bytes:
    return json.dumps({"jobs": [{**JOB, "state": state, **other}]}).encode()


#: jobs of one cluster: (id, name)
SEVERAL = [
    ("aa1", "insert-into_clicks"), ("ab1", "nightly"), ("ab2", "akrunner a.py [12]"), ("ac1", "akrunner b.py [34]"),
    ("ac12", "akrunner c.py [56]"), ("ba1", "akrunner"),
]  # fmt: skip


@contextlib.contextmanager
def several(heard: list[bytes]) -> Iterator[str]:
    """A cluster with these jobs, which run until they are cancelled. Yields: its address."""
    ended: set[str] = set()

    def answer(connection: socket.socket) -> None:
        method, path, _ = heard[-1].decode().split(" ", 2)
        if method == "PATCH":
            ended.add(path.removeprefix("/jobs/").partition("?")[0])
        states = {jid: "CANCELED" if jid in ended else "RUNNING" for jid, _ in SEVERAL}
        found = [{**JOB, "jid": jid, "name": name, "state": states[jid]} for jid, name in SEVERAL]
        saying(json.dumps({"jobs": found}).encode())(connection)

    with answering(answer, heard) as master:
        yield master


@pytest.mark.parametrize(
    ("job", "words"),
    [
        ("", "job='': give the id of a job, or its beginning"),
        ("aa", "no id of akrunner's jobs begins so"),
        ("ab1", "job 'ab1' at .* is none of akrunner's: its name is 'nightly'"),
        ("b", "no id of akrunner's jobs begins so"),
        ("a", "the ids of several of akrunner's jobs begin so"),
        ("ac", "the ids of several of akrunner's jobs begin so"),
        ("x", "no id of akrunner's jobs begins so"),
    ],
)
def test_no_job_of_others_is_meant_and_none_by_an_id_that_says_nothing(job: str, words: str) -> None:
    heard: list[bytes] = []
    with several(heard) as master:
        for ask in (detached.status, detached.wait, detached.cancel, lambda *given: list(detached.logs(*given))):
            with pytest.raises(ConfigError, match=words):
                ask(master, job)
    assert not [one for one in heard if not one.startswith(b"GET ")]


def test_the_only_job_of_akrunners_whose_id_begins_so_is_meant() -> None:
    heard: list[bytes] = []
    with several(heard) as master:
        assert detached.status(master, "ab").id == "ab2"
        # a whole id, with which another begins
        assert detached.status(master, "ac1").id == "ac1"
        ended = detached.cancel(master, "ab")
    assert (ended.id, ended.state) == ("ab2", "CANCELED")
    assert [one.split()[1] for one in heard if not one.startswith(b"GET ")] == [b"/jobs/ab2?mode=cancel"]


def test_a_cluster_that_goes_while_it_is_waited_for_has_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "_GONE_SECONDS", 0.1)
    answers = [known("RUNNING"), known("RUNNING")]

    def answer(connection: socket.socket) -> None:
        if answers:
            saying(answers.pop())(connection)

    with answering(answer) as master:
        with pytest.raises(JobManagerLostError, match=f"the JobManager at {master} is gone: no Flink cluster answers"):
            detached.wait(master, "ab", 0.02)
        assert not answers
        # it never was there: an argument is wrong
        with pytest.raises(ClusterError):
            detached.wait(master, "ab", 0.02)


def test_a_job_that_another_cluster_does_not_know(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "_GONE_SECONDS", 0.1)
    first = [known("RUNNING")]
    with answering(lambda connection: saying(first.pop() if first else b'{"jobs": []}')(connection)) as master:
        with pytest.raises(JobManagerLostError, match="one that does not know the job answers in its place"):
            detached.wait(master, "abc", 0.02)
        with pytest.raises(ConfigError, match="no id of akrunner's jobs begins so"):
            detached.wait(master, "abc", 0.02)


def test_a_moment_without_an_answer_is_waited_through() -> None:
    answers = [saying(known("FINISHED")), lambda connection: None, saying(known("RUNNING"))]
    with answering(lambda connection: answers.pop()(connection)) as master:
        assert detached.wait(master, "abc", 0.02).state == "FINISHED"


def test_a_job_is_cancelled_through_a_moment_without_an_answer() -> None:
    answers = [
        saying(known("RUNNING")), saying(b"", "202 Accepted"), saying(b"", "503 Service Unavailable"), saying(known("CANCELED")),
    ]  # fmt: skip
    with answering(lambda connection: answers.pop(0)(connection)) as master:
        assert detached.cancel(master, "abc").state == "CANCELED"


def test_who_refuses_every_answer_is_not_called_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "_GONE_SECONDS", 0.1)
    first = [saying(known("RUNNING"))]
    refused = saying(b"", "401 Unauthorized")
    with answering(lambda connection: (first.pop() if first else refused)(connection)) as master:
        with pytest.raises(JobManagerLostError, match=f"the JobManager at {master} no longer tells of the job: .* answers 401"):
            detached.wait(master, "abc", 0.02)


def test_a_job_that_is_suspended_may_be_taken_over(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = [known("RUNNING"), known("SUSPENDED"), known("RUNNING"), known("FINISHED")]
    with answering(lambda connection: saying(answers.pop(0))(connection)) as master:
        assert detached.wait(master, "abc", 0.02).state == "FINISHED"
    monkeypatch.setattr(jobs, "TAKE_OVER_SECONDS", 0.05)
    with answering(saying(known("SUSPENDED"))) as master:
        assert not detached.status(master, "abc").ended
        with pytest.raises(
            JobManagerLostError, match=f"job abc at {master} is SUSPENDED: its JobManager has gone, and within 0.05 s"
        ):
            detached.wait(master, "abc", 0.02)


def test_a_job_that_was_seen_is_not_called_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "_GONE_SECONDS", 0.0)
    seen = detached.Status("abc", "akrunner a.py [12]", "RUNNING", 1.0, 2, 2)
    with answering(lambda connection: None) as master:
        with pytest.raises(JobManagerLostError, match=f"the JobManager at {master} is gone"):
            detached.wait(master, seen, 0.02)


def test_defaults_go_along_as_numbers_and_texts(tmp_path: Path) -> None:
    given = {"age": 0, "day": "2026-11-23"}
    assert jobs._arguments(ANY_JOB, "run", {"defaults": given}, str(tmp_path))["defaults"] == given
    with pytest.raises(ConfigError, match="defaults: of a detached job they are numbers and texts"):
        jobs._arguments(ANY_JOB, "run", {"defaults": {"day": datetime.date(2026, 11, 23)}}, str(tmp_path))


def test_every_option_that_is_a_path_is_one_of_the_clusters_machines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also an option that is declared some day."""
    new = Option("rows_kept_in", "PathLike | None", "A heading", "a directory", verbs=("run", "train", "predict"))
    monkeypatch.setattr(naming, "OPTIONS", (*naming.OPTIONS, new))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "requirements.txt").touch()
    folder = tmp_path / "folder"
    folder.mkdir()
    # what is left as it is: a word, or what the order brings along under a name of its own
    kept = {"bad_rows": "skip", "python_env": ANY_JOB.python, "requirements": "requirements.txt"}
    naming.of_verb.cache_clear()
    try:
        for verb in ("run", "train", "predict"):
            paths = [one.name for one in of_verb(verb) if "PathLike" in one.type_in(verb).split(" | ")]
            assert new.name in paths and "work_dir" in paths
            given = {name: kept.get(name, "there/") for name in paths}
            arguments = jobs._arguments(ANY_JOB, verb, given, str(folder))
            assert {name: arguments[name] for name in paths} == {name: kept.get(name, f"{tmp_path}/there/") for name in paths}
    finally:
        naming.of_verb.cache_clear()


@pytest.mark.parametrize("place", ["bad/", "s3://bucket/bad/"])
def test_a_place_for_bad_rows_is_refused(place: str) -> None:
    engine = FlinkEngine(master="localhost:1")
    with pytest.raises(ConfigError, match="bad_rows .*keeps no bad rows, .* and to no URL; give skip or fail"):
        jobs.submit("s.py", "s3://bucket/t.csv", engine=engine, bad_rows=place)


@pytest.mark.parametrize("state", ["RUNNING", "FINISHED"])
def test_whether_a_job_with_a_submitter_succeeds_is_not_waited_for(state: str) -> None:
    with answering(lambda connection: saying(known(state, name="akrunner a.py"))(connection)) as master:
        assert detached.status(master, "abc").succeeded is None
        for job in ("abc", detached.status(master, "abc")):
            with pytest.raises(ConfigError, match=rf"not submitted with --detach: only its submitter knows .* is {state} "):
                detached.wait(master, job, 0.02)


def test_how_a_job_with_a_submitter_ended_is_known_to_nobody_else_but_that_it_failed() -> None:
    states = {"RUNNING": None, "FINISHED": None, "CANCELED": None, "FAILED": False}
    assert {state: detached.Status("abc", "akrunner a.py", state, 1.0, 2, 2).succeeded for state in states} == states


def test_why_a_job_failed_names_no_module_of_akrunner_s() -> None:
    trace = "java.lang.Exception: x\nakrunner.engines.flink.taskmanager.line.HostGone: the job's host has gone\n\n\tat a.b(C.java:1)"
    cluster: Any = SimpleNamespace(traces=lambda job: [trace])
    assert jobs._error(cluster, "abc") == "the job's host has gone"


@pytest.mark.parametrize(
    "why",
    [
        "ModuleNotFoundError: No module named 'pyflink'",
        'Caused by: java.io.IOException: Cannot run program "/nope/python" (in directory "/tmp/python-dist-6d-9/archives"): error=2, No such file',
    ],
)
def test_a_python_that_taskmanagers_cannot_run_is_told_with_its_option(why: str) -> None:
    said = (
        jobs._error(
            cast("Any", SimpleNamespace(traces=lambda job: [f"java.lang.Exception: x\n{why}\n\n\tat a.b(C.java:1)"])), "abc"
        )
        or ""
    )
    assert said.startswith(f"StartError: Flink did not run the job: {why.removeprefix('Caused by: ')}; ")
    assert "has no PyFlink (python_executable=, --flink-worker-python): name an interpreter" in said


@pytest.mark.parametrize(
    "why",
    [
        "ModuleNotFoundError: No module named 'pyflink_utils'",
        "ModuleNotFoundError: No module named 'pyflink.table.foo'",
        'java.io.IOException: Cannot run program "/usr/bin/hdfs": error=2, No such file or directory',
    ],
)
def test_what_a_connector_or_a_function_misses_is_not_the_python_s(why: str) -> None:
    cluster: Any = SimpleNamespace(traces=lambda job: [f"java.lang.Exception: x\n{why}\n\n\tat a.b(C.java:1)"])
    assert jobs._error(cluster, "abc") == why


@pytest.mark.parametrize("how", ["is no longer reachable.", "timed out."])
def test_a_machine_that_was_lost_is_told_in_words(how: str) -> None:
    package = "org.apache.flink.runtime.resourcemanager.exceptions"
    trace = f"{package}.ResourceManagerException: TaskManager with id 127.0.0.1:42475-fb32ea {how}\n\tat a.b(C.java:1)"
    said = jobs._error(cast("Any", SimpleNamespace(traces=lambda job: [trace])), "abc") or ""
    assert said.startswith("JobError: a TaskManager was lost on which ") and "Submit the job again" in said
    assert said.endswith(f"(Flink: TaskManager with id 127.0.0.1:42475-fb32ea {how})")


def test_whether_a_detached_job_has_succeeded_is_known_once_it_has_ended() -> None:
    states = {"RUNNING": None, "FINISHED": True, "FAILED": False, "CANCELED": False}
    seen = {state: detached.Status("abc", "akrunner a.py [12]", state, 1.0, 2, 2).succeeded for state in states}
    assert seen == states


def test_what_is_fetched_before_a_submission_has_the_jobs_time(monkeypatch: pytest.MonkeyPatch) -> None:
    left: list[float | None] = []
    monkeypatch.setattr(jobs, "_submitted", lambda *given: left.append(check_time("a download")))
    for timeout in (60, None):
        jobs.submit("s.py", "s3://bucket/t.csv", engine=FlinkEngine(master="localhost:1"), timeout=timeout, keep_run=False)
    assert left[0] is not None and 0 < left[0] <= 60 and left[1] is None


@pytest.mark.parametrize(
    ("notify", "why"), [(print, "can only tell a URL"), ("hooks.example.com/T0KEN", "no URL of a web server")]
)
def test_who_is_told_of_the_end_is_checked_before_it_is_submitted(notify: Any, why: str) -> None:
    with pytest.raises(ConfigError, match=f"^notify: .*{why}"):
        detached.submit("s.py", "t.csv", engine=FlinkEngine(master="h:1"), notify=notify)


def test_a_report_is_refused() -> None:
    engine = FlinkEngine(master="localhost:1")
    with pytest.raises(ConfigError, match="report .*when it has ended, `akrunner report RUN` makes its page"):
        jobs.submit("s.py", "s3://bucket/t.csv", engine=engine, report="r.html")
