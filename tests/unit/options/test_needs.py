"""Options that mean nothing without others, or beside certain values of them."""

from __future__ import annotations

from typing import Any

import pytest

from akrunner.options.declared import Option
from akrunner.options.needs import called, idle, is_given, meaningless


class Unwilling:
    """A value that must not be asked anything."""

    def __bool__(self) -> bool:
        raise AssertionError

    __len__ = __eq__ = __bool__  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("value", "given"),
    [
        (None, False),
        (False, False),
        ([], False),
        ((), False),
        ({}, False),
        (0, True),
        ("", True),
        ([0], True),
        (Unwilling(), True),
    ],
)
def test_a_value_is_given_unless_it_asks_for_nothing(value: Any, given: bool) -> None:
    assert is_given(value) is given


def test_an_option_needs_one_of_those_that_it_names() -> None:
    one = Option("a", "int", "Rows", "", needs={"run": ("output", "model_out")})
    assert idle(one, "run", {}) == "without output= (--output) or model_out= (--model-out); leave it out, or give both"
    assert idle(one, "run", {"model_out": "m"}) == idle(one, "train", {}) == ""
    # a plan has the needs of the verb that it plans
    assert idle(one, "plan", {}) and idle(one, "plan", {"verb": "run"}) and not idle(one, "plan", {"verb": "train"})


def test_a_table_without_rows_is_a_source() -> None:
    assert not idle(Option("a", "int", "Rows", "", needs={"run": ("source",)}), "run", {"source": []})


@pytest.mark.parametrize(
    ("name", "has", "words"),
    [
        ("parallelism", {"num_workers": 2, "num_ps": 1}, "beside both num_workers= and num_ps="),
        ("parallelism", {"num_workers": 2}, ""),
        ("stall_action", {"stall_timeout": 0}, "with stall_timeout=0"),
        ("stall_action", {"stall_timeout": 5.0}, ""),
        ("bind_host", {"num_workers": 1, "engine": "local"}, "for one worker alone"),
        ("bind_host", {"num_workers": 2}, ""),
        ("bind_host", {"engine": "flink"}, ""),
        # True is no 1
        ("bind_host", {"num_workers": True}, ""),
    ],
)
def test_an_option_means_nothing_beside_some_values_of_others(name: str, has: dict[str, Any], words: str) -> None:
    said = {name: 3, **has}
    wrong = meaningless("run", said, said)
    assert (wrong is None) if not words else str(wrong).startswith(f"{called(name)} means nothing {words}")


def test_only_what_the_user_gave_is_looked_at() -> None:
    assert meaningless("run", {}, {"stall_action": "warn", "stall_timeout": 0}) is None


def test_an_option_is_called_as_in_python_and_on_the_command_line() -> None:
    assert (called("output"), called("chief")) == ("output= (--output)", "chief= (--chief)")
