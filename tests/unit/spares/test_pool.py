"""Which warm workers a pool starts, gives away, keeps and ends. (Its processes are stand-ins; `tests/contract` has real ones.)"""

from __future__ import annotations

import dataclasses
import itertools
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from akrunner.spares import pool as module
from akrunner.spares.pool import Pool
from akrunner.spares.spare import Answer, Memory
from akrunner.spares.template import CannotFork
from akrunner.spares.wanted import Wanted

A = Wanted("/python", {"KIND": "a"})
B = Wanted("/python", {"KIND": "b"})
SIZE = Memory(1000, 1000, 100)


class Spare:
    """Attributes: answers: what it says when it is offered a job, one after the other; ended: how often."""

    def __init__(self, wanted: Wanted, parent: Any = None) -> None:
        self.wanted, self.parent, self.waiting, self.memory = wanted, parent, True, SIZE
        self.process = SimpleNamespace(pid=1, exit=None, kill=lambda: None)
        self.began = 0.0
        self.answers: list[Answer] = []
        self.ended = 0
        self.alone = self.dead = ""

    def offer(self, names: Sequence[str]) -> Answer:
        return self.answers.pop(0) if self.answers else Answer("")

    def end(self) -> None:
        self.ended += 1

    def lifeless(self) -> str:
        return self.dead

    def last_words(self) -> str:
        return "ModuleNotFoundError: tensorflow"


class Template(Spare):
    """Attributes: fails: why it cannot be imported, or forked; made: all there are, in their order."""

    made: list[Template] = []
    refused: Exception | None = None

    def __init__(self, wanted: Wanted, folder: str, preload: Sequence[str]) -> None:
        if Template.refused is not None:
            raise Template.refused
        super().__init__(wanted)
        self.waiting = False
        self.fails = self.cannot = ""
        self.retired = 0
        Template.made.append(self)

    def wait_until_imported(self) -> str:
        self.waiting = not self.fails
        return self.fails

    def fork(self) -> Spare:
        if self.cannot:
            raise CannotFork(self.cannot)
        return Spare(self.wanted, self)

    def retire(self) -> None:
        self.retired += 1


