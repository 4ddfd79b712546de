"""Streams of Redis, with a stand-in for redis-py: URLs, entries to rows, what is acknowledged, rows to entries."""

from __future__ import annotations

import threading
import time
import types
import warnings
from typing import Any

import pyarrow as pa
import pytest

from akrunner.errors import JobTimeoutError, SinkError, SourceError, WriteError
from akrunner.io.bad_rows import BadRows, Limit
from akrunner.io.limits import limited
from akrunner.io.streams import redis
from akrunner.io.streams.base import Away
from akrunner.schema import Schema

SCHEMA = Schema.from_arrow(pa.schema({"id": pa.int64(), "s": pa.string()}))


class Wrong(Exception):
    pass


class ConnectionLost(Wrong):
    pass


class Refused(Wrong):
    pass


class Redis:
    """Attributes: asked: the commands; answers: what they return, or raise, one after the other."""

    def __init__(self, **settings: Any) -> None:
        self.settings = settings
        self.asked: list[tuple[Any, ...]] = []
        self.answers: list[Any] = []

    def ping(self) -> None:
        pass

    def type(self, key: bytes) -> bytes:
        return b"stream"

    def execute_command(self, *words: Any) -> Any:
        self.asked.append(words)
        answer = self.answers.pop(0) if self.answers else None
        if isinstance(answer, Exception):
            raise answer
        return answer

    def pipeline(self, transaction: bool) -> Redis:
        return self

    def execute(self) -> None:
        pass

    def close(self) -> None:
        pass


@pytest.fixture(autouse=True)
def made(monkeypatch: pytest.MonkeyPatch) -> list[Redis]:
    found: list[Redis] = []
    errors = types.SimpleNamespace(
        ConnectionError=ConnectionLost,
        TimeoutError=TimeoutError,
        AuthenticationError=type("AuthenticationError", (ConnectionLost,), {}),
        ResponseError=Refused,
        RedisError=Wrong,
    )

    def make(**settings: Any) -> Redis:
        # a second one of the same client only asks whether the server is there, and is none that a test looks at
        made = Redis(**settings)
        if settings["socket_timeout"] != redis.START_SECONDS:
            found.append(made)
        return made

    again = types.SimpleNamespace(Retry=lambda backoff, times: times)
    pauses = types.SimpleNamespace(NoBackoff=lambda: None)
    library = types.SimpleNamespace(Redis=make, exceptions=errors, retry=again, backoff=pauses)
    monkeypatch.setattr(redis, "client", lambda name, extra: library)
    monkeypatch.setenv("REDISCLI_AUTH", "pass-w0rd")
    monkeypatch.delenv("REDIS_CONFIG", raising=False)
    return found


def source(made: list[Redis], query: str = "", schema: Schema = SCHEMA) -> tuple[Any, Redis]:
    table = redis.SYSTEM.open(f"redis://h/s?group=g{query}", schema, 0.01, lambda path, columns: pytest.fail("no file"))
    assert table.arriving is not None
    entries = table.arriving._source
    made[-1].answers = [Refused("BUSYGROUP it is there")]
    entries.connect()
    made[-1].asked = []
    return entries, made[-1]


def test_where_it_connects_to(made: list[Redis]) -> None:
    source(made, "&db=3")
    told = made[-1].settings
    assert (told["host"], told["port"], told["db"], told["ssl"], told["password"]) == ("h", 6379, 3, False, "pass-w0rd")
    assert told["retry"] == 0, "a command whose answer was lost is not sent again behind our back"
    redis.SYSTEM.output("rediss://me@h:7/s", pa.schema({"id": pa.int64()}), None)
    told = made[-1].settings
    assert (told["port"], told["ssl"], told["username"]) == (7, True, "me")


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("redis://me:pass-w0rd@h/s?group=g", "REDISCLI_AUTH"),
        ("redis://h?group=g", "write redis://host"),
        ("redis://h:x/s?group=g", "is no port"),
        (f"redis://h:{'9' * 5000}/s?group=g", "is no port"),
        ("redis://h/s", r"give \?group=NAME"),
        ("redis://h/s?group=g&db=x", "whole number"),
        (f"redis://h/s?group=g&db={'9' * 5000}", "whole number"),
    ],
)
def test_a_wrong_url_is_told(url: str, words: str) -> None:
    with pytest.raises(SourceError, match=words) as caught:
        redis.SYSTEM.open(url, SCHEMA, 0.01, lambda path, columns: pytest.fail("no file"))
    assert "pass-w0rd" not in str(caught.value)


