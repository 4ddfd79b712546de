"""A script that is ended anywhere goes on with the rows that follow its last save, without TensorFlow."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from akrunner import codec
from akrunner.io.partitioner import rechunk
from akrunner.schema import Schema
from akrunner.wire.saves import FOLDER
from akrunner.worker.checkpoint import Checkpoint, _callback, of
from akrunner.worker.chunks import rest
from akrunner.worker.column_rows import Columns
from akrunner.worker.config import BatchTaskConfig
from akrunner.worker.data import Evener, Examples

ROOT = Path(__file__).parents[3]
ROWS = 103
SIZE = 10


class Ended(Exception):
    """The process is killed."""


class Job:
    """One job's directory, whose tasks can be started again and again."""

    def __init__(self, folder: Path, form: str = "columns", tasks: tuple[str, ...] = ("chief:0",), rows: int = ROWS) -> None:
        self.folder, self.form, self.tasks, self.rows = folder, form, tasks, rows
        self.seen: dict[str, list[int]] = {}
        self.notes: list[str] = []
        self.attempts = 0

    def config(self, **fields: Any) -> BatchTaskConfig:
        path = self.folder / "dataset"
        table = pa.table({"i": range(self.rows), "x": [0.5] * self.rows})
        with open(path, "wb") as f:
            for chunk in rechunk(table.to_batches(), 16, 1 << 20):
                for part in codec.encode_frame(chunk, self.form, False):
                    f.write(part)
        schema = Schema.from_arrow(table.schema).describe()
        source: Any = Columns if self.form == "columns" else Examples
        evener = Evener(self.rows, [self.rows, self.rows - 1], lambda **rows: None)
        given: dict[str, Any] = {
            "checkpoint_dir": str(self.folder / "saves"), "dataset_file": str(path), "dataset_length": self.rows, "schema": schema,
            "attempt": 0, "num_workers": len(self.tasks), "_job": self, "_rows": source(schema, str(path), None, evener), **fields,
        }  # fmt: skip
        return BatchTaskConfig(**given)

    def note(self, what: str) -> None:
        self.notes.append(what)

    def save(self, folder: str) -> None:
        Path(folder, "seen").write_text(json.dumps(self.seen))

    def restore(self, folder: str) -> None:
        self.seen = json.loads(Path(folder, "seen").read_text())

    def checkpoint(self, resume: bool = True, config: BatchTaskConfig | None = None, **given: Any) -> Checkpoint:
        given = {
            "save": self.save,
            "restore": self.restore,
            "fed": self.tasks,
            "task": self.tasks[0],
            "resume": resume,
            **given,
        }
        self.seen = {}
        self.attempts += 1
        return Checkpoint(config or self.config(attempt=self.attempts if resume else 0), **given)

    def train(self, checkpoint: Checkpoint, epochs: int = 3, end_at: int | None = None, **how: Any) -> None:
        """Train until it is done, or until it is killed before the batch `end_at`."""
        for epoch in checkpoint.epochs(epochs):
            for batch in checkpoint.batches(SIZE, **how):
                if checkpoint.step == end_at:
                    raise Ended
                self.seen.setdefault(str(epoch), []).extend(batch["i"].tolist())
                checkpoint.trained()

    def saves(self, task: str = "chief-0") -> list[str]:
        return sorted(os.listdir(self.folder / "saves" / FOLDER / task))


@pytest.fixture(autouse=True)
def is_not_held(tmp_path: Path) -> Iterator[None]:
    """A process holds its saves as long as it lives; this one runs many tests."""
    yield
    for at in os.listdir("/proc/self/fd") if os.path.isdir("/proc/self/fd") else ():
        with contextlib.suppress(OSError):
            if os.readlink(f"/proc/self/fd/{at}").startswith(f"{tmp_path}/"):
                os.close(int(at))


@pytest.mark.slow
@pytest.mark.parametrize("form", ["columns", "examples"])
@pytest.mark.parametrize("every", [None, 1, 4, 1000])
def test_each_epoch_has_each_row_once(tmp_path: Path, form: str, every: int | None) -> None:
    job = Job(tmp_path, form)
    for end_at in (3, 11, 14, 22, 30, None):
        try:
            job.train(job.checkpoint(every=every), end_at=end_at)
        except Ended:
            continue
    assert job.seen == {str(epoch): list(range(ROWS)) for epoch in range(3)}


