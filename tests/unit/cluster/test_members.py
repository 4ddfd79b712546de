from __future__ import annotations

import pytest

from akrunner.cluster.rendezvous.members import Members, named
from akrunner.errors import RendezvousError

TASKS = ("chief:0", "worker:0", "ps:0")


def joined(*tasks: str, limit: float = 10) -> Members:
    members = Members(TASKS, attempt=1, limit=limit)
    for i, task in enumerate(tasks):
        members.join(task, f"host{i}:{i}", 1, 0.0)
    return members


def test_complete_when_all_have_come() -> None:
    members = joined("ps:0", "chief:0")
    assert not members.complete and members.missing == ["worker:0"]
    members.join("worker:0", "h:9", 1, 0.0)
    assert members.complete and members.missing == []
    assert members.addresses == {"chief:0": "host1:1", "worker:0": "h:9", "ps:0": "host0:0"}


def test_saying_the_same_again_is_fine() -> None:
    members = joined("ps:0")
    members.join("ps:0", "host0:0", 1, 5.0)
    assert members.missing == ["chief:0", "worker:0"]


@pytest.mark.parametrize(
    ("task", "address", "attempt", "words"),
    [
        ("worker:1", "h:1", 1, "no task 'worker:1'; it has chief:0, worker:0, ps:0"),
        ("worker:0", "h:1", 0, "worker:0 is of attempt 0, this is attempt 1"),
        ("ps:0", "other:1", 1, "ps:0 is at host0:0 already, so other:1 cannot be it too"),
    ],
)
def test_who_is_refused(task: str, address: str, attempt: int, words: str) -> None:
    with pytest.raises(RendezvousError, match=words):
        joined("ps:0").join(task, address, attempt, 0.0)


def test_silence_is_a_loss_told_once() -> None:
    members = joined("chief:0", "worker:0", "ps:0")
    members.sign("worker:0", 1, 8.0)
    members.finish("ps:0", 1, True, "")
    assert members.lose(9.0) == []
    assert members.lose(11.0) == ["chief:0"]
    assert members.lose(12.0) == []
    assert members.failed == [("chief:0", "has given no sign of life for 10 s")]


def test_last_words() -> None:
    members = joined("chief:0", "worker:0", "ps:0")
    members.finish("worker:0", 1, False, "raised ValueError")
    members.finish("worker:0", 1, True, "")
    assert members.failed == [("worker:0", "raised ValueError")] and not members.over
    done = joined("chief:0", "worker:0", "ps:0")
    for task in TASKS:
        assert not done.over
        done.finish(task, 1, True, "")
    assert done.over


def test_nobody_speaks_who_has_not_registered() -> None:
    with pytest.raises(RendezvousError, match="worker:0 has not registered"):
        joined("ps:0").sign("worker:0", 1, 0.0)


def test_many_names_are_cut() -> None:
    assert named([f"worker:{i}" for i in range(10)], 3) == "worker:0, worker:1, worker:2 and 7 more"
