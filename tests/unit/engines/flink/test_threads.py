"""Threads that report their failure before they die, and what is shown of an error."""

from __future__ import annotations

import threading

import pytest

from akrunner.engines.flink.threads import started, trace_of


def fails(error: BaseException) -> None:
    raise error


def test_a_thread_does_its_work_with_what_it_is_given() -> None:
    seen: list[object] = []
    failed: list[object] = []
    thread = started("rows", lambda name, error: failed.append(error), lambda *given: seen.extend(given), 1, "ü")
    thread.join(30)
    assert seen == [1, "ü"] and failed == []
    assert thread.name == "akrunner-rows" and thread.daemon


@pytest.mark.parametrize("error", [ValueError("no such row"), SystemExit(3), KeyboardInterrupt()])
def test_whatever_it_raises_is_told_in_the_thread_itself(error: BaseException) -> None:
    told: list[tuple[str, BaseException, str]] = []
    thread = started("rows", lambda name, error: told.append((name, error, threading.current_thread().name)), fails, error)
    thread.join(30)
    assert told == [("rows", error, "akrunner-rows")]


def test_a_thread_that_nobody_can_be_told_of_ends_quietly(monkeypatch: pytest.MonkeyPatch) -> None:
    loud: list[object] = []
    monkeypatch.setattr(threading, "excepthook", loud.append)

    def gone(name: str, error: BaseException) -> None:
        raise BrokenPipeError(32, "Broken pipe")

    thread = started("rows", gone, fails, ValueError("no such row"))
    thread.join(30)
    assert not thread.is_alive() and loud == []


def caught(words: str) -> BaseException:
    try:
        fails(ValueError(words))
    except ValueError as e:
        return e
    raise AssertionError


def test_a_trace_says_what_was_raised_and_where() -> None:
    trace = trace_of(caught("no such row"))
    assert trace.startswith("Traceback (most recent call last):") and "in fails" in trace
    assert trace.endswith("ValueError: no such row"), "no line's end at its end"


def test_a_long_trace_keeps_its_end() -> None:
    trace = trace_of(caught("long " * 100 + "the end"), 20)
    assert trace.endswith("the end") and len(trace) <= 20
    assert len(trace_of(caught("x" * (1 << 16)))) <= 1 << 15


def test_an_error_that_was_never_raised_has_a_trace_too() -> None:
    assert trace_of(OSError(2, "No such file")) == "FileNotFoundError: [Errno 2] No such file"
