"""From spawning to the verdict: who is awaited, who is told what and when, and what is said."""

from __future__ import annotations

from akrunner.engines.supervision import actions as do
from akrunner.engines.supervision import events as on
from akrunner.engines.supervision import machine
from akrunner.engines.supervision.machine import ROWS_GRACE
from akrunner.engines.supervision.states import Ending, Phase
from tests.unit.engines.supervision.play import (
    CHIEF,
    EVALUATOR,
    IN_JOIN,
    IN_MAIN,
    OTHER,
    SERVER,
    TICK,
    WORKER,
    Play,
    rules,
)


def test_main_is_entered_when_all_are_ready_and_fed() -> None:
    play = Play(rules(2))
    play.import_all()
    play.happened(on.Ready(CHIEF, 5, 5), on.Fed())
    assert play.done(do.Start) == [] and play.states() == ["ready", "importing"]
    play.happened(on.Ready(WORKER, 5, 5))
    assert play.done(do.Start) == [do.Start()]
    play.happened(on.Entered(CHIEF), on.Fed(), on.Tick(play.facts))
    assert len(play.done(do.Start)) == 1 and play.state.entered_at == play.now
    # and the other way round
    play = Play(rules(1))
    play.happened(on.Opened(CHIEF), on.Ready(CHIEF, 5, 5))
    assert play.done(do.Start) == []
    play.happened(on.Fed())
    assert play.done(do.Start) == [do.Start()]


def test_a_stream_need_not_have_ended() -> None:
    play = Play(rules(1, streaming=True))
    play.happened(on.Opened(CHIEF), on.Ready(CHIEF, 0, 7))
    assert play.done(do.Start) == [do.Start()]
    play.happened(on.Entered(CHIEF))
    play.close(CHIEF, read=7)
    assert play.verdict.ending is Ending.SUCCEEDED and play.state.tasks[CHIEF].rows_in == 7


def test_success_is_the_word_of_every_worker() -> None:
    play = Play(rules(3))
    play.enter_all()
    play.close(CHIEF, OTHER)
    play.wait(5)
    assert play.state.verdict is None and play.stopped() == []
    play.close(WORKER)
    assert play.verdict.ending is Ending.SUCCEEDED and play.verdict.failures == ()
    assert machine.closing(play.state) == do.Closing((), play.tasks, play.tasks, 2.0)


def test_servers_are_told_to_stop_when_the_work_is_done() -> None:
    play = Play(rules(2, num_ps=1))
    play.enter_all()
    play.happened(on.Serving(SERVER))
    play.close(CHIEF)
    assert play.stopped() == []
    play.close(WORKER)
    assert play.stopped() == [SERVER] and play.state.phase is Phase.STOPPING and play.state.verdict is None
    play.close(SERVER)
    assert play.verdict.ending is Ending.SUCCEEDED and play.warnings() == []


def test_a_server_that_does_not_stop_is_killed_and_the_work_is_done() -> None:
    play = Play(rules(1, num_ps=1))
    play.enter_all()
    play.happened(on.Serving(SERVER))
    play.close(CHIEF)
    assert 2 < play.wait(60) < 2 + 2 * TICK
    assert play.verdict.ending is Ending.SUCCEEDED
    assert play.warnings() == ["ps:0 did not end within 2 s of being told to; killed"]


def test_what_fails_while_it_is_told_to_stop_is_only_told() -> None:
    play = Play(rules(1, num_ps=1))
    play.enter_all()
    play.happened(on.Serving(SERVER))
    play.close(CHIEF)
    play.exits[SERVER] = ("SIGABRT (exit code 134): abort", False)
    play.happened(on.PipeEnded(SERVER))
    assert play.verdict.ending is Ending.SUCCEEDED and play.states() == ["finished", "ended"]
    (told,) = play.warnings()
    assert told.startswith("[ps:0] ended in main()") and told.endswith(
        "SIGABRT (exit code 134): abort, when it was told to end"
    )


def test_a_server_may_be_about_to_write_rows() -> None:
    play = Play(rules(1, num_ps=1))
    play.enter_all()
    play.close(CHIEF)
    assert play.state.phase is Phase.WRITING and play.stopped() == []
    play.write(SERVER)
    play.close(SERVER)
    assert play.verdict.ending is Ending.SUCCEEDED and play.warnings() == [] and play.stopped() == []


def test_a_server_that_is_ended_in_main_is_told_of_unless_it_waits() -> None:
    for stack, told in ((IN_MAIN, 1), (IN_JOIN, 0)):
        play = Play(rules(1, num_ps=1))
        play.enter_all()
        play.stacks[SERVER] = stack
        play.close(CHIEF)
        waited = play.wait(ROWS_GRACE + 2 * TICK)
        assert waited > ROWS_GRACE and play.stopped() == [SERVER]
        assert [what.startswith("[ps:0] was ended in main()") for what in play.warnings()] == [True] * told
    # nobody writes rows: it is not waited for
    play = Play(rules(1, num_ps=1, counted=False, schema_given=False))
    play.enter_all()
    play.close(CHIEF)
    assert play.stopped() == [SERVER]


