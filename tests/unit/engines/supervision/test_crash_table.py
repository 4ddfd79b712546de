"""The crash table (tests/contract/test_crash_table.py, test_crash_modes.py) as the host sees it: what a task says, and how its process ends,
-> what becomes of the attempt. No process is started. A row that is new there needs an entry in `SCRIPT` or `EXITS` here, which
are looked up by its name."""

from __future__ import annotations

from typing import Any

import pytest

from akrunner.cluster.failure import FailureKind
from akrunner.engines.supervision import events as on
from akrunner.engines.supervision import machine
from akrunner.engines.supervision.machine import GATHER, GONE_WAIT
from akrunner.engines.supervision.states import Ending, Failed, LastWord, Rules
from akrunner.errors import OutputError, ReadError, StartError, TaskDiedError
from akrunner.spec import TaskSpec
from tests.contract.test_crash_modes import MODES
from tests.contract.test_crash_table import ALWAYS, BEFORE_DONE, FATAL, HARMLESS, WRONG_ROWS

from .play import CHIEF, IN_MAIN, TICK, WORKER, Play, names, rules

SCRIPT = {"raises": "raised RuntimeError in main(): boom", "sys.exit(3)": "called sys.exit(3)"}
SCRIPT["ignores SIGTERM"] = SCRIPT["raises"]
#: words of an exit, and whether it is one with code 0
EXITS: dict[str, tuple[str, bool]] = {
    "os._exit(0)": ("exit code 0", True),
    "segfault": ("SIGSEGV (exit code 139): segmentation fault", False),
    "abort": ("SIGABRT (exit code 134): abort", False),
    "SIGKILL": ("SIGKILL (exit code 137): killed from outside, by a person, a scheduler or the out-of-memory killer", False),
    "out of memory": ("SIGKILL (exit code 137): killed by the kernel's out-of-memory killer", False),
}
#: how a mode differs for the host: a stream's rows come while the script runs. Columns, and what is trained, are the same to it
IN_MODE: dict[str, Any] = {"batch": {}, "train": {}, "columns": {}, "stream": {"streaming": True}}


def test_every_mode_is_here() -> None:
    assert set(MODES) | {"batch"} == set(IN_MODE)


def at(when: str, mode: str = "batch", **options: Any) -> Play:
    """An attempt whose tasks are all at one of the crash table's moments."""
    play = Play(rules(**{**IN_MODE[mode], **options}))
    if when == "importing":
        play.import_all()
        return play
    # a file is read in main
    play.enter_all()
    if when == "writing":
        play.write(CHIEF)
    if when == "after":
        play.write(CHIEF, 3)
    return play


def crash(play: Play, event: str, task: TaskSpec = CHIEF) -> None:
    """What the host is told when a task dies one way or another."""
    if event in SCRIPT:
        failed = Failed(FailureKind.SCRIPT, SCRIPT[event], round(play.now * 1e9), "Traceback")
        play.happened(on.Closed(task, LastWord(), failed=failed))
        # one that ignores SIGTERM is still there; nobody waits for its pipe
        if event != "ignores SIGTERM":
            play.happened(on.PipeEnded(task))
        return
    assert event in EXITS, (
        f"{event!r}, a row of tests/contract/test_crash_table.py, has none here: say in SCRIPT what the host is told of its script, or in EXITS how its process ends"
    )
    play.exits[task] = EXITS[event]
    play.happened(on.PipeEnded(task))


def fails(play: Play, task: TaskSpec = CHIEF) -> Failed:
    """The attempt fails a moment later, for that task, and every process is ended. Returns: the root cause."""
    assert play.state.verdict is None, "an earlier failure may still be told"
    assert play.wait(10) <= GATHER + 2 * TICK
    assert play.verdict.ending is Ending.FAILED
    root, failed = play.verdict.failures[0]
    assert root == task
    ends(play)
    return failed


def ends(play: Play) -> None:
    """Everybody is told to end, and killed after the grace."""
    closing = machine.closing(play.state)
    assert closing.end == play.tasks and closing.grace == play.state.rules.wait.exit_grace


@pytest.mark.parametrize("mode", IN_MODE)
@pytest.mark.parametrize("when", BEFORE_DONE)
@pytest.mark.parametrize("event", FATAL)
def test_fatal(event: str, when: str, mode: str) -> None:
    play = at(when, mode)
    crash(play, event)
    failed = fails(play)
    assert failed.kind.error is FATAL[event][1]
    if event in EXITS:
        where = "while it imported" if when == "importing" else "in main(), without saying"
        assert where in failed.what and EXITS[event][0] in failed.what
    assert machine.closing(play.state).wait_for == (), "the others' exit handlers are not waited for"


@pytest.mark.parametrize("mode", IN_MODE)
@pytest.mark.parametrize("event", ["raises", "sys.exit(3)", "os._exit(0)", "segfault", "SIGKILL"])
def test_after_main(event: str, mode: str) -> None:
    """It had said that it was done, and every row was there: a success, whatever its process does then."""
    play = at("after", mode)
    play.exits[CHIEF] = EXITS.get(event, ("exit code 1", False))
    play.close(CHIEF)
    assert play.verdict.ending is Ending.SUCCEEDED
    assert machine.closing(play.state).wait_for == (CHIEF,), "it has exit handlers to run"


