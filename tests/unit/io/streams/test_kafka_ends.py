"""When all messages of a topic have come."""

from __future__ import annotations

import pytest

from akrunner.io.streams import kafka_ends
from akrunner.io.streams.kafka_ends import Ends


def test_a_partition_is_at_its_end_when_the_brokers_say_so_behind_its_last_message() -> None:
    ends = Ends("kafka://b/t")
    assert ends.reached([], {}), "a consumer without partitions waits for no message"
    assert not ends.reached([0, 1], {})
    ends.told(0, 0)
    ends.told(1, 7)
    assert ends.reached([0, 1], {1: 7})
    assert not ends.reached([0, 1], {1: 9}), "messages have come since"
    ends.told(1, 12)
    assert ends.reached([0, 1], {1: 9}), "a transaction's end has an offset, too"
    ends.forget([0])
    assert not ends.reached([0, 1], {1: 9}), "it was given to the consumer once more"


def test_partitions_that_do_not_tell_their_end_are_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka_ends, "PATIENCE_SECONDS", 0.0)
    ends = Ends("kafka://b/t")
    ends.told(1, 5)
    with pytest.warns(RuntimeWarning, match="where partitions 0, 2 end, and sent no message"):
        assert ends.reached([0, 1, 2], {})
    assert ends.reached([0, 1, 2], {}), "and no second warning"
    with pytest.warns(RuntimeWarning, match="where partition 3 ends, and"):
        assert Ends("kafka://b/t").reached([3], {})
