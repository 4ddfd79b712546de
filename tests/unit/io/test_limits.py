"""How long a job may wait for another program."""

from __future__ import annotations

import os
import threading
import time

import pytest

from akrunner.errors import JobStalledError, JobTimeoutError
from akrunner.io import limits


class Endless:
    """Work that ends only when it is interrupted."""

    def __init__(self) -> None:
        self.interrupted = threading.Event()

    def __call__(self) -> str:
        assert self.interrupted.wait(60)
        return "ended"


def test_without_limits_a_wait_gives_what_the_work_gives() -> None:
    assert limits.quiet() is None
    assert limits.waited(lambda: 5, lambda: None, "it") == 5
    with pytest.raises(ZeroDivisionError):
        limits.waited(lambda: 1 // 0, lambda: None, "it")


def test_the_job_s_time_ends_a_wait_that_began_before() -> None:
    work = Endless()
    with (
        limits.limited(0.2, None),
        pytest.raises(JobTimeoutError, match=r"timeout=0.2 s .* waited for db://there"),
    ):
        limits.waited(work, work.interrupted.set, "db://there")
    assert work.interrupted.is_set()


def test_the_job_s_time_counts_from_the_block_s_begin() -> None:
    with limits.limited(0.1, None):
        assert limits.waited(lambda: 5, lambda: None, "it") == 5
        time.sleep(0.2)
        work = Endless()
        with pytest.raises(JobTimeoutError):
            limits.waited(work, work.interrupted.set, "it")


def test_a_wait_in_which_something_has_to_move_has_a_limit_of_its_own() -> None:
    work = Endless()
    with limits.limited(600, 0.2):
        assert limits.quiet() == 0.2
        with pytest.raises(JobStalledError, match=r"nothing has moved for 0.2 s: the job waits for it.*\n.*stall_timeout="):
            limits.waited(work, work.interrupted.set, "it", limits.quiet())
    assert limits.quiet() is None


@pytest.mark.parametrize("timeout", [10**400, float("inf"), -1, True, "1"])
def test_what_is_no_time_is_no_limit(timeout: object) -> None:
    with limits.in_time(timeout):
        assert limits.deadline() is None


def test_no_stall_timeout_is_no_limit() -> None:
    with limits.limited(None, 0):
        assert limits.quiet() is None


def test_a_block_within_a_block_has_no_more_time() -> None:
    with limits.limited(0.2, None), limits.limited(600, None):
        work = Endless()
        with pytest.raises(JobTimeoutError):
            limits.waited(work, work.interrupted.set, "it")


def test_a_time_that_is_over_is_told_as_that_of_the_job_whose_it_is() -> None:
    with limits.limited(0.01, None):
        first = limits.current()
        with limits.limited(600, 30):
            assert limits.current() == first._replace(stall_timeout=30)
            time.sleep(0.02)
            with pytest.raises(JobTimeoutError, match="timeout=0.01 s"):
                limits.check_time("it")
    with limits.limited(600, None), limits.limited(5, None):
        own = limits.current()
        assert own.timeout == 5 and own.began is not None and own.until == own.began + 5


def test_a_server_that_never_answers_is_not_waited_for_when_a_url_is_opened() -> None:
    work = Endless()
    with limits.limited(0.2, None), pytest.raises(JobTimeoutError, match=r"waited for s3://me:\*\*\*@b/t"):
        limits.opened("s3://me:secret@b/t", work)
    work.interrupted.set()
    with limits.limited(600, 60):
        # what it waits for by itself has the same limits
        assert limits.opened("s3://b/t", lambda: (limits.deadline(), limits.quiet())) == (limits.deadline(), 60)
    # what is here, or has no limit, is opened in this thread
    for place in ("t.csv", "s3://b/t"):
        assert limits.opened(place, threading.get_ident) == threading.get_ident()
    with limits.limited(600, None):
        assert limits.opened("t.csv", threading.get_ident) == threading.get_ident()


def test_another_thread_has_the_limits_of_the_job() -> None:
    with limits.limited(600, None):
        given = limits.narrowed(None, 30)
    found: list[object] = []

    def look() -> None:
        found.append(limits.deadline())
        with limits.under(given), limits.limited(900, limits.quiet()):
            found.extend((limits.deadline(), limits.quiet()))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert found == [None, given.until, 30] and limits.deadline() is None


def test_what_is_left_of_the_job_s_time() -> None:
    assert limits.check_time("it") is None and limits.current().began is None
    with limits.limited(600, None):
        left = limits.check_time("it")
        assert left is not None and 0 < left <= 600
    with limits.limited(1e-9, None), pytest.raises(JobTimeoutError, match="waited for it"):
        limits.check_time("it")


def test_a_wait_by_looking_again_is_in_the_same_limits() -> None:
    now = time.monotonic()
    limits.waits_on("it", now - 1000)
    with limits.limited(600, 5):
        limits.waits_on("it", now)
        with pytest.raises(JobStalledError, match=r"moved for 5 s: the job waits for it\n.*--stall-timeout"):
            limits.waits_on("it", now - 6)
    with limits.limited(1e-9, None), pytest.raises(JobTimeoutError, match="waited for it"):
        limits.waits_on("it", now)


def test_a_pipe_is_waited_for_until_it_takes_bytes() -> None:
    reading, writing = os.pipe()
    limits.until_writable(writing, "it")
    os.set_blocking(writing, False)
    os.write(writing, bytes(1 << 20))
    with limits.limited(600, 0.2), pytest.raises(JobStalledError, match="the job waits for it"):
        limits.until_writable(writing, "it")
    reader = threading.Timer(0.2, os.read, (reading, 1 << 20))
    reader.start()
    with limits.limited(60, None):
        limits.until_writable(writing, "it")
    reader.join()
    os.close(reading)
    # there is an error to tell
    limits.until_writable(writing, "it")
    os.close(writing)