@pytest.mark.parametrize("mode", IN_MODE)
@pytest.mark.parametrize("when", ALWAYS)
@pytest.mark.parametrize("event", HARMLESS)
def test_harmless(event: str, when: str, mode: str) -> None:
    """What a script prints, or starts and leaves behind, is nothing to the supervisor: its pipe and its exit are what they would be."""
    play = at(when, mode)
    if when == "importing":
        play.happened(on.Fed(), on.Ready(CHIEF, 10, 10), on.Entered(CHIEF))
    play.exits[CHIEF] = ("exit code 0", True)
    play.close(CHIEF)
    assert play.verdict.ending is Ending.SUCCEEDED and play.warnings() == []


@pytest.mark.parametrize("mode", IN_MODE)
@pytest.mark.parametrize("when", BEFORE_DONE)
def test_hang(when: str, mode: str) -> None:
    play = at(when, mode, wait={"timeout": 5.0})
    play.stacks[CHIEF] = IN_MAIN
    play.wait(60)
    assert 5 < play.now - 100 < 5 + 2 * TICK
    assert play.verdict.ending is Ending.TIMED_OUT and play.verdict.stacks == {CHIEF: IN_MAIN}
    ends(play)


@pytest.mark.parametrize("when", BEFORE_DONE)
def test_hang_that_nobody_has_limited(when: str) -> None:
    """Nothing moves, nobody computes: that is told, and is the end. A stream may be silent while it waits for its source."""
    play = at(when, wait={"stall_timeout": 20.0})
    play.wait(100)
    assert play.verdict.ending is Ending.STALLED and 20 < play.now - 100 < 20 + 1 + 2 * TICK
    ends(play)


def test_hang_after_main() -> None:
    """It has succeeded; its process gets the grace, and is killed then."""
    play = at("after")
    play.happened(on.Closed(CHIEF, LastWord(), rows=3))
    assert play.verdict.ending is Ending.SUCCEEDED
    assert machine.closing(play.state).wait_for == (CHIEF,)
    ends(play)


@pytest.mark.parametrize("mode", IN_MODE)
@pytest.mark.parametrize("when", BEFORE_DONE)
def test_closes_our_pipes(when: str, mode: str) -> None:
    """And runs on: nobody knows what it does, and nobody waits for it."""
    play = at(when, mode)
    play.happened(on.PipeEnded(CHIEF))
    failed = fails(play)
    assert failed.kind is FailureKind.DIED and failed.what == "closed its pipe to the host and ran on"


def test_takes_no_more_rows() -> None:
    """As long as its end may still be noticed, nothing is said; then that it runs on."""
    play = at("importing")
    play.happened(on.Refused(CHIEF, play.now))
    assert GONE_WAIT < play.wait(20) < GONE_WAIT + GATHER + 3 * TICK
    assert play.verdict.failures[0][1].what == "no longer takes rows, and runs on"
    play = at("importing")
    play.happened(on.Refused(CHIEF, play.now))
    crash(play, "SIGKILL")
    assert "SIGKILL" in fails(play).what


@pytest.mark.parametrize(("rows", "read"), [(0, 0), (2, 10), (2, 5)], ids=["never reads", "sys.exit(0)", "reads half"])
def test_ends_early_and_well(rows: int, read: int) -> None:
    play = at("main")
    if rows:
        play.write(CHIEF, rows)
    play.close(CHIEF, read=read)
    assert play.verdict.ending is Ending.SUCCEEDED
    assert play.state.tasks[CHIEF].rows_in == 10, "what it was given, whatever its script has read"


def test_sys_exit_0_while_importing_is_a_failure() -> None:
    play = at("importing")
    play.happened(on.Closed(CHIEF, LastWord(), failed=Failed(FailureKind.SCRIPT, "called sys.exit(0) while importing", 1)))
    assert fails(play).kind is FailureKind.SCRIPT


@pytest.mark.parametrize("when", BEFORE_DONE)
def test_out_of_memory_kill(when: str) -> None:
    play = at(when)
    crash(play, "out of memory")
    assert "out-of-memory killer" in fails(play).what


@pytest.mark.parametrize("what", WRONG_ROWS)
def test_wrong_row(what: str) -> None:
    """Refused by the host when it arrives, or by the worker when it is written."""
    play = at("main")
    refused = WRONG_ROWS[what][1] is OutputError
    failed = Failed(FailureKind.OUTPUT if refused else FailureKind.SCRIPT, "wrote a row that is refused", 1)
    play.happened(on.TaskFailed(CHIEF, failed) if refused else on.Closed(CHIEF, LastWord(), failed=failed))
    # whatever it says of itself later
    play.happened(on.Closed(CHIEF, LastWord(), rows=0), on.PipeEnded(CHIEF))
    assert fails(play).kind.error is WRONG_ROWS[what][1]


