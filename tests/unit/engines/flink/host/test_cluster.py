"""What `akrunner flink start` tells Java beside what Flink's own scripts know of the machine."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

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
    (folder / "conf" / "config.yaml").write_text(f"env.java.opts.all: {all_options}\n")
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


@pytest.mark.parametrize("variable", ["FLINK_ENV_JAVA_OPTS_TM", ""])
def test_a_cluster_that_does_not_come_up_leaves_no_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    """Neither if a TaskManager's words are wrong, nor if its process cannot be started."""
    (tmp_path / "home" / "conf").mkdir(parents=True)
    (tmp_path / "home" / "conf" / "config.yaml").write_text("env.java.opts.all: -Da=1\n")
    stopped: list[tuple[int, ...]] = []

    def spawned(folder: str, home: str, java: str, name: str, number: int) -> SimpleNamespace:
        assert not variable
        if number == 1:
            raise OSError(12, "Cannot allocate memory")
        return SimpleNamespace(pid=os.getpid())

    monkeypatch.setattr(cluster, "spawn", spawned)
    monkeypatch.setattr(cluster.Cluster, "stop", lambda self: stopped.append(tuple(one.pid for one in self.children)))
    if variable:
        monkeypatch.setenv(variable, "-Da='b")
    with pytest.raises(ConfigError if variable else OSError):
        cluster._bring_up(str(tmp_path / "c"), str(tmp_path / "home"), "/java", "/python", 2, 1, "127.0.0.1", 1)
    assert stopped == ([] if variable else [(os.getpid(), os.getpid())])
