"""What a block does to an output it writes."""

from __future__ import annotations

from typing import Any

import pytest

from akrunner.errors import WriteError
from akrunner.foreign import underway
from akrunner.io.commits import committed


class Output:
    def __init__(self, broken: bool = False) -> None:
        self.calls: list[str] = []
        self._broken = broken

    def commit(self) -> None:
        self.calls.append("commit")
        if self._broken:
            raise OSError(5, "Input/output error")

    def abort(self) -> None:
        self.calls.append("abort")


def test_a_block_that_ends_well_commits_and_lets_go() -> None:
    with committed(Output()) as output:
        assert not output.calls
    assert output.calls == ["commit", "abort"]


@pytest.mark.parametrize("error", [ValueError("wrong"), KeyboardInterrupt()])
def test_a_block_that_raises_aborts(error: Any) -> None:
    output = Output()
    with pytest.raises(type(error)), committed(output):
        raise error
    assert output.calls == ["abort"]


def test_a_commit_that_fails_aborts_and_says_what_could_not_be_stored() -> None:
    output = Output(broken=True)
    with (
        pytest.raises(WriteError, match=r"cannot store out\.csv"),
        committed(output, underway(WriteError, "output: cannot store out.csv")),
    ):
        pass
    assert output.calls == ["commit", "abort"]


def test_what_stores_is_not_asked_about_what_the_block_raises() -> None:
    with pytest.raises(OSError, match="the block's"), committed(Output(), underway(WriteError, "output")):
        raise OSError("the block's")