@pytest.mark.parametrize(("query", "name"), [("", b"id"), ("&value=json", b"value")])
def test_bad_entries_are_left_out_and_have_come(query: str, name: bytes, made: list[Redis]) -> None:
    entries, server = source(made, query)
    entries.bad = bad = BadRows(None, Limit(5))
    good = b"7" if name == b"id" else b'{"id": 7}'
    server.answers = [
        None,
        [[b"s", [(b"1-0", {name: b"x"}), (b"2-0", {name: good}), (b"3-0", {name: b"y"})]]],
        [[b"s", [(b"4-0", {name: b"z"})]]],
    ]
    assert entries.take(0.1).to_pylist() == [{"id": 7, "s": None}]
    assert bad.count == 2 and bad.news()[1].startswith("source: entry 3-0 of redis://h/s: ")
    assert entries.take(0.1).num_rows == 0, "not None: something has come (idle=)"
    assert entries.position() == [b"1-0", b"2-0", b"3-0", b"4-0"] and entries.take(0.1) is None


def test_entries_that_were_never_acknowledged_come_first(made: list[Redis]) -> None:
    entries, server = source(made, "&with=entry")
    server.answers = [
        [[b"s", [(b"1-0", {b"id": b"1", b"s": b"a"}), (b"2-0", None)]]],
        [[b"s", []]],
        {b"s": [[(b"3-0", {b"id": b"3"})]]},
    ]
    assert entries.take(0.1).to_pylist() == [{"id": 1, "s": "a", "entry": "1-0"}]
    assert entries.take(0.1).to_pylist() == [{"id": 3, "s": None, "entry": "3-0"}]
    assert [words[-1] for words in server.asked] == [b"0", b"2-0", ">"]
    position = entries.position()
    assert position == [b"1-0", b"2-0", b"3-0"] and entries.position() is None
    entries.commit(position)
    assert server.asked[-1] == ("XACK", b"s", b"g", b"1-0", b"2-0", b"3-0")


def test_what_was_lost_on_its_way_is_asked_for_again(made: list[Redis]) -> None:
    entries, server = source(made)
    server.answers = [None, [[b"s", [(b"5-0", {b"id": b"5"})]]], ConnectionLost("gone"), None]
    assert entries.take(0.1).num_rows == 1
    with pytest.raises(Away, match="redis://h/s is away"):
        entries.take(0.1)
    entries.take(0.1)
    assert [words[-1] for words in server.asked] == [b"0", ">", ">", b"5-0", ">"]


def test_an_entry_that_cannot_be_read_is_named(made: list[Redis]) -> None:
    entries, server = source(made)
    server.answers = [[[b"s", [(b"1-0", {b"id": b"1"}), (b"2-0", {b"id": b"x"})]]]]
    with pytest.raises(SourceError, match="entry 2-0 of redis://h/s: column 'id' cannot become"):
        entries.take(0.1)
    entries, server = source(made, "&value=json")
    server.answers = [[[b"s", [(b"1-0", {b"value": b'{"id": 4}'}), (b"2-0", {b"v": b"{}"})]]]]
    with pytest.raises(SourceError, match="entry 2-0 of redis://h/s has no field 'value'"):
        entries.take(0.1)


def test_rows_become_entries(made: list[Redis]) -> None:
    sink = redis.SYSTEM.output("redis://h/s?maxlen=9", SCHEMA.arrow, None)
    sink.write_rows(pa.record_batch([pa.array([1, 2], pa.int64()), pa.array(["a", None])], SCHEMA.arrow))
    sink.flush()
    head = ("XADD", b"s", "MAXLEN", "~", 9, "*")
    assert made[-1].asked == [(*head, b"id", b"1", b"s", b"a"), (*head, b"id", b"2")] and sink.rows == 2
    with pytest.raises(WriteError, match="value=json"):
        sink.write_rows(pa.record_batch([pa.array([None], pa.int64()), pa.array([None], pa.string())], SCHEMA.arrow))
    sink.close()


