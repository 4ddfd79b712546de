"""The process that submits to Flink: what it makes of each line, what it says of its jobs, how it ends them, and Java's words."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from akrunner.engines.flink.program import submit
from akrunner.engines.flink.program.submit import Running, words
from akrunner.engines.flink.rest import Address
from akrunner.errors import ClusterError
from tests.unit.engines.flink.pyflink_stand_in import Configuration, modules


class Later:
    """An answer of Flink's. Args: value: an error is raised."""

    def __init__(self, value: Any = None) -> None:
        self._value = value

    def result(self) -> Any:
        if isinstance(self._value, BaseException):
            raise self._value
        return self._value


class Client:
    """In place of a running job. Args: states: Flink's words for it, one after the other, the last for ever; error: how it fails."""

    def __init__(self, *states: Any, error: BaseException | None = None) -> None:
        self._states = list(states)
        self._error = error
        self.cancelled = self.results = 0

    def get_job_id(self) -> str:
        return "j1"

    def get_job_execution_result(self) -> Later:
        self.results += 1
        return Later(self._error)

    def get_job_status(self) -> Later:
        return Later(self._states.pop(0) if len(self._states) > 1 else self._states[0])

    def cancel(self) -> Later:
        self.cancelled += 1
        return Later()


Said = Any


@pytest.fixture
def said(capfd: pytest.CaptureFixture[str]) -> Iterator[Said]:
    """What has been said since it was last asked."""
    yield lambda: [json.loads(line) for line in capfd.readouterr().out.splitlines()]


#: how Beam tells Java of an error of Python's
TRACE = (
    'Traceback (most recent call last):\n  File "f.py", line 1, in f\n    g()\n    ^^^\nOSError: refused\n\nThe above exception was '
    'the direct cause of the following exception:\n\nTraceback (most recent call last):\n  File "f.py", line 3, in f\n'
    "a.LineError: no ü\nmore of it\n"
)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("one line", "one line"),
        ("", "RuntimeError"),
        ("\n  \n", "RuntimeError"),
        ("An error occurred while calling o1.x.\n: java.lang.Exception: no slots\n\tat X", "java.lang.Exception: no slots"),
        ("An error occurred\n: A\nCaused by: B\n\tat X\nCaused by: no ü  \n", "no ü"),
        ("first\nsecond", "first"),
        (
            f"An error occurred\n: A\nCaused by: B: Error received from SDK harness: {TRACE}\n\tat X\n\tat Y\n",
            "a.LineError: no ü",
        ),
        (f"Caused by: B: {TRACE}\n\tat X\nCaused by: C\n\tat X", "C"),
    ],
)
def test_javas_words_are_those_of_the_last_cause(text: str, found: str) -> None:
    assert words(RuntimeError(text)) == found


def test_a_job_is_known_by_its_id_and_each_state_is_said_once(said: Said) -> None:
    job = Running(3, Client("JobStatus.CREATED", "JobStatus.RUNNING", "JobStatus.RUNNING", "JobStatus.FINISHED"))
    assert said() == [{"of": 3, "job": "j1"}]
    assert [job.look() for _ in range(4)] == [False, False, False, True]
    assert [line["state"] for line in said()] == ["CREATED", "RUNNING", "FINISHED"]


def test_why_a_job_has_failed_is_said_before_its_state(said: Said) -> None:
    job = Running(3, Client("FAILED", error=RuntimeError("x\nCaused by: no slots")))
    assert job.look()
    assert said()[1:] == [{"of": 3, "failed": "no slots"}, {"of": 3, "state": "FAILED"}]


@pytest.mark.parametrize(("here", "state", "asked"), [(True, "RUNNING", 1), (False, "RUNNING", 0), (False, "FAILED", 1)])
def test_what_java_would_ask_for_again_and_again_is_not_asked_for(here: bool, state: str, asked: int, said: Said) -> None:
    client = Client(state, error=RuntimeError("no slots"))
    Running(3, client, here).look()
    assert client.results == asked


