"""Since when nothing has moved."""

from __future__ import annotations

from akrunner.engines.supervision.stall import SOON_SECONDS, Facts, Stall, computes

QUIET = Stall(60.0, 0.0)


def test_what_is_seen_for_the_first_time_moves() -> None:
    stall, closely = QUIET.seen(Facts(moved=1, sent=5, cpu=2.0), 100.0, False)
    assert not closely and (stall.since, stall.cpu) == (100.0, 2.0)
    stall, closely = stall.seen(Facts(moved=1, sent=5, cpu=2.1), 159.0, False)
    assert not closely and stall.since == 100.0
    assert stall.seen(Facts(moved=1, sent=5, cpu=2.1), 160.0, False)[1]


def test_tasks_that_compute_are_well() -> None:
    stall, closely = QUIET.seen(Facts(cpu=0.05 * 60 + 0.1), 60.0, False)
    assert not closely and stall.since == 60.0
    assert QUIET.seen(Facts(cpu=0.05 * 60), 60.0, False)[1]
    assert computes(0.1, 1.0) and not computes(0.05, 1.0)


def test_a_look_that_comes_sooner_comes_later_each_time() -> None:
    assert not QUIET.seen(Facts(), SOON_SECONDS, False)[1] and QUIET.seen(Facts(), SOON_SECONDS, True)[1]
    later = QUIET.later()
    assert not later.seen(Facts(), SOON_SECONDS, True)[1] and later.seen(Facts(), 2 * SOON_SECONDS, True)[1]
    assert QUIET.later().later().later().seen(Facts(), 60.0, True)[1], "never later than the time that is given"


def test_never() -> None:
    assert not Stall(0.0, 0.0).seen(Facts(), 1e9, True)[1]
