"""When the position of a stream may be stored, and what becomes of a server that goes away."""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from akrunner.errors import ConfigError, JobTimeoutError, ReadError
from akrunner.io.limits import limited
from akrunner.io.streams import arriving as module
from akrunner.io.streams.arriving import Arriving, Mark
from akrunner.io.streams.base import Away

SCHEMA = pa.schema({"id": pa.int64()})


class Source:
    """Attributes: steps: what `take` does, one after the other; then the stream is stopped."""

    schema = SCHEMA
    name = "kafka://b/t"
    ready = True
    ended = False

    def __init__(self, *steps: Any) -> None:
        self.steps = list(steps)
        self.read = self.told = 0
        self.stored: list[Any] = []
        self.away = 0
        self.closed = 0
        self.stop: Callable[[], None] = lambda: None
        self.begun: Any = None

    def begin(self, place: Any) -> None:
        self.begun = place

    def connect(self) -> None:
        pass

    def take(self, seconds: float) -> pa.RecordBatch | None:
        if not self.steps:
            self.stop()
            return None
        step = self.steps.pop(0)
        if isinstance(step, Exception):
            raise step
        if step is None:
            return None
        self.read += step
        return pa.record_batch([pa.array(range(step), pa.int64())], SCHEMA)

    def position(self) -> Any:
        found = self.read if self.read != self.told else None
        self.told = self.read
        return found

    def reached(self) -> Any:
        return {"at": self.read}

    def commit(self, position: Any) -> None:
        if self.away:
            self.away -= 1
            raise Away("kafka://b/t is away (test)")
        self.stored.append(position)

    def close(self) -> None:
        self.closed += 1


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_AGAIN_SECONDS", 0.001)
    # however slow the machine is, marks come only when no rows come
    monkeypatch.setattr(module, "_MARK_SECONDS", 1e9)


def started(source: Source, wait: float = 5.0, tasks: tuple[str, ...] = ("w",)) -> tuple[Arriving, list[int]]:
    one, sent = Arriving(source, wait), []
    source.stop = one.stop
    one.marking(tasks, lambda number, save, place: sent.append(number))
    return one, sent


def test_rows_are_marked_once_they_were_sent_and_none_come() -> None:
    source = Source(2, 3, None, None, 4)
    one, sent = started(source)
    seen = [(batch.num_rows, list(sent)) for batch in one.batches()]
    assert seen == [(2, []), (3, []), (4, [1])] and sent == [1, 2, 3], "the last one is to save at"
    assert one.answered("w", 1) == [Mark(1, 5)] and one.answered("w", 2) == [Mark(2, 9)] and one.answered("w", 2) == []


def test_rows_are_marked_while_they_come_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MARK_SECONDS", 0.0)
    one, sent = started(Source(1, 1, 1))
    assert [list(sent) for _ in one.batches()] == [[], [1], [1, 2]]


def test_a_position_is_ready_when_every_task_has_answered() -> None:
    source = Source(2, None, 3, None)
    one, _ = started(source, tasks=("a", "b"))
    list(one.batches())
    assert one.answered("a", 2) == [], "b has answered nothing"
    assert one.answered("b", 1) == [Mark(1, 2)] and not one.whole
    assert one.answered("b", 2) == [Mark(2, 5)] and not one.whole
    assert one.answered("a", 3) == [] and one.answered("b", 3) == [Mark(3, None)] and one.whole


def test_a_stream_ends_when_it_is_idle_but_not_before_it_is_ready() -> None:
    source = Source(1)
    one = Arriving(source, 5.0, idle=0.001)
    rounds = []

    def looked() -> None:
        rounds.append(1)
        source.ready = len(rounds) > 3

    source.ready = False
    source.stop = looked
    assert sum(batch.num_rows for batch in one.batches()) == 1
    assert len(rounds) > 3


def test_a_stream_that_never_ends_does_not_ask_whether_all_has_come(monkeypatch: pytest.MonkeyPatch) -> None:
    def asked(source: Source) -> bool:
        raise AssertionError("it would warn that it ends without some")

    source = Source(1, None, None)
    one = Arriving(source, 5.0)
    source.stop = one.stop
    monkeypatch.setattr(Source, "ready", property(asked))
    assert [batch.num_rows for batch in one.batches()] == [1]


def test_the_time_in_which_a_server_is_away_is_not_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    source = Source(1, Away("away"), Away("away"), Away("away"), None, None, 2)
    one = Arriving(source, 5.0, idle=0.5)
    source.stop = one.stop
    monkeypatch.setattr(module, "_AGAIN_SECONDS", 0.25)
    with pytest.warns(RuntimeWarning, match="away|is back"):
        assert [batch.num_rows for batch in one.batches()] == [1, 2]


def test_bad_rows_that_come_keep_a_stream_from_being_idle() -> None:
    source = Source(*[0, None] * 20, 1)
    take = source.take

    def slow(seconds: float) -> pa.RecordBatch | None:
        time.sleep(0.01)
        return take(seconds)

    source.take = slow  # type: ignore[method-assign]
    assert [batch.num_rows for batch in Arriving(source, 5.0, idle=0.2).batches()] == [1]


def test_a_server_that_goes_away_is_waited_for_with_a_word() -> None:
    one, _ = started(Source(1, Away("kafka://b/t is away (test)"), Away("again"), 2))
    with pytest.warns(RuntimeWarning) as told:
        assert [batch.num_rows for batch in one.batches()] == [1, 2]
    assert [str(each.message).partition(";")[0] for each in told] == [
        "source: kafka://b/t is away (test)",
        "source: kafka://b/t is back after 0 s",
    ]


