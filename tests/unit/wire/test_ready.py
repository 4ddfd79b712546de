"""Waiting for a pipe, also where descriptors have high numbers."""

from __future__ import annotations

import os
import resource

import pytest

from akrunner.wire import ready


def test_a_pipe_is_ready_when_something_is_in_it_or_its_other_end_has_closed() -> None:
    read, write = os.pipe()
    assert ready.writable(write, 0) and not ready.readable(read, 0.01)
    os.write(write, b"x")
    assert ready.readable(read, None)
    os.close(write)
    os.read(read, 1)
    assert ready.readable(read, None)
    os.close(read)


def test_descriptors_above_those_that_select_takes() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 1500:
        pytest.skip(f"NOT RUN: only {hard} files may be open (ulimit -Hn)")
    resource.setrlimit(resource.RLIMIT_NOFILE, (1500, hard))
    try:
        read, write = os.pipe()
        os.dup2(write, 1400)
        os.close(write)
        assert ready.writable(1400, 0) and not ready.readable(read, 0)
        os.close(1400)
        assert ready.readable(read, 0)
        os.close(read)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
