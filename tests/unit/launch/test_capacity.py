"""How many tasks a machine could hold: more than anybody wants, and not without end."""

from __future__ import annotations

import os
import resource
import subprocess
import sys

import pytest

from akrunner.errors import ConfigError
from akrunner.launch import cramped
from akrunner.launch.capacity import check_fits, most_tasks


def test_it_says_how_many_and_why() -> None:
    most, why = most_tasks()
    assert 1 <= most <= 20_000 and why
    with pytest.raises(ConfigError, match=rf"^num_ps={10**9}: this machine holds at most {most} tasks \("):
        check_fits(num_workers=2, num_ps=10**9, parallelism=None)
    with pytest.raises(ConfigError, match="^parallelism="):
        check_fits(num_workers=None, num_ps=None, parallelism=most + 1)


def test_what_is_no_number_is_for_others_to_refuse() -> None:
    check_fits(num_workers="2", num_ps=None, parallelism=object())


@pytest.mark.parametrize(
    "kind, limit, words",
    [
        (resource.RLIMIT_AS, 700 << 20, r"700 MiB of address space \(ulimit -v\)"),
        (resource.RLIMIT_NOFILE, 10, r"10 open files \(ulimit -n\)"),
    ],
)
def test_what_this_process_may_have(kind: int, limit: int, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda asked: (limit if asked == kind else resource.RLIM_INFINITY,) * 2)
    with pytest.raises(ConfigError, match=rf"^this process may have {words}; a job needs at least"):
        check_fits(num_workers=1)


def test_room_for_so_many_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    made_lean: list[bool] = []
    monkeypatch.setattr(cramped, "lean", lambda: made_lean.append(True))
    monkeypatch.setattr(cramped, "used", lambda: 1 << 30)
    monkeypatch.setattr(cramped, "stack", lambda: 8 << 20)
    monkeypatch.setattr(cramped, "limit", lambda: None)
    check_fits(num_workers=2)
    assert not made_lean
    monkeypatch.setattr(cramped, "limit", lambda: 3 << 30)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    check_fits(num_workers=2)
    assert made_lean
    with pytest.raises(
        ConfigError, match=r"3072 MiB of address space \(ulimit -v\) and has used 1024 .* job of 60 tasks .*num_workers="
    ):
        check_fits(num_workers=50, num_ps=10)
    monkeypatch.setattr(cramped, "limit", lambda: (1 << 30) + (200 << 20))
    with pytest.raises(ConfigError, match="a job of 1 task needs 376 more"):
        check_fits(num_workers=None)


@pytest.mark.slow
def test_a_process_of_little_room_starts_its_threads_late() -> None:
    """Arrow's allocator alone would reserve 1 GiB."""
    code = (
        "import resource; resource.setrlimit(resource.RLIMIT_AS, (1500 << 20,) * 2)\n"
        "from akrunner.launch import cramped; cramped.lean(); cramped.lean()\n"
        "import os, duckdb, pyarrow as pa, pyarrow.dataset, pyarrow.parquet\n"
        "duckdb.connect().register('x', pa.table({'a': [1]})).sql('SELECT a FROM x ORDER BY a').fetchall()\n"
        "assert 'ARROW_DEFAULT_MEMORY_POOL' not in os.environ\n"
        "assert cramped.used() < 700 << 20, cramped.used()\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
