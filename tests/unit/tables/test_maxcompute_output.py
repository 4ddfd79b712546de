from __future__ import annotations

from typing import Any, cast

import pyarrow as pa
import pytest

from akrunner.errors import WriteError
from akrunner.tables import maxcompute_output
from akrunner.tables.maxcompute_output import commit
from akrunner.tables.maxcompute_reading import worth_another


class Output:
    """Notes what is done with it."""

    def __init__(self, name: str, done: list[str], fails: str = "") -> None:
        self.name, self._done, self._fails = name, done, fails

    def _do(self, what: str) -> None:
        self._done.append(f"{what} {self.name}")
        if what == self._fails:
            raise WriteError(f"{self.name} is refused")

    def finish(self) -> list[int]:
        self._do("finish")
        return [1]

    def check(self) -> None:
        self._do("check")

    def put(self, blocks: list[int]) -> None:
        self._do("put")


def test_all_is_sent_and_checked_before_the_first_counts() -> None:
    done: list[str] = []
    commit(cast(Any, [Output("a", done), Output("b", done)]))
    assert done == ["finish a", "finish b", "check a", "check b", "put a", "put b"]


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        ("", "check", "b is refused"),
        ("put", "", "a is refused"),
        ("", "put", r"b is refused \(a was committed before: run the job again\)"),
    ],
)
def test_one_that_is_refused(first: str, second: str, words: str) -> None:
    done: list[str] = []
    with pytest.raises(WriteError, match=words + r"\Z"):
        commit(cast(Any, [Output("a", done, first), Output("b", done, second)]))
    assert ("put a" in done) == (second != "check")


def test_what_is_worth_another_attempt(monkeypatch: Any) -> None:
    answered = type("ODPSError", (Exception,), {"status_code": 500})
    assert worth_another(answered()) and worth_another(ConnectionResetError()) and worth_another(pa.ArrowInvalid("cut"))
    answered.status_code = 403
    assert not worth_another(answered()) and not worth_another(ValueError("of ours"))
    monkeypatch.setattr(maxcompute_output.time, "sleep", lambda seconds: None)
    tries = 0
    with pytest.raises(ConnectionResetError):
        for again in maxcompute_output._tries():
            with again:
                tries += 1
                raise ConnectionResetError
    assert tries == maxcompute_output._TRIES
    with pytest.raises(ValueError):
        for again in maxcompute_output._tries():
            with again:
                raise ValueError
