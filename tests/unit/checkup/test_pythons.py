"""Why TensorFlow sees no graphics card; interpreters that are not what they should be. Nothing is started."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from akrunner.checkup import pythons
from akrunner.checkup.lines import BROKEN, LOOK, OK, Line
from akrunner.errors import PythonEnvError
from akrunner.launch.asking import Asked
from akrunner.launch.interpreters import Interpreter

SEES_NONE: dict[str, Any] = {
    "gpus": [], "cuda": True, "driver": True, "wheels": ["cudnn", "cuda_runtime"], "build": {"cuda_version": "12.5.1", "cudnn_version": "9"},
}  # fmt: skip


def machine(root: Path, cards: int = 0, devices: int = 0, driver: bool = True) -> str:
    for number in range(cards):
        card = root / "sys/bus/pci/devices" / f"0000:0{number}"
        card.mkdir(parents=True)
        (card / "vendor").write_text("0x10de\n")
        (card / "class").write_text("0x030200\n")
    (root / "dev").mkdir()
    for number in range(devices):
        (root / "dev" / f"nvidia{number}").write_text("")
    if driver:
        (root / "proc/driver/nvidia").mkdir(parents=True)
        (root / "proc/driver/nvidia/version").write_text("")
    return str(root)


def test_no_card_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pythons.shutil, "which", lambda name: None)
    line = pythons.gpu("card", {**SEES_NONE, "driver": False}, machine(tmp_path, driver=False), {})
    assert line.state == OK and "none on this machine" in line.found
    assert pythons.gpu("card", {**SEES_NONE, "gpus": ["a", "b"]}, str(tmp_path), {}).found == "2 seen by TensorFlow"


@pytest.mark.parametrize(
    "said, there, visible, found, do",
    [
        ({}, {"devices": 2}, "", "CUDA_VISIBLE_DEVICES='' hides all", "unset it"),
        ({}, {"devices": 2}, "-1", "hides all", "unset it"),
        ({}, {"devices": 2}, "7", "names one that is not there", "0 to 1"),
        ({"cuda": False}, {"devices": 2}, None, "built without CUDA", r"tensorflow\[and-cuda\]"),
        ({"driver": False}, {"driver": False}, None, "no NVIDIA driver", "install it on the machine"),
        ({}, {}, None, "no /dev/nvidia0", "--gpus all"),
        ({"driver": False}, {"devices": 2}, None, "libcuda.so.1 is not found", "NVIDIA_DRIVER_CAPABILITIES"),
        ({"wheels": []}, {"devices": 2}, None, "CUDA 12.5.1 and cuDNN 9", r"tensorflow\[and-cuda\]"),
        ({"wheels": [], "build": {"cuda_version_number": "10.0", "cudnn_version_number": "7"}}, {"devices": 2}, None, "CUDA 10.0", "LD_LIBRARY_PATH"),
        ({}, {"devices": 2}, None, "TensorFlow sees none", "TF_CPP_MIN_LOG_LEVEL=0"),
    ],
)  # fmt: skip
def test_why_none_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: Any, there: Any, visible: str | None, found: str, do: str
) -> None:
    monkeypatch.setattr(pythons.shutil, "which", lambda name: None)
    environ = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
    line = pythons.gpu("card", {**SEES_NONE, **said}, machine(tmp_path, 2, **there), environ)
    assert line.state == LOOK and "2 on this machine" in line.found and found in line.found
    assert do.replace("\\", "") in line.do


def environment(monkeypatch: pytest.MonkeyPatch, given: str | None, found: Any, done: Asked | None = None) -> Line:
    def asked_for(python_env: str | None, seconds: float, remember: bool) -> Interpreter:
        if isinstance(found, Exception):
            raise found
        return Interpreter(*found)

    def ask(command: Any, seconds: float, noted: bool) -> Asked:
        if done is None:
            raise OSError("it had not ended after 90 s")
        return done

    def named(recipe: Any, seconds: float, remember: bool) -> Interpreter:
        raise PythonEnvError("none")

    monkeypatch.setattr(pythons.interpreters, "asked_for", asked_for)
    monkeypatch.setattr(pythons.interpreters, "named", named)
    monkeypatch.setattr(pythons, "ask", ask)
    return pythons.environment(given)[0]


def test_interpreters(monkeypatch: pytest.MonkeyPatch) -> None:
    good = ("/env/python", (3, 11, 7), "2.20.0", "")
    assert environment(monkeypatch, "x", PythonEnvError("python_env: there is no x")).state == BROKEN
    assert environment(monkeypatch, "x", ("/env/python", (3, 6, 1), "1.15", "")).found == "/env/python is Python 3.6.1"
    assert environment(monkeypatch, "x", ("/env/python", (3, 11, 7), "", "")).state == BROKEN
    without = environment(monkeypatch, None, ("/env/python", (3, 11, 7), "", ""))
    assert without.state == LOOK and "akrunner env create tf2" in without.do
    assert "it had not ended after 90 s" in environment(monkeypatch, "x", good).found
    ill = environment(monkeypatch, "x", good, Asked(-4, "", "Illegal instruction"))
    assert ill.state == BROKEN and "signal 4" in ill.found and "AVX" in ill.do
    failed = environment(monkeypatch, "x", good, Asked(0, 'AKRUNNER {"error": "ImportError: numpy.core"}\n', ""))
    assert failed.state == BROKEN and "ImportError: numpy.core" in failed.found and "pip check" in failed.do
    for error, missing, pip, words in (
        (
            "AttributeError: module 'tensorflow' has no attribute '__version__'",
            "",
            True,
            "/env/python -m pip install --force-reinstall",
        ),
        ("ModuleNotFoundError: No module named 'tensorflow.python'", "tensorflow.python", True, "reinstall it"),
        ("RuntimeError: broken", "", False, "uv pip install --reinstall --python /env/python"),
        ("SystemExit: 3", "", True, "reinstall it"),
        ("ModuleNotFoundError: No module named 'absl'", "absl", True, "/env/python -m pip check"),
        ("TypeError: Descriptors cannot be created directly", "", False, "uv pip check --python /env/python"),
    ):
        told = json.dumps({"error": error, "missing": missing})
        failed = environment(monkeypatch, "x", good, Asked(0, ("" if pip else "NO PIP\n") + f"AKRUNNER {told}\n", ""))
        assert failed.state == BROKEN and error in failed.found and words in failed.do
    ended = environment(monkeypatch, "x", good, Asked(3, "", ""))
    assert "exit code 3" in ended.found and "reinstall it" in ended.do
    aborted = environment(monkeypatch, "x", good, Asked(-6, "IMPORTED\n", "mmap error: 12"))
    assert (
        "it is imported, and a training" in aborted.found
        and "signal 6" in aborted.found
        and "ulimit -v unlimited" in aborted.do
    )
    fine = Asked(0, 'noise\nAKRUNNER {"error": "", "seconds": 3.14, "gpus": ["GPU:0"]}\n', "")
    assert environment(monkeypatch, "x", good, fine).found == "2.20.0 on Python 3.11.7 (/env/python); imported in 3.1 s"


@pytest.mark.parametrize(("minor", "state"), [(10, LOOK), (11, OK), (13, OK), (14, LOOK)])
def test_the_versions_of_python_that_are_tried(monkeypatch: pytest.MonkeyPatch, minor: int, state: str) -> None:
    monkeypatch.setattr(pythons.sys, "version_info", (3, minor, 0))
    monkeypatch.setattr(pythons.metadata, "version", lambda name: "1")
    (line,) = pythons.own()
    assert line.state == state
