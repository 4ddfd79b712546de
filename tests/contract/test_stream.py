"""Stream jobs on every engine: rows come as they arrive, once; whatever ends the stream ends the job, and says so."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import akrunner
from tests.conftest import Script, ends, wait_for

Stream = Callable[..., akrunner.StreamJob]

ECHO = """
def main(task_config):
    import tensorflow as tf
    from akrunner.worker import StreamTaskConfig
    assert isinstance(task_config, StreamTaskConfig)
    read = 0
    for record in task_config.dataset_fn():
        task_config.output_writer.write(record.numpy())
        read += 1
    for again in (task_config.dataset_fn, task_config.tf_context.flink_stream_dataset):
        try:
            list(again())
        except Exception as e:
            assert "this stream was read already" in str(e), str(e)
        else:
            raise AssertionError("a second pass must fail")
    print("read", read)
"""
PEEK = """
def main(task_config):
    import tensorflow as tf
    dataset = task_config.tf_context.flink_stream_dataset()
    first = next(iter(dataset))          # as Keras does to build a model
    spec = task_config.feature_spec
    total = 0
    for batch in dataset.batch(100).map(lambda b: tf.io.parse_example(b, spec)):
        total += int(tf.reduce_sum(batch["i"]))
    task_config.output_writer.write_batch({"i": [total]})
