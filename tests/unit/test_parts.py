"""What `tests/parts.py` promises."""

from __future__ import annotations

import os

import pytest

from akrunner.launch import cgroups
from tests import parts
from tests.parts import UNMARKED, left_out


def test_a_test_without_markers_starts_neither_tensorflow_nor_java() -> None:
    assert {os.environ[name] for name, _ in UNMARKED.values()} == {words for _, words in UNMARKED.values()}


@pytest.mark.parametrize("marker", [pytest.param(name, marks=getattr(pytest.mark, name)) for name in ("tensorflow", "flink")])
def test_a_marker_lets_it(marker: str) -> None:
    for markers, (name, words) in UNMARKED.items():
        assert (os.environ.get(name) == words) == (marker not in markers)


FAST = "not flink and not tensorflow and not matrix and not slow"


@pytest.mark.parametrize(
    ("line", "expression", "left"),
    [
        ("pytestmark = pytest.mark.slow", FAST, True),
        ("pytestmark = [pytest.mark.usefixtures('x'), pytest.mark.tensorflow]", FAST, True),
        ("pytestmark = pytest.mark.slow", "not flink", False),
        ("pytestmark = pytest.mark.slow", "", False),
        ("pytestmark = pytest.mark.slow", "slow", False),
        ("pytestmark = pytest.mark.slow", "not slow or flink", False),
        ("pytestmark = pytest.mark.skipif(not_slow, reason='slow')", FAST, False),
        ("    pytestmark = pytest.mark.slow", FAST, False),
        ("", FAST, False),
    ],
)
def test_files_that_are_left_out_as_a_whole(line: str, expression: str, left: bool) -> None:
    assert left_out(f"import pytest\n\n{line}\n\n\n@pytest.mark.slow\ndef test() -> None: ...\n", expression) == left


@pytest.mark.parametrize(("limit", "number"), [(None, 17), (2.0, 5), (0.5, 3), (64.0, 17)])
def test_a_container_s_share_of_the_cores_bounds_how_many_processes_run_tests(
    monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config, limit: float | None, number: int
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(8)), raising=False)
    monkeypatch.setattr(cgroups, "cores", lambda: limit)
    assert parts.pytest_number_of_processes(pytestconfig) == number
