"""The state of an attempt as a value: its first one, copies with other fields, and what a task's last message says."""

from __future__ import annotations

import dataclasses
import pickle
from typing import Any

import pytest

from akrunner.engines.supervision.states import LastWord, Rules, State, TaskRecord, TaskState, changed
from akrunner.schema import Schema
from akrunner.spec import ClusterSpec, JobSpec, ScriptSpec, SupervisionSpec, TaskSpec

CHIEF, WORKER, SERVER = TaskSpec("chief", 0), TaskSpec("worker", 0), TaskSpec("ps", 0)
CLOSED = {"main_ns": 5, "output_blocked_ns": 6, "rows_dropped": 1, "rows_padded": 2, "notes": ["n"]}


def state(**rules: Any) -> State:
    return State.first(Rules(ClusterSpec(2, 1), SupervisionSpec(stall_timeout=30), **rules), 100.0, 101.0)


def job(**fields: Any) -> JobSpec:
    return JobSpec(ScriptSpec("s.py", "s.py", program=fields.pop("program", False)), Schema(()), "python", **fields)


def test_a_changed_copy_is_what_dataclasses_make() -> None:
    record = TaskRecord(rows_in=3)
    copied = changed(record, {"rows_out": 4, "ready": True})
    assert copied == dataclasses.replace(record, rows_out=4, ready=True)
    assert record == TaskRecord(rows_in=3), "the one it was made of is as it was"
    assert type(copied) is TaskRecord and hash(copied) == hash(dataclasses.replace(record, rows_out=4, ready=True))


def test_before_anything_is_started_every_task_is_starting() -> None:
    first = state()
    assert list(first.tasks) == [CHIEF, WORKER, SERVER]
    assert {record.state for record in first.tasks.values()} == {TaskState.STARTING}
    assert (first.job_began, first.spawned, first.stall.since, first.stall.seconds) == (100.0, 101.0, 101.0, 30)
    assert (first.fed, first.staying, first.started, first.verdict) == (False, False, False, None)


def test_only_who_has_started_and_is_not_over_is_asked_for_stacks() -> None:
    """The signal that asks would end a process that has not prepared for it."""
    asked = {TaskState.IMPORTING, TaskState.READY, TaskState.RUNNING, TaskState.SERVING}
    assert {one for one in TaskState if one.prints_stacks} == asked


def test_a_state_is_its_word_with_what_is_said_of_it() -> None:
    assert TaskState("ready") is TaskState.READY and TaskState.READY.value == "ready"
    assert (TaskState.READY.doing, TaskState.READY.when) == ("waiting for the others", "")
    assert TaskState.IMPORTING.when == "while it imported the script or took its rows"
    assert pickle.loads(pickle.dumps(TaskState.SERVING)) is TaskState.SERVING


def test_a_stream_is_fed_from_the_start() -> None:
    assert state(streaming=True).fed


def test_tasks_that_stay_are_staying_from_the_start() -> None:
    assert state(staying=(WORKER,)).staying


def test_another_record_of_a_task_leaves_the_others_and_the_earlier_state_alone() -> None:
    first = state()
    second = first.having(WORKER, TaskRecord(TaskState.RUNNING))
    assert second.tasks[WORKER].state is TaskState.RUNNING and second.tasks[CHIEF] is first.tasks[CHIEF]
    assert first.tasks[WORKER].state is TaskState.STARTING and list(second.tasks) == list(first.tasks)


def test_rows_that_are_written_are_added_up() -> None:
    written = state().with_rows(CHIEF, 10, 100).with_rows(CHIEF, 5, 1).with_rows(WORKER, 0, 7)
    assert [(one.rows_out, one.bytes_out) for one in written.tasks.values()] == [(15, 101), (0, 7), (0, 0)]


def test_tasks_in_some_states_come_in_the_order_asked() -> None:
    now = state().having(CHIEF, TaskRecord(TaskState.RUNNING)).having(SERVER, TaskRecord(TaskState.FINISHED))
    assert now.among((SERVER, WORKER, CHIEF), TaskState.RUNNING, TaskState.FINISHED) == (SERVER, CHIEF)
    assert now.among((WORKER,), TaskState.RUNNING) == () == now.among((CHIEF,))


@pytest.mark.parametrize(
    "fields, rules",
    [
        ({}, {"counted": False, "schema_given": False}),
        ({"output_schema": Schema.parse("a bigint", "x")}, {"counted": True, "schema_given": True}),
        ({"output_inferred": True}, {"counted": True, "schema_given": False}),
        ({"mode": "stream", "program": True}, {"counted": False, "schema_given": False, "streaming": True, "program": True}),
    ],
)
def test_the_rules_follow_from_the_job(fields: dict[str, Any], rules: dict[str, Any]) -> None:
    made = job(cluster=ClusterSpec(3), supervision=SupervisionSpec(timeout=9), **fields)
    assert Rules.of(made) == Rules(ClusterSpec(3), SupervisionSpec(timeout=9), staying=made.staying, **rules)


def test_a_last_message_without_what_is_optional() -> None:
    assert LastWord.of(CLOSED) == LastWord(5, 6, 1, 2, ["n"])


@pytest.mark.parametrize("asked, wanted", [(True, True), (False, False), (1, False), ("yes", False), (None, False)])
def test_help_was_asked_for_only_where_the_message_says_true(asked: Any, wanted: bool) -> None:
    word = LastWord.of({**CLOSED, "input": {"main": 1.0}, "unasked": ["w"], "asked": asked})
    assert (word.input, word.unasked, word.asked) == ({"main": 1.0}, ["w"], wanted)


def test_each_state_has_words_for_people() -> None:
    assert TaskState.RUNNING.doing == "in main()" and TaskState.FINISHED.doing == "done"
    # those that say enough by themselves
    assert TaskState.STARTING.doing == "starting" and TaskState.FAILED.doing == "failed"
