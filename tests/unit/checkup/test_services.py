"""Credentials are found or not, never shown; clusters and tools answer or not. Nothing is started, nobody is asked."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path
from typing import Any

import pytest

from akrunner.checkup import disks, network, pythons, services
from akrunner.checkup.beside import Check, looked
from akrunner.checkup.lines import BROKEN, LOOK, OK, Line
from akrunner.errors import ClusterError, ConfigError, StartError
from akrunner.launch.asking import Asked

SECRET = "do-not-show-me"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in list(os.environ):
        if name.startswith(("ALIBABA_", "ODPS_", "OSS_", "AWS_", "AZURE_", "GOOGLE_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def of(lines: list[Line]) -> dict[str, Line]:
    return {line.about.rpartition(" of ")[2]: line for line in lines}


def test_no_credentials(home: Path) -> None:
    lines = services.credentials({})
    assert {line.state for line in lines} == {OK} and all(line.found.startswith("not found") for line in lines)


def test_credentials_are_never_shown(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(services.importlib.util, "find_spec", lambda name: object())
    monkeypatch.setenv("OSS_ACCESS_KEY_ID", SECRET)
    monkeypatch.setenv("OSS_ACCESS_KEY_SECRET", SECRET)
    (home / ".aws").mkdir()
    (home / ".aws/credentials").write_text(f"aws_secret_access_key={SECRET}")
    (home / ".aws/credentials").chmod(0o600)
    (home / ".odpscmd").mkdir()
    (home / ".odpscmd/odps_config.ini").write_text(f"access_id={SECRET}\naccess_key={SECRET}\n")
    lines = of(
        services.credentials({"AZURE_STORAGE_ACCOUNT_KEY": SECRET, "GOOGLE_APPLICATION_CREDENTIALS": "/nowhere/key.json"})
    )
    assert SECRET not in str(lines)
    assert lines["OSS"].found == "found in the environment" and lines["OSS"].state == OK
    assert lines["S3"].state == OK and lines["S3"].found.endswith(".aws/credentials")
    assert lines["MaxCompute"].state == LOOK and "endpoint is missing" in lines["MaxCompute"].found
    assert lines["Azure"].found == "found in the environment (AZURE_STORAGE_ACCOUNT_KEY)"
    assert lines["Google Cloud Storage"].state == LOOK and "is not there" in lines["Google Cloud Storage"].found
    (home / ".aws/credentials").chmod(0o644)
    assert "chmod 600" in of(services.credentials({}))["S3"].do


KEYS = [
    json.dumps({"private_key": f"-----BEGIN PRIVATE KEY-----\nab//cd/{SECRET}"}),
    f"-----BEGIN PRIVATE KEY-----\nab//cd/{SECRET}\n",
    f"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwMTIzNDU2Nzg5MCJ9/{SECRET}",
]


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize(
    "name",
    ["GOOGLE_APPLICATION_CREDENTIALS", "AWS_WEB_IDENTITY_TOKEN_FILE", "ODPS_CONFIG_FILE_PATH", "TMPDIR", "XDG_CACHE_HOME", "XDG_STATE_HOME",
     "XDG_DATA_HOME", "AKRUNNER_TABLES", "HOME", "https_proxy", "DOCKER_HOST", "CUDA_VISIBLE_DEVICES"],
)  # fmt: skip
def test_what_is_no_path_is_not_shown(home: Path, monkeypatch: pytest.MonkeyPatch, name: str, key: str) -> None:
    monkeypatch.setattr(services.shutil, "which", lambda name: name)
    monkeypatch.setenv(name, key)
    gpu = {"gpus": [], "driver": True, "cuda": True, "build": {}}
    looks = [services.credentials, disks.temp, network.proxies, services.tools, lambda: [pythons.gpu("cards", gpu)]]
    looks += [lambda place=place: disks.looked_at(place) for place in disks.places()]
    found = looked([Check("it", look) for look in looks])
    assert SECRET not in str(found) and "could not be looked at" not in str(found)


def test_a_path_is_shown(home: Path) -> None:
    for path in ("/nowhere/key.json", "keys/me.json", "~/x", "../x"):
        assert path in str(services.credentials({"GOOGLE_APPLICATION_CREDENTIALS": path}))


def test_a_library_that_is_missing(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(services.importlib.util, "find_spec", lambda name: None)
    line = of(services.credentials({"AWS_PROFILE": "work"}))["S3"]
    assert line.state == LOOK and line.do == "pip install s3fs"


class Rest:
    """Stands in for a cluster."""

    master = "host:8081"
    overview_is: Any = {}

    def __init__(self, master: str, seconds: float) -> None:
        pass

    def overview(self) -> Any:
        if isinstance(self.overview_is, Exception):
            raise self.overview_is
        return self.overview_is


@pytest.mark.parametrize(
    "overview, state, words",
    [
        ({"slots-available": 3, "slots-total": 4, "flink-version": "2.3.0"}, OK, "Flink 2.3.0 at host:8081: 3 of 4 slots free"),
        ({"slots-available": 0, "slots-total": 4, "flink-version": "2.3.1"}, LOOK, "0 of 4"),
        ({"slots-available": 3, "flink-version": "1.20.0"}, BROKEN, "PyFlink here is 2.3.0"),
        (ClusterError("no Flink cluster answers"), BROKEN, "no Flink cluster answers"),
    ],
)
def test_a_cluster(monkeypatch: pytest.MonkeyPatch, overview: Any, state: str, words: str) -> None:
    monkeypatch.setattr(services, "Rest", type("Asked", (Rest,), {"overview_is": overview}))
    line = services.cluster("host:8081", "2.3.0")
    assert line.state == state and words in line.found and bool(line.do) == (state != OK)


def test_pyflink_and_java(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_java(python: str) -> str:
        raise ConfigError("Flink needs Java 11 or 17, and none was found: set JAVA_HOME")

    answers = {"flink": Asked(0, "2.3.0\n", ""), "none": Asked(0, "\n", ""), "broken": Asked(1, "", "")}
    monkeypatch.setattr(services, "ask", lambda command, seconds, noted: answers[command[0]])
    monkeypatch.setattr(services, "java_home", no_java)
    monkeypatch.setattr(services, "Rest", type("Asked", (Rest,), {"overview_is": {"slots-available": 1}}))
    there = services.flink(None, "flink")
    assert [line.state for line in there] == [OK, LOOK] and there[1].do == "set JAVA_HOME"
    assert [line.state for line in services.flink(None, "none")] == [OK]
    assert [line.state for line in services.flink("host:8081", "broken")] == [BROKEN, OK]
    [line] = services.flink(None, "none", named=True)
    assert (line.state, line.found) == (BROKEN, "none has none")


def test_an_interpreter_for_flink_that_does_not_run_is_broken() -> None:
    [line] = services.flink(None, "/no/such/python", named=True)
    assert line.state == BROKEN and line.found == "/no/such/python does not run: No such file or directory"
    assert line.do.startswith("--flink-python names an interpreter that has")


def test_warm_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AKRUNNER_WARM", raising=False)

    def stuck() -> None:
        raise StartError("it does not answer")

    monkeypatch.setattr(services, "kept_status", stuck)
    assert services.warm()[0].state == LOOK
    monkeypatch.setattr(services, "kept_status", lambda: None)
    assert services.warm()[0].state == OK
    monkeypatch.setenv("AKRUNNER_WARM", "0")
    assert "cold" in services.warm()[0].found


def test_tools_and_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(services.shutil, "which", lambda name: None)
    assert [line.state for line in services.tools()] == [OK, OK]
    monkeypatch.setattr(services.shutil, "which", lambda name: name)
    monkeypatch.setattr(services, "ask", lambda command, seconds, noted: Asked(1, "", "Cannot connect\n"))
    assert services.tools()[-1].state == OK and "Cannot connect" in services.tools()[-1].found
    monkeypatch.setattr(services.metadata, "requires", lambda name: ["numpy>=99.1", "pytest>=99; extra == 'dev'", "psutil"])
    (line,) = services.packages()
    assert line.state == LOOK and "at least 99.1" in line.found and "pytest" not in line.found


def test_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    assert network.ports()[0].state == OK

    def refused(address: Any, seconds: float) -> socket.socket:
        raise ConnectionRefusedError(111, "Connection refused")

    monkeypatch.setattr(network.socket, "create_connection", refused)
    assert network.ports()[0].state == BROKEN and "cannot reach each other" in network.ports()[0].found

    def unknown(*name: Any) -> Any:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(network.socket, "getaddrinfo", unknown)
    monkeypatch.setattr(network.socket, "gethostbyname", unknown)
    assert [line.state for line in network.names()] == [LOOK, LOOK]


def test_few_ports(tmp_path: Path) -> None:
    (tmp_path / "proc/sys/net/ipv4").mkdir(parents=True)
    (tmp_path / "proc/sys/net/ipv4/ip_local_port_range").write_text("50000\t50100\n")
    assert network.ports(str(tmp_path))[0].state == LOOK


def test_proxies() -> None:
    assert network.proxies({}) == []
    proxy = {"https_proxy": f"http://me:{SECRET}@proxy:3128"}
    (line,) = network.proxies(proxy)
    assert line.state == LOOK and "no_proxy=localhost,127.0.0.1" in line.do and SECRET not in line.found
    assert network.proxies({**proxy, "NO_PROXY": ".corp, localhost"})[0].state == OK
