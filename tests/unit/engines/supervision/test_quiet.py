"""Tasks that say nothing: who is looked at, when that is told, and when it is the end."""

from __future__ import annotations

from dataclasses import replace

import pytest

from akrunner.engines.supervision import actions as do
from akrunner.engines.supervision import events as on
from akrunner.engines.supervision import quiet
from akrunner.engines.supervision.stall import SOON_SECONDS
from akrunner.engines.supervision.states import Ending, Moment
from tests.unit.engines.supervision.play import CHIEF, IN_JOIN, IN_MAIN, IN_SESSION, TICK, WORKER, Play, rules


def entered(workers: int = 1, **options: object) -> Play:
    play = Play(rules(workers, **options))
    play.enter_all()
    return play


def test_nothing_moves_and_nobody_computes() -> None:
    play = entered(wait={"stall_timeout": 30.0})
    waited = play.wait(100)
    assert 30 < waited < 30 + 1 + 2 * TICK and play.verdict.ending is Ending.STALLED
    assert play.verdict.told == "nothing has moved for 30 s; "


def test_a_stall_that_only_warns_is_told_again_and_again() -> None:
    play = entered(wait={"stall_timeout": 30.0, "stall_action": "warn"})
    play.wait(100)
    assert play.state.verdict is None and len(play.warnings()) == 3


@pytest.mark.slow
def test_never_when_nobody_minds() -> None:
    play = entered(wait={"stall_timeout": 0.0})
    play.wait(2000)
    assert play.did == [do.Start()]


@pytest.mark.parametrize("what", ["moved", "sent", "cpu", "computing", "waiting"])
def test_something_moves(what: str) -> None:
    """Frames, bytes to the workers, processor time of the tasks or of what they have started, frames that wait for the host."""
    play = entered(wait={"stall_timeout": 5.0})
    play.computing, play.waiting = what == "computing", int(what == "waiting")
    for _ in range(30):
        play.wait(1)
        if what in ("moved", "sent", "cpu"):
            play.facts = replace(play.facts, **{what: getattr(play.facts, what) + 1})
    assert play.state.verdict is None
    assert bool(play.done(do.LookClosely)) == (what in ("computing", "waiting"))


def test_a_slow_source_is_none_of_the_tasks_doing() -> None:
    play = Play(rules(wait={"stall_timeout": 5.0}))
    play.import_all()
    play.facts = replace(play.facts, in_source=True)
    play.wait(20)
    assert play.state.verdict is None and len(play.warnings()) == 3


def test_a_stream_may_be_silent_while_its_source_is() -> None:
    play = entered(streaming=True, wait={"stall_timeout": 5.0})
    play.facts = replace(play.facts, in_source=True)
    play.wait(60)
    assert play.did == [do.Start()]
    play.facts = replace(play.facts, in_source=False)
    play.wait(60)
    assert play.verdict.ending is Ending.STALLED


def test_one_that_waits_for_those_that_are_gone_is_told_soon() -> None:
    play = entered(2)
    play.close(CHIEF)
    play.stacks[WORKER] = IN_SESSION
    play.wait(60)
    assert SOON_SECONDS < play.now - 100 < SOON_SECONDS + 1 + 2 * TICK
    assert play.verdict.ending is Ending.STALLED and "worker:0 waits for a TensorFlow session with chief:0" in play.verdict.told
    (asked,) = play.done(do.AskStacks)
    assert asked == do.AskStacks(on.Purpose.VAIN, (CHIEF, WORKER), quietly=True)


def test_one_that_serves_a_chief_who_is_done_is_told_soon() -> None:
    play = entered(2)
    play.close(CHIEF)
    play.stacks[WORKER] = IN_JOIN
    play.wait(60)
    assert "serves (server.join(), which never returns), and chief:0" in play.verdict.told


def test_one_that_may_go_on_has_its_time() -> None:
    play = entered(2, wait={"stall_timeout": 100.0})
    play.close(CHIEF)
    play.stacks[WORKER] = IN_MAIN
    play.wait(90)
    assert play.state.verdict is None and len(play.done(do.AskStacks)) == 4, "after 10, 20, 40 and 80 seconds"
    play.wait(60)
    assert play.verdict.told == "nothing has moved for 100 s; "


def test_servers_of_those_that_stay_do_answer() -> None:
    for gone in (True, False):
        play = entered(2, staying=(CHIEF, WORKER))
        play.happened(on.Closed(CHIEF, play.state.tasks[CHIEF].word))
        if gone:
            play.exits[CHIEF] = ("exit code 0", True)
            play.happened(on.PipeEnded(CHIEF))
        play.stacks[WORKER] = IN_SESSION
        play.wait(15)
        assert (play.state.verdict is not None) == gone


def test_a_stall_that_is_fatal_is_the_verdict_and_another_one_a_warning() -> None:
    state = entered(wait={"stall_timeout": 30.0}).state
    at = Moment(100.0, 100)
    ended, did = quiet.stall_told(state, on.StallTold("nothing moves", True), at)
    assert (ended.verdict.ending, ended.verdict.told, did) == (Ending.STALLED, "nothing moves", ())
    going, did = quiet.stall_told(state, on.StallTold("nothing moves", False), at)
    assert going.verdict is None and did == (do.Warn("nothing moves"),)
