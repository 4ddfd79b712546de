"""What `akrunner flink start` tells Java beside what Flink's own scripts know of the machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from akrunner.engines.flink.host.cluster import class_path, java_words
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
    assert java_words("jobmanager", str(tmp_path), {}) == [NO_FLIGHT_RECORDER, *words]


def test_java_has_the_words_of_the_environment(tmp_path: Path) -> None:
    environ = {"JVM_ARGS": "-Da=1 '-Db=two words'", "FLINK_ENV_JAVA_OPTS": "-Dc=3", "FLINK_ENV_JAVA_OPTS_TM": "-Xmn1m"}
    common = ["-Da=1", "-Db=two words", "-Dc=3"]
    assert java_words("jobmanager", str(tmp_path), environ) == [NO_FLIGHT_RECORDER, *common]
    assert java_words("taskmanager", str(tmp_path), environ) == [NO_FLIGHT_RECORDER, *common, "-Xmn1m"]


@pytest.mark.parametrize("variable", ["JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS"])
def test_what_users_tell_every_java_of_the_flight_recorder_counts(tmp_path: Path, variable: str) -> None:
    environ = {variable: f"-Xss1m {NO_FLIGHT_RECORDER.replace('false', 'true')}"}
    assert java_words("jobmanager", str(tmp_path), environ) == []
    # of two words of a command line, Java takes the last
    environ = {"FLINK_ENV_JAVA_OPTS": NO_FLIGHT_RECORDER.replace("false", "true")}
    assert java_words("jobmanager", str(tmp_path), environ)[-1] == environ["FLINK_ENV_JAVA_OPTS"]


@pytest.mark.parametrize("variable", ["JVM_ARGS", "FLINK_ENV_JAVA_OPTS", "FLINK_ENV_JAVA_OPTS_TM"])
def test_a_quote_that_is_not_closed_is_told_with_the_variable(tmp_path: Path, variable: str) -> None:
    with pytest.raises(ConfigError, match=f"^{variable} is not as a shell reads it: No closing quotation"):
        java_words("taskmanager", str(tmp_path), {variable: "-Da='b"})
