"""The table of the functions and commands that take options."""

from __future__ import annotations

import importlib

import pytest

import akrunner
from akrunner.options.functions import COMMANDS, VERBS


def test_every_function_is_there_under_its_name() -> None:
    for verb in VERBS:
        home = importlib.import_module(verb.home.removesuffix(".py").removesuffix("/__init__").replace("/", "."))
        assert callable(getattr(home, verb.function)), verb.name
        assert "." in verb.name or getattr(akrunner, verb.name) is getattr(home, verb.name)


def test_functions_and_commands_are_declared_once_and_name_each_other() -> None:
    names = [verb.name for verb in VERBS]
    assert len(set(names)) == len(names)
    assert all(name == command.name for name, command in COMMANDS.items())
    assert {verb for command in COMMANDS.values() for verb in command.verbs} <= set(names)
    assert {verb.takes for verb in VERBS} - {""} <= set(names)


@pytest.mark.parametrize("name", ["flink.run", "flink.stream", "flink.predict"])
def test_a_function_for_flink_takes_another_ones_options_and_is_in_its_module(name: str) -> None:
    verb = next(verb for verb in VERBS if verb.name == name)
    assert verb.takes and verb.home == "akrunner/flink.py"
