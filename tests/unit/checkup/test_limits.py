"""What the kernel's files say, of machines and containers of both versions of control groups."""

from __future__ import annotations

import os
import resource
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from akrunner.checkup import limits
from akrunner.checkup.lines import BROKEN, LOOK, OK

MEMINFO = "MemTotal: 67108864 kB\nMemAvailable: 33554432 kB\nSwapTotal: 0 kB\n"
V2 = {"proc/self/cgroup": "0::/box/job\n", "proc/meminfo": MEMINFO}
V1 = {"proc/self/cgroup": "4:memory:/docker/ab\n3:cpu,cpuacct:/docker/ab\n2:pids:/docker/ab\n0::/\n", "proc/meminfo": MEMINFO}


def made(root: Path, files: dict[str, str]) -> str:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return str(root)


@pytest.mark.parametrize("used, state", [(1 << 30, OK), ((4 << 30) - (700 << 20), LOOK), ((4 << 30) - (100 << 20), BROKEN)])
@pytest.mark.parametrize(
    "known, most, now",
    [
        (V2, "sys/fs/cgroup/box/memory.max", "sys/fs/cgroup/box/memory.current"),
        (V1, "sys/fs/cgroup/memory/docker/ab/memory.limit_in_bytes", "sys/fs/cgroup/memory/docker/ab/memory.usage_in_bytes"),
    ],
    ids=["v2", "v1"],
)
def test_the_memory_of_a_container(tmp_path: Path, known: dict[str, str], most: str, now: str, used: int, state: str) -> None:
    root = made(tmp_path, {**known, most: f"{4 << 30}\n", now: f"{used}\n"})
    (line,) = limits.memory(root)
    assert line.state == state and "4.0 GiB for this container, of the machine's 64.0 GiB" in line.found
    assert bool(line.do) == (state != OK)