@pytest.mark.parametrize("silent", [False, True])
def test_a_server_that_is_away_is_waited_for_within_the_job_s_time(
    silent: bool, made: list[Redis], monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = redis.SYSTEM.output("redis://h/s", SCHEMA.arrow, None)
    over = threading.Event()

    def execute() -> None:
        if silent:
            over.wait(30)
        raise ConnectionLost("gone (test)")

    monkeypatch.setattr(made[-1], "execute", execute)
    monkeypatch.setattr(redis, "_AGAIN_SECONDS", 0.05)
    begun = time.monotonic()
    with warnings.catch_warnings(), limited(0.3, None), pytest.raises(JobTimeoutError, match="waited for redis://h/s"):
        warnings.simplefilter("ignore")
        sink.write_rows(pa.record_batch([pa.array([1], pa.int64()), pa.array(["a"])], SCHEMA.arrow))
    over.set()
    sink.close()
    assert time.monotonic() - begun < 10


def test_a_list_is_no_text() -> None:
    with pytest.raises(SinkError, match="value=json"):
        redis.SYSTEM.check_output("redis://h/s", pa.schema({"v": pa.list_(pa.int64())}), "-")
    redis.SYSTEM.check_output("redis://h/s?value=json", pa.schema({"v": pa.list_(pa.int64())}), "-")


def test_a_stream_that_is_not_there_yet_is_said(made: list[Redis], monkeypatch: pytest.MonkeyPatch) -> None:
    entries, _ = source(made)
    monkeypatch.setattr(Redis, "type", lambda self, key: b"none")
    with pytest.warns(RuntimeWarning, match="there is no stream 's' yet; its first entry is waited for"):
        entries.check()
    monkeypatch.setattr(Redis, "type", lambda self, key: b"list")
    with pytest.raises(SourceError, match="'s' is a list, not a stream"):
        entries.check()


def begun(entries: Any, server: Redis, place: str, *answers: Any) -> None:
    entries.begin({"stream": "s", "entry": place})
    server.asked, server.answers = [], list(answers)
    entries.connect()


def test_the_group_begins_behind_the_entry_of_a_save(made: list[Redis]) -> None:
    entries, server = source(made)
    assert entries.reached() == {"stream": "s", "entry": "0"}
    given = [[b"s", [(b"9-0", {b"id": b"1"}), (b"10-0", {b"id": b"3"})]]]
    begun(
        entries,
        server,
        "9-1",
        {"last-generated-id": b"11-0"},
        [b"1-0"],
        Refused("BUSYGROUP it is there"),
        None,
        given,
        2,
        [[b"s", []]],
    )
    assert server.asked[3:] == [
        ("XGROUP", "SETID", b"s", b"g", b"9-1"),
        ("XREADGROUP", "GROUP", b"g", b"akrunner", "COUNT", redis.TAKEN_ROWS, "STREAMS", b"s", b"0"),
        ("XACK", b"s", b"g", b"9-0", b"10-0"),
        ("XREADGROUP", "GROUP", b"g", b"akrunner", "COUNT", redis.TAKEN_ROWS, "STREAMS", b"s", b"0"),
    ]
    assert entries.reached() == {"stream": "s", "entry": "9-1"}
    server.answers = [{b"s": [[(b"10-0", {b"id": b"3"}), (b"11-0", {b"id": b"4"})]]}]
    assert entries.take(0.1).column(0).to_pylist() == [3, 4] and server.asked[-1][-1] == ">"
    assert entries.reached() == {"stream": "s", "entry": "11-0"} and entries.position() == [b"10-0", b"11-0"]
    entries.begin(None)
    assert entries.reached()["entry"] == "0" and entries.position() is None


@pytest.mark.parametrize(
    "answers, words",
    [
        ([Refused("no such key")], "there is no stream 's'; the save was made at its entry 9-1"),
        ([{"last-generated-id": b"9-0"}], "newest entry is 9-0, and the save was made at 9-1: the stream was made anew"),
        ([{"last-generated-id": b"10-0"}, []], "entry 9-1, at which the save was made, and all before it were deleted"),
    ],
)
def test_a_place_behind_which_entries_are_gone_is_refused(made: list[Redis], answers: list[Any], words: str) -> None:
    entries, server = source(made)
    with pytest.raises(SourceError, match=words) as caught:
        begun(entries, server, "9-1", *answers)
    assert "No row was trained on" in str(caught.value) and server.answers == []


def test_a_stream_whose_entries_were_all_learned_may_be_trimmed(made: list[Redis]) -> None:
    entries, server = source(made)
    begun(entries, server, "9-1", {"last-generated-id": b"9-1"})
    assert server.asked[1][:2] == ("XGROUP", "CREATE") and server.asked[1][4] == b"9-1"


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), pa.binary(2)])
def test_bytes_of_any_kind_are_written_as_they_are(kind: pa.DataType) -> None:
    batch = pa.RecordBatch.from_arrays([pa.array([b"\xff\0"], kind)], ["b"])
    assert redis._fields(batch) == [[b"b", b"\xff\0"]]
