"""Events are what `docs/progress.schema.json` says, which is a promise to other programs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from akrunner.engines.supervision.states import RESTARTING, TaskState
from akrunner.progress import events
from akrunner.progress.views import ENDING, PREDICTING, READING, RUNNING, STARTING, WAITING, TaskView, View
from tests.schemas import checker

SCHEMA = json.loads((Path(__file__).parents[3] / "docs" / "progress.schema.json").read_text())
#: raises of an event that is not as the schema has it
validate = checker(SCHEMA)
NOW = 1_790_000_000_123_456_789
FULL = View(
    1.23456, RUNNING, {"loss": float("nan"), "acc": 0.5}, "chief:0", 7, 1.23456, 0.123456789, 5, 10, 5, 3, 1e9, float("inf"), 3.0, 1,
    (TaskView("chief:0", "running", "in main()", 1.0, 5, 3, 7, 1.0, 2.0, "slow: 1"),),
)  # fmt: skip


def check(event: dict[str, Any]) -> None:
    validate(json.loads(json.dumps(event, allow_nan=False)))


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    # what it says of states and of kinds is all there is
    told = SCHEMA["$defs"]["progress"]["properties"]
    assert told["tasks"]["items"]["properties"]["state"]["enum"] == [*(state.value for state in TaskState), RESTARTING]
    assert SCHEMA["properties"]["event"]["enum"] == [events.PROGRESS, events.WARNING, events.NOTE, events.LOG, events.END]
    assert all(word in told["doing"]["description"] for word in (STARTING, READING, RUNNING, PREDICTING, ENDING, WAITING))
    assert SCHEMA["properties"]["version"]["const"] == events.VERSION


@pytest.mark.parametrize("view", [FULL, View(0.0, STARTING), View(3.0, "listing", rows=5)])
def test_progress(view: View) -> None:
    event = events.event(events.PROGRESS, NOW, events.of_view(view))
    check(event)
    declared = SCHEMA["$defs"]["progress"]["properties"]
    assert set(event) - {"version", "time"} == set(declared), "no key is kept from readers of the schema, and none is missing"
    assert all(set(one) == set(declared["tasks"]["items"]["properties"]) for one in event["tasks"])


def test_numbers_that_json_does_not_have_are_null() -> None:
    told = events.of_view(FULL)
    assert told["metrics"] == {"loss": None, "acc": 0.5} and told["bytes_per_second"] is None and told["share"] == 0.123457


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (events.WARNING, {"message": "w"}),
        (events.NOTE, {"message": "n"}),
        (events.LOG, {"task": "chief:0", "line": ""}),
    ],
)
def test_the_others(kind: str, body: dict[str, Any]) -> None:
    check(events.event(kind, NOW, body))
    with pytest.raises(jsonschema.ValidationError):
        check(events.event(kind, NOW, {}))
