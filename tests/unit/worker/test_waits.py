"""Clocks of the input doctor, without TensorFlow."""

from __future__ import annotations

import json
import os
import queue
import runpy
import struct
import sys
import threading
import time
import traceback
import types
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from akrunner.engines.inputs.unseen import bound, wait_share
from akrunner.engines.inputs.wording import verdict
from akrunner.worker import script
from akrunner.worker.waits import (
    drawing,
    hooks,
    lines,
    looks,
    meter,
    nodes,
    pipeline,
    python,
    saves,
    shown,
    timing,
    tracing,
    ways,
)
from akrunner.worker.waits.tracing import Event

SECOND = 1_000_000_000


def way(*steps: tuple[float, float]) -> ways.Way:
    """A way whose steps wait and compute for so many seconds."""
    made, now = ways.Way("dataset", 0), 0
    for wait, between in steps:
        made.drew(now, now + int(wait * SECOND), 32)
        now += int((wait + between) * SECOND)
    return made


def test_the_first_step_is_not_counted() -> None:
    made = way((60, 30), (1, 2), (1, 2), (1, 2))
    assert made.first == 60 * SECOND and made.wait == 3 * SECOND and made.between == 4 * SECOND
    assert made.batches == 4 and made.rows == 128


def test_the_call_that_finds_the_end_is_no_batch() -> None:
    made = way((1, 1), (1, 1))
    made.drew(10 * SECOND, 11 * SECOND, None, StopIteration())
    assert made.batches == 2 and made.rows == 64 and made.wait == 2 * SECOND


class OutOfRangeError(Exception):
    """As TensorFlow's is called."""


@pytest.mark.parametrize(
    ("error", "ends"),
    [(StopIteration(), 1), (OutOfRangeError(), 1), (ValueError("a broken image"), 0), (KeyboardInterrupt(), 0)],
)
def test_a_step_that_fails_is_no_batch_and_no_end_of_the_dataset(error: BaseException, ends: int) -> None:
    made = way((1, 1), (1, 1))
    made.drew(10 * SECOND, 11 * SECOND, None, error)
    assert made.batches == 2 and sum(made.ended.values()) == ends

    def step() -> None:
        raise error

    quick = ways.Quick()
    with pytest.raises(type(error)):
        timing.quickly(quick, meter.clock(), step, (), {})
    assert (quick.ends, quick.calls) == (ends, 0)


def test_it_is_known_how_often_each_dataset_came_to_its_end(clocks: meter.Meter) -> None:
    clocks.pipelines = [{"nodes": [], "passes": 1}, {"nodes": [], "passes": 2}]
    made = clocks.way("dataset")
    assert made is not None
    for iterator, pipeline_of, ends in ((1, 0, False), (2, 1, True), (3, 1, True), (4, None, True)):
        clocks.draws_from(iterator, pipeline_of)
        for end in (False, ends):
            clocks.before(made, iterator)
            made.drew(0, SECOND, 8, StopIteration() if end else None)
    assert [one["ended"] for one in clocks.record()["pipelines"]] == [0, 2]
    # of a single dataset it is the end of whatever was drawn from: a session's graph has no pipeline of its own
    del clocks.pipelines[1]
    assert [one["ended"] for one in clocks.record()["pipelines"]] == [3]


def test_an_iterator_that_nobody_draws_from_is_no_pass(clocks: meter.Meter) -> None:
    """Keras 3 makes one more at the end of each epoch, whose first step may come within the milliseconds that are only counted."""
    clocks.pipelines = [{"nodes": [], "passes": 4}, {"nodes": [], "passes": 3}]
    fit = clocks.way("function")
    assert fit is not None
    for iterator, pipeline_of, steps in ((1, 0, 3), (2, 0, 0), (3, 0, 2), (4, 0, 0), (5, None, 2)):
        fit.quick.until = meter.clock() + SECOND
        clocks.draws_from(iterator, pipeline_of)
        assert fit.quick.until == 0
        for _ in range(steps):
            clocks.before(fit, 77, iterator)
            fit.drew(0, SECOND)
    # a distribution's iterators are not seen when they are drawn from
    assert [one["passes"] for one in clocks.record()["pipelines"]] == [2, 3]


def test_an_end_that_comes_while_steps_are_only_counted_is_one_too(clocks: meter.Meter) -> None:
    def ended() -> None:
        raise StopIteration

    made = way((1, 1), (1, 1), (1, 1))
    made.source = 7
    timing.quickly(made.quick, meter.clock(), lambda: None, (), {})
    with pytest.raises(StopIteration):
        timing.quickly(made.quick, meter.clock(), ended, (), {})
    made.settle()
    made.settle()
    assert (made.ended, made.batches) == ({7: 1}, 4)


def test_steps_that_were_only_counted_are_taken_over_with_what_was_between_them() -> None:
    made = way((1, 1), (1, 1), (1, 1))
    quick = made.quick
    # the last step ended at 5 s; two quick ones since then, which waited a second together
    quick.calls, quick.wait, quick.rows, quick.at, quick.last = 2, SECOND, 64, 0, 8 * SECOND
    made.settle()
    made.settle()
    made.drew(9 * SECOND, 10 * SECOND, 32)
    assert (made.batches, made.rows) == (6, 192)
    # the first step's wait does not count, nor what came between it and the second
    assert made.wait == 4 * SECOND and made.between == 4 * SECOND
    assert sum(window[1] for window in made.windows) == 4


def test_steps_are_counted_quickly_only_behind_one_that_was_looked_at_wholly(clocks: meter.Meter) -> None:
    made = clocks.way("dataset")
    assert made is not None
    for step in range(4):
        assert step > 2 or made.quick.until == 0
        began = clocks.before(made)
        made.drew(began, meter.clock(), 1)
        clocks.after(made, meter.clock())
    assert made.quick.until > meter.clock() - SECOND and made.quick.thread == threading.get_ident()
    clocks.wholly()
    assert made.quick.until == 0


class Op:
    """An operation of a graph."""

    def __init__(self, name: str, kind: str, *inputs: Op) -> None:
        self.name, self.type, self.op, self.inputs, self.control_inputs = name, kind, self, inputs, []


def test_a_run_that_only_initializes_draws_nothing() -> None:
    drawn = Op("get", "IteratorGetNext")
    loss, start, step = Op("loss", "Sum", drawn), Op("init", "MakeIterator", Op("var", "Variable")), Op("step", "Variable")
    known: dict[str, bool] = {}
    assert drawing.draws(known, loss) and drawing.draws(known, {"a": step, "b": [loss]}) and drawing.draws(known, "loss:0")
    assert not drawing.draws(known, start) and not drawing.draws(known, [start, step])
    assert known == {"loss": True, "init": False, "step": False}


FED = Op("x", "Placeholder")


class Session:
    """What runs, and has a graph."""

    def __init__(self) -> None:
        self.graph = self


