"""How much room is asked for a large file: what it was listed with, or what those before it needed."""

from __future__ import annotations

from typing import Any, Iterator, List

import pytest

from akrunner.packing import remote

_MB = 1 << 20


class Asked:
    """A fetcher of files that only have a size, and the room it has asked for."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.fetcher = remote.Fetcher(1 << 30)
        self.sizes: List[int] = []
        monkeypatch.setattr(remote.Room, "has", lambda room, ticket, size: self._has(size))
        monkeypatch.setattr(remote.downloads, "from_web", self._pieces)

    def _has(self, size: int) -> bool:
        self.sizes.append(size)
        return True

    def _pieces(self, url: str, budget: Any) -> Iterator[bytes]:
        left = int(url.rpartition("/")[2])
        while left:
            piece = bytes(min(left, _MB))
            left -= len(piece)
            yield piece

    def of(self, size: int, listed: int = -1) -> List[int]:
        """The room that was asked for one file, time after time."""
        self.sizes.clear()
        data, why = self.fetcher.get(f"http://host/{size}", listed, 1)
        assert (len(data or b""), why) == (size, "")
        return list(self.sizes)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    return Asked(monkeypatch)


def test_one_large_file_does_not_make_all_others_large(asked: Asked) -> None:
    assert asked.of(2 * _MB) == [8 * _MB] and asked.of(_MB) == []
    assert asked.of(33 * _MB)[-1] >= 33 * _MB
    wanted = [asked.of(2 * _MB)[0] for _ in range(8)]
    assert wanted[0] > 30 * _MB and wanted == sorted(wanted, reverse=True) and wanted[-1] == 8 * _MB


def test_files_as_large_as_the_last_ask_once(asked: Asked) -> None:
    asked.of(33 * _MB)
    assert [len(asked.of(33 * _MB)) for _ in range(5)] == [1] * 5


def test_a_file_of_known_size_asks_for_that_and_says_nothing_of_others(asked: Asked) -> None:
    assert asked.of(33 * _MB, 33 * _MB) == [33 * _MB] and asked.of(3 * _MB, 3 * _MB) == [3 * _MB]
    assert asked.of(2 * _MB) == [8 * _MB]
    # it has grown since
    assert asked.of(3 * _MB, 2 * _MB) == [2 * _MB, 8 * _MB]
