"""Streams whose jobs save their model and their place, and are killed again and again."""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import akrunner
from tests import hosts
from tests.conftest import ENDS, Script
from tests.servers.kafka import Kafka
from tests.servers.redis import RedisServer

pytestmark = pytest.mark.slow

#: learns ids; an attempt before `kills` kills one of the tasks, in turn: some batches behind a save, in a save, at its beginning
COUNTS = """
import json, os, random, signal, time

def main(task_config):
    seen = []
    kills, attempt = task_config.user_params["kills"], task_config.attempt
    open(os.path.join(task_config.user_params["told"], "attempt-%d" % attempt), "a").close()
    chance = random.Random(attempt)
    victim = chance.choice(["chief", "worker"][: task_config.num_workers]) == task_config.task_type and attempt < kills
    way, count = attempt % 3, chance.randint(1, 12)
    saves = 0

    def die():
        os.kill(os.getpid(), signal.SIGKILL)

    def save(folder):
        nonlocal saves
        saves += 1
        with open(os.path.join(folder, "seen"), "w") as f:
            json.dump(seen, f)
        if victim and way == 1 and saves == 2:
            die()

    def restore(folder):
        with open(os.path.join(folder, "seen")) as f:
            seen.extend(json.load(f))

    checkpoint = task_config.checkpoint(every=3, save=save, restore=restore)
    here = 0
    for epoch in checkpoint.epochs():
        for batch in checkpoint.batches(7):
            here += 1
            if victim and here >= count and (way == 2 or (way == 0 and saves > 0)):
                die()
            seen.extend(batch["id"].tolist())
            checkpoint.trained()
            time.sleep(task_config.user_params.get("pause", 0.001))
    task_config.output_writer.write_batch({"id": seen})
"""
SCHEMAS: dict[str, Any] = {"input_schema": "id bigint", "output_schema": "id bigint"}


class Producer(threading.Thread):
    """Adds rows, some at a time, until the attempt that is not killed has begun, and a few more.

    Attributes: rows: how many there are in the end; folder: where each attempt leaves a file.
    """

    def __init__(self, folder: Path, put: Callable[[range], None], kills: int, at_once: int = 20) -> None:
        super().__init__(daemon=True)
        self.rows = 0
        self.folder = folder
        self.kills = kills
        self._put, self._at_once = put, at_once
        self._over = threading.Event()
        folder.mkdir()
        self._add()
        self.start()

    def _add(self) -> None:
        self._put(range(self.rows, self.rows + self._at_once))
        self.rows += self._at_once

    def run(self) -> None:
        left = 20
        while left and not self._over.wait(self._at_once / 1000):
            left -= (self.folder / f"attempt-{self.kills}").exists()
            self._add()

    def end(self) -> None:
        self._over.set()
        self.join()

    def learned(self, path: str, url: str, **given: Any) -> None:
        """Check what the model has learned in the end, by a job that is killed so often and started again."""
        given = {
            "num_workers": 2,
            "user_params": {"kills": self.kills, "told": str(self.folder)},
            "max_restarts": self.kills,
            "restart_delay": 0,
            **SCHEMAS,
            **given,
        }
        try:
            with akrunner.stream(path, url, **given) as job:
                found = [one for batch in job for one in batch.column("id").to_pylist()]
        finally:
            self.end()
        assert job.stats is not None and job.stats.attempt == self.kills
        assert sorted(found) == list(range(self.rows))


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("kafka", "redis", "files", "counted"):
        monkeypatch.setattr(importlib.import_module(f"akrunner.io.streams.{name}"), "TAKEN_ROWS", 30)


@pytest.mark.parametrize("form, kills", [("columns", 20), ("examples", 4)])
def test_kills_and_redis(
    redis_server: RedisServer, script: Script, tmp_path: Path, leaves_nothing: Path, form: str, kills: int
) -> None:
    def put(ids: range) -> None:
        for one in ids:
            redis_server.client.xadd(f"learn-{form}", {"id": one})

    producer = Producer(tmp_path / "told", put, kills)
    producer.learned(script(COUNTS), f"{redis_server.url}/learn-{form}?group=g&idle=2", data_format=form)
    assert redis_server.client.xpending(f"learn-{form}", "g")["pending"] == 0


def test_kills_and_kafka(kafka: Kafka, script: Script, tmp_path: Path, leaves_nothing: Path) -> None:
    settings = tmp_path / "kafka.properties"
    # the mock gives the partitions of a consumer that has left to the next one only after this time
    settings.write_text("session.timeout.ms=6000\nheartbeat.interval.ms=500\n")
    producer = Producer(tmp_path / "told", lambda ids: kafka.put("learn", *map(value, ids)), 3)
    producer.learned(script(COUNTS), f"kafka://{kafka.hosts}/learn?group=g&idle=2&config={settings}")
    assert sum(kafka.stored("learn", "g")) == producer.rows