@pytest.mark.parametrize(
    "feed, fetches, way",
    [
        ({}, "loss", None),
        ({"x": [1.0]}, "loss", "feed_dict"),
        ({"x": 1.0, "handle": b"iterator"}, "loss", "feed_dict"),
        # restoring and saving, by name of a file; an iterator's handle
        ({"save/Const:0": "model/ckpt-100"}, "save/restore_all", None),
        ({"handle": np.array(b"iterator", object)}, "loss", None),
        ({"files": ["a", "b"]}, Op("init", "MakeIterator"), None),
        ({FED: [1.0]}, [Op("assign", "Assign", Op("w", "Variable"), FED)], None),
        ({FED: [1.0]}, Op("train", "Assign", Op("w", "Variable"), Op("less", "Sub", FED)), "feed_dict"),
    ],
)
def test_what_is_fed_is_a_steps_input_only_if_it_is_computed_with(
    feed: dict[Any, Any], fetches: Any, way: Any, clocks: meter.Meter
) -> None:
    assert hooks._way_of_run(clocks, Session(), (fetches, feed), {}) == way
    with timing.spending("checkpoint"):
        assert hooks._way_of_run(clocks, Session(), (fetches, feed), {}) is None


def test_a_run_that_draws_is_none_that_is_fed(clocks: meter.Meter, monkeypatch: pytest.MonkeyPatch) -> None:
    session = Session()
    monkeypatch.setitem(hooks._drawn_from, session, {})
    loss, other = Op("loss", "Sum", Op("get", "IteratorGetNext")), Op("other", "Sum")
    for feed in ({"dropout": 0.5}, {"handle": b"iterator"}, {}):
        assert hooks._way_of_run(clocks, session, (loss, feed), {}) == "session"
    assert hooks._way_of_run(clocks, session, (other, {"x": [1.0]}), {}) == "feed_dict"


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Sets the clock, which stands, to a second."""
    now = [0]
    monkeypatch.setattr(meter, "clock", lambda: now[0] * SECOND)
    return lambda second: now.__setitem__(0, second)


def test_only_what_is_between_runs_that_are_fed_and_follow_each_other_is_time_of_making_it(at: Any) -> None:
    clocks, session, second = meter.Meter(0), Session(), 0
    clocks.way("feed_dict")

    def step(of: Any, gap: int, name: str = "feed_dict") -> None:
        nonlocal second
        second += gap
        at(second)
        hooks._follows(clocks, name, of)
        timing.timed(clocks, name, None, lambda: at(second + 1), (), {})
        second += 1

    def apart(seconds: int) -> None:
        nonlocal second
        second += seconds
        at(second)

    for _ in range(4):
        step(session, 1)
    feeding = clocks.ways["feed_dict"]
    assert (feeding.between, feeding.wait) == (2 * SECOND, 3 * SECOND)
    # a pass that draws by itself, and another session
    for of, name in ((session, "session"), (session, "feed_dict"), (Session(), "feed_dict")):
        step(of, 100, name)
    assert feeding.between == 2 * SECOND
    # a checkpoint, and a run that is fed nothing, are no making of it
    step(session, 1)
    clocks.add("checkpoint", 50 * SECOND)
    apart(50)
    hooks._run_apart(clocks, lambda session: apart(30), session, (), {})
    step(session, 1)
    assert feeding.between == 3 * SECOND


def test_over_time_there_are_at_most_sixty_windows_and_nothing_is_lost() -> None:
    made = way(*[(0.5, 0.5)] * 1000)
    assert len(made.windows) <= 60 and sum(window[1] for window in made.windows) == 998
    assert sum(window[2] for window in made.windows) == 499 * SECOND
    assert [window[0] for window in made.windows] == sorted(window[0] for window in made.windows)


def test_what_a_node_takes_is_what_those_below_it_do_not() -> None:
    found = nodes.looked(
        [
            Event(1, "Iterator::Model", "Model", 0, 100),
            Event(1, "Iterator::Map", "Model::Map", 10, 80),
            Event(1, "Iterator::Range", "Model::Map::Range", 20, 30),
            Event(1, "MatMul", "", 60, 20),
            Event(2, "Iterator::Range", "Model::Map::Range", 0, 5),
            Event(1, "Iterator::Model", "Model", 200, 10),
            # of a dataset inside of the map's function
            Event(3, "Iterator::SingleElementIterator", "SingleElementIterator", 0, 500),
        ]
    )
    assert found.wait == 110 and found.draws == 2
    assert found.own == {"Model": 30, "Model::Map": 50, "Model::Map::Range": 35}
    assert found.calls == {"Model": 2, "Model::Map": 1, "Model::Map::Range": 2}


def varint(value: int) -> bytes:
    parts = []
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*parts, value])


def field(number: int, value: int | bytes) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


@pytest.mark.parametrize("key", [b"long_name", b"long name"], ids=["2.x", "1.15"])
def test_a_trace_is_read_in_each_versions_words(key: bytes) -> None:
    args = field(11, field(1, key) + field(2, b"Iterator::Model::Map"))
    inner = field(2, 7) + field(3, b"Map\xff") + field(9, 5_000_000) + field(10, 2_000_000) + args
    outer = field(2, 7) + field(3, b"Iterator::Model") + field(9, 4_000_000) + field(10, 9_000_000)
    found = tracing.events(field(4, outer) + field(4, inner))
    assert [(one.thread, one.path, one.began, one.took) for one in found] == [
        (7, "Model", 4000, 9000),
        (7, "Model::Map", 5000, 2000),
    ]


@pytest.fixture
def clocks() -> Iterator[meter.Meter]:
    yield from _clocks(0)


@pytest.fixture
def asked() -> Iterator[meter.Meter]:
    """Clocks of a task of which the user wants steps to be looked at."""
    yield from _clocks(4)


def _clocks(steps: int) -> Iterator[meter.Meter]:
    made = timing.enter(steps)
    made.begin()
    yield made
    made.lines.stop()
    made.lines._thread.join()
    timing.off(RuntimeError("the test is over"))


def looks_of(clocks: meter.Meter) -> looks.Looks:
    """Its looks, as if TensorFlow were there."""
    assert clocks.looks is not None
    clocks.looks.may = True
    return clocks.looks


def test_plain_batches_are_timed(clocks: meter.Meter) -> None:
    assert list(timing.batches(iter([[1, 2], [3]]), len)) == [[1, 2], [3]]
    told = clocks.record()
    assert (told["by"], told["batches"], told["rows"], told["known"]) == ("batches", 2, 3, True)


def test_what_is_spent_within_something_else_counts_once(clocks: meter.Meter) -> None:
    with timing.spending("checkpoint"), timing.spending("report"):
        pass
    assert list(clocks.record()["spent"]) == ["checkpoint"]


@pytest.mark.parametrize("named", ["batches", "dataset"])
def test_what_is_spent_until_the_first_step_has_ended_is_told_apart(clocks: meter.Meter, named: str) -> None:
    def read() -> None:
        if named == "batches":
            next(drawn)
        else:
            way = clocks.way("dataset")
            assert way is not None
            way.drew(meter.clock(), meter.clock(), 1)
            clocks.after(way, meter.clock())

    drawn = timing.batches(iter([[1], [2], [3]]), len)
    clocks.add("checkpoint", 5)
    for _ in range(3):
        read()
        clocks.add("summary", 7)
    told = clocks.record()
    assert told["times"] == {"checkpoint": 1, "summary": 3} and told["early_times"] == {"checkpoint": 1, "summary": 1}
    assert told["early"] == {"checkpoint": pytest.approx(5e-9), "summary": pytest.approx(7e-9)}


def test_a_script_that_raises_is_none_of_the_doctors_business(clocks: meter.Meter) -> None:
    def broken() -> Iterator[Any]:
        yield [1]
        raise KeyError("the script's own")

    with pytest.raises(KeyError, match="own"):
        list(timing.batches(broken(), len))
    with pytest.raises(KeyError), timing.spending("output"):
        raise KeyError
    assert clocks.record()["batches"] == 1


def test_no_profiler_is_ever_started_that_nobody_asked_for(clocks: meter.Meter, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has ended a worker."""
    started: list[int] = []
    monkeypatch.setattr(tracing, "Trace", lambda: started.append(1))
    now = [0]
    monkeypatch.setattr(meter, "clock", lambda: now[0])
    for name in ("dataset", "function", "session"):
        made = clocks.way(name)
        assert made is not None
        for _ in range(200):
            began = clocks.before(made, 1)
            now[0] += SECOND
            made.drew(began, now[0])
            clocks.after(made, now[0])
    assert clocks.looks is None and started == [] and clocks.record()["nodes"] == []


