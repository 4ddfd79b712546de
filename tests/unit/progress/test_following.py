"""A display of a job, from what its engine tells: with a clock of the test's own."""

from __future__ import annotations

from typing import Any

import pytest

from akrunner.engines.base import Progress, Reached, TaskProgress
from akrunner.engines.supervision.states import RESTARTING
from akrunner.progress.following import Follower
from akrunner.progress.views import ENDING, PREDICTING, READING, RUNNING, SCRIPT, STARTING, WAITING, View


def told(seconds: float, rows_in: int = 0, rows_out: int = 0, state: str = "importing", **more: Any) -> Progress:
    return Progress(
        seconds, rows_in, rows_in * 100, rows_out, rows_out * 10, {"chief:0": state}, more.pop("reports", {}), **more
    )


def followed(follower: Follower, *steps: Progress) -> View:
    for one in steps:
        view = follower.take(one, 1000 + one.seconds)
    return view


def test_a_table_whose_rows_are_known() -> None:
    steps = [told(tick / 10, tick * 1000, rows_total=100_000) for tick in range(41)]
    view = followed(Follower(), *steps)
    assert (view.doing, view.share, view.rows, view.rows_total) == (READING, pytest.approx(0.4), 40_000, 100_000)
    assert view.rows_per_second == pytest.approx(10_000) and view.bytes_per_second == pytest.approx(1e6)
    assert view.seconds_left == pytest.approx(6)


def test_a_rate_is_the_one_of_now_and_what_is_left_follows_it() -> None:
    """First the rows wait three seconds for TensorFlow, in which their mean would decay."""
    steps = [told(tick / 10, 1000, rows_total=1_000_000) for tick in range(100)]
    steps += [told(10 + tick / 10, 1000 + tick * 10_000, rows_total=1_000_000) for tick in range(60)]
    view = followed(Follower(), *steps)
    assert view.rows_per_second == pytest.approx(100_000, rel=0.01)


def test_the_wait_for_the_first_row_says_nothing_of_the_time_that_is_left() -> None:
    steps = [told(tick / 10, 0, rows_total=1000) for tick in range(300)]
    assert followed(Follower(), *steps).share is None, "it is starting, and there is nothing to show"
    view = followed(Follower(), *steps, *(told(30 + tick / 10, tick * 10, rows_total=1000) for tick in range(21)))
    assert view.share == 0.2 and view.seconds_left == pytest.approx(8, rel=0.1)


def test_a_text_is_estimated_by_its_bytes_and_never_done_before_its_end() -> None:
    view = followed(Follower(), *(told(tick / 10, tick * 7, share_read=tick / 50) for tick in range(51)))
    assert view.share == pytest.approx(0.999) and view.rows_total is None
    assert view.seconds_left == pytest.approx(0.005, abs=0.01)


def test_nothing_is_estimated_of_what_nobody_knows() -> None:
    view = followed(Follower(), *(told(tick / 10, tick) for tick in range(30)))
    assert view.share is None and view.seconds_left is None and view.rows_per_second == pytest.approx(10)


def test_rows_that_stand_still_leave_no_time() -> None:
    steps = [told(tick / 10, 500, rows_total=1000) for tick in range(300)]
    view = followed(Follower(), *steps)
    assert view.share == 0.5 and view.rows_per_second == 0 and view.seconds_left is None


def test_when_all_rows_are_there_the_script_has_the_word() -> None:
    view = followed(
        Follower(),
        told(0.1),
        told(3.0, 150, rows_total=150),
        told(4.0, 150, state="running", rows_total=150, fed=True),
        told(9.0, 150, 20, state="running", rows_total=150, fed=True),
    )
    assert (view.doing, view.share, view.seconds_left) == (RUNNING, None, None)
    assert (view.rows_in, view.rows_out, view.rows) == (150, 20, 20)


@pytest.mark.parametrize(
    ("progress", "doing"),
    [
        (told(0.1, state="starting"), STARTING),
        (told(0.5, 10), READING),
        # all rows are there, and TensorFlow is still imported
        (told(0.5, 10, fed=True), STARTING),
        (told(0.5, 10, state="running", fed=True), RUNNING),
        (told(0.5, 10, state="finished", fed=True), ENDING),
        (Progress(0.1, 0, 0, 0, 0, {}, {}), STARTING),
        (told(0.1, state=RESTARTING, attempt=1), WAITING),
    ],
)
def test_what_it_is_doing(progress: Progress, doing: str) -> None:
    assert Follower().take(progress, 1.0).doing == doing


def test_rows_of_a_prediction_are_done_when_they_are_answered() -> None:
    view = followed(
        Follower(answers=True), told(1, 800, 400, "running", rows_total=1000), told(3, 1000, 800, "running", rows_total=1000)
    )
    assert (view.doing, view.share, view.rows) == (PREDICTING, 0.8, 800)
    assert view.rows_per_second == 200 and view.seconds_left == pytest.approx(1)
    # of a text: half of what was read, and half of that answered
    view = Follower(answers=True).take(told(1, 800, 400, "running", share_read=0.5), 1.0)
    assert view.share == 0.25
    assert Follower(answers=True).take(told(1, 800, 400, "running", share_read=1.0, fed=True), 1.0).share == 0.5