def value(number: int) -> bytes:
    return json.dumps({"id": number}).encode()


def test_kills_and_files_that_arrive(script: Script, tmp_path: Path, leaves_nothing: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()

    def put(ids: range) -> None:
        # several saves are made in the middle of each
        (folder / "part.tmp").write_text("id\n" + "".join(f"{one}\n" for one in ids))
        os.rename(folder / "part.tmp", folder / f"{ids[0]:09}.csv")

    producer = Producer(tmp_path / "told", put, 5, at_once=400)
    producer.learned(script(COUNTS), f"files://{folder}?group=g&idle=3")


def test_kills_and_a_table(script: Script, tmp_path: Path, leaves_nothing: Path) -> None:
    path = tmp_path / "rows.csv"
    (tmp_path / "told").mkdir()
    path.write_text("id\n" + "".join(f"{one}\n" for one in range(100_000)))
    told = {"kills": 3, "told": str(tmp_path / "told"), "pause": 0}
    given: Any = dict(num_workers=1, user_params=told, max_restarts=3, restart_delay=0, **SCHEMAS)
    with akrunner.stream(script(COUNTS), str(path), **given) as job:
        assert sorted(one for batch in job for one in batch.column("id").to_pylist()) == list(range(100_000))
    assert job.stats is not None and job.stats.attempt == 3


def test_a_host_that_is_killed_goes_on_with_resume(script: Script, tmp_path: Path, leaves_nothing: Path) -> None:
    """A file that grows; the last job is ended by SIGTERM, which lets what was read be learned and saved."""
    path, saves, out = tmp_path / "events.jsonl", tmp_path / "saves", tmp_path / "out.jsonl"
    path.touch()

    def put(ids: range) -> None:
        with open(path, "a") as f:
            f.write("".join(json.dumps({"id": one}) + "\n" for one in ids))

    producer = Producer(tmp_path / "told", put, 9)
    words = [sys.executable, "-m", "akrunner", "stream", script(COUNTS), "-i", str(path), "--follow", "--num-workers", "2"]
    words += [
        "--checkpoint-dir",
        str(saves),
        "--resume",
        "-p",
        "kills=0",
        "-p",
        f"told={tmp_path / 'told'}",
        "--input-schema",
        "id bigint",
    ]
    words += ["--output-schema", "id bigint", "-o", str(out), "--output-live", "--overwrite"]
    for number in range(4):
        with hosts.Popen(words, stderr=subprocess.PIPE, text=True) as job:
            wait_for_more(saves)
            if number == 3:
                producer.end()
                time.sleep(1)
            job.send_signal(signal.SIGKILL if number < 3 else signal.SIGTERM)
            _, err = job.communicate(timeout=ENDS)
    assert job.returncode == 143 and "Traceback" not in err
    found = sorted(json.loads(line)["id"] for line in out.read_text().splitlines())
    assert found == list(range(producer.rows))


def newest(saves: Path) -> int:
    """Return the number of the newest save of the chief, 0 for none."""
    return max((int(one.name) for one in saves.glob("akrunner-saves/chief-0/*") if one.name.isdigit()), default=0)


def wait_for_more(saves: Path) -> None:
    """Wait for two more saves."""
    before, end = newest(saves), time.monotonic() + ENDS
    while newest(saves) < before + 2:
        assert time.monotonic() < end
        time.sleep(0.02)


TRAINS = """
import tensorflow as tf

def main(task_config):
    total = tf.Variable(0, dtype=tf.int64)
    count = tf.Variable(0, dtype=tf.int64)
    checkpoint = task_config.checkpoint(every=3, total=total, count=count)
    for epoch in checkpoint.epochs():
        for batch in checkpoint.dataset(8):
            total.assign_add(tf.reduce_sum(batch["id"]))
            count.assign_add(tf.cast(tf.shape(batch["id"])[0], tf.int64))
            checkpoint.trained()
        if not task_config.attempt and epoch == 2:
            raise ValueError("fails after epoch %d" % epoch)
    task_config.output_writer.write_batch({"id": [int(total), int(count)]})
"""


@pytest.mark.tensorflow
@pytest.mark.parametrize("form", ["columns", "examples"])
def test_variables_of_tensorflow(script: Script, tmp_path: Path, leaves_nothing: Path, form: str) -> None:
    path = tmp_path / "rows.csv"
    # more than is under way at once, so that there are several epochs
    path.write_text("id,more\n" + "".join(f"{one},{'x' * 2000}\n" for one in range(5_000)))
    columns = {**SCHEMAS, "input_schema": "id bigint, more string"}
    with akrunner.stream(script(TRAINS), str(path), max_restarts=1, restart_delay=0, data_format=form, **columns) as job:
        found = [one for batch in job for one in batch.column("id").to_pylist()]
    assert found == [sum(range(5_000)), 5_000] and job.stats is not None and job.stats.attempt == 1
