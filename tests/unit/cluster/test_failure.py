from __future__ import annotations

import pytest

from akrunner.cluster.failure import LONGEST_DELAY, FailureKind, FailurePolicy, delay_before, is_last, root_cause_first
from akrunner.errors import JobError, JobManagerLostError, TaskDiedError, TaskFailure

RAISED = TaskFailure("worker:1", "raised ValueError in main()", traceback="ValueError: no", time_ns=5)
TAKEN = TaskFailure("chief:0", "raised OSError in main()", traceback="OSError: [Errno 98] Address already in use", time_ns=5)


def test_the_earliest_failure_is_the_root_cause() -> None:
    first, second = TaskFailure("worker:1", "raised", time_ns=5), TaskFailure("chief:0", "died", time_ns=9)
    assert root_cause_first({2: second, 1: first}) == ((1, first), (2, second))
    at_once = TaskFailure("chief:0", "died", time_ns=5)
    assert root_cause_first({1: first, 0: at_once}) == ((1, first), (0, at_once)), "the one that was noticed first"


FINAL = ("output", "timeout")


def test_a_kind_is_declared_with_its_exception_and_whether_it_is_final() -> None:
    """What else has to be known of a kind is declared in the same line, so that no kind can lack it."""
    assert all(issubclass(kind.error, JobError) and FailureKind(kind.value) is kind for kind in FailureKind)


@pytest.mark.parametrize("kind", [kind.value for kind in FailureKind if kind.value not in FINAL])
def test_so_many_restarts_and_no_more(kind: str) -> None:
    policy = FailurePolicy(2, can_replay=True)
    assert [policy.decide(FailureKind(kind), RAISED, done, 0).restart for done in range(4)] == [True, True, False, False]
    assert (
        "[worker:1] raised ValueError in main(); everything was started again (1 of 2)"
        == policy.decide(FailureKind(kind), RAISED, 0, 0).why
    )


def test_which_failure_is_the_last() -> None:
    """As a job built into a PyFlink program asks, too: a cluster without its JobManager starts nothing again."""
    assert [is_last(TaskDiedError, failures, 2) for failures in range(5)] == [False, False, False, True, True]
    assert is_last(JobManagerLostError, 1, 2) and all(is_last(FailureKind(kind).error, 1, 2) for kind in FINAL)


@pytest.mark.parametrize("kind", FINAL)
def test_what_would_only_happen_again(kind: str) -> None:
    assert not FailurePolicy(2, can_replay=True).decide(FailureKind(kind), RAISED, 0, 0).restart


def test_nothing_is_restarted_whose_rows_are_gone() -> None:
    assert not FailurePolicy(2, can_replay=False).decide(FailureKind.DIED, RAISED, 0, 0).restart
    assert not FailurePolicy(2, can_replay=False).decide(FailureKind.SCRIPT, TAKEN, 0, 0).restart


@pytest.mark.parametrize(
    "words",
    [
        "OSError: [Errno 98] Address already in use",
        "OSError: [Errno 48] Address already in use",
        "UnknownError: Could not start gRPC server",
    ],
)
def test_a_taken_port_is_worth_one_restart(words: str) -> None:
    policy = FailurePolicy(0, can_replay=True)
    taken = TaskFailure("chief:0", "raised", traceback=words)
    first = policy.decide(FailureKind.SCRIPT, taken, 0, 0)
    assert first.restart and first.new_ports and "new ports" in first.why
    assert not policy.decide(FailureKind.SCRIPT, taken, 0, 1).restart
    # and it is not taken from the others
    assert FailurePolicy(1, can_replay=True).decide(FailureKind.SCRIPT, taken, 0, 1).restart


def test_waits_grow_up_to_a_bound_and_differ_by_job() -> None:
    waits = [delay_before(restarts, 1.0, "job") for restarts in range(12)]
    assert all(0.9 * 2**number <= wait <= 1.1 * 2**number for number, wait in enumerate(waits[:8]))
    assert all(0.9 * LONGEST_DELAY <= wait <= 1.1 * LONGEST_DELAY for wait in waits[9:])
    assert waits == [delay_before(restarts, 1.0, "job") for restarts in range(12)]
    assert delay_before(0, 1.0, "other") != waits[0]
    assert delay_before(10**9, 0.0, "job") == 0 and delay_before(3, 600.0, "job") == pytest.approx(600, rel=0.1)


def test_a_decision_says_how_long_to_wait() -> None:
    policy = FailurePolicy(2, True, 10.0, "job")
    decision = policy.decide(FailureKind.DIED, RAISED, 1, 0)
    assert decision.delay == delay_before(1, 10.0, "job") > 15
    assert decision.why.endswith(f"; everything is started again after {decision.delay:.1f} s (2 of 2)")
    assert policy.decide(FailureKind.SCRIPT, TAKEN, 0, 0).delay == 0
