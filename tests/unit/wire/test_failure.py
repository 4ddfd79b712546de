"""Failure records: what is kept of an exception, whatever its class, its words or their length."""

from __future__ import annotations

import json
import types
import zipfile
from typing import Any

import pytest

from akrunner.wire import failure, frames

MOST = 2 * (128 << 10)


class Mute(Exception):
    """Its message cannot be had."""

    def __str__(self) -> str:
        raise LookupError("no words")


class Numeric(Exception):
    """Its message is no text."""

    def __str__(self) -> str:
        return 7  # type: ignore[return-value]


def raised(error: BaseException, cause: BaseException | None = None) -> BaseException:
    """The exception, with the traceback of being raised."""
    try:
        raise error from cause
    except BaseException as e:
        return e


@pytest.mark.parametrize(
    ("error", "name"),
    [
        (ValueError("x"), "ValueError"),
        (KeyboardInterrupt(), "KeyboardInterrupt"),
        (zipfile.BadZipFile("x"), "zipfile.BadZipFile"),
        (Mute(), f"{__name__}.Mute"),
        (type("Own", (Exception,), {"__module__": "__main__"})(), "Own"),
    ],
)
def test_a_type_is_named_with_its_module_unless_everybody_or_the_script_has_it(error: BaseException, name: str) -> None:
    assert failure.record(error, "in main()", "")["type"] == name


def test_when_it_was_and_what_the_task_was_doing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failure, "time", types.SimpleNamespace(time_ns=lambda: 1_700_000_000_000_000_001))
    told = failure.record(ValueError("é\n"), "while importing the script", "trace")
    assert told == {
        "type": "ValueError",
        "message": "é\n",
        "traceback": "trace",
        "phase": "while importing the script",
        "time_ns": 1_700_000_000_000_000_001,
    }


def test_a_traceback_has_the_chain_of_causes() -> None:
    text = failure.record(raised(ValueError("later"), raised(KeyError("earlier"))), "in main()")["traceback"]
    assert text.index("KeyError: 'earlier'") < text.index("direct cause") < text.index("ValueError: later")
    assert text.count("Traceback (most recent call last)") == 2 and "in raised" in text


def test_a_trimmed_traceback_is_taken_as_it_is_even_if_it_is_empty() -> None:
    assert failure.record(raised(ValueError("x")), "in main()", "")["traceback"] == ""


@pytest.mark.parametrize(("error", "why"), [(Mute(), "LookupError"), (Numeric(), "TypeError")])
def test_a_message_that_cannot_be_had_hides_nothing_else(error: BaseException, why: str) -> None:
    told = failure.record(raised(error), "in main()")
    assert told["message"] == f"<its message cannot be printed: {why}>"
    assert told["type"].endswith(type(error).__name__) and "in raised" in told["traceback"]


def test_what_utf8_cannot_say_is_spelt_out() -> None:
    error = type("E", (Exception,), {"__module__": "a\udc80"})("b\ud800é")
    told = failure.record(error, "in main()", "c\udfff\n")
    assert (told["type"], told["message"], told["traceback"]) == ("a\\udc80.E", "b\\ud800é", "c\\udfff\n")


@pytest.mark.parametrize("field", ["message", "traceback"])
def test_a_long_text_keeps_its_beginning_and_its_end(field: str) -> None:
    def kept(text: str) -> Any:
        return failure.record(ValueError(text if field == "message" else ""), "in main()", text)[field]

    whole = "a" + "é" * (MOST - 2) + "z"
    assert kept(whole) == whole
    half = MOST // 2
    assert kept("a" * half + "bcd" + "z" * half) == "a" * half + "\n... 3 characters ...\n" + "z" * half


def test_the_longest_record_fits_its_frame() -> None:
    longest = "\U0001f600" * (MOST + 1)  # twelve bytes of JSON each
    error = type(longest, (Exception,), {"__module__": "__main__"})(longest)
    size = len(json.dumps({"ok": False, "failure": failure.record(error, "in main()", longest)}))
    assert size < min(frames.FROM_WORKER[kind] for kind in (frames.CLOSED, frames.REFUSED))


def test_a_class_without_a_module_is_named_by_itself() -> None:
    kind = type("Bare", (Exception,), {"__module__": None})
    assert failure.record(kind("why"), "in main()")["type"] == "Bare"