class World:
    """Attributes: now: the clock; idle: cores that have nothing to do; lacks: memory; exceeded; look: what the pool's thread does in a turn."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.idle = 1.0
        self.lacks = self.exceeded = ""

    def idle_cores(self) -> float:
        return self.idle


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> World:
    made = World()
    Template.made.clear()
    Template.refused = None
    room = SimpleNamespace(lacks=lambda there, forks, fork: made.lacks, exceeded=lambda there: made.exceeded)
    monkeypatch.setattr(module, "Template", Template)
    monkeypatch.setattr(module, "Room", lambda most: room)
    monkeypatch.setattr(module, "surroundings", lambda thread=None: {})
    monkeypatch.setattr(module, "cores", lambda: 2)
    monkeypatch.setattr(module, "bundle_bytes", lambda: b"bundle")
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: made.now, time=lambda: made.now))
    folders = itertools.count()

    def temp_folder(prefix: str) -> str:
        folder = tmp_path / str(next(folders))
        folder.mkdir()
        return str(folder)

    held = SimpleNamespace(temp_folder=temp_folder, drop=shutil.rmtree)
    monkeypatch.setattr(module, "leftovers", held)
    # a turn of the thread is made by the test
    monkeypatch.setattr(Pool, "_keep", lambda self: None)
    return made


Made = Callable[..., Pool]


@pytest.fixture
def made(world: World) -> Iterator[Made]:
    pools: list[Pool] = []

    def make(*first: Wanted, workers: int = 1, idle_seconds: float = 600.0, hurry: bool = True) -> Pool:
        pools.append(Pool(first, workers, ("tensorflow",), idle_seconds, 1 << 30, hurry))
        return pools[-1]

    yield make
    for pool in pools:
        pool.close()


def look(pool: Pool, world: World, turns: int = 1) -> None:
    for _ in range(turns):
        pool._look(world)  # type: ignore[arg-type]


def ready(pool: Pool, world: World) -> Pool:
    """All it should have has imported, and was forked."""
    for _ in range(4):
        look(pool, world)
        for template in Template.made:
            template.waiting = True
    return pool


def test_one_imports_and_the_others_are_forked_from_it(made: Made, world: World) -> None:
    pool = made(A, workers=3)
    look(pool, world, 3)
    assert len(Template.made) == 1 and pool.spares() == []
    assert pool.status()["importing"] == 1 and pool.status()["waiting"] == 0
    Template.made[0].waiting = True
    look(pool, world)
    assert [one.parent for one in pool.spares()] == Template.made * 3 and pool.status()["waiting"] == 3
    assert pool.status()["memory"] == 4000 and pool.why_fewer() == ""
    look(pool, world, 3)
    assert len(pool.spares()) == 3 and len(Template.made) == 1


@pytest.mark.parametrize("workers, kinds", [(1, "a"), (2, "ab"), (3, "aab")])
def test_the_first_kinds_are_taken_in_turn(workers: int, kinds: str, made: Made, world: World) -> None:
    pool = ready(made(A, B, workers=workers), world)
    assert "".join(sorted(one.wanted.env["KIND"] for one in pool.spares())) == kinds


def test_a_job_takes_one_and_another_comes_in_its_place(made: Made, world: World) -> None:
    pool = ready(made(A), world)
    (first,) = pool.spares()
    assert pool.take(A, ["train.py"]) == (first, "") and pool.spares() == [] and pool.taken == 1
    look(pool, world)
    assert len(pool.spares()) == 1 and pool.spares() != [first]


def test_a_job_that_comes_too_early_has_one_forked_for_it(made: Made, world: World) -> None:
    pool = made(A)
    look(pool, world)
    found, why = pool.take(A, [])
    assert found is not None and found.parent is Template.made[0] and why == ""
    pool = made(A)
    assert pool.take(A, []) == (None, "none was ready")


@pytest.mark.parametrize(
    "waits, cannot, why", [("it took too long", "", "it took too long"), ("", "256 run already", "256 run already")]
)
def test_why_none_can_be_forked_for_it(waits: str, cannot: str, why: str, made: Made, world: World) -> None:
    pool = made(A)
    look(pool, world)
    Template.made[0].fails, Template.made[0].cannot = waits, cannot
    assert pool.take(A, []) == (None, why)


def test_a_job_that_wants_something_else_is_told_so(made: Made, world: World) -> None:
    pool = ready(made(A), world)
    found, why = pool.take(B, [])
    assert found is None and "KIND has another value for this one" in why and len(pool.spares()) == 1


def test_one_that_cannot_be_forked_is_a_spare_itself(made: Made, world: World) -> None:
    pool = made(A, workers=2)
    look(pool, world)
    Template.made[0].alone, Template.made[0].waiting = "it has started a thread", True
    look(pool, world, 2)
    assert pool.spares() == [Template.made[0]] and pool.status()["alone"] == "it has started a thread"
    assert len(Template.made) == 2, "the other imports for itself"
    assert pool.take(A, []) == (Template.made[0], "")


@pytest.mark.parametrize(
    "answer, back, ended",
    [
        (Answer("a file is called numpy.py"), True, 0),
        (Answer("it did not answer", False), False, 1),
        (Answer("tensorflow was installed anew", False, True), False, 1),
    ],
)
def test_one_that_is_not_right_for_a_job_stays_or_goes(
    answer: Answer, back: bool, ended: int, made: Made, world: World
) -> None:
    pool = ready(made(A), world)
    (spare,) = pool.spares()
    template = Template.made[0]
    spare.answers = [answer]  # type: ignore[attr-defined]
    template.cannot = "no more"
    found, why = pool.take(A, [])
    assert found is None and why == (answer.why if answer.usable or answer.stale else "no more")
    assert (spare in pool.spares()) is back and spare.ended == ended and pool.taken == 0  # type: ignore[attr-defined]
    assert template.retired == (1 if answer.stale else 0), "what it was forked from has imported the same"


def test_a_pool_looks_seldom_while_nothing_is_missing(made: Made, world: World) -> None:
    pool = made(A, idle_seconds=600.0)
    look(pool, world)
    assert pool._pause(True) == pool._pause(False) == module._TICK, "one imports"
    ready(pool, world)
    assert pool._pause(False) == module._CALM
    world.now += 599.5
    assert pool._pause(False) == 0.5, "until they have waited for too long"
    world.now += 10
    look(pool, world)
    assert pool._pause(False) is None


def test_an_error_while_it_is_asked_ends_it(made: Made, world: World) -> None:
    pool = ready(made(A), world)
    (spare,) = pool.spares()

    def broken(names: Sequence[str]) -> Answer:
        raise KeyboardInterrupt

    spare.offer = broken  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        pool.take(A, [])
    assert spare.ended == 1 and pool._offered == [] and pool.spares() == []  # type: ignore[attr-defined]


def test_what_the_last_jobs_wanted_is_kept(made: Made, world: World) -> None:
    pool = ready(made(A, workers=2), world)
    pool.note(B)
    ready(pool, world)
    assert sorted(one.wanted.env["KIND"] for one in pool.spares()) == ["a", "b"]
    pool.note(B)
    ready(pool, world)
    assert [one.wanted.env["KIND"] for one in pool.spares()] == ["b", "b"]
    assert [template.retired for template in Template.made] == [0, 0], "two kinds may come again"
    assert pool.knows("/python") and not pool.knows("/other")
    pool.note(dataclasses.replace(A, python="/other"))
    pool.note(dataclasses.replace(B, python="/third"))
    look(pool, world)
    assert [template.retired for template in Template.made[:2]] == [1, 1]


def test_what_was_not_right_is_told_although_it_has_been_ended_meanwhile(made: Made, world: World) -> None:
    """On a busy machine the pool's thread may come between the two."""
    pool = ready(made(A), world)
    noted = pool.note(B)
    look(pool, world, 3)
    assert A not in [one.wanted for one in pool.spares()]
    for spare in pool.spares():
        pool._spares.remove(spare)
    pool._templates.clear()
    assert pool.take(B, [], noted) == (None, A.other(B)) and noted
    assert pool.note(A) == "", "there is none"
    assert pool.take(A, []) == (None, "none was ready")


