"""Which graphics cards and cores a machine has."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence

import pytest

from akrunner.launch import devices
from akrunner.launch.asking import Asked

LISTED = "GPU 0: A100 (UUID: GPU-1)\n  MIG 1g.5gb Device 0: (UUID: MIG-1)\nGPU 1: A100 (UUID: GPU-2)\n"


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is a driver, and the variable is not set."""
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")


@pytest.mark.parametrize(
    ("visible", "expected"),
    [
        ("0,1", ["0", "1"]),
        (" 2 , GPU-ab ,", ["2", "GPU-ab"]),
        ("", []),
        ("-1", []),
        ("0,-1", ["0"]),
    ],
)
def test_the_variable_says_which_cards_there_are(visible: str, expected: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    monkeypatch.setattr(devices, "ask", lambda *given: pytest.fail("the driver was asked"))
    assert devices.gpus() == expected


@pytest.mark.usefixtures("tool")
def test_the_drivers_tool_is_asked_without_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Sequence[str]] = []

    def ask(command: Sequence[str], seconds: float) -> Asked:
        asked.append(command)
        return Asked(0, LISTED, "")

    monkeypatch.setattr(devices, "ask", ask)
    assert devices.gpus() == ["0", "1"], "a part of a card is no card"
    assert asked == [["/usr/bin/nvidia-smi", "-L"]]


@pytest.mark.usefixtures("tool")
def test_a_tool_that_fails_has_no_cards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "ask", lambda *given: Asked(9, LISTED, "no driver"))
    assert devices.gpus() == []

    def hangs(*given: object) -> Asked:
        raise OSError("it had not ended after 10 s")

    monkeypatch.setattr(devices, "ask", hangs)
    assert devices.gpus() == []


@pytest.mark.usefixtures("tool")
def test_a_machine_without_the_tool_has_no_cards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert devices.gpus() == []


def test_only_the_cores_this_process_may_use_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {9, 2}, raising=False)
    assert devices.cpus() == [2, 9]


@pytest.mark.parametrize(("count", "expected"), [(3, [0, 1, 2]), (None, [0])])
def test_all_cores_count_where_the_system_says_no_more(
    count: int | None, expected: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: count)
    assert devices.cpus() == expected