def test_what_is_done_is_not_done_again(tmp_path: Path) -> None:
    job = Job(tmp_path)
    job.train(job.checkpoint(every=4))
    again = job.checkpoint(every=4)
    assert (again.restored, again.epoch, again.step) == (True, 3, 33)
    assert not job.notes
    job.train(again)
    assert len(job.seen["2"]) == ROWS
    assert ["all 3 epochs were done before" in told for told in job.notes] == [True]
    job.train(again, epochs=4)
    assert job.seen["3"] == list(range(ROWS))


def test_only_the_newest_saves_are_kept(tmp_path: Path) -> None:
    job = Job(tmp_path)
    job.train(job.checkpoint(every=4, keep=3))
    # after 4, 8, ... 32 batches and at the end
    assert job.saves() == ["00000007", "00000008", "00000009"]


def test_a_save_that_was_cut_off_counts_for_nothing(tmp_path: Path) -> None:
    job = Job(tmp_path)

    def cut_off(folder: str) -> None:
        job.save(folder)
        raise Ended

    with pytest.raises(Ended):
        job.train(job.checkpoint(every=4), end_at=5)
    checkpoint = job.checkpoint(every=4, save=cut_off)
    with pytest.raises(Ended):
        job.train(checkpoint)
    assert job.saves() == ["00000001", "00000002.part"]
    again = job.checkpoint(every=4)
    assert again.step == 4
    job.train(again)
    assert job.seen["0"] == list(range(ROWS))


def test_a_save_that_is_due_with_the_last_batch_is_made_after_the_epoch(tmp_path: Path) -> None:
    """So that what the script does after its last batch is saved, too, and no rest is empty: fit() of Keras 2 fails for one."""
    job = Job(tmp_path)
    checkpoint = job.checkpoint(every=11)
    for _ in checkpoint.epochs(2):
        for _ in checkpoint.batches(SIZE):
            checkpoint.trained()
        assert len(job.saves() if checkpoint.epoch else []) == checkpoint.epoch, "not yet"
        job.seen["after"] = [checkpoint.epoch]
    again = job.checkpoint(every=11)
    assert (again.epoch, again._batch, job.seen, job.saves()) == (2, 0, {"after": [1]}, ["00000001", "00000002"])


def test_a_save_that_was_removed_in_part_counts_for_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = Job(tmp_path)
    with pytest.raises(Ended):
        job.train(job.checkpoint(every=2), end_at=5)
    with monkeypatch.context() as patched:
        patched.setattr("shutil.rmtree", ends_in_part)
        with pytest.raises(Ended):
            job.train(job.checkpoint(every=2))
    assert job.saves() == ["00000001.part", "00000002", "00000003"]
    job.train(job.checkpoint(every=2))
    assert job.seen["0"] == list(range(ROWS)) and not [name for name in job.saves() if name.endswith(".part")]


def ends_in_part(path: str, **_: Any) -> None:
    if os.path.isdir(path):
        os.remove(os.path.join(path, "position.json"))
        raise Ended


def test_an_epoch_that_was_left_goes_on_with_the_same(tmp_path: Path) -> None:
    job = Job(tmp_path)
    checkpoint = job.checkpoint(every=4)
    with pytest.raises(Ended):
        job.train(checkpoint, end_at=5)
    with pytest.raises(ValueError, match="middle of epoch 0, with uneven 'keep', now 'drop'"):
        job.train(checkpoint, uneven="drop")
    job.train(checkpoint)
    assert job.seen == {str(epoch): list(range(ROWS)) for epoch in range(3)}


def test_a_step_of_fit_that_has_fewer_batches(tmp_path: Path) -> None:
    """fit(steps_per_execution=4) says that the third step ended with batch 11; the epoch has 11, from 0 to 10."""
    checkpoint = Job(tmp_path).checkpoint()
    callback = _callback(object, checkpoint)
    for _ in checkpoint.epochs(1):
        checkpoint.batches(SIZE)
        callback.on_epoch_begin(0)
        for last in (3, 7, 11):
            callback.on_train_batch_end(last)
    assert checkpoint.step == 11


@pytest.mark.parametrize("text", ["", "[]", None])
def test_a_damaged_save_is_named(tmp_path: Path, text: str | None) -> None:
    job = Job(tmp_path)
    job.train(job.checkpoint(every=4), epochs=1)
    position = tmp_path / "saves" / FOLDER / "chief-0" / job.saves()[-1] / "position.json"
    position.unlink() if text is None else position.write_text(text)
    with pytest.raises(ValueError, match="00000003 is damaged: position.json: .*; remove that directory, and the job goes on"):
        job.checkpoint()


