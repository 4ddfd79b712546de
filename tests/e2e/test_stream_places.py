"""Places of saves in streams that were changed since: in a real Redis, and in librdkafka's mock of Kafka."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from akrunner.errors import SourceError
from akrunner.io.streams import kafka as kafka_stream
from akrunner.io.streams import redis
from akrunner.schema import Schema
from tests.servers.kafka import Kafka
from tests.servers.redis import RedisServer

pytestmark = pytest.mark.slow

SCHEMA = Schema.from_arrow(pa.schema({"id": pa.int64()}))


def opened(system: Any, url: str) -> Any:
    arriving = system.open(url, SCHEMA, 0.01, lambda path, columns: pytest.fail("no file is read")).arriving
    assert arriving is not None
    return arriving.source


def begun(source: Any, place: Any) -> Any:
    source.begin(json.loads(json.dumps(place)))
    source.connect()
    return source


def rows(source: Any, count: int) -> list[int]:
    """Return so many rows, and whatever comes with them."""
    found: list[int] = []
    for _ in range(100):
        batch = source.take(0.1)
        found += batch.column(0).to_pylist() if batch is not None else []
        if len(found) >= count:
            return found
    return found


def put(server: RedisServer, key: str, ids: range) -> None:
    for one in ids:
        server.client.xadd(key, {"id": one})


def test_a_group_of_redis_obeys_the_save(redis_server: RedisServer) -> None:
    """Whether it was made anew, or has stored what a later save had learned."""
    put(redis_server, "s", range(5))
    url = f"{redis_server.url}/s?group=g"
    first = begun(opened(redis.SYSTEM, url), None)
    assert rows(first, 5) == list(range(5))
    place = first.reached()
    first.commit(first.position())
    put(redis_server, "s", range(5, 8))
    assert rows(first, 3) == [5, 6, 7], "given out, and not learned"
    first.close()
    again = begun(opened(redis.SYSTEM, url), place)
    assert rows(again, 3) == [5, 6, 7]
    again.commit(again.position())
    assert redis_server.client.xpending("s", "g")["pending"] == 0
    assert rows(begun(again, place), 3) == [5, 6, 7], "an older save"
    redis_server.client.xgroup_destroy("s", "g")
    redis_server.client.xgroup_create("s", "g", "$")
    assert rows(begun(again, place), 3) == [5, 6, 7], "a group that begins with the next entry"
    redis_server.client.xgroup_destroy("s", "g")
    assert rows(begun(again, place), 3) == [5, 6, 7], "no group"
    again.close()


def test_a_stream_of_redis_that_has_lost_entries_is_refused(redis_server: RedisServer) -> None:
    put(redis_server, "t", range(5))
    source = begun(opened(redis.SYSTEM, f"{redis_server.url}/t?group=g"), None)
    assert rows(source, 5) == list(range(5))
    place = source.reached()
    redis_server.client.xtrim("t", maxlen=0, approximate=False)
    begun(source, place)
    put(redis_server, "t", range(5, 8))
    redis_server.client.xtrim("t", maxlen=2, approximate=False)
    with pytest.raises(SourceError, match="all before it were deleted"):
        begun(source, place)
    redis_server.client.delete("t")
    with pytest.raises(SourceError, match="there is no stream 't'"):
        begun(source, place)
    put(redis_server, "t", range(9, 10))
    with pytest.raises(SourceError, match="or the stream was made anew"):
        begun(source, place)
    source.close()


def value(number: int) -> bytes:
    return json.dumps({"id": number}).encode()


def test_a_place_in_kafka(kafka: Kafka) -> None:
    kafka.put("places", *map(value, range(8)))
    url = f"kafka://{kafka.hosts}/places?group=g"
    first = begun(opened(kafka_stream.SYSTEM, url), None)
    assert sorted(rows(first, 8)) == list(range(8))
    place = first.reached()
    assert place["offsets"] == {"0": 2, "1": 2, "2": 2, "3": 2} and sorted(place["times"]) == sorted(place["offsets"])
    first.close()
    kafka.put("places", *map(value, range(8, 12)))
    again = begun(opened(kafka_stream.SYSTEM, url + "2"), place)
    assert sorted(rows(again, 4)) == [8, 9, 10, 11]
    again.close()
    for other, words in (
        ({**place, "offsets": {**place["offsets"], "2": 9}}, "partition 2 ends at offset 3, and the save was made at 9"),
        (
            {**place, "times": {**place["times"], "1": 1}},
            "message at offset 1 of partition 1 is not the one that was read before",
        ),
        ({**place, "offsets": {"77": 1}}, "there is no partition 77"),
    ):
        source = opened(kafka_stream.SYSTEM, url)
        with pytest.raises(SourceError, match=words):
            begun(source, other)
        source.close()


def test_an_older_save_of_kafka_names_partitions_that_were_empty(kafka: Kafka) -> None:
    """Whatever a later save has stored for the group."""
    kafka.put("older", *map(value, range(3)))
    url = f"kafka://{kafka.hosts}/older?group=older"
    first = begun(opened(kafka_stream.SYSTEM, url), None)
    assert sorted(rows(first, 3)) == [0, 1, 2]
    place = first.reached()
    assert place["offsets"] == {"0": 1, "1": 1, "2": 1, "3": 0}
    kafka.put("older", *map(value, range(100, 108)))
    assert sorted(rows(first, 8)) == list(range(100, 108))
    first.close()
    # nor is the group's offset taken for a partition that the save does not name (the mock lets nobody into a group again soon)
    kafka.store("older", "older2", 3, 3, 3, 2)
    again = begun(opened(kafka_stream.SYSTEM, url + "2"), {**place, "offsets": {one: place["offsets"][one] for one in "012"}})
    assert sorted(rows(again, 8)) == list(range(100, 108))
    again.close()


def test_a_topic_that_was_made_anew_is_noticed_behind_much_that_waits(kafka: Kafka) -> None:
    kafka.put("anew", *map(value, range(8)))
    url = f"kafka://{kafka.hosts}/anew?group=anew"
    first = begun(opened(kafka_stream.SYSTEM, url), None)
    assert sorted(rows(first, 8)) == list(range(8))
    place = first.reached()
    first.close()
    kafka.put("anew", *map(value, range(8, 4008)))
    for partition in "0123":
        source = opened(kafka_stream.SYSTEM, url)
        with pytest.raises(SourceError, match=f"partition {partition} is not the one that was read before"):
            begun(source, {**place, "times": {**place["times"], partition: 1}})
        source.close()