def test_it_is_known_how_long_the_first_pass_waited(clocks: meter.Meter) -> None:
    way = clocks.way("dataset")
    assert way is not None
    clocks.pipelines = [{"nodes": [], "passes": 1}]
    clocks.pass_done(0)
    assert clocks.pipelines[0].pop("filled") == 0
    now = 0
    for epoch, seconds in enumerate((3, 1)):
        clocks.draws_from(epoch, 0)
        if epoch:
            clocks.pass_done(0)
        for _ in range(4):
            now = clocks.before(way, epoch)
            way.drew(now, now + seconds * 10**9)
    told = clocks.record()["pipelines"][0]
    assert (told["filled"], told["waited"]) == (9.0, 13.0)


def test_it_is_known_which_pipeline_a_loop_waits_for(clocks: meter.Meter) -> None:
    """Training and validation, each epoch with iterators of its own."""
    clocks.pipelines = [{"nodes": [], "passes": 2}, {"nodes": [], "passes": 2}]
    made = clocks.way("dataset")
    assert made is not None
    for epoch in range(2):
        for pipeline_of, seconds in ((0, 1), (1, 3)):
            iterator = 10 * epoch + pipeline_of
            clocks.draws_from(iterator, pipeline_of)
            for _ in range(5):
                clocks.before(made, iterator)
                made.drew(0, seconds * SECOND)
    # without the first step of all
    assert [one["waited"] for one in clocks.record()["pipelines"]] == pytest.approx([9.0, 30.0])


