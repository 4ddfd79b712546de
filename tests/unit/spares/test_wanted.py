"""Which spare is right for which job."""

from __future__ import annotations

import dataclasses
import os
import signal
from pathlib import Path

import pytest

from akrunner.spares.wanted import Wanted, is_late, limits, surroundings

MINE = Wanted("/python", {"A": "secret", "TMPDIR": "/tmp"}, "", (), {}, {"umask": "0022"})


def test_the_same_is_right() -> None:
    assert MINE.other(MINE) == ""
    moved = dataclasses.replace(
        MINE, env={"A": "secret", "TMPDIR": "/other", "PWD": "/", "AKRUNNER_JOB": "1", "TF_CONFIG": "{}"}
    )
    assert MINE.other(moved) == "", "what nothing reads at import may differ"


def test_another_is_told_in_words_and_without_values() -> None:
    for change, words in {
        "python": ({"python": "/other"}, "/other (python_env=)"),
        "set": ({"env": {**MINE.env, "TF_USE_LEGACY_KERAS": "1"}}, "variable TF_USE_LEGACY_KERAS is set for this one,"),
        "unset": ({"env": {}}, "variable A is not set for this one,"),
        "value": ({"env": {"A": "hidden"}}, "variable A has another value for this one,"),
        "more": ({"env": {"A": "x", "B": "y"}}, "variable A has another value for this one (and 1 more)"),
        "overlay": ({"overlay": "/o"}, "requirements="),
        "cores": ({"cpus": (0,)}, "cpus_per_worker="),
        "umask": ({"surroundings": {"umask": "0077"}}, "another umask"),
    }.values():
        told = MINE.other(dataclasses.replace(MINE, **change))
        assert words in told and "secret" not in told and "hidden" not in told
    assert "secret" not in repr(MINE)


def test_surroundings_are_those_of_a_child() -> None:
    before = surroundings()
    assert before == surroundings()
    old = os.umask(0o027)
    try:
        assert surroundings()["umask"].strip() == "0027"
    finally:
        os.umask(old)


@pytest.mark.parametrize(("number", "counts"), [(signal.SIGPIPE, False), (signal.SIGXFSZ, False), (signal.SIGUSR2, True)])
def test_signals_count_that_a_child_goes_on_to_ignore(number: signal.Signals, counts: bool) -> None:
    """Not those that are set anew for it. A library that is written in Go handles SIGPIPE in the host."""
    before = surroundings()
    old = signal.signal(number, signal.SIG_IGN)
    try:
        ignored = surroundings()
        signal.signal(number, signal.SIG_DFL)
        assert (ignored != surroundings()) == counts == (ignored != before)
    finally:
        signal.signal(number, old)


def test_what_is_late() -> None:
    assert all(map(is_late, ("TF_CONFIG", "AKRUNNER_HOST", "TMPDIR", "_RJEM_MALLOC_CONF")))
    assert not any(map(is_late, ("TF_USE_LEGACY_KERAS", "CUDA_VISIBLE_DEVICES", "OMP_NUM_THREADS", "PYTHONPATH", "TZ")))


def test_limits_of_control_groups_count_in_both_versions_of_them(tmp_path: Path) -> None:
    files = {
        "proc/self/cgroup": "5:devices:/docker/a\n4:memory:/user/term-1\n3:cpu,cpuacct:/user/term-1\n2:pids:/\n1:name=systemd:/term-1\n0::/box",
        "sys/fs/cgroup/memory/user/memory.limit_in_bytes": "1000",
        "sys/fs/cgroup/memory/user/term-1/memory.limit_in_bytes": "9223372036854771712",
        "sys/fs/cgroup/cpu/user/term-1/cpu.cfs_quota_us": "-1",
        "sys/fs/cgroup/cpu/user/term-1/cpu.shares": "1024",
        "sys/fs/cgroup/pids/pids.max": "64",
        "sys/fs/cgroup/box/memory.max": "max",
        "sys/fs/cgroup/box/cpu.max": "50000 100000",
        "sys/fs/cgroup/box/cpu.weight": "100",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text + "\n")
    found = [(os.path.relpath(name, tmp_path) if "/" in name else name, value) for name, value in limits(str(tmp_path))]
    assert found == [
        ("sys/fs/cgroup/memory/user/memory.limit_in_bytes", "1000"),
        ("sys/fs/cgroup/box/cpu.max", "50000 100000"),
        ("sys/fs/cgroup/pids/pids.max", "64"),
        ("devices", "/docker/a"),
    ]
