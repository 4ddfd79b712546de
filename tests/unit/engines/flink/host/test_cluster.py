"""What `akrunner flink start` tells Java beside what Flink's own scripts know of the machine, and which processes it ends."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
import yaml

from akrunner.engines.flink.host import cluster
from akrunner.engines.flink.host.cluster import class_path, command_of, java_words
from akrunner.engines.flink.host.java import NO_FLIGHT_RECORDER
from akrunner.errors import ConfigError


def test_the_class_path_has_what_file_systems_need_behind_the_jars(tmp_path: Path) -> None:
    for name in ("flink-dist-2.jar", "flink-python.jar", "a.txt"):
        (tmp_path / name).touch()
    environ = {"HBASE_CONF_DIR": "/hbase", "HADOOP_CLASSPATH": "/h/*:/i/*", "YARN_CONF_DIR": "", "HADOOP_CONF_DIR": "/conf"}
    jars = f"{tmp_path}/flink-python.jar:{tmp_path}/flink-dist-2.jar"
    assert class_path(str(tmp_path), environ) == f"{jars}:/h/*:/i/*:/conf:/hbase"
    assert class_path(str(tmp_path), {}) == jars


@pytest.mark.parametrize(
    ("release", "words"),
    [('IMPLEMENTOR="x"\nJAVA_VERSION="21.0.2"\n', ["-Djava.security.manager=allow"]), ('JAVA_VERSION="17.0.9"', []), ("", [])],
)
def test_java_has_the_words_of_its_version(tmp_path: Path, release: str, words: list[str]) -> None:
    (tmp_path / "release").write_text(release)
    assert java_words("jobmanager", str(tmp_path), {}) == words


def test_java_has_the_words_of_the_environment(tmp_path: Path) -> None:
    environ = {"JVM_ARGS": "-Da=1 '-Db=two words'", "FLINK_ENV_JAVA_OPTS": "-Dc=3", "FLINK_ENV_JAVA_OPTS_TM": "-Xmn1m"}
    common = ["-Da=1", "-Db=two words", "-Dc=3"]
    assert java_words("jobmanager", str(tmp_path), environ) == common
    assert java_words("taskmanager", str(tmp_path), environ) == [*common, "-Xmn1m"]


TRUE = NO_FLIGHT_RECORDER.replace("false", "true")


def words_of(folder: Path, environ: dict[str, str], all_options: str = "-Da=1") -> list[str]:
    (folder / "conf").mkdir()
    cluster._configure(str(folder / "conf" / "config.yaml"), "127.0.0.1", 1, 2, 1, "/python", "/tmp", all_options.split())
    return command_of(str(folder), "/java", "jobmanager", 0, environ)


@pytest.mark.parametrize("where", ["the configuration", "JVM_ARGS", "FLINK_ENV_JAVA_OPTS", "FLINK_ENV_JAVA_OPTS_JM"])
def test_what_users_say_of_the_flight_recorder_stands_last(tmp_path: Path, where: str) -> None:
    if where.isupper():
        words = words_of(tmp_path, {where: f"{TRUE} -Dx=2"})
        assert "-Dx=2" in words
    else:
        words = words_of(tmp_path, {}, f"-Da=1 {TRUE}")
    assert words.index(NO_FLIGHT_RECORDER) < words.index("-Da=1")
    assert words.index(NO_FLIGHT_RECORDER) < words.index(TRUE) < words.index("-classpath")


@pytest.mark.parametrize("variable", ["JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS"])
def test_akrunner_says_nothing_of_it_where_users_tell_every_java(tmp_path: Path, variable: str) -> None:
    words = words_of(tmp_path, {variable: f"-Xss1m {TRUE}"})
    assert not any("jfr" in word for word in words) and "-Da=1" in words


@pytest.mark.parametrize("variable", ["JVM_ARGS", "FLINK_ENV_JAVA_OPTS", "FLINK_ENV_JAVA_OPTS_TM"])
def test_a_quote_that_is_not_closed_is_told_with_the_variable(tmp_path: Path, variable: str) -> None:
    with pytest.raises(ConfigError, match=f"^{variable} is not as a shell reads it: No closing quotation"):
        java_words("taskmanager", str(tmp_path), {variable: "-Da='b"})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("env.java.opts.all: -Da=1 -Db=2", ["-Da=1", "-Db=2"]),
        ('env:\n  java:\n    opts:\n      all: "-Da=1 -Db=2"', ["-Da=1", "-Db=2"]),
        ("env:\n  java.opts:\n    all: -Da=1 # mine", ["-Da=1"]),
        ("x:\n  all: 5\nenv: {java: {opts: {all: -Da=1}}}\ny:\n  all: 6", ["-Da=1"]),
        ("env.java.opts.all: >-\n  -Da=1\n  -Db='two words'", ["-Da=1", "-Db=two words"]),
        ("env.java:\n  opts:\n    all:\n  home: /java", []),
        ("all: 5", []),
        ("# nothing", []),
    ],
)
def test_users_options_for_java_are_those_of_their_key(tmp_path: Path, text: str, words: list[str]) -> None:
    """And what akrunner writes of them it reads back, as Flink does."""
    assert cluster.words_under(yaml.safe_load(text), "env.java.opts.all") == words
    cluster._configure(str(tmp_path / "config.yaml"), "127.0.0.1", 1, 2, 1, "/python", "/tmp", words)
    assert cluster._java_options(str(tmp_path)) == words
    assert cluster.words_under(yaml.safe_load((tmp_path / "config.yaml").read_text()), "env.java.opts.all") == words


def brought_up(folder: Path) -> cluster.Cluster:
    """Bring up a cluster of a JobManager and a TaskManager whose Java is a small script, which SIGTERM does not end."""
    (folder / "home" / "conf").mkdir(parents=True)
    (folder / "java" / "bin").mkdir(parents=True)
    (folder / "java" / "bin" / "java").write_text("#!/bin/sh\ntrap '' TERM\nexec sleep 60\n")
    (folder / "java" / "bin" / "java").chmod(0o755)
    return cluster._bring_up(str(folder / "c"), str(folder / "home"), str(folder / "java"), "/python", [], 1, 1, "127.0.0.1", 1)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[subprocess.Popen[bytes]]]:
    """The processes that a cluster has started. What a test leaves of them is ended."""
    found: list[subprocess.Popen[bytes]] = []
    spawn = cluster.spawn

    def spawned(folder: str, home: str, java: str, name: str, number: int) -> subprocess.Popen[bytes]:
        found.append(spawn(folder, home, java, name, number))
        return found[-1]

    monkeypatch.setattr(cluster, "spawn", spawned)
    monkeypatch.setattr(cluster, "_GRACE_SECONDS", 0.1)
    yield found
    for process in found:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def test_a_cluster_whose_options_are_wrong_starts_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, started: list[subprocess.Popen[bytes]]
) -> None:
    monkeypatch.setenv("FLINK_ENV_JAVA_OPTS_TM", "-Da='b")
    with pytest.raises(ConfigError, match="FLINK_ENV_JAVA_OPTS_TM"):
        brought_up(tmp_path)
    assert started == []


@pytest.mark.parametrize("error", [KeyboardInterrupt(), psutil.NoSuchProcess(1), OSError(12, "Cannot allocate memory")])
@pytest.mark.parametrize("at", ["spawn", "create_time", "_wait_for_slots"])
def test_a_cluster_that_does_not_come_up_leaves_no_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, started: list[subprocess.Popen[bytes]], at: str, error: BaseException
) -> None:
    """Wherever its start ends, and whatever ends it: that is what the caller hears of."""
    of = psutil.Process if at == "create_time" else cluster
    real = getattr(of, at)
    number = {"spawn": 1, "create_time": 0, "_wait_for_slots": 0}[at]
    calls: list[tuple[object, ...]] = []

    def failing(*args: object) -> object:
        calls.append(args)
        if len(calls) == number + 1:
            raise error
        return real(*args)

    monkeypatch.setattr(of, at, failing)
    with pytest.raises(type(error)) as raised:
        brought_up(tmp_path)
    assert raised.value is error
    assert len(started) == (2 if at == "_wait_for_slots" else 1)
    assert [process.returncode is not None for process in started] == [True] * len(started)
    assert cluster.running(str(tmp_path / "c")) is None


def test_a_cluster_that_comes_up_knows_its_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, started: list[subprocess.Popen[bytes]]
) -> None:
    """So does who reads of it later, as `akrunner flink stop` does."""
    monkeypatch.setattr(cluster, "_wait_for_slots", lambda *args: None)
    made = brought_up(tmp_path)
    there = cluster.running(made.folder)
    assert there is not None and there.processes == made.processes
    assert made.processes == {process.pid: psutil.Process(process.pid).create_time() for process in started}
    assert made.alive and len(started) == 2
    there.stop()
    for process in started:
        process.wait(10)
    assert not made.alive and cluster.running(made.folder) is None


@pytest.mark.parametrize("at", ["_process_tree", "wait_procs"])
def test_a_second_ctrl_c_leaves_no_process_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, started: list[subprocess.Popen[bytes]], at: str
) -> None:
    """It comes while akrunner looks for the processes, or while these are given the time to end by themselves."""
    first, second = KeyboardInterrupt("first"), KeyboardInterrupt("second")

    def interrupted(error: KeyboardInterrupt) -> Callable[..., None]:
        def call(*args: object, **options: object) -> None:
            raise error

        return call

    monkeypatch.setattr(cluster, "_wait_for_slots", interrupted(first))
    monkeypatch.setattr(psutil if at == "wait_procs" else cluster, at, interrupted(second))
    with pytest.raises(KeyboardInterrupt, match="first"):
        brought_up(tmp_path)
    assert [process.returncode is not None for process in started] == [True, True]
