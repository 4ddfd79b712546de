"""Limits of containers, of both versions of control groups."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from akrunner.launch import cgroups


def test_a_group_and_those_above_it_count(tmp_path: Path) -> None:
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text("9:memory:/docker/../ab\n8:pids:/ab\n0::/box/job\nnonsense\n")
    files = {
        "sys/fs/cgroup/box/memory.max": "1000", "sys/fs/cgroup/box/memory.current": "300", "sys/fs/cgroup/box/job/memory.max": "max",
        "sys/fs/cgroup/memory/docker/ab/memory.limit_in_bytes": "2000", "sys/fs/cgroup/pids/ab/pids.max": "64",
    }  # fmt: skip
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text + "\n")
    assert sorted(cgroups.memory(str(tmp_path))) == [(1000, 300), (2000, 0)]
    assert cgroups.processes(str(tmp_path)) == [(64, 0)] and cgroups.cores(str(tmp_path)) is None
    assert cgroups.memory(str(tmp_path / "nowhere")) == []


def written(root: Path, files: dict[str, str]) -> str:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text + "\n")
    return str(root)


@pytest.mark.parametrize(
    "group, most, now, stat",
    [
        ("0::/box", "box/memory.max", "box/memory.current", "anon 100\ninactive_file 600\n"),
        (
            "4:memory:/box",
            "memory/box/memory.limit_in_bytes",
            "memory/box/memory.usage_in_bytes",
            "inactive_file 1\ntotal_inactive_file 600\n",
        ),
    ],
)
def test_files_that_are_only_cached_are_no_memory_in_use(tmp_path: Path, group: str, most: str, now: str, stat: str) -> None:
    files = {"proc/self/cgroup": group, f"sys/fs/cgroup/{most}": "1000", f"sys/fs/cgroup/{now}": "900"}
    root = written(tmp_path, files)
    assert cgroups.memory(root) == [(1000, 900)]
    written(tmp_path, {f"sys/fs/cgroup/{os.path.dirname(most)}/memory.stat": stat})
    assert cgroups.memory(root) == [(1000, 300)]


def test_processes_that_were_killed_for_want_of_memory(tmp_path: Path) -> None:
    root = written(tmp_path, {"proc/self/cgroup": "0::/box"})
    assert cgroups.killed(root) == 0
    written(tmp_path, {"sys/fs/cgroup/box/memory.events": "oom 5\noom_kill 2\noom_group_kill 0"})
    assert cgroups.killed(root) == 2
    written(
        tmp_path,
        {
            "proc/self/cgroup": "4:memory:/old\n0::/box",
            "sys/fs/cgroup/memory/old/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 3",
            "sys/fs/cgroup/box/memory.events": "oom 0",
        },
    )
    assert cgroups.killed(root) == 3
