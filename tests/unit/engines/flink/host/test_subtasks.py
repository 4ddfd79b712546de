"""The subtasks of a Flink job, with the job's submitter, its agents and its JobManager in this process: who has come, who can be used
again, what is said of a job that ends, and how it is ended."""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from akrunner.engines.flink.host import subtasks as subtasks_module
from akrunner.engines.flink.host.client import Submission
from akrunner.engines.flink.host.issue import JobKeys
from akrunner.engines.flink.host.subtask import RemoteSubtask
from akrunner.engines.flink.host.subtasks import Subtasks
from akrunner.engines.flink.keys import Door, Keys
from akrunner.engines.flink.rest import Address
from akrunner.errors import ClusterError, JobCancelledError, JobError, JobManagerLostError, StartError

KEYS = JobKeys(Keys("token"), Keys("token"))
MASTER = Address("http", "flink", 8081)


class ControlServer:
    """In place of the ports."""

    def __init__(self, host: str, keys: Keys, port: int | None = None, agents: int = 1) -> None:
        self.arrived: queue.Queue[RemoteSubtask] = queue.Queue()
        self.broken: str | None = None
        self.closed = False
        self.given = host, port, agents
        made.append(self)

    def door(self, host: str, keys: Keys) -> Door:
        return Door(host, 7001, 7002, keys)

    def close(self) -> None:
        self.closed = True


made: list[ControlServer] = []


class Client:
    """In place of what submits."""

    def __init__(self, error: Exception | None = None) -> None:
        self._error = error
        self.cancelled: list[Submission] = []
        self.hurried: list[Submission] = []
        self.ends = True

    def submit(self, order: Any) -> Submission:
        if self._error is not None:
            raise self._error
        self.order = order
        return Submission()

    def cancel(self, job: Submission) -> None:
        self.cancelled.append(job)
        if self.ends:
            job.ended.set()

    def hurry(self, job: Submission) -> None:
        self.hurried.append(job)

    def close(self) -> None:
        pass


class Watch:
    """In place of who asks the JobManager. Attributes: lost: it is gone."""

    def __init__(self, master: Address, job: Callable[[], str]) -> None:
        self.job = job
        self.state = ""
        self.lost = False
        self.answers: list[bool] = []
        self.closed = False

    def check(self) -> None:
        if self.lost:
            raise JobManagerLostError("the JobManager at flink:8081 is gone")

    def asked(self) -> bool:
        return self.answers.pop(0) if self.answers else True

    def close(self) -> None:
        self.closed = True


class Clock:
    """In place of `time`: whoever asks for the time waits a second by that."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        self.now += 1.0
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No port, no JobManager, and no waiting."""
    made.clear()
    for name, value in (
        ("ControlServer", ControlServer),
        ("Watch", Watch),
        ("time", Clock()),
        ("_TICK", 0.001),
        ("_WHY_SECONDS", 0.0),
    ):
        monkeypatch.setattr(subtasks_module, name, value)
    monkeypatch.setattr(subtasks_module, "_END_SECONDS", 0.01)
    yield


def of(count: int, with_rows: int = 0, master: Address | None = None) -> Subtasks:
    return Subtasks(Client(), "10.0.0.1", count, {"name": "akrunner"}, KEYS, master, 7001, with_rows)


def comes(subtasks: Subtasks, number: int, with_rows: bool = False, attempt: int = 0, job: str = "abc") -> RemoteSubtask:
    place = RemoteSubtask(number, with_rows, attempt, job)
    subtasks._control.arrived.put(place)
    return place


def submitted_by(subtasks: Subtasks) -> Client:
    assert isinstance(subtasks.client, Client)
    return subtasks.client


def told(place: RemoteSubtask) -> list[tuple[str, bool]]:
    """What it was told: (the error it leaves with, whether that is final)."""
    place.close()
    return [(word.leave.error, word.leave.final) for word in place.told() if word.HasField("leave")]


def test_a_job_is_submitted_with_a_door_for_its_agents() -> None:
    subtasks = of(3)
    order = submitted_by(subtasks).order
    assert order == {"name": "akrunner", "subtasks": 3, "door": Door("10.0.0.1", 7001, 7002, KEYS.agents).carried()}
    assert made[0].given == ("10.0.0.1", 7001, 3)