"""
SLEEPS = "import time\ndef main(c):\n    time.sleep(1000)\n"
SLEEPS_AND_SAYS_SO = "import time\ndef main(c):\n    c.output_writer.write_batch({'i': [1]})\n    time.sleep(1000)\n"
RETURNS = "def main(c):\n    c.output_writer.write_batch({'i': [1]})\n"


@pytest.fixture
def stream(engine: str, leaves_nothing: Path) -> Iterator[Stream]:
    def start(script: str, source: Any, **options: Any) -> akrunner.StreamJob:
        return akrunner.stream(script, source, engine=engine, output_schema="i bigint", **options)

    yield start


def values(job: akrunner.StreamJob) -> list[int]:
    return [value for batch in job for value in batch.column("i").to_pylist()]


def failed(job: akrunner.StreamJob) -> bool:
    """Whether it has, though nobody has asked for its batches."""
    return job._error is not None


def endless() -> Iterator[Any]:
    return ({"i": i} for i in itertools.count())


@pytest.mark.tensorflow
def test_a_bounded_stream(stream: Stream, script: Script) -> None:
    table = pa.table({"i": range(30_000)})
    with stream(script(ECHO), table) as job:
        assert values(job) == list(range(30_000))
    assert job.stats is not None and job.stats.rows_in == job.stats.rows_out == 30_000 and job.stats.rows_unread == 0


@pytest.mark.tensorflow
def test_outputs_come_back_while_input_is_flowing(stream: Stream, script: Script) -> None:
    """Each row is sent only when the one before has come back: a row held back would stop everything."""
    returned: list[int] = []

    def rows() -> Iterator[Any]:
        for i in range(50):
            while len(returned) < i:
                time.sleep(0.001)
            yield {"i": i}

    with stream(script(ECHO), rows(), input_schema="i bigint", timeout=60) as job:
        for batch in job:
            returned.extend(batch.column("i").to_pylist())
    assert returned == list(range(50))


@pytest.mark.tensorflow
def test_an_iterator_that_only_peeks_does_not_count(stream: Stream, script: Script) -> None:
    with stream(script(PEEK), {"i": list(range(1000))}) as job:
        assert values(job) == [sum(range(1000))]


@pytest.mark.tensorflow
def test_two_workers_take_chunks_in_turn(stream: Stream, script: Script) -> None:
    batches = (pa.record_batch({"i": [10 * n, 10 * n + 1]}) for n in range(6))
    with stream(script(ECHO), pa.RecordBatchReader.from_batches(pa.schema([("i", pa.int64())]), batches), num_workers=2) as job:
        assert sorted(values(job)) == sorted(10 * n + k for n in range(6) for k in (0, 1))
    assert job.stats is not None and job.stats.shares == (6, 6)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["close", "with"])
def test_closing_ends_an_endless_job(stream: Stream, script: Script, how: str) -> None:
    job = stream(script(SLEEPS), endless())
    time.sleep(0.5)
    with ends():
        if how == "close":
            job.close()
            job.close()
        else:
            with job:
                pass
    assert list(job) == []


@pytest.mark.slow
def test_a_consumer_that_stops(stream: Stream, script: Script) -> None:
    body = "import itertools\ndef main(c):\n    for n in itertools.count():\n        c.output_writer.write_batch({'i': [n] * 1000})\n"
    with stream(script(body), endless()) as job:
        assert next(job).num_rows == 1000


@pytest.mark.slow
def test_an_error_in_the_block_is_the_one_seen(stream: Stream, script: Script) -> None:
    with pytest.raises(KeyError, match="mine"), stream(script("def main(c):\n    1 / 0\n"), endless()) as job:
        # it has failed by then
        wait_for(lambda: failed(job))
        raise KeyError("mine")


@pytest.mark.slow
def test_a_source_that_raises(stream: Stream, script: Script) -> None:
    def rows() -> Iterator[Any]:
        yield from ({"i": i} for i in range(10))
        raise ConnectionError("the broker is gone")

    with pytest.raises(akrunner.ReadError, match="the broker is gone"), stream(script(SLEEPS), rows()) as job:
        list(job)


@pytest.mark.slow
def test_a_script_that_raises(stream: Stream, script: Script) -> None:
    with stream(script("def main(c):\n    raise ValueError('no')\n"), endless()) as job:
        with pytest.raises(akrunner.ScriptFailedError, match="ValueError: no"):
            list(job)
    with pytest.raises(akrunner.ScriptFailedError):
        with stream(script("def main(c):\n    raise ValueError('no')\n"), endless()) as job:
            wait_for(lambda: failed(job))


@pytest.mark.slow
def test_a_worker_that_dies_after_half_its_output(stream: Stream, script: Script) -> None:
    body = "import os\ndef main(c):\n    c.output_writer.write_batch({'i': [1, 2]})\n    os.kill(os.getpid(), 9)\n"
    got: list[int] = []
    with stream(script(body), endless()) as job:
        with pytest.raises(akrunner.TaskDiedError, match="137"):
            for batch in job:
                got += batch.column("i").to_pylist()
    assert got == [1, 2], "what it had written before has come"


@pytest.mark.slow
def test_a_script_that_returns_before_the_stream_has_ended(stream: Stream, script: Script, tmp_path: Path) -> None:
    given = tmp_path / "given"

    def rows() -> Iterator[Any]:
        for i in range(100_000):
            if i == 20_000:
                given.touch()
            yield {"i": i}

    # a job that ends before its source was asked has no rows that were not read
    returns = RETURNS + f"    import os, time\n    while not os.path.exists({str(given)!r}):\n        time.sleep(0.01)\n"
    with stream(script(returns), rows(), input_schema="i bigint") as job:
        assert values(job) == [1]
    assert job.stats is not None and job.stats.rows_in == 0 and job.stats.rows_unread > 0
    with stream(script(RETURNS), endless()) as job:
        assert values(job) == [1], "an endless source does not keep the job"


@pytest.mark.slow
def test_a_slow_script_holds_the_source_back(stream: Stream, script: Script) -> None:
    drawn = 0

    def rows() -> Iterator[Any]:
        nonlocal drawn
        for i in itertools.count():
            drawn = i
            yield {"i": i, "text": "x" * 1000}

    def stands() -> bool:
        before = drawn
        time.sleep(1)
        assert drawn < 300_000
        return drawn == before

    with stream(script(SLEEPS_AND_SAYS_SO), rows(), input_schema="i bigint, text string") as job:
        # the script is there, and reads nothing
        assert next(job).num_rows == 1
        wait_for(stands)


@pytest.mark.slow
def test_timeout(stream: Stream, script: Script) -> None:
    with pytest.raises(akrunner.JobTimeoutError, match="timeout=1"), stream(script(SLEEPS), endless(), timeout=1) as job:
        list(job)


def test_refused_before_anything_starts(stream: Stream, script: Script) -> None:
    with pytest.raises(akrunner.ConfigError, match="flush_seconds=0"):
        stream(script(SLEEPS), {"i": [1]}, flush_seconds=0)
    with pytest.raises(akrunner.SourceError, match="input_schema="):
        stream(script(SLEEPS), iter([]))