def test_what_no_child_of_this_process_would_be_is_not_learnt(made: Made, world: World) -> None:
    pool = ready(made(A), world)
    pool.note(dataclasses.replace(B, surroundings={"umask": "0"}))
    look(pool, world, 3)
    assert [one.wanted for one in pool.spares()] == [A] and len(Template.made) == 1


def test_the_first_may_be_what_this_thread_cannot_start(made: Made, world: World) -> None:
    pool = made(dataclasses.replace(A, surroundings={"umask": "0"}))
    look(pool, world)
    assert Template.made == [] and pool.trouble == "jobs are run with other limits, signals or cores than this pool has (umask)"
    assert pool.why_fewer() == pool.trouble


def test_a_machine_that_is_busy_is_waited_for_but_not_for_ever(made: Made, world: World) -> None:
    pool = made(A, hurry=False)
    world.idle = 0.5
    look(pool, world)
    assert Template.made == [] and pool.why_fewer() == "the processor is busy; the next is started when it is not, or in 30 s"
    world.now += 29
    look(pool, world)
    assert Template.made == []
    world.now += 2
    look(pool, world)
    assert len(Template.made) == 1
    other = made(A, hurry=False)
    look(other, world)
    other.hurry()
    look(other, world)
    assert len(Template.made) == 2


def test_no_more_import_at_a_time_than_there_are_cores(made: Made, world: World) -> None:
    pool = made(A, workers=3)
    for overlay in ("1", "2"):
        pool.note(dataclasses.replace(A, overlay=overlay))
    look(pool, world, 5)
    assert len(Template.made) == 2 and pool.why_fewer() == "others are still importing TensorFlow"


def test_memory_that_is_missing_starts_none_and_ends_one(made: Made, world: World) -> None:
    pool = made(A, workers=2)
    world.lacks = "all may have 1 MiB"
    look(pool, world)
    assert Template.made == [] and pool.why_fewer() == "all may have 1 MiB"
    world.lacks = ""
    ready(pool, world)
    first = pool.spares()[0]
    world.exceeded = world.lacks = "the machine is full"
    look(pool, world)
    assert first.ended == 1 and len(pool.spares()) == 1 and pool.why_fewer() == "the machine is full"  # type: ignore[attr-defined]