def test_a_position_is_stored_within_the_time_of_the_job_that_stores_it() -> None:
    source = Source()
    source.away = 10000
    one, _ = started(source)
    with warnings.catch_warnings(), limited(0.05, None), pytest.raises(JobTimeoutError, match="waited for kafka://b/t"):
        warnings.simplefilter("ignore")
        one.commit(Mark(1, 1))


def test_a_server_that_stays_away_is_an_error_that_names_the_limit() -> None:
    one, _ = started(Source(*[Away("kafka://b/t is away (test)")] * 10000), wait=0.01)
    with pytest.warns(RuntimeWarning), pytest.raises(ReadError, match=r"kafka://b/t is away.*within 0.01 s \(\?wait="):
        list(one.batches())


def test_a_position_is_stored_even_if_the_stream_was_stopped_and_the_server_is_away_for_a_moment() -> None:
    source = Source()
    one, _ = started(source)
    one.stop()
    source.away = 1
    with pytest.warns(RuntimeWarning) as told:
        one.commit(Mark(1, 7))
    assert len(told) == 2 and source.stored == [7]


def test_a_position_that_cannot_be_stored_after_a_stop_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "START_SECONDS", 0.0)
    source = Source()
    one, _ = started(source)
    one.stop()
    source.away = 100
    with pytest.warns(RuntimeWarning) as told:
        one.commit(Mark(1, 7))
    assert "comes again next time" in str(told[-1].message) and source.stored == []


def test_it_is_closed_once() -> None:
    source = Source()
    one, _ = started(source)
    one.close()
    one.close()
    assert source.closed == 1 and one.name == "kafka://b/t"


def test_a_source_gives_up_rows_once_their_position_is_stored() -> None:
    source = Source(2)
    one, sent = started(source)
    batches = one.batches()
    next(batches)
    settled = threading.Thread(target=one.settle)
    settled.start()
    while not sent:
        time.sleep(0.001)
    assert settled.is_alive() and sent == [1]
    one.stored(one.answered("w", 1)[0])
    settled.join(60.0)
    assert not settled.is_alive() and not one.whole
    assert list(batches) == [] and one.whole


def test_a_source_gives_up_rows_soon_after_a_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_SETTLE_SECONDS", 0.0)
    monkeypatch.setattr(module, "_TAKE_SECONDS", 0.001)
    one, sent = started(Source(2))
    next(one.batches())
    one.stop()
    one.settle()
    assert sent == [1]


def saving(source: Source) -> tuple[Arriving, list[Any]]:
    """Returns: the rows, and the marks that are sent: (number, place) of those to save at, the number of the others."""
    one, sent = Arriving(source, 5.0), []
    source.stop = one.stop
    one.marking(("a", "b"), lambda number, save, place: sent.append((number, place["at"]) if save else number))
    return one, sent


def test_a_mark_to_save_at_comes_when_a_task_wants_it_and_tells_the_place() -> None:
    one, sent = saving(Source(2, 3, 4))
    rows = one.batches()
    next(rows)
    one.due(0)
    next(rows)
    assert sent == [(1, 2)]
    one.due(0)
    next(rows)
    assert sent == [(1, 2)], "the mark that was sent since will do"
    one.due(1)
    assert list(rows) == [] and sent == [(1, 2), (2, 9)]


def test_the_last_mark_is_one_to_save_at_even_if_no_rows_have_come_since_another() -> None:
    one, sent = saving(Source(2, None, None))
    assert len(list(one.batches())) == 1 and sent == [1, (2, 2)]
    assert one.answered("a", 2) == [] and one.answered("b", 2) == [Mark(2, 2)], "the position of the mark before"


def test_an_attempt_begins_with_nothing_of_the_one_before() -> None:
    source = Source(2, None, 3)
    one, sent = saving(source)
    rows = one.batches()
    next(rows)
    one.due(0)
    next(rows)
    one.stop()
    one.begin({"at": 2})
    assert source.begun == {"at": 2} and one.answered("a", 9) == []
    one.marking(("a",), lambda number, save, place: sent.append(number))
    source.steps = [4]
    assert [batch.num_rows for batch in one.batches()] == [4] and one.answered("a", 9) != []
    one.finish()
    one.begin(None)
    assert list(one.batches()) == [], "the user has ended the rows for good"


def test_a_table_ends_with_its_last_row() -> None:
    source = Source(1)
    one = Arriving(source, 5.0)
    source.stop = lambda: setattr(source, "ended", True)
    assert [batch.num_rows for batch in one.batches()] == [1]


def test_a_mark_without_a_position_is_one_too() -> None:
    """`settle` waits for it, and rows behind it belong to the next transaction."""
    one, _ = started(Source(2, None))
    list(one.batches())
    assert one.answered("w", 1) == [Mark(1, 2)]
    (last,) = one.answered("w", 2)
    assert last == Mark(2, None) and one.whole
    one.commit(last)


def test_a_partition_is_not_kept_for_a_task_that_has_gone() -> None:
    one = Arriving(Source(2), 5.0)
    one.marking(("w",), lambda number, save, place: False)
    next(one.batches())
    began = time.monotonic()
    one.settle()
    assert time.monotonic() - began < 1


def test_tasks_that_may_not_save_fail_their_job() -> None:
    one, _ = started(Source(2))
    one.refuse_saves("not with transactions")
    with pytest.raises(ConfigError, match="not with transactions"):
        one.due(0)
    other, _ = started(Source(2))
    other.due(0)
    with pytest.raises(ConfigError, match="not with transactions"):
        other.refuse_saves("not with transactions")