def test_memory_without_a_limit(tmp_path: Path) -> None:
    (line,) = limits.memory(made(tmp_path, {**V2, "sys/fs/cgroup/box/memory.max": "max\n"}))
    assert line.state == OK and line.found == "64.0 GiB; 32.0 GiB free; no swap"
    (line,) = limits.memory(made(tmp_path, {**V1, "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}))
    assert "container" not in line.found


def test_processes_that_were_killed(tmp_path: Path) -> None:
    lines = limits.memory(made(tmp_path, {**V2, "sys/fs/cgroup/box/job/memory.events": "low 0\noom 3\noom_kill 2\n"}))
    assert [line.about for line in lines] == ["memory", "out of memory"] and "2 processes" in lines[1].found


def test_no_kernel_files(tmp_path: Path) -> None:
    assert limits.memory(str(tmp_path))[0].state == LOOK
    assert limits.cores(str(tmp_path))[0].state == OK
    assert limits.processes(str(tmp_path))


@pytest.mark.parametrize(
    "known, files",
    [
        (V2, {"sys/fs/cgroup/box/cpu.max": "50000 100000\n"}),
        (
            V1,
            {
                "sys/fs/cgroup/cpu/docker/ab/cpu.cfs_quota_us": "50000",
                "sys/fs/cgroup/cpu/docker/ab/cpu.cfs_period_us": "100000",
            },
        ),
    ],
    ids=["v2", "v1"],
)
def test_a_share_of_the_cores(tmp_path: Path, known: dict[str, str], files: dict[str, str]) -> None:
    (line,) = limits.cores(made(tmp_path, {**known, **files}))
    assert line.state == LOOK and "the time of 0.5 of them" in line.found and "--intra-op-parallelism 1" in line.do


def test_a_processor_without_avx(tmp_path: Path) -> None:
    (line,) = limits.cores(made(tmp_path, {**V2, "proc/cpuinfo": "flags\t\t: fpu sse sse2\n"}))
    assert line.state == LOOK and "without AVX" in line.found
    assert limits.cores(made(tmp_path, {"proc/cpuinfo": "flags\t\t: fpu avx avx2\n"}))[0].state == OK


def test_what_ulimit_says(monkeypatch: pytest.MonkeyPatch) -> None:
    endless = (resource.RLIM_INFINITY,) * 2
    said: dict[int, Any] = {
        resource.RLIMIT_AS: endless,
        resource.RLIMIT_FSIZE: endless,
        resource.RLIMIT_NOFILE: (1 << 16, 1 << 16),
    }
    monkeypatch.setattr(resource, "getrlimit", lambda kind: said[kind])
    assert [line.state for line in limits.allowed()] == [OK, OK]
    said.update({resource.RLIMIT_AS: (4 << 30, 4 << 30), resource.RLIMIT_NOFILE: (256, 256)})
    addresses, files = limits.allowed()
    assert (addresses.state, files.state) == (LOOK, LOOK) and "--ulimit nofile=4096" in files.do
    said[resource.RLIMIT_NOFILE] = (256, 1 << 20)
    assert limits.allowed()[1].do == "ulimit -n 4096 before the job"
    said.update({resource.RLIMIT_AS: (1 << 29, 1 << 29), resource.RLIMIT_NOFILE: (16, 64)})
    assert [line.state for line in limits.allowed()] == [BROKEN, BROKEN]
    for most, state in ((10 << 10, BROKEN), (1 << 30, LOOK), (1 << 40, OK)):
        said[resource.RLIMIT_FSIZE] = (most, most)
        assert [(line.about, line.state) for line in limits.allowed()][2:] == [("size of files", state)]
    said[resource.RLIMIT_FSIZE] = (10 << 10, 10 << 10)
    assert limits.allowed()[-1].found == "10 KiB at most (ulimit -f)"
    for kilobytes, state in ((2_000_000, BROKEN), (4_000_000, LOOK)):
        said[resource.RLIMIT_AS] = (kilobytes << 10,) * 2
        assert limits.allowed()[0].state == state, "in the former TensorFlow is imported, and aborts when it computes"


@pytest.mark.parametrize("most, now, state", [(1 << 20, 10, OK), (400, 10, LOOK), (50, 10, BROKEN)])
def test_processes_of_a_container(tmp_path: Path, most: int, now: int, state: str) -> None:
    root = made(
        tmp_path,
        {**V1, "sys/fs/cgroup/pids/docker/ab/pids.max": f"{most}\n", "sys/fs/cgroup/pids/docker/ab/pids.current": f"{now}\n"},
    )
    (line,) = limits.processes(root)
    if state != OK:
        assert line.state == state and f"{now} of {most} in this container" in line.found


@pytest.mark.parametrize("soft, state", [(2000, OK), (1500, OK), (1400, LOOK), (1024, BROKEN), (900, BROKEN)])
def test_what_a_user_has_started_counts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, soft: int, state: str) -> None:
    def process(user: int | None, threads: int | None) -> SimpleNamespace:
        return SimpleNamespace(info={"uids": user and SimpleNamespace(real=user), "num_threads": threads})

    there = [process(7, 900), process(7, 100), process(8, 5000), process(None, None), process(7, None)]
    monkeypatch.setattr(limits.psutil, "process_iter", lambda attrs: iter(there))
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (soft, soft))
    monkeypatch.setattr(limits.os, "geteuid", lambda: 7)
    monkeypatch.setattr(limits.os, "getuid", lambda: 7)
    (line,) = limits.processes(str(tmp_path))
    assert (line.state, line.found) == (state, f"1000 of {soft} for this user (ulimit -u)")


def test_the_threads_of_this_user_are_counted() -> None:
    over = threading.Event()
    others = [threading.Thread(target=over.wait) for _ in range(3)]
    try:
        for one in others:
            one.start()
        assert limits._threads_of_user(os.getuid()) >= 4
    finally:
        over.set()
        for one in others:
            one.join()