def test_two_that_save_in_one_directory_are_told(tmp_path: Path) -> None:
    job = Job(tmp_path)
    first, second = (job.checkpoint(config=job.config(attempt=1)) for _ in range(2))
    first.save()
    with pytest.raises(RuntimeError, match=r"00000001 is there already: another job, or another checkpoint\(\)"):
        second.save()


def test_tasks_go_on_together(tmp_path: Path) -> None:
    """The one saved once more than the other, before both were ended; and none of its saves is removed that the other needs."""
    job = Job(tmp_path, tasks=("chief:0", "worker:0"))
    with pytest.raises(Ended):
        job.train(job.checkpoint(every=2, task="worker:0", config=job.config(attempt=1)), end_at=3)
    with pytest.raises(Ended):
        job.train(job.checkpoint(every=2, config=job.config(attempt=1)), end_at=9)
    assert job.saves() == ["00000001", "00000002", "00000003", "00000004"]
    again = job.checkpoint(every=2)
    assert again.step == 2 and job.saves() == ["00000001"]
    assert job.checkpoint(every=2, task="worker:0").step == 2


def test_a_task_that_begins_late_goes_on_with_the_others(tmp_path: Path) -> None:
    """By then another one has made saves with the numbers of those that this one has from before."""
    job = Job(tmp_path, tasks=("chief:0", "worker:0"))
    for task in job.tasks:
        with pytest.raises(Ended):
            job.train(job.checkpoint(every=2, task=task, config=job.config(attempt=0)), end_at=4 if task == "chief:0" else 9)
    second = job.config(attempt=1)
    chief = job.checkpoint(every=2, config=second)
    assert chief.step == 4
    with pytest.raises(Ended):
        job.train(chief, end_at=11)
    assert job.saves()[0] == "00000002", "the other one needs it"
    assert job.checkpoint(every=2, task="worker:0", config=second).step == 4