def test_a_job_that_cannot_be_submitted_leaves_no_port_open() -> None:
    with pytest.raises(StartError, match="no Java"):
        Subtasks(Client(StartError("no Java")), "10.0.0.1", 1, {}, KEYS)
    assert made[0].closed


def test_all_of_them_are_waited_for() -> None:
    subtasks = of(2)
    first, second = comes(subtasks, 1), comes(subtasks, 0)
    assert subtasks.come(10) == [first, second]
    assert subtasks.can_be_used() and not subtasks.any_gone()


def test_those_that_are_missing_are_named_up_to_eight_of_a_kind() -> None:
    subtasks = of(24, with_rows=12)
    comes(subtasks, 1, with_rows=True)
    subtasks.submitted.state = "RUNNING"
    with pytest.raises(StartError) as caught:
        subtasks.come(10)
    assert str(caught.value) == (
        "1 of 24 subtasks came within 10 s (slot_timeout=), missing: 0, 2, 3, 4, 5, 6, 7, 8 and 3 more, 0, 1, 2, 3, 4, 5, 6, 7 and 4 more of "
        "those without rows; the Flink job is RUNNING: it may lack task slots"
    )


@pytest.mark.parametrize(("failed", "state", "words"), [("no slots", "FAILED", "no slots"), (None, "CANCELED?", "CANCELED[?]")])
def test_a_job_that_ends_before_they_come_did_not_run(failed: str | None, state: str, words: str) -> None:
    subtasks = of(1)
    subtasks.submitted.failed, subtasks.submitted.state = failed, state
    subtasks.submitted.ended.set()
    with pytest.raises(StartError, match=f"^Flink did not run the job: {words}$"):
        subtasks.come(100)


@pytest.mark.parametrize(
    ("why", "told"),
    [
        ("java.io.IOException: error=2, No such file or directory", True),
        ("ModuleNotFoundError: No module named 'pyflink'", True),
        ("ModuleNotFoundError: No module named 'pyflink_utils'", False),
        ("no slots", False),
    ],
)
def test_a_python_that_taskmanagers_cannot_run_is_named_with_its_option(why: str, told: bool) -> None:
    subtasks = of(1)
    subtasks._python = "/nope/python"
    subtasks.submitted.fails(why)
    with pytest.raises(StartError) as caught:
        subtasks.come(100)
    assert ("; the TaskManagers run /nope/python (python_executable=, --flink-worker-python)" in str(caught.value)) is told


def test_an_earlier_attempt_is_sent_away_whichever_comes_first() -> None:
    subtasks = of(2)
    away: list[int] = []
    late, new, other = (comes(subtasks, number, attempt=attempt) for number, attempt in ((0, 0), (0, 1), (1, 1)))
    late.hang_up = lambda: away.append(0)
    assert subtasks.come(10) == [new, other] and away == [0]
    later = RemoteSubtask(1, attempt=0)
    later.hang_up = lambda: away.append(1)
    subtasks._came(later)
    assert subtasks.remotes == [new, other] and away == [0, 1]


def test_a_place_says_why_it_is_gone_in_flinks_words() -> None:
    subtasks = of(1)
    comes(subtasks, 0)
    (place,) = subtasks.come(10)
    assert place.why() is None
    assert submitted_by(subtasks).hurried == [subtasks.submitted], "it is asked at once"
    subtasks.submitted.failed = "no heartbeat"
    assert place.why() == "no heartbeat"


# -- whether all is well


def test_a_fault_of_akrunners_own_comes_first() -> None:
    subtasks = of(1)
    comes(subtasks, 0)
    (place,) = subtasks.come(10)
    subtasks.submitted.state = "CANCELED"
    place.broken = "the agent broke the protocol"
    with pytest.raises(JobError, match="the agent broke the protocol"):
        subtasks.check()
    subtasks._control.broken = "the server's traceback"
    with pytest.raises(JobError, match="the server's traceback"):
        subtasks.check()


@pytest.mark.parametrize("state", ["CANCELLING", "CANCELED"])
def test_a_job_that_somebody_has_cancelled_is_said_by_whoever_hears_of_it_first(state: str) -> None:
    subtasks = of(1, master=MASTER)
    subtasks.check()
    comes(subtasks, 0, job="j1")
    subtasks.come(10)
    assert subtasks._watch is not None and subtasks._watch.job() == "j1", "from an agent, as the client has not said it"
    subtasks._watch.state = state
    with pytest.raises(JobCancelledError, match="the Flink job j1 was cancelled"):
        subtasks.check()
    assert not subtasks.can_be_used()