def test_a_look_that_fails_is_none(asked: meter.Meter, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_trace() -> None:
        raise RuntimeError("another profiler is running")

    monkeypatch.setattr(tracing, "Trace", no_trace)
    looks_of(asked)
    made = asked.way("dataset")
    assert made is not None
    for _ in range(10):
        began = asked.before(made)
        made.drew(began, began)
        asked.after(made, began)
    assert "another profiler" in asked.failed and asked.record()["looked"] == 0


def test_a_look_ends_after_its_steps(asked: meter.Meter, monkeypatch: pytest.MonkeyPatch) -> None:
    stopped: list[int] = []

    class Trace:
        size = 0

        def stop(self, most: Any = None) -> list[Event]:
            stopped.append(1)
            return [Event(1, "Iterator::Model", "Model", 0, 1000), Event(1, "Iterator::Map", "Model::Map", 0, 900)]

    monkeypatch.setattr(tracing, "Trace", Trace)
    taken = looks_of(asked)
    made = asked.way("function")
    assert made is not None
    for _ in range(20):
        began = asked.before(made)
        made.drew(began, began + 1000)
        asked.after(made, began + 1000)
        taken._due = meter.clock() + SECOND * 60
    told = asked.record()
    assert stopped == [1] and told["known"] and {one["path"] for one in told["nodes"]} == {"Model", "Model::Map"}


def _looked_by(
    asked: meter.Meter, monkeypatch: pytest.MonkeyPatch, steps: int, made: int, step_bytes: int
) -> tuple[Any, list[int]]:
    """The record of a script whose function is called so often, and what each trace had of steps. Args: steps: that were asked for; made: calls;
    step_bytes: of the trace of one."""
    seen: list[int] = []

    class Trace:
        size = 0

        def stop(self, most: Any = None) -> list[Event] | None:
            seen.append(taken._calls)
            self.size = taken._calls * step_bytes
            return [Event(1, "Iterator::Root", "Root", 0, 1000)] if self.size <= (most or tracing.MOST_BYTES) else None

    monkeypatch.setattr(tracing, "Trace", Trace)
    taken = looks_of(asked)
    taken._steps = steps
    way = asked.way("function")
    assert way is not None
    for _ in range(made):
        began = asked.before(way)
        way.drew(began, began + 1000)
        asked.after(way, began + 1000)
        taken._due = meter.clock() + SECOND * 60
    return asked.record(), seen


@pytest.mark.parametrize("steps", [400, 1000])
def test_a_look_at_more_steps_than_one_trace_holds_is_several(
    steps: int, asked: meter.Meter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keras fit over rows of a dataset has 48 KB for a step: of 400 there were 19 MB, which nobody reads, eight times over."""
    told, seen = _looked_by(asked, monkeypatch, steps, 2520, 48_000)
    assert told["looked"] == steps and told["known"] and not told["hindered"]
    assert sum(seen) == steps and seen[0] == 20 and max(seen) * 48_000 <= tracing.MOST_BYTES // 2


def test_steps_whose_trace_is_too_long_are_looked_at_fewer_at_a_time(
    asked: meter.Meter, monkeypatch: pytest.MonkeyPatch
) -> None:
    told, seen = _looked_by(asked, monkeypatch, 20, 200, 2 << 20)
    assert seen[:3] == [20, 4, 4] and told["looked"] == 20


@pytest.mark.parametrize("made, step_bytes, why", [(100, 20 << 20, "large"), (3, 1000, "few"), (0, 1000, "few")])
def test_it_is_known_why_no_steps_could_be_looked_at(
    made: int, step_bytes: int, why: str, asked: meter.Meter, monkeypatch: pytest.MonkeyPatch
) -> None:
    told, _ = _looked_by(asked, monkeypatch, 20, made, step_bytes)
    assert (told["looked"], told["hindered"]) == (0, why)


def test_what_a_look_has_seen_counts_when_it_ends_too_soon(asked: meter.Meter, monkeypatch: pytest.MonkeyPatch) -> None:
    """It lasts too long, the script starts a profiler of its own, or the script ends."""
    told, seen = _looked_by(asked, monkeypatch, 20, 13, 1000)
    assert seen == [10] and told["looked"] == 10 and told["known"]


def test_what_the_script_reads_after_the_last_step_of_a_look_is_none_of_it(
    asked: meter.Meter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keras fit has ended, its look has not, and the script goes on with a loop of its own, which waits for a second each time."""
    now = [0]
    for module in (meter, looks):
        monkeypatch.setattr(module, "clock", lambda: now[0])

    class Trace:
        size = 0

        def stop(self, most: Any = None) -> list[Event]:
            fit = [Event(1, "Iterator::Root", "Root", 50 + place * 1000, 100) for place in range(taken._calls)]
            waits = [Event(1, "Iterator::Root", "Root", 90_000 + place * SECOND, SECOND) for place in range(3)]
            # what makes batches ahead has begun before
            return [*fit, *waits, Event(2, "Iterator::Map", "Root::Map", 1050, 5 * SECOND)]

    monkeypatch.setattr(tracing, "Trace", Trace)
    taken = looks_of(asked)
    taken._began, taken._steps = 0, 100
    fit, loop = asked.way("function"), asked.way("dataset")
    assert fit is not None and loop is not None
    for made, count, took in ((fit, 13, 1000), (loop, 3, SECOND)):
        for _ in range(count):
            began = asked.before(made)
            now[0] += took
            made.drew(began, now[0])
            asked.after(made, now[0])
    assert not taken.running and fit.looked == 10 and fit.part.look_wait == 1000 and fit.part.look_ns == 10_000
    assert fit.part.nodes[None, "Root::Map"] == [9000, 1]


def test_a_call_that_takes_longer_than_a_look_may_is_why_there_is_none(
    asked: meter.Meter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tracing, "Trace", lambda: types.SimpleNamespace(stop=lambda most=None: [], size=0))
    taken = looks_of(asked)
    way = asked.way("function")
    assert way is not None
    for _ in range(4):
        began = asked.before(way)
        if taken.running:
            taken._late()
        way.drew(began, began + 1000)
        asked.after(way, began + 1000)
    assert not taken.running and asked.record()["hindered"] == "long"


def test_a_look_ends_before_a_server_starts_and_there_is_none_beside_it(
    asked: meter.Meter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TensorFlow's profiler ends processes in which one runs."""
    done: list[str] = []

    class Server:
        def __init__(self) -> None:
            done.append("server")

    class Context:
        def enable_collective_ops(self, server_def: Any) -> None:
            done.append("collectives")

    for name, module in (
        (tracing._V2, types.SimpleNamespace(ProfilerSession=lambda: done.append("profiler"))),
        ("tensorflow.python.training.server_lib", types.SimpleNamespace(Server=Server)),
        ("tensorflow.python.eager.context", types.SimpleNamespace(Context=Context)),
    ):
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(tracing, "_known", {})
    taken = looks_of(asked)
    tracing.give_way(taken.give_up, taken.serve)
    for start in (sys.modules[tracing._V2].ProfilerSession, lambda: Context().enable_collective_ops(None), Server):
        assert not taken.served or not taken.may
        monkeypatch.setattr(taken, "_trace", types.SimpleNamespace(stop=lambda most=None: done.append("look ends"), size=0))
        start()
    assert done == ["look ends", "profiler", "look ends", "collectives", "look ends", "server"]
    assert asked.record()["served"] and not taken.may


def test_cores_that_idle_are_counted() -> None:
    assert meter.idle((100, 1000), (150, 1100)) == pytest.approx(min(meter.cores(), 0.5 * (os.cpu_count() or 1)))
    assert meter.idle(None, (1, 1)) is None and meter.idle((1, 1), (1, 1)) is None


def test_what_comes_from_a_disk_is_counted_where_the_system_says_so(clocks: meter.Meter) -> None:
    told = clocks.record()
    assert (told["disk"] is None) == (meter.read() is None) and told["cards"] in (True, False, None)
    assert meter.Meter().record()["disk"] is None


def test_what_a_disk_gave_before_the_first_step_is_tensorflows(clocks: meter.Meter, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its files, where they were not in memory yet."""
    monkeypatch.setattr(meter, "read", iter([100, 700, 750]).__next__)
    clocks.begin()
    way = clocks.way("dataset")
    assert way is not None
    for _ in range(2):
        began = clocks.before(way)
        way.drew(began, meter.clock(), None)
        clocks.after(way, meter.clock())
    assert clocks.record()["disk"] == 50


def test_whose_code_a_line_has_called() -> None:
    assert lines.package("/venv/lib/python3.11/site-packages/pandas/core/frame.py") == "pandas"
    assert lines.package("/venv/lib/python3.11/site-packages/six.py") == "six"
    assert lines.package("/usr/lib/python3.11/json/decoder.py") == ""
    assert [lines.package(module.__file__) for module in (queue, threading, json)] == ["queue", "threading", ""]


def test_the_line_the_script_is_at_is_found() -> None:
    seen = lines.Lines(False)
    seen._look(True, sys._getframe())
    ((main, at, name),) = seen.seen
    assert main and at.rpartition(":")[0] == __file__ and name == ""


@pytest.mark.parametrize(
    "name",
    [
        shown.MAIN,
        shown.OURS + "worker/main.py",
        runpy.__file__,
        "<frozen runpy>",
        os.path.join(os.path.dirname(np.__file__), "x.py"),
    ],
)
def test_what_runs_the_script_is_none_of_its_lines(name: str) -> None:
    """Where the script has ended, or has not begun, Python is in the zip's `__main__`."""
    assert not pipeline.is_script(name) and pipeline.is_script("/home/me/__main__.py")


def test_looks_end_with_the_script(monkeypatch: pytest.MonkeyPatch) -> None:
    looking = lines.Lines(False)
    looking.stop()
    watched = looking.watched()
    time.sleep(0.01)
    assert looking.watched() == watched


@pytest.mark.parametrize(
    "holder, name, left",
    [
        ("", "", ["maps", "ahead"]),
        ("autotune", "enabled", []),
        ("experimental_optimization", "apply_default_optimizations", []),
        ("experimental_optimization", "map_parallelization", ["ahead"]),
        ("experimental_optimization", "inject_prefetch", ["maps"]),
    ],
)
def test_a_datasets_own_options_say_what_tensorflow_may_do_by_itself(holder: str, name: str, left: list[str]) -> None:
    options = types.SimpleNamespace(autotune=types.SimpleNamespace(), experimental_optimization=types.SimpleNamespace())
    if holder:
        setattr(getattr(options, holder), name, False)
    assert pipeline.left_on(types.SimpleNamespace(_options_attr=options)) == left
    assert pipeline.left_on(object()) == ["maps", "ahead"]


def test_nothing_of_the_script_is_kept_by_a_look() -> None:
    """What a function has is to go when it returns."""

    class Held:
        pass

    looks = lines.Lines(False)
    asked, looked = threading.Event(), threading.Event()

    def look() -> None:
        asked.wait(60)
        looks._look_around()
        looked.set()
        done.wait(60)

    def has_something() -> weakref.ref[Held]:
        held = Held()
        asked.set()
        assert looked.wait(60)
        return weakref.ref(held)

    done = threading.Event()
    thread = threading.Thread(target=look)
    thread.start()
    try:
        assert has_something()() is None and looks.seen
    finally:
        done.set()
        thread.join()


def test_pythons_own_switching_between_threads_is_put_back() -> None:
    before = sys.getswitchinterval()
    often = lines.Lines(True)
    often.start()
    # for each look
    while sys.getswitchinterval() >= before:
        assert often._thread.is_alive()
    often.stop()
    often._thread.join()
    assert sys.getswitchinterval() == before


@pytest.mark.parametrize("often", [True, False])
def test_a_look_is_not_where_the_lock_came_free(often: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A step that calls TensorFlow lets the lock go: with the first that comes free nearly all looks met it, and the pandas before it had none."""
    seen = lines.Lines(often)
    told: list[tuple[float, float]] = []

    class Stopped:
        def wait(self, seconds: float) -> bool:
            told.append((seconds, sys.getswitchinterval()))
            return len(told) > 6

    def look() -> None:
        told.append((0.0, sys.getswitchinterval()))

    monkeypatch.setattr(seen, "_stopped", Stopped())
    monkeypatch.setattr(seen, "_look_around", look)
    seen._run()
    apart, moment, looked = told[:3]
    assert moment[0] <= 2 * lines._MOMENT < apart[0] and looked[0] == 0.0
    assert moment[1] == looked[1] == pytest.approx(lines._SOON) and apart[1] == sys.getswitchinterval()


def test_what_lies_below_our_clocks_is_whose_the_line_is_in() -> None:
    """A call of TensorFlow's goes through them."""
    seen = lines.Lines(False)
    frames = [sys._getframe().f_code.co_filename, shown.NAME, "/v/site-packages/tensorflow/python/x.py"]
    made: Any = None
    for name in frames:
        made = types.SimpleNamespace(f_code=types.SimpleNamespace(co_filename=name, co_name="f"), f_lineno=7, f_back=made)
    seen._look(True, made)
    assert [(main, name) for main, _, name in seen.seen] == [(True, "tensorflow")]


def _frames(*some: tuple[str, str]) -> Any:
    """Return the innermost of frames. Args: some: (file, function) of each, the outermost first."""
    made: Any = None
    for path, name in some:
        made = types.SimpleNamespace(f_code=types.SimpleNamespace(co_filename=path, co_name=name), f_lineno=1, f_back=made)
    return made


@pytest.mark.parametrize(
    "clock", [(shown.NAME, "draw"), (os.path.join(pipeline.HERE, "timing.py"), "batches")], ids=["dataset", "batches"]
)
def test_a_line_that_is_in_next_is_the_head_of_a_loop(clock: tuple[str, str], tmp_path: Any) -> None:
    """A comprehension over a dataset stood in `print(...)`, and printing was blamed for the waiting."""
    (tmp_path / "s.py").write_text("print(sum(int(y.shape[0]) for x, y in images))\n", "utf-8")
    seen, script = lines.Lines(False), (f"{tmp_path}/s.py", "<genexpr>")
    seen._look(True, _frames(script, clock, ("/v/site-packages/tensorflow/python/x.py", "f")))
    seen._look(True, _frames(script))
    assert sorted((line["in"], line["does"]) for line in seen.record()) == [("", "prints"), ("tensorflow", "loops")]


TF = "/v/site-packages/tensorflow/python/"
MAP = [(TF + "data/ops/dataset_ops.py", "map"), (TF + "data/ops/map_op.py", "_map_v2"), (TF + "data/ops/map_op.py", "__init__")]
UNBATCH = [(TF + "data/ops/unbatch_op.py", "_unbatch"), (TF + "data/ops/unbatch_op.py", "normalize_to_dense"), *MAP]


@pytest.mark.parametrize(
    "above, by",
    [
        (MAP, ""),
        ([(TF + "util/deprecation.py", "new_func"), *MAP], ""),
        ([(TF + "data/ops/dataset_ops.py", "unbatch"), *UNBATCH], "unbatch"),
        # 1.15, and tf.data.experimental.unbatch()
        (
            [(TF + "data/ops/dataset_ops.py", "apply"), (TF + "data/experimental/ops/batching.py", "_apply_fn"), *UNBATCH],
            "unbatch",
        ),
        # a map that is made without a call of `map`
        ([(TF + "data/experimental/ops/readers.py", "make_csv_dataset_v2"), MAP[-1]], "make_csv_dataset_v2"),
        # the function of an interleave, as AutoGraph has written it
        ([(TF + "data/ops/dataset_ops.py", "interleave"), ("/tmp/__autograph_x.py", "tf__f"), *MAP], ""),
        ([("/v/site-packages/keras/src/trainers/trainer.py", "fit"), *MAP], "fit"),
        # another library's pipeline is its own
        ([("/v/site-packages/other/x.py", "load"), *MAP], ""),
    ],
)
def test_whose_a_map_is(above: list[tuple[str, str]], by: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """`unbatch` makes a plain map, which was taken for the script's."""
    monkeypatch.setitem(pipeline._here, "tensorflow", TF)
    monkeypatch.setattr(sys, "_getframe", lambda _: _frames(("/me/train.py", "main"), *above))
    assert pipeline.made_by() == by


def test_a_map_remembers_who_made_it(clocks: meter.Meter, monkeypatch: pytest.MonkeyPatch) -> None:
    class MapDataset:
        pass

    class BatchDataset:
        pass

    monkeypatch.setattr(pipeline, "made_by", lambda above: "unbatch")
    made = [MapDataset(), BatchDataset()]
    for dataset in made:
        pipeline._remember(clocks, dataset)
    assert [pipeline.described(dataset).get("made_by") for dataset in made] == ["unbatch", None]


@pytest.mark.parametrize("kind, ours", [("PyFunc", None), ("Mul", True)])
def test_python_in_a_map_that_task_config_made_is_the_scripts(kind: str, ours: bool | None) -> None:
    """It was given by map=."""

    class ParallelMapDataset:
        def __init__(self) -> None:
            operation = types.SimpleNamespace(type=kind, op_def=types.SimpleNamespace(is_stateful=False))
            graph = types.SimpleNamespace(get_operations=lambda: [operation])
            self._map_func = types.SimpleNamespace(function=types.SimpleNamespace(graph=graph))

    dataset = ParallelMapDataset()
    vars(dataset)[pipeline._AT] = ("/me/train.py:7", True)
    told = pipeline.described(dataset)
    assert (told["node"], told["at"], told.get("ours")) == ("ParallelMap", "/me/train.py:7", ours)
    # each number once is little; Python may do anything
    assert told.get("light") == ours


def test_what_a_repeat_has_below_it_is_one_node() -> None:
    events = [Event(1, "Iterator::T", f"Model::Map::Repeat[{i}]::Tensor", 10 * i, 5) for i in range(100)]
    assert list(nodes.looked(events).own) == ["Model::Map::Repeat[0]::Tensor"]


def test_a_trace_of_another_kind_is_no_trace() -> None:
    with pytest.raises(Exception, match="parsing|Error|wire|truncated"):
        tracing.events(struct.pack("<I", 0xFFFFFFFF))


def test_of_functions_that_are_handed_their_input_only_the_time_is_known(clocks: meter.Meter) -> None:
    for name, calls in (("call", 10), ("batches", 3)):
        made = clocks.way(name)
        assert made is not None and not clocks.reads
        for step in range(calls):
            made.drew(step * SECOND, step * SECOND + SECOND // 4)
        told = clocks.record()
        assert told["by"] == name and told["calls"] == {"calls": 10, "inside": 2.25, "outside": 6.0}
        assert name == "batches" or (not told["known"] and told["wait"] == 0 and told["between"] == 8.25)


def test_what_was_asked_for_is_looked_at_first_and_then_a_few_now_and_then(
    asked: meter.Meter, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Trace:
        size = 0

        def stop(self, most: Any = None) -> list[Event]:
            return [Event(1, "Iterator::Model", "Model", 0, 1000)]

    monkeypatch.setattr(tracing, "Trace", Trace)
    taken = looks_of(asked)
    taken._steps = 7
    made = asked.way("dataset")
    assert made is not None
    for _ in range(40):
        taken._due = 1
        began = asked.before(made)
        made.drew(began, began + 1000)
        asked.after(made, began + 1000)
    # after three steps seven, then four at a time
    assert made.looked == 7 + 4 * 7


def test_python_that_waits_is_told_from_python_that_computes(monkeypatch: pytest.MonkeyPatch) -> None:
    class Registry:
        def __call__(self, what: Any) -> Any:
            return what()

    module = types.SimpleNamespace(FuncRegistry=Registry)
    monkeypatch.setitem(sys.modules, "tensorflow.python.ops.script_ops", module)
    ticks, computed = iter([0, 5 * SECOND, 5 * SECOND, 6 * SECOND]), iter([0, SECOND, SECOND, SECOND])
    monkeypatch.setattr(python, "_clock", lambda: next(ticks))
    monkeypatch.setattr(python, "_computed", lambda: next(computed))
    calls = python.Calls()
    python.install(calls)
    assert Registry()(lambda: 7) == 7
    with pytest.raises(ZeroDivisionError) as raised:
        Registry()(lambda: 1 // 0)
    assert calls.record() == {"calls": 2, "wall": 6.0, "computed": 1.0}
    assert [entry.name for entry in raised.traceback if str(entry.path) == shown.NAME or shown.NAME in str(entry.path)] == [
        "call"
    ]


def test_a_scripts_traceback_has_one_line_of_ours_and_it_says_why(clocks: meter.Meter) -> None:
    def real() -> None:
        raise KeyError("the script's own")

    def outer() -> None:
        try:
            inner()
        except KeyError as e:
            raise shown.cut(e)

    def inner() -> None:
        real()

    shown.named(inner)
    with pytest.raises(KeyError) as raised:
        shown.named(outer)()
    text = "".join(traceback.format_exception(raised.type, raised.value, raised.tb))
    assert text.count("akrunner: how long the script waits for its input") == 1 and "in real" in text
    assert raised.value.__context__ is None


def test_a_traceback_within_an_errors_message_has_no_line_of_ours() -> None:
    """TensorFlow's error of a generator that raised has one, and its call went through our clock."""
    before = "ValueError: bad row 150\nTraceback (most recent call last):\n\n"
    clock = f'  File "{shown.NAME}", line 49, in call\n\n'
    data = f'  File "{shown.OURS}worker/data.py", line 9, in rows\n    yield row\n          ^^^\n\n'
    after = (
        '  File "/env/script_ops.py", line 269, in __call__\n    ret = func(*args)\n          ^^^^\n\nValueError: bad row 150\n'
    )
    assert shown.left_out(before + clock + after + data) == before + after
    assert shown.left_out(f"{shown.NAME} was seen") == f"{shown.NAME} was seen"

    class Raised(Exception):
        def __str__(self) -> str:
            return before + clock + after

    error = Raised()
    assert shown.NAME not in script.format_failure(error, {}, shown.OURS)


class Hostile:
    """Of whatever is asked of it, it raises."""

    def __getattribute__(self, name: str) -> Any:
        if name == "__class__":
            return object.__getattribute__(self, name)
        raise RuntimeError("of " + name)

    def __len__(self) -> int:
        raise RuntimeError("of len")

    def __bool__(self) -> bool:
        raise RuntimeError("of bool")

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("of eq")

    def __hash__(self) -> int:
        raise RuntimeError("of hash")

    def __str__(self) -> str:
        raise RuntimeError("of str")


class Unnamed(type):
    """Of classes that are no keys."""

    def __hash__(self) -> int:
        raise RuntimeError("of hash")


HOSTILE: list[Any] = [Hostile(), [Hostile()], [], (), {}, None, [types.SimpleNamespace(_shape_tuple=lambda: (None, 3))], 7]


@pytest.mark.parametrize("drawn", HOSTILE, ids=map(str, range(len(HOSTILE))))
def test_what_is_drawn_is_given_on_whatever_it_is(drawn: Any, clocks: meter.Meter) -> None:
    way = clocks.way("dataset")
    assert way is not None and hooks._rows_at(0, drawn) == 1
    for _ in range(5):
        assert timing.timed(clocks, "dataset", None, lambda: drawn, (), {}, hooks._rows) is drawn
    given = list(timing.batches(iter([drawn] * 3), len))
    assert len(given) == 3 and all(one is drawn for one in given)
    assert clocks.record()["main"] >= 0


def test_what_a_graph_is_that_draws_is_no_matter(clocks: meter.Meter) -> None:
    for graph in (None, Hostile(), types.SimpleNamespace(outer_graph=types.SimpleNamespace(), name=Hostile())):
        hooks._will_draw(types.SimpleNamespace(get_default_graph=lambda graph=graph: graph))
        assert not clocks.hidden


def test_a_function_that_draws_by_itself_is_known(clocks: meter.Meter) -> None:
    class Graph:
        def __init__(self, name: str, outer: Any) -> None:
            self.name, self.outer_graph = name, outer

    hooks._drawn_within(Graph("Dataset_map_work_3", Graph("train_step", Graph("", None))))
    hooks._drawn_within(Graph("", None))
    assert not clocks.hidden
    hooks._drawn_within(Graph("while_body", Graph("epoch", None)))
    assert clocks.hidden and clocks.record()["hidden"]


def test_what_a_script_hands_over_is_not_asked_what_it_does_not_have(clocks: meter.Meter) -> None:
    odd = Unnamed("Odd", (), {})
    assert not hooks._handed_one((odd(), Hostile(), 7))
    assert hooks._way_of_run(clocks, Hostile(), (Hostile(), {}), {}) is None
    assert hooks._way_of_run(clocks, Hostile(), (), {"feed_dict": {1: 2}}) is None
    assert hooks._way_of_call(Hostile(), (1,)) is None and timing.running() is None
    assert clocks.failed == "RuntimeError: of _session"


def test_no_dataset_is_refused_for_what_it_is(clocks: meter.Meter) -> None:
    class Bare:
        __slots__ = ()

    round_and_round: Any = type("DatasetV1Adapter", (), {})()
    round_and_round._dataset = round_and_round
    for dataset in (Bare(), Hostile(), round_and_round):
        pipeline._remember(clocks, dataset)
        pipeline.tell(clocks, dataset)
        pipeline._keep_inner(clocks, dataset)
    clocks.say_failed(type("Wordless", (Exception,), {"__str__": lambda self: 1 // 0})())
    assert clocks.failed == "Wordless"


def test_an_error_that_makes_its_own_tracebacks_stays_the_scripts() -> None:
    class Own(Exception):
        def with_traceback(self, tb: Any) -> Any:
            raise RuntimeError("not by me")

    made = Own()
    assert shown.cut(made) is made


def test_a_meter_that_is_switched_off_leaves_no_trace_running(asked: meter.Meter, monkeypatch: pytest.MonkeyPatch) -> None:
    stopped: list[int] = []
    looks_of(asked)._trace = types.SimpleNamespace(stop=lambda most=None: stopped.append(1), size=0)
    timing.off(RuntimeError("of ours"))
    assert stopped == [1] and timing.running() is None and asked.failed == "RuntimeError: of ours"


def test_a_record_that_cannot_be_made_is_one_of_a_script_that_did_nothing(clocks: meter.Meter) -> None:
    broken: Any = Hostile()
    clocks.ways["dataset"] = broken
    told = clocks.record()
    assert told["by"] == "" and "of " in clocks.failed


def test_training_and_validation_are_weighed_apart(asked: meter.Meter, monkeypatch: pytest.MonkeyPatch) -> None:
    now, waits = [0], [0]
    for module in (meter, looks):
        monkeypatch.setattr(module, "clock", lambda: now[0])

    class Trace:
        size = 0

        def stop(self, most: Any = None) -> list[Event]:
            took = waits[0] * taken._calls
            return [Event(1, "Iterator::Root", "Root", 0, took), Event(1, "Iterator::Map", "Root::Map", 0, took)]

    monkeypatch.setattr(tracing, "Trace", Trace)
    taken = looks_of(asked)
    taken._began = asked._began = 0
    made = asked.way("function")
    assert made is not None

    def steps(count: int, of: int, seconds: float, wait: float) -> None:
        for _ in range(count):
            began = asked.before(made, of)
            now[0] += int(seconds * SECOND)
            waits[0] = int(wait * SECOND)
            made.drew(began, now[0])
            asked.after(made, now[0])

    for _ in range(4):
        steps(50, 1, 0.1, 0.0)
        steps(50, 2, 0.3, 0.27)
    told = asked.record()
    assert told["known"] and told["unlooked"] == 0
    # a minute of validation, nine tenths of it waiting; twenty seconds of training, which does not wait
    assert told["wait"] / (told["wait"] + told["between"]) == pytest.approx(0.675, abs=0.02)
    assert {node["path"] for node in told["nodes"]} == {"Root", "Root::Map"}
    taken.may = False
    steps(200, 3, 0.4, 0.4)
    told = asked.record()
    # what nobody has looked at: without the first step
    assert told["unlooked"] == pytest.approx(199 * 0.4) and wait_share(told) < 0.5
    assert bound({"chief:0": told}, 0.0, 200.0) == "unknown"


def test_of_several_pipelines_each_is_looked_at_and_it_is_known_which(
    asked: meter.Meter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without that, all that was looked at is the training, and the validation is what the loop waits for."""

    class Trace:
        size = 0

        def stop(self, most: Any = None) -> list[Event]:
            return [Event(1, "Iterator::Root", "Root", 0, 1000), Event(1, "Iterator::Map", "Root::Map", 0, 1000)]

    monkeypatch.setattr(tracing, "Trace", Trace)
    looks_of(asked)._steps = 10

    def steps(way: ways.Way, count: int, of: int, *iterators: int) -> None:
        for number in range(count):
            of = iterators[number % len(iterators)] if way.name == "dataset" else of
            began = asked.before(way, of, None if way.name == "dataset" else iterators[0])
            way.drew(began, began + 1000)
            asked.after(way, began + 1000)

    asked.pipelines = [{"nodes": [], "passes": 1}, {"nodes": [], "passes": 1}]
    asked.draws_from(11, 0)
    asked.draws_from(12, 1)
    loop, fit, both = (ways.Way(name, 0) for name in ("dataset", "function", "dataset"))
    steps(loop, 20, 0, 11)
    steps(loop, 20, 0, 12)
    assert {of for of, _ in loop.part.nodes} == {0, 1} and loop.part.looked_of == {0: 10, 1: 10}
    steps(fit, 20, 1, 11)
    steps(fit, 20, 2, 12)
    assert [{of for of, _ in part.nodes} for part in fit.parts.values() if part.looked] == [{0}, {1}]
    assert set(ways.waited(fit, list(fit.parts.values()))) == {0, 1}
    # a loop over both at once
    steps(both, 40, 0, 11, 12)
    assert {of for of, _ in both.part.nodes} == {None} and both.part.looked == 10


def test_lines_before_the_first_step_and_of_imports_do_not_count(clocks: meter.Meter) -> None:
    clocks.lines.stop()
    clocks.lines.seen, clocks.lines.looks = {(True, "train.py:5", "tensorflow"): 90}, 90
    made = clocks.way("dataset")
    assert made is not None
    for _ in range(2):
        made.drew(0, 1)
        clocks.after(made, 1)
        if made.calls == 1:
            assert clocks.lines.looks == 0
            clocks.lines.looks, clocks.lines.seen = 10, {(True, "train.py:9", ""): 10}
    assert [line["at"] for line in clocks.lines.record()] == ["train.py:9"]
    importing: Any = None
    for name in (__file__, "<frozen importlib._bootstrap>", "/v/site-packages/tensorflow/__init__.py"):
        importing = types.SimpleNamespace(
            f_code=types.SimpleNamespace(co_filename=name, co_name="f"), f_lineno=7, f_back=importing
        )
    clocks.lines._look(True, importing)
    assert clocks.lines.looks == 9 and len(clocks.lines.seen) == 1


def test_a_thread_that_reads_is_told_from_the_main_one(clocks: meter.Meter) -> None:
    def read() -> None:
        made = clocks.way("dataset")
        assert made is not None
        for step in range(10):
            made.drew(step * SECOND, (step + 1) * SECOND - 1)

    thread = threading.Thread(target=read)
    thread.start()
    thread.join()
    told = clocks.record()
    assert told["elsewhere"] and wait_share(told) == 0 and bound({"chief:0": told}, 0.0, 10.0) == "unknown"
    assert any("another thread" in words for words in verdict({"inputs": {"chief:0": {**told, "main": 10.0}}}))


def test_what_computes_is_weighed_by_the_processors_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look needs Python's lock, which comes free where a thread waits: of 100 looks 90 met a sleep that takes 60% of the time."""
    looking = lines.Lines(True)
    if looking._clock is None:
        assert looking._weighed() == {}
        return
    sleeps, computes, other = (True, "a.py:1", ""), (True, "a.py:2", "pandas"), (False, "b.py:1", "")
    looking.seen = {sleeps: 90, computes: 10, other: 7}
    looking.looks = 100
    looking._computing = {computes: 10}
    looking._began = (time.perf_counter() - 10.0, looking._cpu() - 4.0)
    weighed = looking._weighed()
    assert abs(weighed[computes] - 40) < 1 and abs(weighed[sleeps] - 60) < 1 and weighed[other] == 7
    # where nothing is known of who computes, looks are looks
    looking._computing = {}
    assert looking._weighed() == {key: float(count) for key, count in looking.seen.items()}


def test_what_has_no_core_is_no_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a thread that does not compute, the system says whether it would."""
    looking, there = lines.Lines(True), (True, "a.py:1", "")
    looking._clock, looking.seen = 0, {there: 2}
    monkeypatch.setattr(looking, "_cpu", lambda: 0.0)
    monkeypatch.setattr(lines, "state", lambda tid: ("S", 0.0))
    looking._weigh(there)
    assert looking.record()[0]["computes"] == 0.0
    monkeypatch.setattr(lines, "state", lambda tid: ("R", 0.0))
    looking._weigh(there)
    assert looking.record()[0]["computes"] == 0.5


@pytest.mark.skipif(not sys.platform.startswith("linux") or sys.version_info < (3, 8), reason="nobody says how a thread is")
def test_threads_of_the_script_that_compute_are_told_from_those_that_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    stop = threading.Event()

    def spin() -> None:
        while not stop.is_set():
            sum(range(1000))

    spins, waits = threading.Thread(target=spin), threading.Thread(target=stop.wait)
    monkeypatch.setattr(lines, "_CLOCKS", 0.0)
    looking = lines.Lines(True)
    keys = {(False, "a.py:1", ""): spins, (False, "a.py:2", ""): waits}
    for thread in (spins, waits):
        thread.start()
    try:
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            looking._weigh_others({thread.ident or 0: key for key, thread in keys.items()})
            looks, computed = looking._others.get((False, "a.py:1", ""), [0, 0])
            if looks >= 5 and computed >= 1:
                break
            time.sleep(0.01)
    finally:
        stop.set()
        spins.join()
        waits.join()
    assert looks >= 5 and computed >= 1 and looking._others[False, "a.py:2", ""][1] == 0
    # it has gone
    assert lines.state(2**22 + 1) == ("", 0.0)


def test_summaries_are_timed_apart_and_autograph_leaves_them_alone(
    clocks: meter.Meter, monkeypatch: pytest.MonkeyPatch
) -> None:
    api: Any = types.ModuleType("tensorflow._api.v2.summary")
    api.scalar = lambda name, value: (name, value)
    monkeypatch.setitem(sys.modules, api.__name__, api)
    saves.watch()
    saves.watch()
    assert api.scalar("loss", 1.0) == ("loss", 1.0) and api.scalar.autograph_info__ == {}
    told = clocks.record()
    assert list(told["spent"]) == ["summary"] and told["times"] == {"summary": 1}
    saves._watched.discard((api.__name__, "", "scalar"))


def test_functions_between_the_steps_of_a_loop_are_timed_without_those_of_the_first(clocks: meter.Meter) -> None:
    made = clocks.way("dataset")
    assert made is not None
    assert timing.within(clocks, lambda one: one + 1, (1,), {}) == 2 and clocks.within == 1
    for _ in range(2):
        made.drew(0, 1)
        clocks.after(made, 1)
    assert clocks.record()["within"] == {"calls": 0, "inside": 0.0}
    with timing.spending("checkpoint"):
        timing.within(clocks, int, (), {})
    timing.within(clocks, int, (), {})
    thread = threading.Thread(target=timing.within, args=(clocks, int, (), {}))
    thread.start()
    thread.join()
    assert clocks.record()["within"]["calls"] == 1


def test_batches_that_were_all_read_before_the_first_step_are_no_way_of_reading(clocks: meter.Meter) -> None:
    for name, seconds in (("batches", 0.01), ("call", 1.0)):
        made = clocks.way(name)
        assert made is not None
        for step in range(5):
            made.drew(int(step * seconds * SECOND), int((step + 0.5) * seconds * SECOND))
    assert clocks.record()["by"] == "call"


@pytest.mark.parametrize(
    "line, what",
    [
        ("print(step, loss)  # now and then", "prints"),
        ("blueprint(step)", ""),
        ("x = 1  # print(x)", ""),
        ("example = tf.train.Example.FromString(row)", "records"),
        ("values = example.features.feature['x'].float_list.value", "records"),
        ("one = tf.io.parse_single_example(row, features)", "records"),
        ("rows = [tf.constant(row) for row in some]", "tensors"),
        ("x = tf.constant([float(one) for one in row.split(',')])", "texts"),
        ("log.info('loss %s', loss)", "writes"),
        ("time.sleep(0.1)", "sleeps"),
        ("for batch in dataset:", "loops"),
        ("for one in rows.map(lambda row: tf.io.parse_single_example(row, spec)).batch(4):", "loops"),
        ("for one in [tf.io.parse_single_example(row, spec) for row in rows]:", "records"),
        ("while tf.io.parse_single_example(row, spec):", "records"),
    ],
)
def test_a_line_says_what_it_does(line: str, what: str, tmp_path: Any) -> None:
    (tmp_path / "s.py").write_text(f"#\n{line}\n", "utf-8")
    assert lines.does(f"{tmp_path}/s.py:2") == what and lines.does(f"{tmp_path}/gone.py:2") == "" == lines.does("<stdin>:x")


def test_a_switching_that_the_script_has_set_meanwhile_stays() -> None:
    before = sys.getswitchinterval()
    try:
        with lines._switching(0.001):
            assert abs(sys.getswitchinterval() - 0.001) < 1e-6
        assert sys.getswitchinterval() == before
        # a value of the script's own is not worn away by many looks
        sys.setswitchinterval(0.0002)
        for _ in range(100):
            with lines._switching(0.001), lines._switching(0.00005):
                assert abs(sys.getswitchinterval() - 0.001) < 2e-6
        assert abs(sys.getswitchinterval() - 0.0002) < 1e-9
        with lines._switching(0.001):
            sys.setswitchinterval(0.02)
        assert abs(sys.getswitchinterval() - 0.02) < 1e-6
    finally:
        sys.setswitchinterval(before)


def test_it_is_known_how_many_rows_a_task_was_given(clocks: meter.Meter) -> None:
    clocks.lines.stop()
    assert clocks.record()["given"] is None
    clocks.given = 0
    assert clocks.record()["given"] == 0
