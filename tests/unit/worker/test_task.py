"""What a task tells its host, whatever names its script, its threads and its files have."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from akrunner.wire import frames, messages
from akrunner.wire.messages import Closed, Left
from akrunner.worker.link import Writer
from akrunner.worker.task import Task

#: a name whose last byte is not UTF-8, as Python has it
NAME = "/d/\udce9"
CLOSED: dict[str, Any] = {
    "ok": True, "rows": 0, "rows_read": 0, "main_ns": 0, "output_blocked_ns": 0, "rows_dropped": 0, "rows_padded": 0,
    "notes": [f"a thread still ran ({NAME})"],
    "input": {
        "asked": 0, "main": 1.0, "looks": 1, "busy": None, "cores": 2, "idle": None, "by": "batches", "batches": 1, "rows": 1,
        "wait": 1.0, "between": 1.0, "outside": 0.0, "first": 0.0, "looked": 1, "known": True, "hidden": False, "elsewhere": False,
        "unlooked": 0.0, "look": 0.0, "spent": {NAME: 1.0}, "nodes": [], "windows": [],
        "lines": [{"main": True, "at": f"{NAME}.py:4", "in": NAME, "share": 1.0}],
        "pipelines": [{"nodes": [{"node": "Map", "at": f"{NAME}.py:4"}], "passes": 1}],
    },
}  # fmt: skip


@pytest.fixture
def ends() -> Iterator[tuple[Task, Callable[[], Any]]]:
    """(a task, a function that returns the message that it has sent)."""
    read, write = os.pipe()
    task = object.__new__(Task)
    task.link = cast(Any, SimpleNamespace(writer=Writer(write)))
    task.refused = cast(Any, SimpleNamespace(news=list))
    reader = frames.FrameReader(read, frames.FROM_WORKER)

    def sent() -> Any:
        kind, count, size = cast(Any, reader.read_header())
        return messages.read(frames.Frame(kind, count, reader.read_payload(size)))

    yield task, sent
    os.close(read)
    os.close(write)


def test_the_last_word_fits_whatever_bytes_a_name_has(ends: Any) -> None:
    task, sent = ends
    task.say(cast(Closed, CLOSED))
    told = json.loads(json.dumps(CLOSED).replace("\\udce9", "\\\\udce9"))
    assert sent() == told and told["input"]["lines"][0]["at"] == "/d/\\udce9.py:4"


def test_so_do_the_words_about_what_it_has_left(ends: Any) -> None:
    task, sent = ends
    task.say_left([NAME])
    assert sent() == Left(notes=["/d/\\udce9"])
