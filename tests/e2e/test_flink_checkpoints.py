"""A stream whose script fails, whose TaskManager is killed, that is stopped with a savepoint, resumed, and fails for good: on a real
cluster, and no row is lost."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import textwrap
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from akrunner.engines.flink.host import cluster
from akrunner.engines.flink.host.java import java_home
from akrunner.engines.flink.rest import Rest
from tests.breaking import Clusters
from tests.conftest import FLINK, PROGRAM, need_flink, nothing_is_left, of_jobs, taskmanager_of

pytestmark = pytest.mark.flink

#: more than come at 200 a second while a TaskManager is killed and another takes its place, however slow the machine is
ROWS = 20_000
#: holds rows back for a batch of 64, and fails once, after so many seconds
SCRIPT = """
    import time

    def main(task_config):
        began, fails = time.monotonic(), task_config.user_params["fails"]
        for batch in task_config.batches(64):
            if task_config.attempt == 0 and fails is not None and time.monotonic() - began >= fails:
                raise ValueError("bad luck")
            task_config.output_writer.write_batch({"a": batch["a"]})
    """


class Program:
    """One run of the program, in a process of its own."""

    def __init__(self, address: str, folder: Path, rate: int, savepoint: str = "") -> None:
        self.rest = Rest(address, keep=True)
        self.told: dict[str, Any] = {}
        environ = {
            **os.environ, "JAVA_HOME": java_home(str(FLINK)), "TMPDIR": str(folder / "temp"), "XDG_STATE_HOME": str(folder / "state"),
            "JAVA_TOOL_OPTIONS": f"-Djava.io.tmpdir={folder / 'temp'} {os.environ['JAVA_TOOL_OPTIONS']}",
        }  # fmt: skip
        code = str(Path(__file__).parent / "programs" / "stream.py")
        places = [address, sys.executable, str(folder / "s.py"), str(folder / "kept")]
        command = [str(PROGRAM), code, *places, str(ROWS), str(rate), savepoint]
        self._said = folder / "temp" / "said.txt"
        with open(self._said, "w") as said:
            self._process = subprocess.Popen(
                command, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said, text=True
            )
        self._reading = threading.Thread(target=self._read)
        self._reading.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                if line.startswith("TOLD "):
                    name, value = json.loads(line[5:])
                    self.told[name] = value

    def until(self, what: str, so: Callable[[], Any], seconds: float = 180.0) -> Any:
        deadline = time.monotonic() + seconds
        while not (found := so()):
            assert time.monotonic() < deadline and self._process.poll() is None, f"{what}: {self.told}"
            # the JobManager tells of its checkpoints at some length
            time.sleep(0.3)
        return found

    @property
    def path(self) -> str:
        return f"/jobs/{self.told['job']}"

    def checkpoints(self) -> int:
        return int(self.rest._object(self.path + "/checkpoints")["counts"]["completed"])

    def more_checkpoints(self) -> None:
        before = self.checkpoints()
        self.until("more checkpoints", lambda: self.checkpoints() > before + 1)

    def end(self) -> dict[str, Any]:
        assert self._process.stdin is not None
        self._process.stdin.close()
        assert self._process.wait(200) == 0, self._said.read_text()[-3000:]
        self._reading.join()
        self.rest.close()
        return self.told

    def kill(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._reading.join()
        self.rest.close()


def tasks(running: cluster.Cluster) -> list[psutil.Process]:
    """Of akrunner's, there."""
    found = []
    for process in of_jobs(running.folder):
        with contextlib.suppress(psutil.Error):
            if "bundle.zip" in " ".join(process.cmdline()):
                found.append(process)
    return found


