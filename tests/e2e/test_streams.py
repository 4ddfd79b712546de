"""Streams of Kafka, Redis and arriving files from end to end: rows in, rows out, and what is remembered, whatever happens."""

from __future__ import annotations

import datetime
import io
import json
import signal
import struct
import subprocess
import sys
import time
import traceback
from pathlib import Path
from typing import Any

import fastavro
import pytest

import akrunner
from tests import hosts
from tests.conftest import ENDS, Script
from tests.servers.kafka import Kafka
from tests.servers.redis import Losing, RedisServer
from tests.servers.registry import Registry
from tests.servers.transactions import TransactionalKafka

pytestmark = pytest.mark.slow

DOUBLE = """
def main(task_config):
    for batch in task_config.batches(7):
        task_config.output_writer.write_batch({"id": batch["id"], "y": batch["x"] * 2})
"""
STOPS = """
def main(task_config):
    for batch in task_config.batches(7):
        if 100 in list(batch["id"]):
            raise SystemExit("stopped at 100")
        task_config.output_writer.write_batch({"id": batch["id"], "y": batch["x"] * 2})
"""
SCHEMAS: dict[str, Any] = {"input_schema": "id bigint, x double", "output_schema": "id bigint, y double"}


def values(first: int, end: int) -> list[bytes]:
    return [json.dumps({"id": number, "x": number / 2}).encode() for number in range(first, end)]


def ids(job: akrunner.StreamJob) -> list[int]:
    return sorted(one for batch in job for one in batch.column("id").to_pylist())


@pytest.mark.parametrize("workers", [1, 2])
def test_kafka_to_kafka_remembers_what_was_written(workers: int, kafka: Kafka, script: Script, leaves_nothing: Path) -> None:
    kafka.put(f"in{workers}", *values(0, 200))
    url = f"kafka://{kafka.hosts}/in{workers}?group=g{workers}&idle=1"
    with akrunner.stream(script(DOUBLE), url, num_workers=workers, **SCHEMAS) as job:
        assert job.write_to(f"kafka://{kafka.hosts}/out{workers}?key=id") == 200
    assert kafka.stored(f"in{workers}", f"g{workers}") == [50] * 4
    found = kafka.all(f"out{workers}", 200)
    assert sorted(json.loads(value)["id"] for _, value in found) == list(range(200))
    assert all(key == str(json.loads(value)["id"]).encode() for key, value in found)


class Stream:
    """One stream of each system. Args: kind: the system.

    Attributes: url: of the stream, which ends once no row has come for a while.
    """

    def __init__(self, kind: str, request: pytest.FixtureRequest, folder: Path) -> None:
        self._kind, self._name = kind, f"contract-{folder.name}"
        if kind == "files":
            self._at: Any = folder / "in"
            self._at.mkdir()
            self.url = f"files://{self._at}?group=g&idle=3"
            return
        self._at = request.getfixturevalue("kafka" if kind == "kafka" else "redis_server")
        server = f"kafka://{self._at.hosts}" if kind == "kafka" else self._at.url
        # the mock does not notice at once that a job has left the group
        (folder / "settings").write_text("session.timeout.ms=6000\nheartbeat.interval.ms=500\n")
        self.url = f"{server}/{self._name}?group=g" + (
            f"&idle=0.2&config={folder}/settings" if kind == "kafka" else "&idle=0.5"
        )

    def put(self, *rows: dict[str, Any]) -> None:
        if self._kind == "kafka":
            self._at.put(self._name, *(json.dumps(row).encode() for row in rows))
        elif self._kind == "files":
            (self._at / f"{len(list(self._at.iterdir()))}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        else:
            for row in rows:
                # a field that is not there is a null
                told = {
                    name: value if isinstance(value, str) else json.dumps(value)
                    for name, value in row.items()
                    if value is not None
                }
                self._at.client.xadd(self._name, told)

    def remembers(self, rows: int) -> bool:
        """Whether it is remembered that all rows of the only file, or of the only entries, were read."""
        if self._kind == "kafka":
            return sum(self._at.stored(self._name, "g")) == rows
        if self._kind == "redis":
            return bool(self._at.client.xpending(self._name, "g")["pending"] == 0)
        return (self._at / ".akrunner-read-g").read_text() == '"0.jsonl"\n'


@pytest.fixture(params=["kafka", "redis", "files"])
def stream(request: pytest.FixtureRequest, tmp_path: Path) -> Stream:
    return Stream(request.param, request, tmp_path)


def test_types_and_nulls_come_in(stream: Stream, script: Script, leaves_nothing: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"id": 2**53 + 1, "t": True, "x": 0.5, "s": "h\u00e4\u00df", "d": "2026-01-02"}, {"id": 2, "t": None, "x": None, "s": None, "d": None},
    ]  # fmt: skip
    stream.put(*rows)
    schema = "id bigint, t boolean, x double, s string, d date"
    copies = script(
        "def main(task_config):\n    for batch in task_config.batches(2, nulls='none'):\n        task_config.output_writer.write_batch(batch)"
    )
    with akrunner.stream(copies, stream.url, input_schema=schema, output_schema=schema, data_format="columns") as job:
        found = [row for batch in job for row in batch.to_pylist()]
    want = [{**row, "d": datetime.date(2026, 1, 2) if row["d"] else None} for row in rows]
    assert sorted(found, key=lambda row: -row["id"]) == want


