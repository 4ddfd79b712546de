"""Engines by name: built-in ones, and what is wrong with others."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from akrunner.engines.flink import FlinkEngine
from akrunner.engines.local import LocalEngine
from akrunner.engines.registry import engine_of, names
from akrunner.errors import ConfigError
from akrunner.spec import Capabilities
from tests.packages import install

MODULE = """
import types
from akrunner.spec import Capabilities

def make(name="other", **more):
    return types.SimpleNamespace(**{"name": name, "capabilities": Capabilities(parallelism=3), "check": print, "run": print, **more})

right = make
renamed = lambda: make("another")
unable = lambda: make("unable", capabilities=None)
still = lambda: make("still", run=None)
number = 7

def breaks():
    raise RuntimeError("no licence")
"""


def test_engines_say_what_they_can_do() -> None:
    assert engine_of("local").capabilities == Capabilities(watches=True, marks=True)
    assert engine_of("flink").capabilities == Capabilities(here=False, pyflink=True)
    cluster = FlinkEngine("host:8081", parallelism=4)
    assert engine_of(cluster) is cluster
    assert cluster.capabilities == Capabilities(here=False, unpacks=True, pyflink=True, detaches=True, parallelism=4)


@pytest.mark.parametrize(
    ("engine", "words"),
    [
        ("flnk", r"engine='flnk': known engines are local, flink; did you mean 'flink'\?"),
        (LocalEngine, "engine must be 'local', 'flink' or an engine .*: it is a class, and not yet made"),
        (7, "it has no name"),
        (type("Old", (), {"name": "old", "run": print})(), r"it has no capabilities \(akrunner.spec.Capabilities\)"),
        (type("Old", (), {"name": "old", "capabilities": Capabilities(), "check": print})(), r"it has no run\(\)"),
    ],
)
def test_what_is_no_engine_is_told(engine: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        engine_of(engine)


def test_an_engine_of_a_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = ("renamed", "unable", "still", "number", "breaks")
    points = {"other": "akrunner_others:right", "local": "akrunner_others:right", "gone": "akrunner_others:nothing"}
    points.update({name: f"akrunner_others:{name}" for name in broken})
    install(tmp_path, "akrunner-others", {"akrunner_others.py": MODULE}, {"akrunner.engines": points}, monkeypatch)
    monkeypatch.delitem(sys.modules, "akrunner_others", raising=False)
    assert names() == ["local", "flink", "breaks", "gone", "number", "other", "renamed", "still", "unable"]
    assert engine_of("other").capabilities.parallelism == 3
    assert type(engine_of("local")) is LocalEngine, "a built-in engine's name stays its own"
    for name, words in (
        ("renamed", "engine 'renamed' of the package akrunner-others cannot be used: its name is 'another'"),
        ("unable", "it has no capabilities"),
        ("still", r"it has no run\(\)"),
        ("number", "akrunner-others .*: it is int, and no class or function that makes an engine"),
        ("breaks", "engine 'breaks' of the package akrunner-others cannot be made: .*no licence"),
        ("gone", "akrunner-others .* cannot be imported"),
    ):
        with pytest.raises(ConfigError, match=words):
            engine_of(name)
    monkeypatch.delitem(sys.modules, "akrunner_others", raising=False)