def test_metrics_of_the_task_that_leads_losses_first() -> None:
    follower = Follower()
    reports = {"worker:0": {"loss": 9.0}, "chief:0": {"lr": 0.1, "val_accuracy": 0.8, "loss": 0.5}}
    states = {"chief:0": "running", "worker:0": "running"}
    tasks = {"chief:0": TaskProgress(step=100), "worker:0": TaskProgress(step=7)}
    view = follower.take(Progress(1, 5, 5, 0, 0, states, reports, tasks=tasks, fed=True), 1.0)
    assert list(view.metrics.items()) == [("loss", 0.5), ("val_accuracy", 0.8), ("lr", 0.1)]
    assert (view.metrics_of, view.step, view.steps_per_second) == ("chief:0", 100, None)
    tasks = {"chief:0": TaskProgress(step=130), "worker:0": TaskProgress(step=7)}
    view = follower.take(Progress(3, 5, 5, 0, 0, states, {"chief:0": {"loss": 0.4}}, tasks=tasks, fed=True), 3.0)
    assert view.metrics == {"loss": 0.4} and view.steps_per_second == 15
    view = follower.take(Progress(4, 5, 5, 0, 0, states, {}, tasks=tasks, fed=True), 4.0)
    assert view.metrics == {} and view.step == 130


def test_a_new_attempt_begins_anew() -> None:
    follower = Follower()
    follower.take(told(9, 500, reports={"chief:0": {"loss": 1.0}}, rows_total=1000), 9.0)
    view = follower.take(told(0.1, 0, rows_total=1000, attempt=1), 10.0)
    assert (view.attempt, view.metrics, view.rows_per_second, view.tasks[0].seconds) == (1, {}, None, 0.0)


def test_how_long_a_task_has_been_doing_something() -> None:
    follower = Follower()
    for second, state in enumerate(["starting", "importing", "importing", "importing"]):
        view = follower.take(told(second, state=state), second)
    assert view.tasks[0].seconds == 2 and view.tasks[0].differs == "", "one task alone differs from nobody"


def test_one_of_many_that_is_behind_is_told() -> None:
    states = {**{f"worker:{at}": "ready" for at in range(63)}, "worker:63": "importing"}
    view = Follower().take(Progress(1, 0, 0, 0, 0, states, {}), 1.0)
    assert [one.name for one in view.tasks if one.differs] == ["worker:63"]


def reached(*told: Reached | None, seconds: float = 0.0, state: str = "running") -> Progress:
    tasks = {f"worker:{at}": TaskProgress(reached=one) for at, one in enumerate(told)}
    return Progress(seconds, 9, 9, 0, 0, dict.fromkeys(tasks, state), {}, tasks=tasks, rows_total=9, fed=True)


def test_a_script_that_knows_its_steps_has_a_share_and_time_left() -> None:
    view = followed(Follower(), *(reached(Reached(tick * 10, 100), seconds=tick) for tick in range(6)))
    assert (view.doing, view.share, view.share_of, view.epoch) == (RUNNING, 0.5, SCRIPT, None)
    assert view.seconds_left == pytest.approx(5)


def test_epochs_whose_number_is_known_are_a_whole() -> None:
    view = followed(Follower(), *(reached(Reached(tick % 4, 4, 1 + tick // 4, 4), seconds=tick) for tick in range(9)))
    assert (view.share, view.epoch, view.epochs) == (0.5, 3, 4) and view.seconds_left == pytest.approx(8)


def test_an_epoch_of_nobody_knows_how_many_has_a_share_of_its_own() -> None:
    view = followed(Follower(), *(reached(Reached(tick % 4, 4, 1 + tick // 4), seconds=tick) for tick in range(7)))
    assert (view.share, view.epoch, view.epochs) == (0.5, 2, None) and view.seconds_left == pytest.approx(2)


def test_the_task_with_most_left_to_do_counts_and_none_is_done_while_it_runs() -> None:
    view = followed(Follower(), reached(Reached(9, 10), Reached(2, 10), None))
    assert view.share == pytest.approx(0.2)
    assert followed(Follower(), reached(Reached(10, 10))).share == pytest.approx(0.999)
    assert followed(Follower(), reached(Reached(2, 10), state="finished")).share is None


def test_a_first_epoch_whose_length_nobody_knows_has_no_share() -> None:
    view = followed(Follower(), reached(Reached(5, None, 1, 3)))
    assert (view.share, view.share_of, view.epoch, view.epochs) == (None, "", 1, 3)
    assert followed(Follower(), reached(Reached(0, None, 2, 4))).share == 0.25