def test_idle_ones_go_and_the_next_job_brings_them_back(made: Made, world: World) -> None:
    pool = ready(made(A, idle_seconds=60), world)
    (spare,) = pool.spares()
    world.now += 60
    assert not pool.asleep()
    world.now += 1
    look(pool, world, 2)
    assert pool.asleep() and spare.ended == 1 and Template.made[0].retired == 1  # type: ignore[attr-defined]
    assert pool.why_fewer() == "no job has come for 60 s; the next brings them back" and len(Template.made) == 1
    pool.note(A)
    ready(pool, world)
    assert len(pool.spares()) == 1 and len(Template.made) == 2


def test_one_that_dies_while_it_imports_is_tried_three_times(made: Made, world: World) -> None:
    pool = made(A)
    for number in range(1, 6):
        look(pool, world)
        assert len(Template.made) == min(number, 3)
        Template.made[-1].dead = "the warm worker had ended"
    assert pool.trouble == "the last one that was started ended: ModuleNotFoundError: tensorflow" and not pool.wait(0)
    pool.note(B)
    look(pool, world)
    assert len(Template.made) == 4, "another kind may do better"


def test_one_that_dies_while_it_waits_is_replaced_and_so_is_what_was_forked_from_it(made: Made, world: World) -> None:
    pool = ready(made(A, workers=2), world)
    first, second = pool.spares()
    first.process.exit = object()  # type: ignore[assignment]
    first.dead = "it had ended: killed by SIGKILL"  # type: ignore[attr-defined]
    look(pool, world)
    assert first not in pool.spares() and second in pool.spares() and len(pool.spares()) == 2
    Template.made[0].dead = "it was stopped"
    look(pool, world)
    assert pool.spares() == [] and second.ended == 1 and Template.made[0].retired == 1  # type: ignore[attr-defined]
    assert pool.trouble in ("one that waited ended: it was stopped", "") and len(Template.made) == 2


@pytest.mark.parametrize("error", [OSError("no processes"), RuntimeError("no threads")])
def test_what_cannot_be_started_is_told(error: Exception, made: Made, world: World) -> None:
    Template.refused = error
    pool = made(A)
    look(pool, world, 5)
    assert pool.trouble == f"none can be started: {error}" and pool.status()["trouble"] == pool.trouble
    Template.refused = None
    look(pool, world)
    assert Template.made == [], "three times are enough"


def test_all_are_ended_once(made: Made, world: World) -> None:
    pool = ready(made(A, workers=2), world)
    spares = pool.spares()
    pool.close()
    pool.close()
    assert [one.ended for one in spares] == [1, 1] and Template.made[0].retired == 1  # type: ignore[attr-defined]
    assert pool.take(A, []) == (None, "none was ready") and pool.why_fewer() == "they are being ended"


def test_one_that_was_forked_while_all_are_ended_goes_too(made: Made, world: World) -> None:
    pool = ready(made(A), world)
    template = Template.made[0]
    forked = Spare(A, template)
    template.fork = lambda: pool.close() or forked  # type: ignore[method-assign, func-returns-value]
    assert pool._fork(template, pool._offered) == (None, "they are being ended") and forked.ended == 1  # type: ignore[arg-type]


def test_a_child_made_by_fork_ends_none_of_its_parents(made: Made, world: World) -> None:
    pool = ready(made(A), world)
    pool._pid += 1
    pool.close()
    assert [one.ended for one in pool.spares()] == [0] and not pool._closed  # type: ignore[attr-defined]
    pool._pid -= 1


def test_waiting_ends_when_all_are_there(made: Made, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    pool = made(A, hurry=False)
    world.idle = 0.0

    def turn(seconds: float) -> None:
        """What the thread does meanwhile."""
        world.now += 1
        look(pool, world)
        for template in Template.made:
            template.waiting = True

    monkeypatch.setattr(pool._changed, "wait", turn)
    assert pool.wait(10) and len(pool.spares()) == 1
    world.lacks = "full"
    pool.take(A, [])
    assert not pool.wait(10)


def test_the_folder_has_what_workers_run(made: Made, world: World, tmp_path: Path) -> None:
    pool, folder = made(A), tmp_path / "0"
    assert (folder / "bundle.zip").read_bytes() == b"bundle" and (folder / "tmp").stat().st_mode & 0o777 == 0o700
    assert (folder / "bundle.zip").stat().st_mode & 0o777 == 0o600
    pool.close()
    assert not folder.exists()
