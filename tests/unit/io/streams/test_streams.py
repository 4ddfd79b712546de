"""Which URLs are those of streams, and which module has each."""

from __future__ import annotations

from pathlib import Path

import pytest

from akrunner.errors import ConfigError, SinkError, SourceError
from akrunner.io import streams, systems


@pytest.mark.parametrize(
    "url", ["kafka://b:9092/t?group=g", "KAFKA://b/t", "redis://h/s", "rediss://h/s", "files:///d?group=g"]
)
def test_a_stream_is_known_by_its_scheme(url: str) -> None:
    assert streams.is_stream(url) and streams.system_of(url).has_files == url.startswith("files")


@pytest.mark.parametrize("given", ["t.csv", "-", "postgresql://h/d", Path("kafka"), None, ["kafka://b/t"], 3])
def test_anything_else_is_none(given: object) -> None:
    assert not streams.is_stream(given)


def test_what_reads_a_whole_table_says_what_reads_a_stream() -> None:
    with pytest.raises(SourceError, match=r"kafka://b/t\?group=g is a stream.*akrunner stream"):
        systems.one_system("kafka://b/t?group=g", None)
    with pytest.raises(SinkError, match="redis://h/s is a stream"):
        systems.check_output("redis://h/s")


def test_both_packages_know_the_same_streams() -> None:
    assert set(streams._MODULES) == systems.STREAMS


def test_a_job_that_may_be_started_again_writes_in_no_transactions() -> None:
    streams.check_restarts("kafka://b/out", 3)
    streams.check_restarts("kafka://b/out?transactional_id=a", 0)
    with pytest.raises(ConfigError, match=r"max_restarts= \(--max-restarts\) .*transaction.*leave it out"):
        streams.check_restarts("kafka://b/out?key=id&transactional_id=a", 3)
    with pytest.raises(ConfigError, match=r"resume= \(--resume\) begins where a model was saved"):
        streams.check_restarts("kafka://b/out?transactional_id=a", 0, True)
    streams.check_restarts("kafka://b/out", 3, True)
