from __future__ import annotations

import pytest

from akrunner.cluster.resources import assign
from akrunner.errors import ConfigError
from akrunner.spec import ClusterSpec, ResourceSpec

FOUR = ClusterSpec(2, 1, evaluator=True)


def test_one_worker_is_left_alone() -> None:
    (only,) = assign(ClusterSpec(), ResourceSpec(), ["0"], range(8), {}).values()
    assert only.env == {} and only.cpus == ()


def test_several_share_the_cores() -> None:
    assigned = assign(ClusterSpec(3, 1), ResourceSpec(), [], range(8), {})
    assert {part.env["TF_NUM_INTRAOP_THREADS"] for part in assigned.values()} == {"2"}
    assert {part.env["OMP_NUM_THREADS"] for part in assign(ClusterSpec(3), ResourceSpec(), [], range(2), {}).values()} == {"1"}


def test_what_the_user_has_set_stays() -> None:
    assigned = assign(ClusterSpec(2), ResourceSpec(), [], range(8), {"OMP_NUM_THREADS": "3"})
    assert all(part.env == {"TF_NUM_INTRAOP_THREADS": "4"} for part in assigned.values())
    asked = assign(ClusterSpec(2), ResourceSpec(intra_op_parallelism=1), [], range(8), {"OMP_NUM_THREADS": "3"})
    assert all(part.env == {"TF_NUM_INTRAOP_THREADS": "1", "OMP_NUM_THREADS": "1"} for part in asked.values())


def test_cores_of_ones_own() -> None:
    assigned = assign(FOUR, ResourceSpec(cpus_per_worker=2), [], [0, 2, 4, 6, 8], {})
    assert {task.name: part.cpus for task, part in assigned.items()} == {
        "chief:0": (0, 2), "worker:0": (4, 6), "ps:0": (), "evaluator:0": (),
    }  # fmt: skip
    chief = next(iter(assigned.values()))
    assert chief.env["TF_NUM_INTRAOP_THREADS"] == "2"


def test_graphics_cards() -> None:
    assigned = assign(FOUR, ResourceSpec(gpus_per_worker=2), ["3", "5", "6", "7", "8"], range(4), {})
    cards = {task.name: part.env["CUDA_VISIBLE_DEVICES"] for task, part in assigned.items()}
    assert cards == {"chief:0": "3,5", "worker:0": "6,7", "ps:0": "", "evaluator:0": ""}
    none = assign(FOUR, ResourceSpec(gpus_per_worker=0), ["3"], range(4), {})
    assert {part.env["CUDA_VISIBLE_DEVICES"] for part in none.values()} == {""}


def test_a_coordinator_needs_none() -> None:
    assigned = assign(ClusterSpec(1, coordinator=True), ResourceSpec(gpus_per_worker=1, cpus_per_worker=1), ["0"], [5], {})
    assert {task.name: (part.env["CUDA_VISIBLE_DEVICES"], part.cpus) for task, part in assigned.items()} == {
        "chief:0": ("", ()), "worker:0": ("0", (5,)),
    }  # fmt: skip


def test_too_few() -> None:
    with pytest.raises(ConfigError, match="gpus_per_worker=2: 2 workers need 4 graphics cards, this machine has 1"):
        assign(FOUR, ResourceSpec(gpus_per_worker=2), ["0"], range(4), {})
    with pytest.raises(ConfigError, match="cpus_per_worker=3: 2 workers need 6 cores, this machine has 4"):
        assign(FOUR, ResourceSpec(cpus_per_worker=3), [], range(4), {})
    with pytest.raises(ConfigError, match="gpus_per_worker=1: 1 worker needs 1 graphics card, this machine has 0"):
        assign(ClusterSpec(1), ResourceSpec(gpus_per_worker=1), [], range(4), {})