def test_a_script_that_fails_loses_nothing(stream: Stream, script: Script, leaves_nothing: Path) -> None:
    stream.put(*({"id": number, "x": number / 2} for number in range(200)))
    seen: list[int] = []
    with pytest.raises(akrunner.JobError, match="stopped at 100"):
        with akrunner.stream(script(STOPS), stream.url, **SCHEMAS) as job:
            for batch in job:
                seen += batch.column("id").to_pylist()
    with akrunner.stream(script(DOUBLE), stream.url, **SCHEMAS) as job:
        assert sorted({*seen, *ids(job)}) == list(range(200))
    assert stream.remembers(200)


@pytest.mark.parametrize("url", ["kafka://127.0.0.1:1/t?group=g", "redis://127.0.0.1:1/t?group=g", "files:///nowhere?group=g"])
def test_no_error_shows_a_secret(url: str, script: Script, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "settings").write_text(
        "username=me\npassword=s3cr-et\n" if "redis" in url else "sasl.username=me\nsasl.password=s3cr-et\n"
    )
    monkeypatch.setenv("REDISCLI_AUTH", "s3cr-et")
    for wrong in (url.replace("://", "://me:s3cr-et@"), f"{url}&config={tmp_path}/settings", f"{url}&password=s3cr-et"):
        with pytest.raises(akrunner.SourceError) as caught:
            akrunner.stream(script(DOUBLE), wrong, **SCHEMAS)
        assert "s3cr-et" not in "".join(traceback.format_exception(caught.value))


def test_sigterm_answers_what_was_read_and_remembers_it(
    redis_server: RedisServer, script: Script, leaves_nothing: Path
) -> None:
    for number in range(50):
        redis_server.client.xadd("term", {"id": number, "x": number / 2})
    words = [sys.executable, "-m", "akrunner", "stream", script(DOUBLE), "-i", f"{redis_server.url}/term?group=g"]
    words += ["-o", f"{redis_server.url}/done", "--input-schema", SCHEMAS["input_schema"]]
    words += ["--output-schema", SCHEMAS["output_schema"]]
    with hosts.Popen(words, stderr=subprocess.PIPE, text=True) as job:
        until = time.monotonic() + ENDS
        while redis_server.client.xlen("done") < 50:
            assert time.monotonic() < until
            time.sleep(0.02)
        job.send_signal(signal.SIGTERM)
        _, err = job.communicate(timeout=ENDS)
    assert job.returncode == 143 and "Traceback" not in err
    assert redis_server.client.xpending("term", "g")["pending"] == 0 and redis_server.client.xlen("done") == 50


def test_a_signal_lets_the_pile_that_was_read_be_answered(
    redis_server: RedisServer, script: Script, leaves_nothing: Path
) -> None:
    """It takes longer than the time between two looks at the progress, which must not end the job."""
    for number in range(600):
        redis_server.client.xadd("pile", {"id": number, "x": number / 2})
    slow = script("import time\n" + DOUBLE.replace("task_config.output_writer", "time.sleep(0.02); task_config.output_writer"))
    words = [sys.executable, "-m", "akrunner", "stream", slow, "-i", f"{redis_server.url}/pile?group=g"]
    words += ["-o", f"{redis_server.url}/answered", "--input-schema", SCHEMAS["input_schema"]]
    words += ["--output-schema", SCHEMAS["output_schema"]]
    with hosts.Popen(words, stderr=subprocess.PIPE, text=True) as job:
        until = time.monotonic() + ENDS
        while not redis_server.client.xlen("answered"):
            assert time.monotonic() < until
            time.sleep(0.02)
        job.send_signal(signal.SIGTERM)
        job.communicate(timeout=ENDS)
    assert job.returncode == 143
    assert redis_server.client.xpending("pile", "g")["pending"] == 0 and redis_server.client.xlen("answered") == 600


