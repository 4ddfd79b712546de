"""What `report()` sends, and what it refuses in the script itself, where the traceback names the line."""

from __future__ import annotations

import types
from typing import Any

import pytest

from akrunner.worker.config import TaskConfig


def reported(metrics: dict[Any, Any], step: Any = None, steps: Any = None) -> list[Any]:
    sent: list[Any] = []
    TaskConfig(_job=types.SimpleNamespace(report=lambda *values: sent.append(values))).report(metrics, step, steps)
    return sent


def test_numbers_are_sent_by_name() -> None:
    assert reported({"löss": 1, 3: "2.5"}, step=4.0) == [({"löss": 1.0, "3": 2.5}, 4, None)]
    assert reported({"a": 1.0}) == [({"a": 1.0}, None, None)]
    assert reported({"a": 1.0}, 4, 10) == [({"a": 1.0}, 4, 10)]


@pytest.mark.parametrize("steps", [0, -1, 1 << 63])
def test_steps_are_at_least_one(steps: int) -> None:
    with pytest.raises(ValueError, match=f"steps={steps}: give how many steps there will be in all"):
        reported({}, 1, steps)


@pytest.mark.parametrize(
    ("name", "words"),
    [("task", "give it another name"), ("time_ns", "give it another name"), ("step", "give the step as report")],
)
@pytest.mark.parametrize("step", [None, 3])
def test_no_metric_has_the_name_of_what_is_told_of_every_report(name: str, words: str, step: Any) -> None:
    with pytest.raises(ValueError, match=rf"report\(\): no metric can be called '{name}': {words}"):
        reported({name: 1.0, "loss": 0.5}, step)
    assert reported({f"{name}_": 1.0}, step) == [({f"{name}_": 1.0}, step, None)]


@pytest.mark.parametrize(
    ("metrics", "step", "words"),
    [
        ({"\ud800": 1.0}, 1, r"the metric '\\ud800' has half of a surrogate pair in its name"),
        ({"a": 1.0}, 1 << 63, "step=9223372036854775808 does not fit into 64 bits"),
    ],
)
def test_what_no_message_can_carry_is_the_scripts_error(metrics: dict[str, float], step: int, words: str) -> None:
    """It ended the whole job, under `tensorboard=` as a fault of akrunner's own."""
    with pytest.raises(ValueError, match=words):
        reported(metrics, step)


def test_what_is_no_dict_is_told_with_an_example() -> None:
    with pytest.raises(TypeError, match=r'give a dict of metrics, such as \{"loss": 0.3\}, not int'):
        reported(3, 1)  # type: ignore[arg-type]