def test_all_begin_anew_where_one_has_not_saved(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job = Job(tmp_path, tasks=("chief:0", "worker:0"))
    with pytest.raises(Ended):
        job.train(job.checkpoint(every=2), end_at=9)
    again = job.checkpoint(every=2)
    assert not again.restored and again.step == 0 and job.saves() == []
    assert "begins with the first row: worker:0 had not saved yet" in capsys.readouterr().out


def test_a_new_job_does_not_take_an_earlier_ones_place(tmp_path: Path) -> None:
    job = Job(tmp_path)
    job.train(job.checkpoint(every=4), epochs=1)
    with pytest.raises(ValueError, match=r"holds the saves of an earlier job: --resume \(resume=True\) goes on"):
        job.checkpoint(resume=False)
    assert job.checkpoint(config=job.config(attempt=9), resume=False).restored, "this job's own"
    with pytest.raises(ValueError, match="holds the saves of an earlier job"):
        # its first attempt was refused, or failed before
        job.checkpoint(config=job.config(attempt=9), resume=False, run_id="another")
    assert job.checkpoint(run_id="another").restored


def test_a_replay_changes_nothing(tmp_path: Path) -> None:
    job = Job(tmp_path)
    with pytest.raises(Ended):
        job.train(job.checkpoint(every=4), end_at=9)
    before = job.saves()
    for resume in (True, False):
        job.train(job.checkpoint(every=1, resume=resume, replayed=True))
        assert job.saves() == before


@pytest.mark.parametrize(
    "other, words",
    [
        ({"rows": 104}, r"rows of this task are not those that .* was saved with \(.*rows 103, now 104"),
        ({"tasks": ("chief:0", "worker:0")}, "workers 1, now 2"),
        ({"form": "examples"}, "bytes .* the same table"),
    ],
)
def test_other_rows_are_refused(tmp_path: Path, other: dict[str, Any], words: str) -> None:
    for task in ("chief:0", "worker:0"):
        job = Job(tmp_path)
        with pytest.raises(Ended):
            job.train(job.checkpoint(every=4, task=task, fed=(task,)), end_at=5)
    given: Any = {"form": "columns", **other}
    with pytest.raises(ValueError, match=words):
        Job(tmp_path, **given).checkpoint()


def test_saves_of_fewer_workers_are_refused_and_stay(tmp_path: Path) -> None:
    job = Job(tmp_path)
    job.train(job.checkpoint(every=4), epochs=1)
    before = job.saves()
    with pytest.raises(ValueError, match="workers 1, now 2"):
        Job(tmp_path, tasks=("chief:0", "worker:0")).checkpoint()
    assert job.saves() == before


def test_other_batches_in_the_middle_of_an_epoch_are_refused(tmp_path: Path) -> None:
    job = Job(tmp_path)
    with pytest.raises(Ended):
        job.train(job.checkpoint(every=4), end_at=5)
    with pytest.raises(ValueError, match="middle of epoch 0, with uneven 'keep', now 'drop': go on with the same"):
        job.train(job.checkpoint(), uneven="drop")
    job.train(job.checkpoint(), epochs=1)
    # an epoch that begins may be read in another way
    job.train(job.checkpoint(), epochs=2, uneven="drop")
    assert [len(rows) for rows in job.seen.values()] == [ROWS, ROWS - 1]


def test_what_was_saved_has_to_be_given(tmp_path: Path) -> None:
    job = Job(tmp_path)
    job.train(job.checkpoint(), epochs=1)
    with pytest.raises(ValueError, match="has save=, and the script gives model"):
        job.checkpoint(save=None, restore=None, objects={"model": 1})


def leaves_out(job: Job, checkpoint: Checkpoint) -> None:
    for _ in checkpoint.epochs(1):
        for batch in checkpoint.batches(SIZE):
            if batch["i"][0] != 50:
                checkpoint.trained()


def forgets(job: Job, checkpoint: Checkpoint) -> None:
    for _ in checkpoint.epochs(1):
        for _ in checkpoint.batches(SIZE):
            pass


def counts_twice(job: Job, checkpoint: Checkpoint) -> None:
    for _ in checkpoint.epochs(1):
        for _ in checkpoint.batches(SIZE):
            checkpoint.trained(2)


def reads_twice(job: Job, checkpoint: Checkpoint) -> None:
    for _ in checkpoint.epochs(1):
        checkpoint.batches(SIZE)
        checkpoint.batches(SIZE)


def reads_nothing(job: Job, checkpoint: Checkpoint) -> None:
    for _ in checkpoint.epochs(1):
        pass


@pytest.mark.parametrize(
    "wrong, kind, words",
    [
        (forgets, RuntimeError, r"trained\(\) was not called: call it after each batch"),
        (leaves_out, RuntimeError, r"called for 10 of the 11 batches of epoch 0, .* left out \(continue\), too"),
        (counts_twice, RuntimeError, "called for 12 batches of an epoch that has 11"),
        (reads_twice, RuntimeError, "rows are given once"),
        (reads_nothing, RuntimeError, "epoch 0 read no rows"),
        (lambda job, checkpoint: checkpoint.trained(), RuntimeError, "between the batches of an epoch"),
        (lambda job, checkpoint: checkpoint.dataset(5, repeat=2), TypeError, r"repeat= of checkpoint.dataset\(\)"),
        (lambda job, checkpoint: checkpoint.dataset(5, cache=True), TypeError, "fill the cache anew"),
        (lambda job, checkpoint: checkpoint.batches(5, shufle=True), TypeError, "shufle"),
        (lambda job, checkpoint: checkpoint.batches(5, shuffle=True), TypeError, "shuffle"),
        (lambda job, checkpoint: checkpoint.batches(0), ValueError, "batch_size=0"),
        (lambda job, checkpoint: checkpoint.trained(0), ValueError, "batches=0: give 1 or more"),
        (lambda job, checkpoint: next(checkpoint.epochs(0)), ValueError, "count=0"),
        (lambda job, checkpoint: job.checkpoint(every=0), ValueError, "every=0"),
        (lambda job, checkpoint: job.checkpoint(keep=1.5), TypeError, "keep=1.5"),
        (lambda job, checkpoint: job.checkpoint(seed="a"), TypeError, "seed='a'"),
        (lambda job, checkpoint: job.checkpoint(restore=None), ValueError, "belong together"),
        (lambda job, checkpoint: job.checkpoint(save=None, restore=None), ValueError, "name what is saved"),
    ],
)
def test_mistakes_are_told(tmp_path: Path, wrong: Callable[[Job, Checkpoint], Any], kind: type[Exception], words: str) -> None:
    job = Job(tmp_path)
    with pytest.raises(kind, match=words):
        wrong(job, job.checkpoint())


def test_an_epoch_that_is_left_early_is_no_mistake(tmp_path: Path) -> None:
    job = Job(tmp_path)
    checkpoint = job.checkpoint()
    for _ in checkpoint.epochs(2):
        for _ in checkpoint.batches(SIZE):
            checkpoint.trained()
            if checkpoint.step % 4 == 0:
                break
    assert checkpoint.step == 8 and not job.notes


def test_batches_of_tensorflow_that_were_not_counted_are_told(tmp_path: Path) -> None:
    """Nobody knows whether the script has left them out, or has left the epoch early."""
    job = Job(tmp_path)
    checkpoint = job.checkpoint()
    for _ in checkpoint.epochs(1):
        # as dataset() does
        checkpoint._begun(SIZE, False, None, None, {})
        checkpoint.trained(9)
    assert len(job.notes) == 1 and "called for 9 of the 11 batches of epoch 0. If the script" in job.notes[0]


def test_a_file_in_the_place_of_the_saves_is_named(tmp_path: Path) -> None:
    (tmp_path / "saves").mkdir()
    (tmp_path / "saves" / FOLDER).touch()
    with pytest.raises(ValueError, match=f"checkpoint_dir: .*{FOLDER} is a file"):
        Job(tmp_path).checkpoint()


def test_another_process_that_saves_there_is_told_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("akrunner.worker.saving._ENDING", 0.1)
    folder = tmp_path / "saves" / FOLDER / "chief-0"
    holds = "import sys; from akrunner.worker.saving import hold; hold(sys.argv[1]); print('held', flush=True); input()"
    pipes: Any = dict(stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
    with subprocess.Popen([sys.executable, "-c", holds, str(folder)], **pipes) as other:
        assert other.stdout is not None and other.stdout.readline() == "held\n"
        with pytest.raises(
            ValueError, match=rf"another job saves in {folder} now \(process {other.pid} on .*\): each job needs"
        ):
            Job(tmp_path).checkpoint()
        Job(tmp_path).checkpoint(replayed=True)
        other.kill()
    Job(tmp_path).checkpoint()
    assert other.poll() is not None


def test_an_empty_share_has_empty_epochs(tmp_path: Path) -> None:
    job = Job(tmp_path, rows=0)
    checkpoint = job.checkpoint()
    job.train(checkpoint)
    assert (checkpoint.epoch, checkpoint.step) == (3, 0)


def test_a_task_without_rows_has_no_place(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"checkpoint\(\) is for tasks that get rows, and evaluator:0 gets none"):
        of(Job(tmp_path).config(), CONTEXT, {})
    for cluster, first in (({"ps": ["a:1"]}, "chief:0"), ({}, "chief:1")):
        with pytest.raises(
            RuntimeError, match=r"with parameter servers \(num_ps=, coordinator=\) other tasks change the model"
        ):
            of(Job(tmp_path).config(), {**CONTEXT, "tf_config": {"cluster": cluster}, "first": first}, {})


CONTEXT = {"task": "evaluator:0", "first": "chief:0", "fed": ["chief:0"], "resume": False, "tf_config": {"cluster": {}}}


def test_rows_are_left_out_of_chunks() -> None:
    def chunks() -> Iterator[tuple[int, Any]]:
        yield 3, {"a": [0, 1, 2]}
        yield 2, {"a": [3, 4]}
        yield 4, {"a": [5, 6, 7, 8]}

    for left_out in range(11):
        rows = list(rest(chunks(), left_out))
        assert [value for _, columns in rows for value in columns["a"]] == list(range(left_out, 9))
        assert all(count == len(columns["a"]) for count, columns in rows)


@pytest.mark.parametrize(
    ("then", "words"),
    [
        (
            {"read_as": {"skip": 1}},
            r"saved with \(skip 0, now 1\): going on needs .* read in the same way \(input_schema=",
        ),
        (
            {"schema": Schema.from_arrow(pa.schema({"i": pa.int64(), "x": pa.float32()})).describe()},
            r"types \['int64', 'double'\], now ",
        ),
    ],
)
def test_rows_that_are_read_in_another_way_are_refused(then: dict[str, Any], words: str, tmp_path: Path) -> None:
    job = Job(tmp_path)
    with pytest.raises(Ended):
        job.train(job.checkpoint(every=4, read_as={"skip": 0}), end_at=9)
    read_as = then.pop("read_as", {"skip": 0})
    with pytest.raises(ValueError, match=words):
        job.checkpoint(config=job.config(attempt=1, **then), read_as=read_as)
    # a save of an earlier version says nothing of it
    for path in tmp_path.rglob("position.json"):
        said = json.loads(path.read_text())
        del said["rows"]["types"], said["rows"]["skip"]
        path.write_text(json.dumps(said))
    assert job.checkpoint(config=job.config(attempt=2, **then), read_as=read_as).restored
