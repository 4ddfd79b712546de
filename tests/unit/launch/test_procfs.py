from __future__ import annotations

import contextlib
import os
import subprocess
import sys

import psutil
import pytest

from akrunner.launch import procfs

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def test_it_says_what_psutil_says() -> None:
    own = psutil.Process()
    rss, cpu = procfs.usage(os.getpid())
    assert abs(rss - own.memory_info().rss) < 50 << 20
    times = own.cpu_times()
    assert abs(cpu - (times.user + times.system + times.children_user + times.children_system)) < 1
    assert procfs.group_cpu(os.getpgrp()) >= times.user * 0.9
    assert os.getpid() in set(procfs.pids())


def test_what_is_not_there() -> None:
    assert procfs.usage(2**30) == (0, 0.0)
    assert procfs.marked("AKRUNNER_JOB", ["nobody's mark"]) == []


def test_what_is_marked() -> None:
    """Whatever stands beside it, and not what only looks like it."""
    wait = [sys.executable, "-S", "-c", "import sys; sys.stdin.read()"]
    environs = [
        {"A": "1", "AKRUNNER_JOB": "one", "Z": "2"},
        {"AKRUNNER_JOB": "two"},
        {"AKRUNNER_JOB": "one2"},
        {"OF": "AKRUNNER_JOB=one"},
    ]
    with contextlib.ExitStack() as stack:
        started = [stack.enter_context(subprocess.Popen(wait, env=one, stdin=subprocess.PIPE)) for one in environs]
        assert sorted(procfs.marked("AKRUNNER_JOB", ["one", "two", "three"])) == sorted(one.pid for one in started[:2])
        assert procfs.marked("AKRUNNER_JOB", []) == []
        started[0].kill()
        # a zombie, until it is waited for
        os.waitid(os.P_PID, started[0].pid, os.WEXITED | os.WNOWAIT)
        assert procfs.marked("AKRUNNER_JOB", ["one", "two"]) == [started[1].pid]
