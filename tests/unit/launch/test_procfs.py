from __future__ import annotations

import os
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
    assert procfs.marked("AKRUNNER_JOB", "nobody's mark") == []
