"""A script of a stream that is ended anywhere goes on with the rows behind its last save, without TensorFlow."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from akrunner import codec
from akrunner.io.streams.saved import Newest, newest_of
from akrunner.schema import Schema
from akrunner.worker.checkpoint import of_task
from akrunner.worker.column_rows import Columns
from akrunner.worker.config import StreamTaskConfig
from akrunner.worker.stream import RowStream
from akrunner.worker.stream_checkpoint import StreamCheckpoint, of

ROWS = 203
CHUNK = 5
SIZE = 4
TABLE = pa.table({"i": range(ROWS)})


class Ended(Exception):
    """The process is killed."""


class Job:
    """One task of a job, and the host that feeds it.

    Attributes: seen: the rows that the model has learned; places: where it was begun.
    """

    replayed = False

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.seen: list[int] = []
        self.answered: list[int] = []
        self.places: list[int] = []
        self.notes: list[str] = []
        self.begins = Newest()
        self._due = threading.Event()

    def due(self, number: int) -> None:
        self._due.set()

    def note(self, what: str) -> None:
        self.notes.append(what)

    def save(self, folder: str) -> None:
        Path(folder, "seen").write_text(json.dumps(self.seen))

    def restore(self, folder: str) -> None:
        self.seen = json.loads(Path(folder, "seen").read_text())

    def stream(self, end: int = ROWS) -> RowStream:
        """Feed the rows from the place of the newest save on."""
        self.begins = newest_of(str(self.folder), ["chief:0"], True, "")
        begin = self.begins.place["at"] if self.begins.place is not None else 0
        self.places.append(begin)
        stream = RowStream("columns", True)
        stream.answered = self.answered.append
        asked = self._due = threading.Event()

        def feed() -> None:
            number, saved = 0, begin
            for at in range(begin, end, CHUNK):
                stop = min(at + CHUNK, end)
                (chunk,) = TABLE.slice(at, stop - at).combine_chunks().to_batches()
                stream.put(chunk.num_rows, b"".join(bytes(part) for part in codec.encode_frame(chunk, "columns", True)), bool)
                number += 1
                due = asked.is_set()
                if due:
                    asked.clear()
                    saved = stop
                stream.barrier(number, bool, due, {"at": stop})
                for _ in range(100):
                    # else all rows are there before the script asks for a save
                    if stream._queue.empty():
                        break
                    time.sleep(0.001)
            if saved != end:
                stream.barrier(number + 1, bool, True, {"at": end})
            stream.end(bool)

        threading.Thread(target=feed, daemon=True).start()
        return stream

    def checkpoint(self, stream: RowStream | None = None, **given: Any) -> StreamCheckpoint:
        stream = stream or self.stream()
        schema = Schema.from_arrow(TABLE.schema).describe()
        config = StreamTaskConfig(
            checkpoint_dir=str(self.folder),
            schema=schema,
            attempt=len(self.places),
            num_workers=1,
            _job=self,
            _rows=Columns(schema, None, stream),
        )
        self.seen = []
        given = {
            "every": 3,
            "save": self.save,
            "restore": self.restore,
            "fed": ["chief:0"],
            "task": "chief:0",
            "resume": True,
            "goes_on_with": self.begins.number,
            **given,
        }
        return StreamCheckpoint(config, stream, **given)

    def train(self, checkpoint: StreamCheckpoint, end_at: int | None = None) -> None:
        """Train until the stream ends, or until the process is killed before the batch `end_at` of this attempt."""
        begun = checkpoint.step
        for _ in checkpoint.epochs():
            for batch in checkpoint.batches(SIZE):
                if checkpoint.step - begun == end_at:
                    raise Ended
                self.seen += batch["i"].tolist()
                checkpoint.trained()


def test_each_row_is_learned_once(tmp_path: Path) -> None:
    job = Job(tmp_path)
    for end_at in (1, 9, 20, 14, 22, None):
        try:
            job.train(job.checkpoint(), end_at)
        except Ended:
            continue
    assert job.seen == list(range(ROWS))
    assert job.places == sorted(job.places) and len(set(job.places)) > 3, "there were saves in between"
    job.train(job.checkpoint())
    assert job.seen == list(range(ROWS)), "nothing has come since"


def test_a_save_that_is_cut_off_counts_for_nothing(tmp_path: Path) -> None:
    job = Job(tmp_path)

    def cut_off(folder: str) -> None:
        job.save(folder)
        raise Ended

    with pytest.raises(Ended):
        job.train(job.checkpoint(), 20)
    with pytest.raises(Ended):
        job.train(job.checkpoint(save=cut_off))
    job.train(job.checkpoint())
    assert job.seen == list(range(ROWS)) and job.places[1] == job.places[2] > 0


def test_a_predecessor_that_saves_once_more_changes_nothing(tmp_path: Path) -> None:
    """The host knows where the rows go on before the task of the attempt before is gone."""
    job = Job(tmp_path)
    with pytest.raises(Ended):
        job.train(job.checkpoint(), 9)
    stream, begins = job.stream(), job.begins
    assert begins.number
    with pytest.raises(Ended):
        job.train(job.checkpoint(keep=9), 12)
    assert newest_of(str(tmp_path), ["chief:0"], True, "").number > begins.number
    job.train(job.checkpoint(stream, goes_on_with=begins.number))
    assert job.seen == list(range(ROWS))


def test_a_save_of_an_attempt_before_that_comes_late_is_replaced(tmp_path: Path) -> None:
    job = Job(tmp_path)
    checkpoint, folder = job.checkpoint(), tmp_path / "akrunner-saves" / "chief-0" / "00000001"
    folder.mkdir(parents=True)
    (folder / "position.json").write_text(json.dumps({"run_id": "", "attempt": 0}))
    job.train(checkpoint)
    assert job.seen == list(range(ROWS)) and not list(folder.parent.glob("*.part"))
    job.train(job.checkpoint())
    assert job.seen == list(range(ROWS))


def test_a_save_that_is_gone_is_told(tmp_path: Path) -> None:
    job = Job(tmp_path)
    job.train(job.checkpoint())
    with pytest.raises(ValueError, match="00000077, with which this attempt begins, is gone"):
        job.checkpoint(goes_on_with=77)


def test_only_what_is_saved_is_answered(tmp_path: Path) -> None:
    job = Job(tmp_path)
    checkpoint = job.checkpoint(every=1000)
    stream = checkpoint._stream
    epochs = checkpoint.epochs()
    next(epochs)
    for batch in checkpoint.batches(SIZE):
        assert len(batch["i"]) == SIZE or stream.reached, "other barriers make no short batches"
        checkpoint.trained()
    assert job.answered == []
    assert list(epochs) == [] and job.answered == [ROWS // CHUNK + 2] and checkpoint.epoch == 1


def test_a_second_pass_over_the_first_rows_of_an_epoch(tmp_path: Path) -> None:
    """fit() reads a first batch to build the model."""
    job = Job(tmp_path)
    checkpoint = job.checkpoint()
    for _ in checkpoint.epochs():
        rows = checkpoint.batches(SIZE)
        if not job.seen:
            next(rows)
            rows.close()  # type: ignore[attr-defined]
            rows = checkpoint._config.batches(SIZE)
        for batch in rows:
            job.seen += batch["i"].tolist()
            checkpoint.trained()
    assert job.seen == list(range(ROWS)) and checkpoint._stream.rows_read == ROWS


def never_reads(checkpoint: StreamCheckpoint) -> None:
    list(checkpoint.epochs())


def leaves_early(checkpoint: StreamCheckpoint) -> None:
    for _ in checkpoint.epochs():
        next(checkpoint.batches(SIZE))
        checkpoint.trained()


def forgets(checkpoint: StreamCheckpoint) -> None:
    for _ in checkpoint.epochs():
        list(checkpoint.batches(SIZE))


def reads_twice(checkpoint: StreamCheckpoint) -> None:
    for _ in checkpoint.epochs():
        checkpoint.batches(SIZE)
        checkpoint.batches(SIZE)


def begins_late(checkpoint: StreamCheckpoint) -> None:
    next(checkpoint._config.batches(SIZE))
    checkpoint._stream.epochs = False
    checkpoint._stream.in_epochs()


@pytest.mark.parametrize(
    "wrong, kind, words",
    [
        (never_reads, RuntimeError, "epoch 0 of the stream was not read to its end"),
        (leaves_early, RuntimeError, "a script that wants no more rows returns"),
        (forgets, RuntimeError, r"trained\(\) was not called"),
        (reads_twice, RuntimeError, "rows are given once"),
        (begins_late, RuntimeError, r"checkpoint\(\) comes before the first row"),
        (lambda checkpoint: checkpoint.trained(), RuntimeError, "between the batches of an epoch"),
        (lambda checkpoint: checkpoint.batches(0), ValueError, "batch_size=0"),
        (lambda checkpoint: next(checkpoint.epochs(3)), TypeError, r"go on until it ends: write epochs\(\)"),
        (lambda checkpoint: checkpoint.dataset(4, shuffle=True), TypeError, "shuffle"),
    ],
)
def test_mistakes_are_told(tmp_path: Path, wrong: Callable[[StreamCheckpoint], Any], kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        wrong(Job(tmp_path).checkpoint())


def test_what_a_stream_needs(tmp_path: Path) -> None:
    job = Job(tmp_path)
    with pytest.raises(ValueError, match="give every=1000"):
        job.checkpoint(every=None)
    context: dict[str, Any] = {"places": False}
    with pytest.raises(RuntimeError, match=r"kafka://, redis:// or files://, or from a file \(--follow\) with resume=True"):
        of(job.checkpoint()._config, context, None, {})
    context = {"task": "chief:0", "first": "chief:0", "fed": ["chief:0"], "tf_config": {"cluster": {"ps": ["a:1"]}}}
    with pytest.raises(RuntimeError, match="with parameter servers"):
        of_task(job.checkpoint()._config, context)


def test_saves_of_another_number_of_workers_are_refused(tmp_path: Path) -> None:
    job = Job(tmp_path)
    job.train(job.checkpoint())
    other = StreamTaskConfig(checkpoint_dir=str(tmp_path), schema=[], attempt=9, num_workers=2, _job=job)
    with pytest.raises(
        ValueError, match="columns .'i'., now .., workers 1, now 2.*going on needs the same columns and num_workers="
    ):
        StreamCheckpoint(
            other, job.stream(), every=3, save=job.save, restore=job.restore, fed=["chief:0"], task="chief:0", resume=True
        )
