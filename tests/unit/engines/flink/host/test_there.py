"""What must be there before a job is submitted: a way to the cluster, slots, and the same Flink on both sides."""

from __future__ import annotations

import contextlib
import socket
from typing import Any

import pytest

from akrunner.engines.flink.host import there
from akrunner.engines.flink.host.there import check_slots, check_version, pyflink_version, reachable_host
from akrunner.engines.flink.rest import Address
from akrunner.errors import ConfigError


class Cluster:
    """In place of a REST service. Args: free: what it says of its slots, the last of them for ever."""

    master = "flink:8081"

    def __init__(self, version: str = "", free: tuple[int, ...] = (0,)) -> None:
        self._version = version
        self._free = list(free)

    def version(self) -> str:
        return self._version

    def free_slots(self) -> int:
        return self._free.pop(0) if len(self._free) > 1 else self._free[0]


class Clock:
    """In place of `time`."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(there, "time", made)
    return made


@pytest.mark.parametrize("version", ["2.3.0", "2.3.1", "2.3", ""])
def test_the_same_minor_version_is_good_enough(version: str) -> None:
    check_version(Cluster(version), "/py", "2.3.0")  # type: ignore[arg-type]


@pytest.mark.parametrize(("version", "wanted"), [("2.2.0", "2.2"), ("1.20.1", "1.20"), ("2.30.0", "2.30"), ("3", "3")])
def test_another_version_is_named_with_what_to_do(version: str, wanted: str) -> None:
    with pytest.raises(ConfigError) as caught:
        check_version(Cluster(version), "/py", "2.3.0")  # type: ignore[arg-type]
    words = str(caught.value)
    assert words.startswith(f"the cluster at flink:8081 is Flink {version}, /py has PyFlink 2.3.0: ")
    assert f"apache-flink {wanted} (FlinkEngine(python=...), --flink-python)" in words


def test_a_local_cluster_reaches_this_machine_by_itself() -> None:
    assert reachable_host(None) == "127.0.0.1"


class Probe(contextlib.AbstractContextManager["Probe"]):
    """In place of a socket. Args: routed: whether there is a way."""

    def __init__(self, routed: bool = True) -> None:
        self._routed = routed
        self.to: object = None

    def __call__(self, *kind: object) -> Probe:
        assert kind == (socket.AF_INET, socket.SOCK_DGRAM), "which sends nothing"
        return self

    def connect(self, to: object) -> None:
        self.to = to
        if not self._routed:
            raise OSError(101, "Network is unreachable")

    def getsockname(self) -> tuple[str, int]:
        return "10.1.2.3", 50000

    def __exit__(self, *error: object) -> None:
        self.closed = True


@pytest.mark.parametrize(("routed", "found"), [(True, "10.1.2.3"), (False, "127.0.0.1")])
def test_a_cluster_reaches_it_by_the_address_on_the_way_there(
    routed: bool, found: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    probe = Probe(routed)
    monkeypatch.setattr("socket.socket", probe)
    assert reachable_host(Address("http", "flink", 8081)) == found
    assert probe.to == ("flink", 8081) and probe.closed


def test_enough_slots_are_enough_at_once(clock: Clock) -> None:
    check_slots(Cluster(free=(3,)), 3)  # type: ignore[arg-type]
    assert clock.now == 100.0


def test_slots_of_a_job_that_has_just_ended_are_waited_for(clock: Clock) -> None:
    check_slots(Cluster(free=(0, 1, 2, 3)), 3)  # type: ignore[arg-type]
    assert clock.now == pytest.approx(100.6)


def test_too_few_slots_are_counted_and_not_waited_for_without_end(clock: Clock) -> None:
    with pytest.raises(ConfigError, match=r"the job needs 3 task slots, 2 free at flink:8081: .*num_workers= or num_ps="):
        check_slots(Cluster(free=(0, 2)), 3)  # type: ignore[arg-type]
    assert 103.0 < clock.now < 103.5


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What an interpreter says of its PyFlink, or what asking it raises: the last element."""
    made: list[Any] = []

    def pyflink_of(path: str) -> str:
        assert path == "/py"
        if isinstance(made[-1], Exception):
            raise made[-1]
        return str(made[-1])

    monkeypatch.setattr(there, "pyflink_of", pyflink_of)
    return made


def test_an_interpreter_says_which_pyflink_it_has(answers: list[Any]) -> None:
    answers.append("2.3.0")
    assert pyflink_version("/py") == "2.3.0"


@pytest.mark.parametrize("answer", ["", ValueError(1, "Traceback"), ValueError(-9, "it said nothing")])
def test_an_interpreter_without_pyflink_is_named(answer: Any, answers: list[Any]) -> None:
    answers.append(answer)
    with pytest.raises(
        ConfigError, match=r"engine 'flink': /py has no PyFlink; pip install 'akrunner\[flink\]'.*--flink-python"
    ):
        pyflink_version("/py")


def test_so_is_one_that_does_not_run(answers: list[Any]) -> None:
    answers.append(FileNotFoundError(2, "No such file or directory", "/py"))
    with pytest.raises(ConfigError, match=r"engine 'flink': /py does not run \(.*--flink-python\): .*No such file"):
        pyflink_version("/py")
