"""The directories of runs: their names, how they are found, and which are removed."""

from __future__ import annotations

import dataclasses
import fcntl
import os
import socket
import stat
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from akrunner.errors import ConfigError
from akrunner.history import places, record
from akrunner.history.record import Record
from akrunner.leftovers import remove

DAY = 86_400.0


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    made = places.root()
    assert made is not None
    return made


def made(root: str, state: str = record.SUCCEEDED, days: float = 0.0, size: int = 0) -> str:
    """Make a run. Args: days: how old it is; size: bytes of a log."""
    name, path = places.claim(root)
    record.write(path, Record(record.VERSION, name, "run", state, 1.0, host=record.host()))
    Path(path, "log").write_bytes(b"x" * size)
    then = time.time() - days * DAY
    for one in (Path(path, record.FILE), Path(path, "log"), Path(path)):
        os.utime(one, (then, then))
    return name


def test_names_count_upwards_also_when_two_want_the_same(root: str) -> None:
    assert [made(root), made(root)] == ["r1", "r2"]
    # another process has taken the next number, and has not written that yet
    os.mkdir(os.path.join(root, "r3"))
    assert made(root) == "r4" and places.numbers(root) == [4, 3, 2, 1]
    assert stat.S_IMODE(os.stat(os.path.join(root, "r4")).st_mode) == 0o700
    os.unlink(os.path.join(root, "newest"))
    assert made(root) == "r5"
    # a number is not given again
    places.prune(root, places.Bounds(days=0))
    assert made(root) == "r6"


def test_a_number_is_not_given_again_while_others_are_removed(root: str) -> None:
    given: list[str] = []
    stops = threading.Event()

    def claims() -> None:
        for _ in range(50):
            name, path = places.claim(root)
            given.append(name)
            record.write(path, Record(record.VERSION, name, "run", record.SUCCEEDED, 1.0))

    def prunes() -> None:
        while not stops.is_set():
            places.prune(root, places.Bounds(days=0))

    remover = threading.Thread(target=prunes)
    writers = [threading.Thread(target=claims) for _ in range(4)]
    for one in (remover, *writers):
        one.start()
    for one in writers:
        one.join()
    stops.set()
    remover.join()
    assert sorted(given) == sorted(f"r{number}" for number in range(1, 201))


def test_a_slow_process_takes_no_number_back(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mkdir = os.mkdir

    def slow(path: str, mode: int) -> None:
        """Another process gets the next number ahead of this one, which it has not locked."""
        monkeypatch.setattr(os, "mkdir", mkdir)
        monkeypatch.setattr(places, "_lock", lambda fd: None)
        assert made(root) == "r2"
        mkdir(path, mode)

    monkeypatch.setattr(os, "mkdir", slow)
    assert places.claim(root)[0] == "r1"
    places.prune(root, places.Bounds(days=0))
    assert made(root) == "r3"


def test_a_lock_that_cannot_be_had_holds_up_no_run(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "_LOCK_SECONDS", 0.01)
    made(root)
    with open(os.path.join(root, "newest"), "rb") as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        assert made(root) == "r2"


def test_a_disk_that_is_full_leaves_no_run_without_a_record(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made(root)

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(places, "private_file", full)
    with pytest.raises(OSError, match="No space"):
        places.claim(root)
    assert places.numbers(root) == [1]
    os.mkdir(os.path.join(root, "r2"))
    assert places.meant(root, "last") == 1


def test_a_run_is_found_by_its_name_its_number_and_its_place(root: str) -> None:
    for _ in range(3):
        made(root)
    assert [places.meant(root, name) for name in ("r2", "2", "last", "last-1", "last-0")] == [2, 2, 3, 2, 3]


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("r9", "is not kept .any more.: the oldest is r1, the newest r1"),
        ("last-1", "is not kept"),
        ("train", "give its name, such as r1, or last"),
        ("", "give its name"),
        ("r01", "give its name"),
        ("../r1", "give its name"),
    ],
)
def test_a_name_that_means_none(name: str, told: str, root: str) -> None:
    with pytest.raises(ConfigError, match="no run is kept yet"):
        places.meant(root, name)
    made(root)
    with pytest.raises(ConfigError, match=told):
        places.meant(root, name)