def test_entries_whose_answer_was_lost_come_again(redis_server: RedisServer, script: Script, leaves_nothing: Path) -> None:
    for number in range(5):
        redis_server.client.xadd("lost", {"id": number, "x": "0.5"})
    way = Losing(int(redis_server.url.rpartition(":")[2]), b"lost")
    try:
        url = f"redis://127.0.0.1:{way.port}/lost?group=g&idle=3"
        with pytest.warns(RuntimeWarning, match="is away|is back"):
            with akrunner.stream(script(DOUBLE), url, **SCHEMAS) as job:
                assert ids(job) == list(range(5))
    finally:
        way.close()
    assert way.lost.is_set() and redis_server.client.xpending("lost", "g")["pending"] == 0


def test_files_come_once(script: Script, tmp_path: Path, leaves_nothing: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.csv").write_text("id,x\n1,0.5\n2,1\n")
    url = f"files://{folder}?group=g&idle=3"
    with akrunner.stream(script(DOUBLE), url, **SCHEMAS) as job:
        assert ids(job) == [1, 2]
    (folder / "b.csv").write_text("id,x\n3,0.5\n")
    with akrunner.stream(script(DOUBLE), url, **SCHEMAS) as job:
        assert ids(job) == [3]


def test_a_server_that_does_not_answer_is_named(kafka: Kafka, redis_server: RedisServer, script: Script) -> None:
    for url in ("kafka://127.0.0.1:1/t?group=g", "redis://127.0.0.1:1/t?group=g"):
        began = time.monotonic()
        with pytest.raises(akrunner.SourceError, match=r"127\.0\.0\.1:1"):
            akrunner.stream(script(DOUBLE), url, **SCHEMAS)
        assert time.monotonic() - began < ENDS
    with pytest.raises(akrunner.SourceError, match="there is no topic 'nowhere'"):
        akrunner.stream(script(DOUBLE), f"kafka://{kafka.hosts}/nowhere?group=g", **SCHEMAS)


@pytest.mark.parametrize("workers", [1, 2])
def test_exactly_once_has_rows_and_offsets_together(
    workers: int, transactional_kafka: TransactionalKafka, script: Script, tmp_path: Path, leaves_nothing: Path
) -> None:
    kafka = transactional_kafka
    # the mock gives a consumer's partitions away only after its session
    (tmp_path / "c").write_text("session.timeout.ms=6000\nheartbeat.interval.ms=500\n")
    topic, out = f"once{workers}", f"once-out{workers}"
    kafka.put(topic, *values(0, 200))
    url = f"kafka://{kafka.hosts}/{topic}?group=g&idle=4&config={tmp_path / 'c'}"
    output = f"kafka://{kafka.hosts}/{out}?key=id&transactional_id=once{workers}"
    with pytest.raises(akrunner.JobError, match="stopped at 100"):
        with akrunner.stream(script(STOPS), url, num_workers=workers, **SCHEMAS) as job:
            job.write_to(output)
    with akrunner.stream(script(DOUBLE), url, num_workers=workers, **SCHEMAS) as job:
        written = job.write_to(output)
    found = sorted(json.loads(value)["id"] for _, value in kafka.whole(out))
    assert found == list(range(200)) and written <= 200 and kafka.stored(topic, "g") == [50] * 4


def test_a_second_job_of_a_name_shuts_out_the_first(
    transactional_kafka: TransactionalKafka, script: Script, leaves_nothing: Path
) -> None:
    kafka = transactional_kafka
    kafka.put("fenced", *values(0, 40))
    words = [sys.executable, "-m", "akrunner", "stream", script(DOUBLE), "-i", f"kafka://{kafka.hosts}/fenced?group=g"]
    words += ["-o", f"kafka://{kafka.hosts}/fenced-out?transactional_id=fenced", "--input-schema", SCHEMAS["input_schema"]]
    words += ["--output-schema", SCHEMAS["output_schema"]]
    with hosts.Popen(words, stderr=subprocess.PIPE, text=True) as job:
        until = time.monotonic() + ENDS
        while len(kafka.whole("fenced-out")) < 40:
            assert time.monotonic() < until
            time.sleep(0.1)
        kafka.put("other", *values(40, 44))
        url = f"kafka://{kafka.hosts}/other?group=g2&idle=1"
        with akrunner.stream(script(DOUBLE), url, **SCHEMAS) as other:
            assert other.write_to(f"kafka://{kafka.hosts}/fenced-out?transactional_id=fenced") == 4
        kafka.put("fenced", *values(44, 48))
        _, err = job.communicate(timeout=ENDS)
    assert job.returncode == 4 and "another job has begun to write with transactional_id=fenced" in err, err
    assert sorted(json.loads(value)["id"] for _, value in kafka.whole("fenced-out")) == list(range(44))


def test_what_cannot_be_exactly_once_is_told_before_anything_starts(kafka: Kafka, script: Script, tmp_path: Path) -> None:
    other = Kafka()
    output = f"kafka://{kafka.hosts}/out?transactional_id=x"
    (tmp_path / "a.jsonl").write_text("")
    for source, told in (
        (f"files://{tmp_path}?group=g", "the input is files://"),
        (f"kafka://{other.hosts}/in?group=g", "needs the input in the same cluster"),
        ("-", "the input is -"),
    ):
        words = [sys.executable, "-m", "akrunner", "stream", script(DOUBLE), "-i", source, "-o", output]
        words += ["--input-schema", SCHEMAS["input_schema"], "--output-schema", SCHEMAS["output_schema"]]
        done = hosts.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=ENDS)
        assert done.returncode == 2 and told in done.stderr, done.stderr