def test_a_job_that_merely_runs_is_seldom_asked_about(said: Said, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(submit, "time", clock)

    def pause(job: Running) -> float:
        job.look()
        return job.asked - clock.now

    job, here = Running(3, Client("RUNNING")), Running(4, Client("RUNNING"), here=True)
    assert job.asked == clock.now and pause(job) == pause(here) == pytest.approx(0.2)
    clock.now += 20
    assert pause(job) == pytest.approx(2.0), "it has been submitted for long"
    assert pause(here) == pytest.approx(0.2), "it is gone when it has ended"
    submit.heed({"hurry": 3}, {3: job})
    assert job.asked == clock.now and pause(job) == pytest.approx(0.2)
    clock.now += 20
    assert pause(job) == pytest.approx(2.0)
    job.cancel()
    assert job.asked == clock.now and pause(job) == pytest.approx(0.2)


class Py4JJavaError(Exception):
    """As py4j raises what a cluster answers, or does not."""


def test_a_jobmanager_that_takes_the_job_over_is_waited_for(said: Said, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(submit, "time", clock)
    away = Py4JJavaError("Connection refused")
    job = Running(3, Client("RUNNING", "SUSPENDED", away, away, "RUNNING", away, "FINISHED"))
    for ended in [False] * 6 + [True]:
        assert job.look() is ended
        clock.now += 30
    assert [line["state"] for line in said()[1:]] == ["RUNNING", "SUSPENDED", "RUNNING", "FINISHED"]


@pytest.mark.parametrize(
    ("states", "error"),
    [(("RUNNING", "SUSPENDED"), None), (("SUSPENDED", Py4JJavaError("no")), "no"), ((Py4JJavaError("no"),), "no")],
)
def test_one_that_nobody_takes_over_has_failed(
    states: Any, error: str | None, said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr(submit, "time", clock)
    job = Running(3, Client(*states))
    while clock.now < 174:
        assert not job.look()
        clock.now += 1
    clock.now += 3
    if error is not None:
        with pytest.raises(Py4JJavaError, match=error):
            job.look()
    else:
        assert (
            job.look()
            and {"of": 3, "failed": "its JobManager has gone, and within 75 s no other one has taken the job over"} in said()
        )


@pytest.mark.parametrize(
    "error", [Py4JJavaError("the MiniCluster is not yet running"), ConnectionError("Java has ended"), KeyError("x")]
)
def test_an_error_after_which_no_other_answer_comes_is_not_waited_for(error: Exception, said: Said) -> None:
    with pytest.raises(type(error)):
        Running(3, Client(error)).look()


@pytest.mark.parametrize(("state", "cancelled"), [("RUNNING", 1), ("CANCELED", 0), ("FINISHED", 0)])
def test_only_a_job_that_runs_is_cancelled(state: str, cancelled: int, said: Said) -> None:
    client = Client(state)
    job = Running(3, client)
    job.look()
    job.cancel()
    assert client.cancelled == cancelled


class Cluster:
    """In place of a REST service. Args: states: as of `Client`; an error is raised. Attributes: asked: of which job."""

    def __init__(self, *states: Any) -> None:
        self._states = list(states)
        self.asked: list[str] = []
        self.closed = 0

    def state(self, job: str) -> str:
        self.asked.append(job)
        state = self._states.pop(0)
        if isinstance(state, BaseException):
            raise state
        return str(state)

    def close(self) -> None:
        self.closed += 1


def test_a_cluster_elsewhere_is_asked_itself(said: Said) -> None:
    cluster: Any = Cluster("RUNNING", ClusterError("no Flink cluster answers"), "FAILED")
    job = Running(3, Client("none", error=RuntimeError("x\nCaused by: no slots")), rest=cluster)
    assert [job.look(), job.look()] == [False, False] and not cluster.closed
    assert job.look() and cluster.closed == 1 and cluster.asked == ["j1"] * 3
    assert said()[1:] == [{"of": 3, "state": "RUNNING"}, {"of": 3, "failed": "no slots"}, {"of": 3, "state": "FAILED"}]


def test_where_a_cluster_elsewhere_is_asked(monkeypatch: pytest.MonkeyPatch, said: Said) -> None:
    monkeypatch.setattr(submit, "submitted", lambda order: Client("RUNNING"))
    jobs: dict[int, Running] = {}
    submit.heed({"submit": 1, "remote": Address.of("https://flink/a").flink_options}, jobs)
    submit.heed({"submit": 2, "remote": None}, jobs)
    rest = jobs[1]._rest
    assert rest is not None and rest.master == "https://flink:443/a" and jobs[2]._rest is None


def test_lines_submit_and_cancel(said: Said, monkeypatch: pytest.MonkeyPatch) -> None:
    client = Client("RUNNING")
    monkeypatch.setattr(submit, "submitted", lambda order: client)
    monkeypatch.setattr(submit, "detached", lambda order: client)
    jobs: dict[int, Running] = {}
    submit.heed({"submit": 1, "subtasks": 2}, jobs)
    submit.heed({"submit": 2, "archive": "/a.zip"}, jobs)
    assert list(jobs) == [1], "a detached job goes on"
    assert said() == [{"of": 1, "job": "j1"}, {"of": 2, "job": "j1"}]
    for word in ({"cancel": 1}, {"cancel": 7}, {"hurry": 7}, {}):
        submit.heed(word, jobs)
    assert client.cancelled == 1 and said() == []


@pytest.mark.parametrize("more", [{}, {"archive": "/a.zip"}])
def test_a_job_that_flink_does_not_take_has_failed(more: dict[str, str], said: Said, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(order: Any) -> None:
        raise RuntimeError("x\n: no such jar")

    monkeypatch.setattr(submit, "submitted", fails)
    monkeypatch.setattr(submit, "detached", fails)
    jobs: dict[int, Running] = {}
    submit.heed({"submit": 1, **more}, jobs)
    assert said() == [{"of": 1, "failed": "no such jar"}] and jobs == {}


class Clock:
    """In place of `time`."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def test_at_the_end_all_are_cancelled_and_waited_for_a_while(said: Said, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(submit, "time", clock)
    clients = [Client("RUNNING", "CANCELED"), Client(RuntimeError("its cluster is gone")), Client("RUNNING")]
    jobs = {number: Running(number, client) for number, client in enumerate(clients)}
    submit.end(jobs)
    assert [client.cancelled for client in clients] == [1, 1, 1] and list(jobs) == [2]
    assert 110.0 <= clock.now < 110.5
    submit.end({})
    assert clock.now < 110.5


def test_it_reads_lines_until_its_input_ends(said: Said, monkeypatch: pytest.MonkeyPatch) -> None:
    pieces = [b'{"submit": 1, "su', b'btasks": 2}\n{"submit": 2}\n', None, b""]
    clients = [Client("RUNNING"), Client(RuntimeError("x\n: no answer"))]
    ended: list[list[int]] = []
    monkeypatch.setattr(submit, "submitted", lambda order: clients.pop(0))
    monkeypatch.setattr(submit, "end", lambda jobs: ended.append(list(jobs)))
    monkeypatch.setattr(
        submit,
        "select",
        SimpleNamespace(select=lambda *given: (([0] if pieces[0] is not None else pieces.pop(0) or []), [], [])),
    )
    monkeypatch.setattr(submit, "os", SimpleNamespace(read=lambda fd, size: pieces.pop(0)))
    assert submit.main() == 0
    assert ended == [[1]], "one whose cluster does not answer is given up"
    lines = said()
    assert {"of": 2, "failed": "no answer"} in lines and {"of": 1, "state": "RUNNING"} in lines


def test_a_submitter_that_is_gone_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(*given: Any, **named: Any) -> None:
        raise BrokenPipeError(32, "Broken pipe")

    monkeypatch.setattr("builtins.print", gone)
    submit.say({"of": 1})


# -- its environment


@pytest.fixture
def pyflink(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The stand-in, until the test is over."""
    made: dict[str, Any] = modules()
    for name, module in made.items():
        monkeypatch.setitem(sys.modules, name, module)
    return made


ORDER: dict[str, Any] = {
    "python": "/there/py", "subtasks": 3, "name": "akrunner s.py", "remote": None, "brings_python": True, "options": {}, "package": "/p.zip",
}  # fmt: skip


class Environment(SimpleNamespace):
    def add_python_file(self, path: str) -> None:
        self.file = path


@pytest.mark.parametrize("remote", [None, {"rest.address": "flink"}])
def test_a_jobs_settings_are_akrunners_and_the_users_go_first(
    remote: Any, pyflink: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Any] = []

    def environment(configuration: Configuration, *given: Any) -> Environment:
        seen.append((configuration.values, *given))
        return Environment()

    monkeypatch.setattr(submit, "environment_of", environment)
    order = {**ORDER, "remote": remote, "options": {"parallelism.default": 7, "a": "b"}}
    made = submit._environment(order, {"python.fn-execution.bundle.size": "1"})
    ((values, where, brings),) = seen
    assert made.file == "/p.zip" and where == remote and brings
    assert (values["parallelism.default"], values["a"], values["python.fn-execution.bundle.size"]) == ("7", "b", "1")
    assert (values["python.executable"], values["restart-strategy.type"], values["pipeline.name"]) == (
        "/there/py",
        "none",
        "akrunner s.py",
    )
    assert values.get("taskmanager.numberOfTaskSlots") == (None if remote else "3"), "a cluster's are its own"
    assert "execution.checkpointing.interval" not in values


def test_what_a_job_depends_on_is_no_users_option(pyflink: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Configuration] = []
    monkeypatch.setattr(submit, "environment_of", lambda configuration, *given: seen.append(configuration) or Environment())
    options = {"python.fn-execution.bundle.size": "1000", "python.fn-execution.bundle.time": "7"}
    submit._environment({**ORDER, "options": options}, {"python.fn-execution.bundle.size": "1"})
    submit._environment({**ORDER, "options": options}, {})
    assert [made.values["python.fn-execution.bundle.size"] for made in seen] == ["1", "1000"]
    assert [made.values["python.fn-execution.bundle.time"] for made in seen] == ["7", "7"]


def test_a_local_cluster_is_pyflinks_own(pyflink: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    local = SimpleNamespace(get_execution_environment=lambda configuration: ("local", configuration))
    vars(pyflink["pyflink.datastream"])["StreamExecutionEnvironment"] = local
    assert submit.environment_of("settings", None) == ("local", "settings")


@pytest.mark.parametrize(("brings", "tls", "named"), [(True, False, False), (False, True, False), (False, True, True)])
def test_a_cluster_is_told_what_it_is_brought(
    brings: bool, tls: bool, named: bool, pyflink: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "opt").mkdir()
    jar = tmp_path / "opt" / "flink-python-2.3.0.jar"
    jar.write_text("")
    pyflink["pyflink"].__file__ = str(tmp_path / "__init__.py")
    java = SimpleNamespace(StreamExecutionEnvironment=lambda settings: ("java", settings))
    flink = SimpleNamespace(streaming=SimpleNamespace(api=SimpleNamespace(environment=java)))
    gateway = SimpleNamespace(jvm=SimpleNamespace(org=SimpleNamespace(apache=SimpleNamespace(flink=flink))))
    vars(pyflink["pyflink.java_gateway"])["get_gateway"] = lambda: gateway
    monkeypatch.setattr(submit, "truststore", lambda certificates: f"store of {certificates}")
    monkeypatch.setenv("SSL_CERT_FILE", "/ca.pem")
    configuration = Configuration()
    vars(configuration)["_j_configuration"] = "settings"
    if named:
        configuration.set_string("security.ssl.rest.truststore", "the user's")
    remote = {"rest.address": "flink", **({"security.ssl.rest.enabled": "true"} if tls else {})}
    made = submit.environment_of(configuration, remote, brings)
    assert made._j_stream_execution_environment == ("java", "settings")
    values = configuration.values
    assert values["execution.target"] == "remote" and values["rest.address"] == "flink"
    assert values.get("pipeline.jars") == (f"file://{jar}" if brings else None)
    store = values.get("security.ssl.rest.truststore")
    assert store == (("the user's" if named else "store of /ca.pem") if tls else None)


def test_what_is_gone_already_is_removed_without_a_word(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("")
    for _ in range(2):
        submit._unlinked(str(tmp_path / "a"))
    assert os.listdir(tmp_path) == []


@pytest.fixture
def loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with a PyFlink and a Java that were changed long ago, as was all that this process has loaded."""
    for name in ("pyflink/__init__.py", "pyflink/lib/flink.jar", "pyflink/conf/config.yaml", "java/bin/java", "packages/x.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    for path in [*tmp_path.rglob("*"), tmp_path]:
        os.utime(path, (100, 100))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "java"))
    monkeypatch.delenv("FLINK_CONF_DIR", raising=False)
    (tmp_path / "java" / "release").write_text("")
    os.utime(tmp_path / "java" / "release", (100, 100))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "java" / "bin" / "java"))
    monkeypatch.setattr(sys, "path", ["", str(tmp_path / "packages"), str(tmp_path / "none")])
    java = SimpleNamespace(System=SimpleNamespace(nanoTime=lambda: 1))
    monkeypatch.setattr(
        submit,
        "sys",
        SimpleNamespace(
            executable=sys.executable,
            path=sys.path,
            modules={
                "pyflink": SimpleNamespace(__file__=str(tmp_path / "pyflink" / "__init__.py")),
                "built in": SimpleNamespace(),
            },
        ),
    )
    monkeypatch.setitem(sys.modules, "pyflink", submit.sys.modules["pyflink"])
    monkeypatch.setitem(sys.modules, "pyflink.java_gateway", SimpleNamespace(get_gateway=lambda: SimpleNamespace(jvm=java)))  # type: ignore[arg-type]
    return tmp_path


@pytest.mark.parametrize(
    "name",
    ["pyflink/__init__.py", "pyflink/lib/flink.jar", "pyflink/conf/config.yaml", "java/bin/java", "java/release", "packages"],
)
def test_what_has_changed_since_it_was_loaded_is_said(name: str, loaded: Path, said: Said) -> None:
    submit.heed({"look": 3, "since": 200.0}, {})
    os.utime(loaded / name, (300, 300))
    submit.heed({"look": 4, "since": 200.0}, {})
    assert said() == [{"of": 3, "state": "FINISHED"}, {"of": 4, "failed": f"{loaded / name} has changed"}]


def test_what_has_gone_has_changed_and_its_own_folder_does_not_count(
    loaded: Path, said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.utime(loaded / "packages", (300, 300))
    monkeypatch.chdir(loaded / "packages")
    assert submit.changed(200.0) == ""
    (loaded / "java" / "release").unlink()
    assert submit.changed(200.0) == f"{loaded}/java/release has changed"


def test_a_java_that_has_died_is_said(loaded: Path, said: Said, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone() -> None:
        raise ConnectionError("Java has ended")

    monkeypatch.setattr(sys.modules["pyflink.java_gateway"], "get_gateway", gone)
    submit.heed({"look": 3, "since": 200.0}, {})
    assert said() == [{"of": 3, "failed": "Java has ended"}]