def test_no_name_of_a_run_is_an_id_of_flink() -> None:
    assert all(map(places.is_name, ("r1", "r42", "last", "last-3")))
    assert not any(map(places.is_name, ("", "42", "4f", "0123abc", "lasting", "run")))


def test_old_runs_go_and_running_ones_stay(root: str) -> None:
    made(root, days=40)
    made(root, record.RUNNING, days=40)
    made(root, days=40)
    made(root, days=1)
    assert places.prune(root, places.Bounds(days=30), spare=(3,)) == (["r1"], [])
    assert places.numbers(root) == [4, 3, 2]


def test_the_newest_that_fit_stay(root: str) -> None:
    for _ in range(4):
        made(root, size=100_000)
    assert places.prune(root, places.Bounds(size=250_000)) == (["r1", "r2"], [])


def test_runs_that_cannot_be_removed_are_told(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(3):
        made(root)
    monkeypatch.setattr(places, "remove", lambda path: None if path.endswith("r2") else remove(path))
    assert places.prune(root, places.Bounds(days=0)) == (["r1", "r3"], ["r2"])


def test_a_directory_that_is_being_made_stays_and_one_that_was_given_up_goes(root: str) -> None:
    for days in (0.0, 40.0):
        _, path = places.claim(root)
        os.utime(path, (time.time() - days * DAY,) * 2)
    assert places.prune(root, places.Bounds(days=0)) == (["r2"], [])


def test_it_is_done_once_an_hour_and_not_by_the_first_run(root: str) -> None:
    made(root, days=40)
    assert places.prune_sometimes(root, ()) is None
    assert places.prune_sometimes(root, ()) is None and places.numbers(root) == [1]
    os.utime(os.path.join(root, "pruned"), (1.0, 1.0))
    thread = places.prune_sometimes(root, ())
    assert thread is not None
    thread.join()
    assert places.numbers(root) == [] and places.prune_sometimes(root, ()) is None


@pytest.mark.parametrize(
    ("days", "size", "told"),
    [
        ("2", "1kB", (2.0, 1000)),
        ("0.5", "1KiB", (0.5, 1024)),
        ("", "", (30.0, 500_000_000)),
        ("1", "2 G", (1.0, 2_000_000_000)),
    ],
)
def test_how_much_is_kept(days: str, size: str, told: Sequence[float], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(places.DAYS, days)
    monkeypatch.setenv(places.BYTES, size)
    assert places.bounds() == places.Bounds(*told)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "value"),
    [(places.DAYS, "many"), (places.DAYS, "-1"), (places.DAYS, "nan"), (places.BYTES, "large"), (places.BYTES, "-1")],
)
def test_a_bound_that_is_none_is_told(name: str, value: str, root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ConfigError, match=f"^{name}={value}: give the"):
        places.prune_sometimes(root, ())


def test_when_something_was_last_written(root: str) -> None:
    made(root, days=3)
    assert abs(places.last_written(places.path_of(root, 1)) - time.time() + 3 * DAY) < 60


@pytest.mark.parametrize(
    ("machine", "state", "minutes", "gone"),
    [
        ("elsewhere", record.RUNNING, 14, False),
        ("elsewhere", record.RUNNING, 16, True),
        ("elsewhere", record.SUCCEEDED, 16, False),
        (socket.gethostname(), record.RUNNING, 16, False),
    ],
)
def test_a_run_of_another_machine_is_gone_when_nothing_is_written(
    machine: str, state: str, minutes: float, gone: bool, root: str
) -> None:
    made(root, state)
    path = places.path_of(root, 1)
    found = dataclasses.replace(record.read(path), host={**record.host(), "machine": machine})
    record.write(path, found)
    for one in (*Path(path).iterdir(), Path(path)):
        os.utime(one, (time.time() - minutes * 60,) * 2)
    assert places.is_gone(found, path) is gone
    assert places.prune(root, places.Bounds(days=0)) == (["r1"] if gone or state != record.RUNNING else [], [])


def test_a_run_without_a_process_is_not_gone(root: str) -> None:
    assert not places.is_gone(Record(record.VERSION, "r1", "run", record.RUNNING, 1.0), root)
