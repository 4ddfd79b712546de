"""What a forked child tries in its task's name is refused at once, and the task comes to know of it."""

from __future__ import annotations

import pytest

from akrunner.wire import frames
from akrunner.worker.forked import Refused
from akrunner.worker.link import Writer
from akrunner.worker.output import OutputWriter
from akrunner.worker.stream import RowStream


def test_each_thing_is_told_once() -> None:
    refused, pipe = Refused(), Writer(-1)
    writer = OutputWriter(pipe, [{"name": "w", "type": "int64"}])
    pipe.refused = refused
    writer.disown(refused)
    assert refused.news() == []
    for _ in range(2):
        with pytest.raises(RuntimeError, match="output_writer: this process was forked"):
            writer.write(b"")
    with pytest.raises(RuntimeError, match="this process was forked"):
        pipe.write_json(frames.REPORT, {})
    rows, reports = refused.news()
    assert "tried to write rows" in rows and "not in the result" in rows and "tried to report" in reports
    assert refused.news() == []


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        (frames.EXAMPLES, "tried to write rows"),
        (frames.COLUMNS, "tried to write rows"),
        (frames.REPORT, "tried to report"),
        (frames.ADD_ROWS, "tried to use the job's tables"),
        (frames.READ_TABLE, "tried to use the job's tables"),
        (frames.CLOSED, "went on as if it were the task"),
        (frames.LEFT, "went on as if it were the task"),
    ],
)
def test_what_was_tried_is_called_by_its_name(kind: int, told: str) -> None:
    pipe = Writer(-1)
    pipe.refused = Refused()
    with pytest.raises(RuntimeError, match="this process was forked"):
        pipe.write(kind)
    (news,) = pipe.refused.news()
    assert told in news


def test_a_stream_has_no_rows_in_a_child() -> None:
    refused, whole, begun = Refused(), RowStream(), RowStream()
    begun.put(1, b"\x00\x00\x00\x00", host_is_there=bool)
    drawn = begun.chunks()
    assert next(drawn)[0] == 1
    for stream in (whole, begun):
        stream.disown(refused)
        for read in (stream.dataset, stream.chunks().__next__):
            with pytest.raises(RuntimeError, match="the rows of a stream arrive in the task's own process"):
                read()
    # one that was being read when the child was forked does not wait, either
    with pytest.raises(RuntimeError, match="this process was forked"):
        next(drawn)
    (told,) = refused.news()
    assert "tried to read the stream" in told