def test_a_jobmanager_that_is_gone_is_the_jobs_end() -> None:
    subtasks = of(1, master=MASTER)
    subtasks.check()
    subtasks._watch.lost = True  # type: ignore[union-attr]
    with pytest.raises(JobManagerLostError):
        subtasks.check()
    assert subtasks.lost and subtasks.submitted.ended.is_set() and "is gone" in str(subtasks.submitted.failed)


def test_without_a_rest_service_nobody_is_watched() -> None:
    subtasks = of(1)
    subtasks.check()
    assert subtasks._watch is None


@pytest.mark.parametrize("whose", ["the ports'", "the submitter's", "an agent's", "the protocol's", "nobody's"])
def test_a_fault_of_akrunners_own_is_said_to_be_one_and_hopeless(whose: str) -> None:
    subtasks = of(1)
    place = comes(subtasks, 0)
    subtasks.come(10)
    if whose == "the ports'":
        subtasks._control.broken = "its traceback"
    elif whose == "the submitter's":
        subtasks.submitted.fails("its traceback", fault=True)
    else:
        place.broken, place.fault, place.silent = "its traceback", whose == "an agent's", whose == "nobody's"
    with pytest.raises(JobError, match="^its traceback$") as caught:
        subtasks.check()
    assert caught.value.fault is (whose not in ("the protocol's", "nobody's"))
    assert subtasks.hopeless() is (whose != "nobody's"), "an agent that does not answer may be on a machine that is lost"


def test_what_flink_says_of_a_job_is_no_fault_of_akrunners() -> None:
    subtasks = of(1)
    comes(subtasks, 0)
    subtasks.come(10)
    subtasks.submitted.fails("no heartbeat")
    subtasks.check()
    assert not subtasks.hopeless()


def test_a_job_that_ends_before_its_first_subtask_is_not_waited_for() -> None:
    subtasks = of(1)
    subtasks._control.arrived = NoWait()  # type: ignore[assignment]
    subtasks.submitted.fails("NoResourceAvailableException: no slots")
    with pytest.raises(StartError, match="^Flink did not run the job: NoResourceAvailableException: no slots$"):
        subtasks.wait_for_first()
    cancelled = of(1)
    cancelled._control.arrived = NoWait()  # type: ignore[assignment]
    cancelled.submitted.state = "CANCELED"
    cancelled.submitted.ended.set()
    with pytest.raises(JobCancelledError):
        cancelled.wait_for_first()


@pytest.mark.parametrize("why", ["ended", "gone", "busy", "too few"])
def test_subtasks_are_used_again_only_if_all_are_there_and_free(why: str) -> None:
    subtasks = of(2)
    for number in range(2):
        comes(subtasks, number)
    subtasks.come(10)
    assert subtasks.can_be_used()
    if why == "ended":
        subtasks.submitted.ended.set()
    elif why == "gone":
        subtasks.remotes[1].gone.set()
    elif why == "busy":
        subtasks.remotes[1].idle.clear()
    else:
        subtasks.remotes.pop()
    assert not subtasks.can_be_used()


def test_a_failure_is_explained_once_the_jobmanager_has_been_asked() -> None:
    subtasks = of(1, master=MASTER)
    comes(subtasks, 0)
    subtasks.come(10)
    subtasks.explain()
    watch: Any = subtasks._watch
    watch.answers = [False, False, True]
    subtasks.remotes[0].gone.set()
    subtasks.explain()
    assert watch.answers == [], "it is asked until it answers"
    subtasks.remotes[0].gone.set()
    watch.answers, watch.lost = [False], True
    with pytest.raises(JobManagerLostError):
        subtasks.explain()


# -- started again


def test_a_job_that_starts_again_has_new_subtasks() -> None:
    subtasks = of(1)
    comes(subtasks, 0, attempt=1)
    subtasks.come(10)
    late, new = comes(subtasks, 0, attempt=1), comes(subtasks, 0, attempt=2)
    away: list[bool] = []
    late.hang_up = lambda: away.append(True)
    assert subtasks.start_again(lambda job: "RESTARTING") is None
    assert subtasks.remotes == [new] and away == [True]


