"""Works that tasks take from one another."""

from __future__ import annotations

from typing import Any

import pytest

from akrunner.engines.works import WorkQueues
from akrunner.errors import ConfigError

A, B = "odps://p/tables/a", "odps://p/tables/b?start=5&end=8"


def rows_of(text: str) -> tuple[int, int]:
    return (5, 8) if "start" in text else (0, 10)


def asked(works: list[str], **changes: Any) -> dict[str, Any]:
    return {
        "queue": "q",
        "works": works,
        "digest": " ".join(works),
        "epochs": 1,
        "shuffle": False,
        "seed": None,
        "slices": None,
        **changes,
    }


def taken(body: dict[str, Any]) -> list[str | None]:
    queues = WorkQueues(rows_of)
    out = []
    while (work := queues.take(body)) is not None:
        out.append(work)
    assert queues.take(body) is None
    return out


def test_works_are_dealt_once_an_epoch() -> None:
    assert taken(asked(["f1", "f2"], epochs=2)) == ["f1", "f2", "f1", "f2"]
    assert taken(asked(["f1", "f2"], slices=10)) == ["f1", "f2"], "files stay whole"
    assert taken(asked([A, B])) == [A, B]
    works = [str(i) for i in range(50)]
    mixed = taken(asked(works, shuffle=True, seed=1, epochs=2))
    assert sorted(mixed[:50]) == sorted(works) == sorted(mixed[50:]) and mixed[:50] != mixed[50:] != works
    assert taken(asked(works, shuffle=True, seed=1, epochs=2)) == mixed


def test_tables_are_cut_into_even_slices() -> None:
    path = "odps://p/tables/b"
    assert taken(asked([A, B], slices=4)) == [
        f"{A}?start=0&end=3", f"{A}?start=3&end=6", f"{A}?start=6&end=10", f"{path}?start=5&end=8"
    ]  # fmt: skip
    assert taken(asked([A], slices=100)) == [f"{A}?start={i}&end={i + 1}" for i in range(10)]
    assert taken(asked([A], slices=3))[-1] == f"{A}?start=6&end=10"


def test_without_end_and_without_agreement() -> None:
    queues = WorkQueues(rows_of)
    assert [queues.take(asked(["a"], epochs=None)) for _ in range(5)] == ["a"] * 5
    with pytest.raises(ConfigError, match="WorkQueue 'q' has other works in another task"):
        queues.take(asked(["b"], epochs=None))
    assert queues.take(asked(["b"], queue="other")) == "b"
    # told once, they are known
    assert queues.take({**asked(["a"], epochs=None), "works": []}) == "a"
    with pytest.raises(ConfigError, match="WorkQueue 'new': its works are not known"):
        queues.take(asked([], queue="new"))
    assert queues.take(asked(["b"]), "evaluator") == "b" and queues.take(asked(["a"], epochs=None), "worker") == "a"
    with pytest.raises(ConfigError, match="num_slices=0"):
        queues.take(asked([A], queue="none", slices=0))