def test_avro_of_a_registry_in_and_out(kafka: Kafka, registry: Registry, script: Script, leaves_nothing: Path) -> None:
    told = {"type": "record", "name": "event", "fields": [{"name": "id", "type": "long"}, {"name": "x", "type": "double"}]}
    number = registry.add("avro-value", told)
    kafka.put("avro", *(avro(number, told, id=one, x=one / 2) for one in range(100)))
    more = f"value=avro&registry={registry.url}"
    with akrunner.stream(
        script(DOUBLE), f"kafka://{kafka.hosts}/avro?group=g&idle=1&{more}", output_schema=SCHEMAS["output_schema"]
    ) as job:
        assert job.write_to(f"kafka://{kafka.hosts}/avro-out?{more}") == 100
    again = registry.schema("avro-out-value")
    rows = [fastavro.schemaless_reader(io.BytesIO(value[5:]), again) for _, value in kafka.all("avro-out", 100)]
    assert sorted(row["id"] for row in rows) == list(range(100)) and all(row["y"] == row["id"] for row in rows)


def avro(number: int, schema: Any, **row: Any) -> bytes:
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, schema, row)
    return struct.pack(">bI", 0, number) + stream.getvalue()


@pytest.mark.parametrize("system", ["kafka", "redis"])
def test_what_cannot_be_read_is_left_out_and_the_position_moves_on(
    system: str, kafka: Kafka, redis_server: RedisServer, script: Script, leaves_nothing: Path, tmp_path: Path
) -> None:
    put = [*values(0, 50), b"no JSON", b'{"id": "x", "x": 1}', *values(50, 100), b"[]"]
    if system == "kafka":
        kafka.put("odd", *put)
        url = f"kafka://{kafka.hosts}/odd?group=g&idle=1"
    else:
        for value in put:
            redis_server.client.xadd("odd", {"value": value})
        url = f"{redis_server.url}/odd?group=g&idle=1&value=json"
    with pytest.raises(akrunner.ReadError, match="cannot be read"):
        with akrunner.stream(script(DOUBLE), url.replace("group=g", "group=h"), **SCHEMAS) as job:
            ids(job)
    bad = tmp_path / "bad"
    with akrunner.stream(script(DOUBLE), url, bad_rows=bad, max_bad_rows=3, **SCHEMAS) as job:
        assert ids(job) == list(range(100))
    (file,) = bad.iterdir()
    kept = [json.loads(line) for line in file.read_bytes().splitlines()]
    assert sorted(one["text"] for one in kept) == ["[]", "no JSON", '{"id": "x", "x": 1}'] and all(one["place"] for one in kept)
    assert job.stats is not None and job.stats.bad_rows == 3
    assert any("column 'id' is int64, and a value here is a text" in one for one in job.stats.warnings)
    # nothing of it comes again
    if system == "kafka":
        assert sum(kafka.stored("odd", "g")) == len(put)
    else:
        assert redis_server.client.xpending("odd", "g")["pending"] == 0