class NoWait:
    """A queue in which nobody waits."""

    def get(self, timeout: float) -> RemoteSubtask:
        raise queue.Empty


@pytest.mark.parametrize(
    ("states", "ended"),
    [
        (["RESTARTING", "FAILED"], "FAILED"),
        (["RUNNING", "SUSPENDED", None, "CANCELED"], "CANCELED"),
        ([None] * 100, "not started again"),
        (["SUSPENDED"] * 100, "not started again"),
    ],
)
def test_a_job_that_does_not_start_again_says_how_it_ended(states: list[str | None], ended: str) -> None:
    subtasks = of(1)
    comes(subtasks, 0, job="j1")
    subtasks.come(10)
    subtasks._control.arrived = NoWait()  # type: ignore[assignment]
    asked: list[str] = []

    def state(job: str) -> str | None:
        asked.append(job)
        return states.pop(0)

    assert subtasks.start_again(state) == ended
    assert set(asked) == {"j1"}


def test_as_long_as_flink_says_it_is_at_it_it_is_waited_for() -> None:
    subtasks = of(1)
    comes(subtasks, 0, job="j1")
    subtasks.come(10)
    subtasks._control.arrived = NoWait()  # type: ignore[assignment]
    states: list[str | None] = ["RESTARTING"] * 300 + ["FINISHED"]
    assert subtasks.start_again(lambda job: states.pop(0)) == "FINISHED"


# -- the end


def test_all_are_told_to_leave_with_the_error_the_job_fails_with() -> None:
    subtasks = of(2)
    places = [comes(subtasks, number) for number in range(2)]
    subtasks.come(10)
    subtasks.leave("ScriptFailedError: no", final=False)
    assert [told(place) for place in places] == [[("ScriptFailedError: no", False)]] * 2


def test_subtasks_that_can_leave_by_themselves_are_not_cancelled() -> None:
    subtasks = of(1)
    place = comes(subtasks, 0)
    subtasks.come(10)
    subtasks.submitted.ended.wait = lambda seconds: True  # type: ignore[method-assign, assignment]
    subtasks.close()
    assert submitted_by(subtasks).cancelled == [] and made[0].closed
    assert submitted_by(subtasks).hurried == [subtasks.submitted]
    assert told(place) == [("", True)]


@pytest.mark.parametrize("seems_over", [True, False])
def test_a_job_with_a_subtask_that_never_came_is_cancelled(seems_over: bool) -> None:
    subtasks = of(2)
    subtasks.submitted.ended.wait = lambda seconds: seems_over  # type: ignore[method-assign, assignment]
    comes(subtasks, 0)
    subtasks._came(subtasks._control.arrived.get())
    subtasks.close()
    assert submitted_by(subtasks).cancelled == [subtasks.submitted] and made[0].closed


def test_a_task_that_has_not_read_all_its_rows_fails_its_flink_job() -> None:
    subtasks = of(1, with_rows=1)
    place = comes(subtasks, 0, with_rows=True)
    subtasks.come(10)
    place.process = SimpleNamespace(given=SimpleNamespace(finished=False))
    subtasks.close()
    assert told(place) == [("its caller needs no more of it", True)]


@pytest.mark.parametrize("stuck", [True, False])
def test_the_jobmanager_ends_what_the_client_does_not(stuck: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    cancelled: list[str] = []

    class Rest:
        def __init__(self, master: Address, seconds: float) -> None:
            assert master is MASTER

        def state(self, job: str) -> str:
            return "RUNNING" if stuck else "CANCELED"

        def cancel(self, job: str) -> None:
            cancelled.append(job)
            raise ClusterError("master=: no answer")

    monkeypatch.setattr(subtasks_module, "Rest", Rest)
    subtasks = of(1, master=MASTER)
    submitted_by(subtasks).ends = False
    subtasks.submitted.id = "j1"
    subtasks.submitted.ended.wait = lambda seconds: False  # type: ignore[method-assign, assignment]
    subtasks.check()
    subtasks.close()
    assert cancelled == ["j1"] * stuck
    assert subtasks._watch.closed and made[0].closed  # type: ignore[union-attr]
