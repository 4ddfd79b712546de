"""Limits of containers, of both versions of control groups."""

from __future__ import annotations

from pathlib import Path

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