@pytest.mark.parametrize("event", ["raises", "SIGKILL", "os._exit(0)"])
@pytest.mark.parametrize("workers", [2, 3])
def test_one_of_several_fails(event: str, workers: int) -> None:
    """The first failing task ends the attempt, whatever the others are doing."""
    play = at("main", workers=workers)
    crash(play, event, WORKER)
    fails(play, WORKER)
    assert names([task for task, _ in play.verdict.failures]) == ["worker:0"]
    assert play.states()[0] == "running", "the error says what it was doing when it was stopped"


def test_what_fails_first_is_the_cause_whoever_is_heard_first() -> None:
    play = at("main", workers=3)
    play.happened(on.TaskFailed(WORKER, Failed(FailureKind.SCRIPT, "lost its chief", 9)))
    play.now += GATHER / 2
    play.happened(on.TaskFailed(CHIEF, Failed(FailureKind.DIED, "ended in main(): SIGKILL", 5)))
    failed = fails(play)
    assert failed.what.endswith("SIGKILL") and names([task for task, _ in play.verdict.failures]) == ["chief:0", "worker:0"]


@pytest.mark.parametrize("mode", IN_MODE)
@pytest.mark.parametrize("when", BEFORE_DONE)
def test_source_that_raises(when: str, mode: str) -> None:
    """Also a value that cannot cross, and whatever a thread of the host ends with: at once, and no task is to blame."""
    play = at(when, mode)
    error = ReadError("the disk is gone")
    play.happened(on.HostFault(error))
    assert play.verdict.ending is Ending.FAULT and play.verdict.error is error
    ends(play)


def test_what_breaks_here_after_a_task_has_failed_is_a_consequence() -> None:
    play = at("main")
    crash(play, "SIGKILL")
    play.happened(on.HostFault(BrokenPipeError()), on.Cancelled(), on.PlacesFailed("Flink ended the job"))
    assert "SIGKILL" in fails(play).what


@pytest.mark.parametrize("when", BEFORE_DONE)
def test_cancelled(when: str) -> None:
    play = at(when, workers=2)
    play.happened(on.Cancelled())
    assert play.verdict.ending is Ending.CANCELLED
    ends(play)


@pytest.mark.parametrize(
    ("exit", "words"),
    [
        ("exit code 7", "ended before it said that it had started: exit code 7"),
        ("SIGSEGV (exit code 139)", "ended before it said that it had started: SIGSEGV"),
        ("", "said nothing for 2 s after it was started (start_timeout=)"),
    ],
)
def test_never_says_opened(exit: str, words: str) -> None:
    play = Play(rules(wait={"start_timeout": 2.0}))
    if exit:
        play.exits[CHIEF] = (exit, False)
        play.happened(on.PipeEnded(CHIEF))
    play.wait(10)
    assert play.now - 100 <= 2 + GATHER + 3 * TICK
    failed = play.verdict.failures[0][1]
    assert failed.kind.error is StartError and words in failed.what


def test_its_places_are_gone() -> None:
    play = at("main", workers=2)
    play.happened(on.PlacesFailed("Flink ended the job"))
    failed = fails(play)
    assert failed.kind.error is TaskDiedError and failed.what == "Flink ended the job"


LOST: list[tuple[str, on.Event, str]] = [
    ("rows in", on.Ready(CHIEF, 9, 10), "received 9 rows of the 10 it was sent"),
    ("rows out", on.Closed(CHIEF, LastWord(), rows=3), "wrote 3 rows, 2 arrived"),
    (
        "table",
        on.Closed(CHIEF, LastWord(), rows=2, unfinished="t"),
        "was done before the rows it wrote to table t had all arrived",
    ),
]


@pytest.mark.parametrize(("what", "event", "words"), LOST, ids=[what for what, _, _ in LOST])
def test_rows_that_are_lost(what: str, event: on.Event, words: str) -> None:
    play = at("importing") if what == "rows in" else at("writing")
    play.happened(event)
    failed = fails(play)
    assert failed.kind is FailureKind.LOST and failed.what == words


def test_a_broken_protocol() -> None:
    play = at("writing")
    play.happened(on.TaskFailed(CHIEF, Failed(FailureKind.BROKEN, "broke the protocol: it said ready after closed", 1)))
    assert fails(play).kind.error is TaskDiedError


def test_nothing_changes_behind_a_verdict() -> None:
    play = at("after")
    play.close(CHIEF)
    before, did = play.state, len(play.did)
    crash(play, "SIGKILL")
    play.happened(on.HostFault(OSError()), on.Tick(play.facts))
    assert play.state is before and len(play.did) == did


def test_the_rules_of_a_job_are_what_it_says() -> None:
    """A stream whose script is a program, without an output."""
    from akrunner.schema import Schema
    from akrunner.spec import JobSpec, ScriptSpec

    job = JobSpec(ScriptSpec("s.py", "s.py", program=True, pai=True), Schema(()), "python", mode="stream")
    assert Rules.of(job) == Rules(
        job.cluster, job.supervision, streaming=True, counted=False, schema_given=False, program=True, staying=()
    )
