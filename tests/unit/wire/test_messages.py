"""The fields of every message: each must be there and fit, more may come, and what is wrong is named."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from akrunner import wire
from akrunner.wire import frames, messages
from akrunner.wire.frames import WireError

FAILURE = {"type": "ValueError", "message": "no", "traceback": "", "phase": "in main()", "time_ns": 1}
CLOSED = {
    "ok": True, "rows": 1, "rows_read": 2, "main_ns": 3, "output_blocked_ns": 4, "rows_dropped": 0, "rows_padded": 0, "notes": ["a"],
}  # fmt: skip
COLUMN = {"name": "x", "type": "bigint", "dtype": "int64", "partition": False, "nullable": True}
LINE = {"main": True, "at": "a.py:1", "in": "f", "share": 0.5}
NODE = {"path": "0.1", "own": 0.5, "calls": 2}
STAGE = {"node": "Map", "at": "a.py:1"}
#: what a task has measured of its input
INPUT: dict[str, Any] = {
    "asked": 1, "main": 0.5, "lines": [LINE, {**LINE, "computes": 0.1}], "looks": 2, "busy": None, "cores": 2, "idle": 0.5, "by": "batches",
    "batches": 3, "rows": None, "wait": 0, "between": 0.5, "outside": 0.5, "first": 0.5, "looked": 1, "known": True, "hidden": False,
    "elsewhere": False, "unlooked": 0.0, "look": 0.5, "spent": {"read": 0.5}, "nodes": [NODE, {**NODE, "of": 3}, {**NODE, "of": None}],
    "windows": [[0, 0.5, 1, 2]], "pipelines": [{"nodes": [{**STAGE, "parallel": True, "size": 3, "by": "x"}], "passes": 1}],
}  # fmt: skip
#: a message of each kind
BODIES: dict[int, dict[str, Any]] = {
    frames.START: {},
    frames.STOP: {},
    frames.OPENED: {},
    frames.ENTERED: {},
    frames.SERVING: {},
    frames.END: {"rows": 2, "total_rows": 4, "shares": [2, 2], "splits": [[1, 1], []]},
    frames.BARRIER: {"save": True, "place": {"source": "s", "at": 5}},
    frames.HELLO: {"version": 2, "pid": 7, "python": "3.7.9", "executable": "/usr/bin/python"},
    frames.READY: {"rows": 0, "waited_ns": 5},
    frames.REPORT: {"metrics": {"loss": 0.5, "n": -1}, "step": 3, "time_ns": 1},
    frames.REACHED: {"done": 3, "total": 10, "epoch": 1, "epochs": 2},
    frames.REFUSED: FAILURE,
    frames.CLOSED: CLOSED,
    frames.LEFT: {"notes": []},
    frames.SPARE: {"env": {"A": "1", "B": None}, "cpus": [0, 1], "overlay": "", "preload": ["numpy"], "began_ns": 1, "temp": "/tmp"},
    frames.OFFER: {"names": ["a", "b"]},
    frames.ORDER: {"env": {}, "cwd": "/home", "bundle": "/b.zip"},
    frames.WAITING: {"seconds": 0.5, "alone": ""},
    frames.ANSWER: {"why": "", "stale": False},
    frames.LOOK_TABLE: {"request": 1, "table": "t"},
    frames.READ_TABLE: {"request": 1, "table": "t", "columns": ["x"], "start": 0, "stop": 5, "credits": 8},
    frames.WRITE_TABLE: {"request": 1, "table": "t", "slice": 0, "process": "7:1"},
    frames.CLOSE_TABLE: {"request": 1, "rows": 5, "whole": True},
    frames.TAKE_WORK: {
        "request": 1, "queue": "q", "works": ["a"], "digest": "d", "epochs": 2, "shuffle": True, "seed": 5, "slices": 3,
    },
    frames.TABLE_OPENED: {"request": 1, "columns": [COLUMN], "start": 0, "rows": 5, "credits": 8, "replaces": [2]},
    frames.TABLE_DONE: {"request": 1, "rows": 5},
    frames.TABLE_FAILED: {"request": 1, "type": "SinkError", "message": "no"},
    frames.WORK: {"request": 1, "work": "a"},
    frames.READ_MORE: {"request": 1, "chunks": 1},
    frames.WRITE_MORE: {"request": 1, "chunks": 1},
    frames.FORK: {"mark": "m"},
    frames.FORKED: {"mark": "m", "pid": 7, "why": ""},
    frames.ENDED: {"mark": "m", "status": 0, "peak_rss": 1, "cpu_seconds": 0.5},
}  # fmt: skip
FIELDS = [(kind, field) for kind, body in BODIES.items() for field in body]


def read(kind: int, body: dict[str, Any]) -> dict[str, Any]:
    return messages.read(frames.Frame(kind, 0, bytearray(json.dumps(body).encode())))


def named(value: Any) -> str:
    return f"{frames.NAMES[value[0]]}-{value[1]}" if isinstance(value, tuple) else ""


def test_a_message_of_every_kind_is_read_and_may_say_more() -> None:
    assert set(BODIES) == set(messages.SHAPES) - {frames.PASSED}, "each has a case here"
    for kind, body in BODIES.items():
        assert read(kind, body) == body
        assert read(kind, {**body, "newer": [1]})["newer"] == [1]


def test_every_kind_of_frame_has_a_shape_or_says_that_it_has_none() -> None:
    assert not set(messages.SHAPES) & messages.WITHOUT_SHAPE
    assert {frames.NAMES[kind] for kind in set(messages.SHAPES) | messages.WITHOUT_SHAPE} == set(frames.NAMES.values())


@pytest.mark.parametrize("kind", sorted(messages.WITHOUT_SHAPE), ids=frames.NAMES.get)
def test_what_is_no_message_is_not_read_as_one(kind: int) -> None:
    with pytest.raises(WireError, match=f"^a {frames.NAMES[kind]} frame is no message$"):
        read(kind, {})


@pytest.mark.parametrize("field", FIELDS, ids=named)
def test_every_field_must_be_there_and_fit(field: tuple[int, str]) -> None:
    kind, name = field
    rest = {key: value for key, value in BODIES[kind].items() if key != name}
    with pytest.raises(WireError, match=f"^a {frames.NAMES[kind]} message has no '{name}'$"):
        read(kind, rest)
    with pytest.raises(WireError, match=rf"^a {frames.NAMES[kind]} message has the '{name}(\[0\])*' \[+None\]+$"):
        read(kind, {**rest, name: [[None]]})


@pytest.mark.parametrize(
    ("kind", "field", "value"),
    [
        (frames.READY, "rows", (1 << 63) - 1),
        (frames.REPORT, "step", -(1 << 63)),
        (frames.REPORT, "step", None),
        (frames.REACHED, "total", None),
        (frames.REACHED, "epochs", None),
        (frames.REPORT, "metrics", {"a": float("-inf"), "b": (1 << 63) - 1}),
        (frames.HELLO, "executable", "/é/\U0001f600"),
        (frames.TAKE_WORK, "epochs", None),
        (frames.TAKE_WORK, "epochs", 0),
        (frames.TAKE_WORK, "seed", -5),
        (frames.TAKE_WORK, "slices", None),
        (frames.WORK, "work", None),
        (frames.WORK, "work", ""),
        (frames.READ_TABLE, "columns", []),
        (frames.OFFER, "names", ["a\udcff"]),  # a file may have such a name
        (frames.ORDER, "cwd", "/\udcff"),
        (frames.ORDER, "env", {"A": "\udcff", "B": None}),
        (frames.END, "splits", []),
    ],
)
def test_values_at_the_edge_that_fit(kind: int, field: str, value: Any) -> None:
    assert read(kind, {**BODIES[kind], field: value})[field] == value


@pytest.mark.parametrize(
    ("kind", "field", "value"),
    [
        (frames.READY, "rows", 1 << 63),
        (frames.READY, "rows", 1.0),
        (frames.READY, "rows", None),
        (frames.REPORT, "step", True),
        (frames.REPORT, "step", 1 << 63),
        (frames.REPORT, "metrics", {"a": True}),
        (frames.REPORT, "metrics", {"\ud800": 1.0}),
        (frames.REPORT, "metrics", {"a": 1 << 63}),
        (frames.REPORT, "metrics", {"a": None}),
        (frames.HELLO, "python", 3),
        (frames.HELLO, "executable", "/\udcff"),  # it is shown, and cannot be printed
        (frames.LOOK_TABLE, "table", "\ud800"),
        (frames.READ_TABLE, "columns", ["x", "\ud800"]),
        (frames.READ_TABLE, "columns", "x"),
        (frames.READ_TABLE, "credits", 0),
        (frames.READ_MORE, "chunks", 0),
        (frames.READ_MORE, "chunks", True),
        (frames.CLOSE_TABLE, "whole", 1),
        (frames.CLOSE_TABLE, "whole", None),
        (frames.TAKE_WORK, "epochs", -1),
        (frames.TAKE_WORK, "seed", 0.5),
        (frames.WORK, "work", 1),
        (frames.END, "shares", [-1]),
        (frames.END, "splits", [[1], [True]]),
        (frames.OFFER, "names", ["a", None]),
        (frames.ORDER, "env", {"A": 1}),
        (frames.ORDER, "env", []),
        (frames.SPARE, "cpus", [0.5]),
        (frames.WAITING, "seconds", "1"),
        (frames.TABLE_OPENED, "columns", [COLUMN, None]),
        (frames.TABLE_OPENED, "columns", [COLUMN, {**COLUMN, "nullable": None}]),
        (frames.TABLE_OPENED, "columns", [{key: value for key, value in COLUMN.items() if key != "dtype"}]),
    ],
)
def test_values_that_do_not_fit(kind: int, field: str, value: Any) -> None:
    with pytest.raises(WireError, match=rf"^a {frames.NAMES[kind]} message has (the|no) '{field}[^' ]*'"):
        read(kind, {**BODIES[kind], field: value})


def test_only_the_beginning_of_a_value_is_shown() -> None:
    with pytest.raises(WireError) as told:
        read(frames.LEFT, {"notes": "x" * 10_000})
    assert str(told.value) == "a left message has the 'notes' '" + "x" * 99


@pytest.mark.parametrize("kind", [kind for kind, body in BODIES.items() if not body], ids=frames.NAMES.get)
def test_a_kind_without_fields_may_say_anything_in_an_object(kind: int) -> None:
    assert read(kind, {}) == {} and read(kind, {"x": None}) == {"x": None}
    with pytest.raises(WireError, match=f"a {frames.NAMES[kind]} frame holds list, not an object"):
        messages.read(frames.Frame(kind, 0, bytearray(b"[]")))


@pytest.mark.parametrize("field", FAILURE)
def test_a_task_that_failed_tells_all_of_its_failure(field: str) -> None:
    failed = {**CLOSED, "ok": False}
    assert read(frames.CLOSED, {**failed, "failure": FAILURE})["failure"] == FAILURE
    rest = {key: value for key, value in FAILURE.items() if key != field}
    with pytest.raises(WireError, match=f"a closed message has no 'failure.{field}'"):
        read(frames.CLOSED, {**failed, "failure": rest})
    for wrong in (None, "no", [FAILURE]):
        with pytest.raises(WireError, match="a closed message does not say what failed"):
            read(frames.CLOSED, {**failed, "failure": wrong})


def closed_with(**changes: Any) -> dict[str, Any]:
    return read(frames.CLOSED, {**CLOSED, "input": {**INPUT, **changes}})["input"]  # type: ignore[no-any-return]


@pytest.mark.parametrize("field", INPUT)
def test_each_measurement_of_an_input_must_be_there_and_fit(field: str) -> None:
    assert closed_with() == INPUT
    with pytest.raises(WireError, match=f"a closed message has no 'input.{field}'"):
        read(frames.CLOSED, {**CLOSED, "input": {key: value for key, value in INPUT.items() if key != field}})
    with pytest.raises(WireError, match=rf"a closed message has the 'input\.{field}(\[0\])*' \[+None\]+"):
        closed_with(**{field: [[None]]})


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("given", 0.5),
        ("hindered", []),
        ("keeps", None),
        ("cards", 1),
        ("main", -0.5),
        ("main", float("nan")),
        ("main", float("inf")),
        ("main", None),
        ("busy", -1),
        ("rows", -1),
        ("spent", {"read": -1}),
        ("spent", {"read": None}),
        ("lines", [{**LINE, "share": -1}]),
        ("lines", [{**LINE, "computes": -1}]),
        ("lines", [{**LINE, "main": 1}]),
        ("lines", [{key: value for key, value in LINE.items() if key != "in"}]),
        ("nodes", [{**NODE, "of": -1}]),
        ("nodes", [{**NODE, "own": None}]),
        ("nodes", [NODE, "a"]),
        ("windows", [[0, 1, 2]]),
        ("windows", [[0, 1, 2, 3, 4]]),
        ("windows", [[0, 1, 2, -3]]),
        ("pipelines", [{"nodes": [STAGE]}]),
        ("pipelines", [{"nodes": [{"node": "Map"}], "passes": 1}]),
        ("pipelines", [{"nodes": [{**STAGE, "size": None}], "passes": 1}]),
        ("pipelines", [{"nodes": ["Map"], "passes": 1}]),
    ],
)
def test_measurements_that_do_not_fit(field: str, value: Any) -> None:
    with pytest.raises(WireError, match=rf"a closed message has (the|no) 'input\.{field}[^' ]*'"):
        closed_with(**{field: value})


@pytest.mark.parametrize(
    ("field", "good", "wrong"),
    [
        ("calls", {"read": 1}, {"read": "1"}),
        ("python", {}, []),
        ("times", {"a": 0.5}, {"a": -1}),
        ("early", {"a": 0.5}, {"a": -1}),
        ("early_times", {"a": 1}, {"a": "1"}),
        ("within", {"a": 0.5}, {"a": None}),
        ("used", None, -1),
        ("watched", 0.5, "x"),
        ("disk", None, 0.5),
        ("version", "2.15", None),
    ],
)
def test_a_measurement_that_not_every_system_has_may_be_left_out_and_fits_if_it_is_there(
    field: str, good: Any, wrong: Any
) -> None:
    assert closed_with(**{field: good})[field] == good
    with pytest.raises(WireError, match=f"a closed message has the 'input.{field}' "):
        closed_with(**{field: wrong})


@pytest.mark.parametrize("wrong", [None, [], "x"])
def test_the_measurements_of_an_input_are_an_object(wrong: Any) -> None:
    with pytest.raises(WireError, match="a closed message has the 'input' "):
        read(frames.CLOSED, {**CLOSED, "input": wrong})


def test_what_was_not_asked_for_is_a_list_of_texts() -> None:
    assert read(frames.CLOSED, {**CLOSED, "unasked": ["x"]})["unasked"] == ["x"]
    for wrong in (None, "x", ["\ud800"]):
        with pytest.raises(WireError, match="a closed message has the 'unasked' "):
            read(frames.CLOSED, {**CLOSED, "unasked": wrong})


@pytest.mark.parametrize("told", ["lost", "error", "broken"])
def test_in_place_of_rows_there_may_be_word_of_what_went_wrong(told: str) -> None:
    assert read(frames.PASSED, {told: "gone"}) == {told: "gone"}
    with pytest.raises(WireError, match=f"a passed message has the '{told}' None"):
        read(frames.PASSED, {told: None, "rows": 1, "bytes": 1})


@pytest.mark.parametrize("field", ["rows", "bytes"])
def test_rows_that_were_passed_on_are_counted(field: str) -> None:
    body = {"rows": 1, "bytes": 8}
    with pytest.raises(WireError, match=f"a passed message has no '{field}'"):
        read(frames.PASSED, {key: value for key, value in body.items() if key != field})
    with pytest.raises(WireError, match=f"a passed message has the '{field}' -1"):
        read(frames.PASSED, {**body, field: -1})


def test_the_drawing_has_every_frame_between_a_host_and_a_task() -> None:
    drawn = set(re.findall(r"\b[A-Z_]{3,}\b", wire.__doc__ or ""))
    assert {frames.NAMES[kind].upper().replace(" ", "_") for kind in {**frames.TO_WORKER, **frames.FROM_AGENT}} <= drawn
