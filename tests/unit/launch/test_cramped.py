"""A limited address space: what it is, how much is used, and what this process must not reserve in it."""

from __future__ import annotations

import ctypes
import mmap
import os
import resource
import types
from typing import Any

import pyarrow as pa
import pytest

from akrunner.launch import cramped

POOL = "ARROW_DEFAULT_MEMORY_POOL"


def limited(monkeypatch: pytest.MonkeyPatch, kind: int, size: int) -> None:
    """One limit of this process; it has no other."""
    monkeypatch.setattr(resource, "getrlimit", lambda asked: (size if asked == kind else resource.RLIM_INFINITY,) * 2)


@pytest.fixture
def arrow(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Arrow's settings, and the variable as Arrow would have read it; nothing of this process is changed."""
    seen: dict[str, Any] = {"pool": "system", "cpu": 8, "io": 8, "allocated": 0}

    def default_pool() -> Any:
        seen["variable"] = os.environ.get(POOL)
        return types.SimpleNamespace(backend_name=seen["pool"])

    def allocate(size: int, memory_pool: object) -> None:
        seen["allocated"] = size

    monkeypatch.setattr(ctypes, "CDLL", lambda name: types.SimpleNamespace(mallopt=lambda *given: 1))
    monkeypatch.setattr(pa, "default_memory_pool", default_pool)
    monkeypatch.setattr(pa, "mimalloc_memory_pool", lambda: "mimalloc")
    monkeypatch.setattr(pa, "system_memory_pool", lambda: "the system's")
    monkeypatch.setattr(pa, "allocate_buffer", allocate)
    monkeypatch.setattr(pa, "set_memory_pool", lambda pool: seen.update(set=pool))
    monkeypatch.setattr(pa, "cpu_count", lambda: seen["cpu"])
    monkeypatch.setattr(pa, "set_cpu_count", lambda count: seen.update(cpu=count))
    monkeypatch.setattr(pa, "io_thread_count", lambda: seen["io"])
    monkeypatch.setattr(pa, "set_io_thread_count", lambda count: seen.update(io=count))
    return seen


def test_a_limit_is_said_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    limited(monkeypatch, resource.RLIMIT_AS, 3 << 30)
    assert cramped.limit() == 3 << 30
    limited(monkeypatch, resource.RLIMIT_STACK, 1 << 20)
    assert cramped.limit() is None, "the stack's is another"


def test_a_thread_takes_as_much_as_a_stack_may_have(monkeypatch: pytest.MonkeyPatch) -> None:
    limited(monkeypatch, resource.RLIMIT_STACK, 1 << 20)
    assert cramped.stack() == 1 << 20
    limited(monkeypatch, resource.RLIMIT_AS, 3 << 30)
    assert cramped.stack() == 8 << 20, "what the C library takes if there is no limit"


def test_what_is_reserved_counts_as_used() -> None:
    before = cramped.used()
    with mmap.mmap(-1, 256 << 20):
        assert 256 << 20 <= cramped.used() - before < 512 << 20


def test_a_process_without_a_limit_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch, arrow: dict[str, Any]) -> None:
    limited(monkeypatch, resource.RLIMIT_STACK, 1 << 20)
    monkeypatch.setattr(ctypes, "CDLL", lambda name: pytest.fail("a library was opened"))
    cramped.lean()
    assert "set" not in arrow and arrow["cpu"] == 8


@pytest.mark.parametrize("given", [None, "jemalloc"])
def test_arrow_reserves_little_and_the_variable_stays_the_users(
    given: str | None, monkeypatch: pytest.MonkeyPatch, arrow: dict[str, Any]
) -> None:
    limited(monkeypatch, resource.RLIMIT_AS, 3 << 30)
    monkeypatch.delenv(POOL, raising=False)
    if given is not None:
        monkeypatch.setenv(POOL, given)
    cramped.lean()
    cramped.lean()
    assert arrow["variable"] == "system" and os.environ.get(POOL) == given
    assert arrow["set"] == "the system's" and (arrow["cpu"], arrow["io"]) == (2, 2)
    assert not arrow["allocated"]


def test_one_core_is_not_made_two_threads(monkeypatch: pytest.MonkeyPatch, arrow: dict[str, Any]) -> None:
    limited(monkeypatch, resource.RLIMIT_AS, 3 << 30)
    arrow.update(cpu=1, io=1)
    cramped.lean()
    assert (arrow["cpu"], arrow["io"]) == (1, 1)


def test_an_allocator_that_was_there_first_reserves_at_once(monkeypatch: pytest.MonkeyPatch, arrow: dict[str, Any]) -> None:
    """So that what it takes counts as used."""
    limited(monkeypatch, resource.RLIMIT_AS, 3 << 30)
    arrow["pool"] = "mimalloc"
    cramped.lean()
    assert arrow["allocated"] and arrow["set"] == "the system's"


def test_no_room_for_arrow_is_an_error_that_changes_no_variable(monkeypatch: pytest.MonkeyPatch, arrow: dict[str, Any]) -> None:
    limited(monkeypatch, resource.RLIMIT_AS, 3 << 30)
    monkeypatch.setenv(POOL, "jemalloc")

    def no_room() -> Any:
        raise MemoryError("malloc of size 64 failed")

    monkeypatch.setattr(pa, "default_memory_pool", no_room)
    with pytest.raises(MemoryError, match="malloc of size 64 failed"):
        cramped.lean()
    assert os.environ[POOL] == "jemalloc"


def test_a_c_library_of_another_kind_is_no_error(monkeypatch: pytest.MonkeyPatch, arrow: dict[str, Any]) -> None:
    limited(monkeypatch, resource.RLIMIT_AS, 3 << 30)

    def library(name: str | None) -> object:
        if name is not None:
            raise OSError(f"{name}: cannot open shared object file")
        return object()

    monkeypatch.setattr(ctypes, "CDLL", library)
    cramped.lean()
    assert arrow["set"] == "the system's"