def test_the_evaluator_gets_its_time() -> None:
    play = Play(rules(1, evaluator=True, wait={"evaluator_timeout": 3.0}))
    play.enter_all()
    play.close(CHIEF)
    play.wait(1)
    assert play.stopped() == []
    play.close(EVALUATOR)
    assert play.verdict.ending is Ending.SUCCEEDED and play.warnings() == []
    play = Play(rules(1, evaluator=True, wait={"evaluator_timeout": 3.0}))
    play.enter_all()
    play.close(CHIEF)
    play.wait(3 + 2 * TICK)
    assert play.stopped() == [EVALUATOR]
    assert play.warnings() == [
        "[evaluator:0] was still in main() 3 s after chief and workers were done, and was ended (evaluator_timeout=)"
    ]


def test_an_evaluator_that_fails_fails_the_job_as_long_as_it_is_waited_for() -> None:
    play = Play(rules(1, evaluator=True))
    play.enter_all()
    play.close(CHIEF)
    play.exits[EVALUATOR] = ("exit code 3", False)
    play.happened(on.PipeEnded(EVALUATOR))
    play.wait(1)
    assert play.verdict.ending is Ending.FAILED and play.verdict.failures[0][0] == EVALUATOR


def test_after_a_failure_nobody_is_told_that_the_work_is_done() -> None:
    play = Play(rules(1, evaluator=True, num_ps=1))
    play.enter_all()
    play.exits[SERVER] = ("exit code 3", False)
    play.happened(on.PipeEnded(SERVER))
    play.close(CHIEF, EVALUATOR)
    assert play.state.phase is Phase.WORKING and play.stopped() == []
    play.wait(1)
    assert play.verdict.ending is Ending.FAILED and play.verdict.failures[0][0] == SERVER


def test_workers_that_serve_a_chief_who_coordinates() -> None:
    play = Play(rules(2, coordinator=True))
    play.enter_all()
    play.happened(on.Serving(WORKER))
    play.stacks[OTHER] = IN_MAIN
    play.close(CHIEF)
    play.wait(1)
    asked = play.done(do.AskStacks)
    assert asked and {one.purpose for one in asked} == {on.Purpose.JOIN} and {one.tasks for one in asked} == {(OTHER,)}
    assert play.state.verdict is None
    play.stacks[OTHER] = IN_JOIN
    play.wait(3)
    assert play.stopped() == [WORKER, OTHER], "it does not say that it serves; its stack does"


def test_looks_at_workers_come_less_and_less_often() -> None:
    play = Play(rules(1, coordinator=True))
    play.enter_all()
    play.stacks[WORKER] = IN_MAIN
    play.close(CHIEF)
    play.computing = True
    play.wait(60)
    assert 5 <= len(play.done(do.AskStacks)) <= 10 and play.state.verdict is None


def test_those_that_stay_go_when_all_scripts_have_ended() -> None:
    play = Play(rules(2, staying=(CHIEF, WORKER)))
    play.enter_all()
    play.happened(on.Closed(CHIEF, play.state.tasks[CHIEF].word))
    play.wait(1)
    assert play.stopped() == []
    play.happened(on.Closed(WORKER, play.state.tasks[WORKER].word))
    assert play.stopped() == [CHIEF, WORKER] and play.verdict.ending is Ending.SUCCEEDED
    assert machine.closing(play.state).let_go == (), "they were told already"


def test_one_that_was_to_stay_and_dies_fails_the_job() -> None:
    play = Play(rules(2, staying=(CHIEF, WORKER)))
    play.enter_all()
    play.exits[CHIEF] = ("SIGSEGV (exit code 139)", False)
    play.close(CHIEF)
    play.wait(1)
    (failed,) = play.verdict.failures
    assert "after its script was done, while others may have needed its TensorFlow server" in failed[1].what
    # one that has ended itself may not have been needed
    play = Play(rules(2, staying=(CHIEF, WORKER)))
    play.enter_all()
    play.exits[CHIEF] = ("exit code 0", True)
    play.close(CHIEF)
    play.wait(1)
    assert play.state.verdict is None and play.state.tasks[CHIEF].gone


def test_those_that_stay_are_let_go_when_another_fails() -> None:
    play = Play(rules(2, staying=(CHIEF, WORKER)))
    play.enter_all()
    play.happened(on.Closed(CHIEF, play.state.tasks[CHIEF].word))
    play.exits[WORKER] = ("exit code 3", False)
    play.happened(on.PipeEnded(WORKER))
    play.wait(1)
    assert play.verdict.ending is Ending.FAILED
    closing = machine.closing(play.state)
    assert (closing.let_go, closing.wait_for) == ((CHIEF,), (CHIEF,)), "it has exit handlers to run"


def test_rows_are_counted_where_they_arrive() -> None:
    play = Play(rules(2))
    play.enter_all()
    play.write(CHIEF, 2)
    play.write(WORKER, 3)
    play.write(CHIEF, 5)
    assert [(record.rows_out, record.bytes_out) for record in play.state.tasks.values()] == [(7, 56), (3, 24)]


def test_a_task_that_has_failed_is_not_done_whatever_it_says() -> None:
    play = Play(rules(1))
    play.enter_all()
    play.happened(on.HostFault(OSError()))
    assert play.verdict.ending is Ending.FAULT
    play = Play(rules(2))
    play.enter_all()
    play.exits[WORKER] = ("exit code 3", False)
    play.happened(on.PipeEnded(WORKER))
    play.close(CHIEF, WORKER)
    play.happened(on.Serving(WORKER), on.Ready(WORKER, 1, 1))
    assert play.states() == ["finished", "failed"]
    play.wait(1)
    assert play.verdict.ending is Ending.FAILED