def stop(program: Program, folder: Path) -> str:
    """With a savepoint. Returns: where it is."""
    body = json.dumps({"targetDirectory": f"file://{folder}", "drain": False}).encode()
    request = urllib.request.Request(
        f"http://{program.rest.master}{program.path}/stop", body, {"Content-Type": "application/json"}, method="POST"
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        trigger = json.load(answer)["request-id"]
    deadline = time.monotonic() + 180
    while (done := program.rest._object(f"{program.path}/savepoints/{trigger}"))["status"]["id"] != "COMPLETED":
        assert time.monotonic() < deadline, done
        time.sleep(0.1)
    assert "location" in done["operation"], done
    return str(done["operation"]["location"])


@pytest.fixture(scope="module")
def story(clusters: Clusters, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    need_flink(program=True)
    folder = tmp_path_factory.mktemp("story")
    (folder / "temp").mkdir()
    (folder / "s.py").write_text(textwrap.dedent(SCRIPT))
    started = clusters.whole().cluster
    program: Program | None = None
    told: dict[str, Any] = {}
    try:
        program = Program(started.address, folder, 200)
        program.until("the job", lambda: "job" in program.told)
        program.until(
            "the script's second attempt", lambda: program.rest._object(program.path + "/checkpoints")["counts"]["restored"]
        )
        program.more_checkpoints()
        # what looks for tasks may have looked in the middle of a start
        running = program.until("a task", lambda: tasks(started))
        taskmanager_of(running[0].pid).kill()
        program.until("the third", lambda: program.rest._object(program.path + "/checkpoints")["counts"]["restored"] == 2)
        program.more_checkpoints()
        savepoint = stop(program, folder / "savepoints")
        program.until("its end", lambda: "Flink" in program.told)
        told["kept then"] = kept(folder / "kept")
        told["left then"] = tasks(started)
        told["stopped"] = program.end()
        failed = {name.partition(": ")[2]: value for name, value in told["stopped"].items() if name.startswith("for good: ")}
        restored = program.rest._object(f"/jobs/{failed['job']}/checkpoints")["counts"]["restored"]
        told["failed"] = {**failed, "restored": restored}
        told["fault"] = {
            name.partition(": ")[2]: value for name, value in told["stopped"].items() if name.startswith("a fault: ")
        }
        program = Program(started.address, folder, 6000, savepoint=savepoint)
        told["resumed"] = program.end()
        told["kept"] = kept(folder / "kept")
        nothing_is_left(started)
    except BaseException:
        # with jobs that may go on
        clusters.close()
        raise
    finally:
        if program is not None:
            program.kill()
    assert not tasks(started)
    return told


def kept(folder: Path) -> list[int]:
    """The rows in the files Flink has committed."""
    return [int(line) for path in folder.glob("part-*") for line in path.read_text().split()]


def test_no_row_is_lost(story: dict[str, Any]) -> None:
    """At least once: after a script's failure, a killed TaskManager, a stop and a new start."""
    times = Counter(story["kept"])
    assert set(times) == set(range(ROWS))
    assert set(times.values()) == {1}, "this sink takes back what came after the last checkpoint"


def test_a_savepoint_has_what_was_answered(story: dict[str, Any]) -> None:
    before = len(story["kept then"])
    assert 300 < before < ROWS
    assert story["stopped"]["error"] == ["JobCancelledError", "the Flink job was stopped, as a savepoint does", False]
    assert story["left then"] == []
    attempt, _, rows_in, rows_out = story["resumed"]["outcome"]
    assert attempt == 0 and rows_in == rows_out == ROWS - before, "rows held for a batch were answered too"


def test_a_script_that_fails_for_good(story: dict[str, Any]) -> None:
    """Whatever Flink's restart strategy says: the same script would fail the same way."""
    kind, words, fault = story["failed"]["error"]
    assert kind == "ScriptFailedError" and not fault and "raised ValueError in main(): bad luck" in words
    assert "SuppressRestartsException" in story["failed"]["Flink"] and "ValueError: bad luck" in story["failed"]["Flink"]
    assert story["failed"]["restored"] == 0


def test_a_fault_of_akrunners_own_does_not_go_round(story: dict[str, Any]) -> None:
    """Although its subtask is lost by it, and the script may fail three times."""
    kind, words, fault = story["fault"]["error"]
    assert kind == "JobError" and fault and words.startswith("akrunner's own thread 'subtask' failed:\nTraceback")
    assert words.endswith("AttributeError: no such thing") and "everything again" not in words
    assert story["fault"]["Flink"] != "finished"


def test_what_cannot_be_in_a_checkpoint_is_refused(story: dict[str, Any]) -> None:
    assert "tasks without rows hold up Flink's checkpoints" in story["resumed"]["a parameter server"]
    assert "a script that works on a whole table holds up Flink's checkpoints" in story["resumed"]["a script of whole tables"]
