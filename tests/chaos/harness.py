"""One seed: a job is started, somebody is killed, and what is there afterwards is looked at.

::

    Plan (of a seed) -> host process -> kills -> it ends -> its processes end -> (host and guard dead: the next start) -> Report
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from tests import hosts
from tests.chaos import processes, programs
from tests.chaos.plan import Plan

ROWS = 4000
SCHEMA = "id bigint, x double"
#: seconds that a stopped host stays so; that a trial keeps its turn when nobody is left to be killed
STOPPED, TURN = 0.7, 1.0


@dataclass
class Report:
    """What one seed came to. Attributes: wrong: in words, nothing if all is well; hit: kills that reached somebody; said: the end of the host's words; seconds: from the last one
    to the host's end, and to the end of all (None: nobody was hit, or the host was stopped meanwhile); next_start: whether one was needed."""

    plan: Plan
    wrong: list[str] = field(default_factory=list)
    code: int | None = None
    hit: int = 0
    said: str = ""
    seconds: float | None = None
    all_seconds: float | None = None
    next_start: bool = False


class Place:
    """What all seeds share: the input in files, the model, the TensorFlow that is none. Args: folder: a new directory."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.table = pa.table(
            {"id": pa.array(range(ROWS), pa.int64()), "x": pa.array([i / 4 for i in range(ROWS)], pa.float64())}
        )
        pq.write_table(self.table, folder / "in.parquet")
        pq.write_table(self.table, folder / "blocks.parquet", row_group_size=100)
        (folder / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in self.table.to_pylist()))
        pq.write_table(self.table.set_column(1, "x", self.table["x"].cast(pa.float32())), folder / "floats.parquet")
        (folder / "script.py").write_text(programs.SCRIPT)
        (folder / "host.py").write_text(programs.HOST)
        programs.stand_in(folder / "stub")
        (folder / "model").mkdir()
        (folder / "model" / "saved_model.pb").write_bytes(programs.model())


class Trial:
    """One seed. Everything it does is in a directory of its own, which is removed when nothing was wrong.

    Args: turns: who has one has its processor's time: a trial that starts, and whose victims are still to be killed.
    """

    #: seconds: of a host; of its processes after it; for a victim that may still come
    longest, after, patience = 60.0, 8.0, 2.0
    #: that a script sleeps now and then
    pause = 0.02
    #: what ends a job that moves no longer; a prediction has only its whole time
    stuck = {"stall_timeout": 2.0, "evaluator_timeout": 1.0, "timeout": 6.0}

    def __init__(self, place: Place, plan: Plan, turns: threading.Semaphore) -> None:
        self.plan = plan
        self.place = place
        self.turns = turns
        self.report = Report(plan)
        # no name of a trial begins with another's
        self.folder = place.folder / f"seed-{plan.seed}-"
        for name in ("tmp", "state", "told", "out"):
            (self.folder / name).mkdir(parents=True)
        self.output = self.folder / "out" / ("model" if plan.mode == "train" else plan.form.rstrip("/"))
        #: exit codes of one that was not hit
        self.codes = {0, 1}
        #: (process, signal)
        self.struck: list[tuple[int, str]] = []
        self.stopped_host = False

    def run(self) -> Report:
        report = self.report
        if self.plan.before and self.plan.mode != "train":
            self.output.write_text("before")
        last = self.one_host()
        ended = time.monotonic()
        report.wrong += self.wrong_elsewhere()
        orphans = self.orphans(ended + self.after)
        if last is not None and not self.stopped_host:
            report.seconds, report.all_seconds = ended - last, time.monotonic() - last
        if orphans or (self.killed("host") and self.killed("guard") and self.leftovers()):
            report.next_start = True
            self.start_again()
            orphans = self.orphans(time.monotonic() + self.after)
            if not (self.killed("host") and self.killed("guard")):
                report.wrong.append("nothing but the next start has cleaned up")
        if orphans:
            report.wrong.append(f"orphans: {[(pid, ' '.join(processes.words_of(pid))[:200]) for pid in orphans]}")
            for pid in orphans:
                os.kill(pid, signal.SIGKILL)
        report.wrong += [f"left over: {name}" for name in self.leftovers()]
        report.wrong += self.wrong_output() + self.wrong_words()
        if not report.wrong:
            subprocess.run(["rm", "-rf", str(self.folder)], check=True)
        return report

    def one_host(self) -> float | None:
        """From its start to its end. Returns: as `kills`."""
        with open(self.folder / "log.txt", "wb") as log, self.turns:
            self.host = hosts.Popen(
                self.command(), stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.environ(), cwd=self.folder
            )
            began = time.monotonic()
            try:
                last = self.kills(began)
                # most end at once; the others wait for nothing but a time that is to pass
                self.ended_by(time.monotonic() + TURN)
            except BaseException:
                self.host.kill()
                raise
        if self.ended_by(began + self.longest) or self.ended_by(began + self.longest * busy()):
            self.report.code = self.host.returncode
        else:
            states = [processes.state_of(pid) for pid in self.running()]
            self.report.wrong.append(f"hang: the host has not ended within {self.longest:g} s; its processes: {states}")
            self.host.kill()
            self.host.wait()
        return last

    # -- what is run

    def environ(self) -> dict[str, str]:
        return {
            **os.environ,
            "TMPDIR": str(self.folder / "tmp"),
            "XDG_STATE_HOME": str(self.folder / "state"),
            "XDG_CACHE_HOME": str(self.place.folder / "cache"),
        }

    def for_tasks(self) -> dict[str, str]:
        return {
            "CHAOS_TOLD": str(self.folder / "told"),
            "CHAOS_FORMAT": self.plan.data_format,
            "CHAOS_PAUSE": str(self.pause),
            "CHAOS_MODEL": str(self.place.folder / "model" / "saved_model.pb"),
            "PYTHONPATH": str(self.place.folder / "stub"),
        }

    def command(self) -> list[str]:
        plan, folder = self.plan, self.place.folder
        output = str(self.output) + ("/" if plan.form.endswith("/") and plan.mode != "train" else "")
        table = str(folder / ("in.jsonl" if plan.mode == "stream" else "blocks.parquet" if plan.blocks else "in.parquet"))
        if plan.command:
            return [
                sys.executable, "-m", "akrunner", "stream" if plan.mode == "stream" else "run", str(folder / "script.py"), "-o", output, "--output-schema", SCHEMA,
                "-i", table, "--data-format", plan.data_format,
                "--num-workers", str(plan.workers), "--num-ps", str(plan.servers), *["--evaluator"] * plan.evaluator, *["--overwrite"] * plan.before,
                "--stall-timeout", str(self.stuck["stall_timeout"]), "--quiet",
                *["--evaluator-timeout", str(self.stuck["evaluator_timeout"])] * plan.evaluator,
                *(part for name, value in self.for_tasks().items() for part in ("--env", f"{name}={value}")), *self.engine_words(),
            ]  # fmt: skip
        options: dict[str, Any] = {"num_workers": plan.workers, "env": self.for_tasks(), "overwrite": plan.before}
        if plan.mode == "predict":
            arguments = [str(folder / "model"), str(folder / "floats.parquet")]
            stops = any(kill.signal == "STOP" for kill in plan.kills)
            options.update(output=output, batch_size=200, timeout=self.stuck["timeout"] if stops else None)
        else:
            arguments = [str(folder / "script.py"), table]
            options.update(
                output_schema=SCHEMA, num_ps=plan.servers, evaluator=plan.evaluator, data_format=plan.data_format,
                stall_timeout=self.stuck["stall_timeout"],
            )  # fmt: skip
            if plan.evaluator:
                options["evaluator_timeout"] = self.stuck["evaluator_timeout"]
            options["model_out" if plan.mode == "train" else "output"] = output
        call = {"batch": "run", "train": "train", "predict": "predict"}[plan.mode]
        order = {"call": call, "arguments": arguments, "options": options, **self.engine_order(options)}
        return [sys.executable, str(folder / "host.py"), json.dumps(order)]

    def engine_words(self) -> list[str]:
        """What the command line says of the engine."""
        return []

    def engine_order(self, options: dict[str, Any]) -> dict[str, Any]:
        """The same for a program. Args: options: of the job, which it may change."""
        return {}

    # -- who is killed

    def kills(self, began: float) -> float | None:
        """Returns: when the last one was, None when nobody was there any more."""
        plan, last = self.plan, None
        if plan.moment != "start":
            began = self.moment()
        time.sleep(max(0.0, began + plan.kills[0].after - time.monotonic()))
        # now: once the host is dead nobody says whose its processes were
        pids = {kill.target: self.there(kill.target) for kill in plan.kills}
        for kill in plan.kills:
            time.sleep(max(0.0, began + kill.after - time.monotonic()))
            pid = pids[kill.target] or self.found(kill.target)
            if pid is None:
                continue
            try:
                os.kill(pid, getattr(signal, "SIG" + kill.signal))
            except ProcessLookupError:
                continue
            self.report.hit += 1
            self.struck.append((pid, kill.signal))
            last = time.monotonic()
            self.stopped_host |= kill.target == "host" and kill.signal == "STOP"
        if self.stopped_host:
            time.sleep(STOPPED)
            self.host.send_signal(signal.SIGCONT)
        return last

    def moment(self) -> float:
        """Wait for it, or for the host's end."""
        told = {"main": "main-", "done": "done-"}.get(self.plan.moment)
        while self.host.poll() is None:
            if told is not None and any(name.startswith(told) for name in os.listdir(self.folder / "told")):
                break
            if told is None and self.there(self.plan.kills[0].target) is not None:
                break
            if self.plan.mode == "predict" and self.plan.moment == "done" and os.listdir(self.folder / "told"):
                break
            time.sleep(0.01)
        return time.monotonic()

    def found(self, target: str) -> int | None:
        """Its pid; waits a moment for one that may still come."""
        deadline = time.monotonic() + self.patience
        while self.host.poll() is None and time.monotonic() < deadline:
            pid = self.there(target)
            if pid is not None:
                return pid
            time.sleep(0.01)
        return None

    def there(self, target: str) -> int | None:
        if target == "host":
            return self.host.pid if self.host.poll() is None else None
        for pid in processes.children_of(self.host.pid):
            if target == "guard":
                if is_guard(pid):
                    return pid
            elif f"/{target}/" in processes.environ_of(pid).get("TMPDIR", "") + "/":
                return pid
        return None

    def killed(self, target: str) -> bool:
        return any(kill.target == target for kill in self.plan.kills)

    # -- what is there afterwards

    def wrong_elsewhere(self) -> list[str]:
        """Beside this machine's own: what an engine is to end and to remove."""
        return []

    def ended_by(self, deadline: float) -> bool:
        """Whether the host has ended by then."""
        try:
            self.host.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            return False
        return True

    def orphans(self, deadline: float) -> list[int]:
        """Processes of this trial that do not end by themselves."""
        began = time.monotonic()
        while (left := self.running()) and time.monotonic() < began + (deadline - began) * busy():
            # each look reads what every process of the machine was started with
            time.sleep(0.05)
        return left

    def running(self) -> list[int]:
        return processes.that_name(str(self.folder))

    def leftovers(self) -> list[str]:
        left = [str(path) for path in (self.folder / "tmp").iterdir()]
        journals = self.folder / "state" / "akrunner" / "leftovers"
        left += [str(path) for path in journals.iterdir()] if journals.exists() else []
        return left + [str(path) for path in (self.folder / "out").iterdir() if path != self.output]

    def start_again(self) -> None:
        code = "from akrunner import leftovers; leftovers.register('/nowhere/at-all'); leftovers.forget('/nowhere/at-all')"
        hosts.run([sys.executable, "-c", code], env={**self.environ(), "TMPDIR": "/tmp"}, check=True)

    def wrong_output(self) -> list[str]:
        """Success is the whole table; a failure is nothing, or what was there before, or, when the host was killed at its very end, the whole."""
        there = os.path.lexists(self.output)
        if not there or (self.output.is_file() and self.output.read_bytes() == b"before"):
            if self.report.code == 0:
                return ["wrong success: no output"]
            return (
                ["the file that was there before is gone"]
                if self.plan.before and self.plan.mode != "train" and not there
                else []
            )
        try:
            problem = self.difference()
        except Exception as e:
            problem = f"cannot be read: {type(e).__name__}: {e}"
        if problem is None:
            return []
        return [f"{'wrong success' if self.report.code == 0 else 'partial output'}: {problem}"]

    def difference(self) -> str | None:
        if self.plan.mode == "train":
            whole = (self.place.folder / "model" / "saved_model.pb").read_bytes()
            same = (self.output / "saved_model.pb").read_bytes() == whole
            return None if same else "the model is not what was trained"
        form = {"arrow": "ipc", "jsonl": "json"}.get(
            self.output.suffix.lstrip("."), self.output.suffix.lstrip(".") or "parquet"
        )
        names = [name for name in (os.listdir(self.output) if self.output.is_dir() else []) if not name.endswith(".parquet")]
        if names:
            return f"in the directory: {names}"
        table = ds.dataset(str(self.output), format=form).to_table().sort_by("id")
        if table.num_rows != ROWS:
            return f"{table.num_rows} rows of {ROWS}"
        columns = {"id": self.place.table["id"].to_pylist(), "x": self.place.table["x"].to_pylist()}
        if self.plan.mode == "predict":
            columns["y"] = [2 * x for x in columns["x"]]
        return None if {name: table[name].to_pylist() for name in columns} == columns else "rows differ"

    def wrong_words(self) -> list[str]:
        """A host that could speak has spoken in akrunner's words."""
        text = (self.folder / "log.txt").read_text(errors="replace")
        self.report.said = text[-2000:]
        code, hurt = self.report.code, {kill.signal for kill in self.plan.kills if kill.target == "host"}
        wrong = []
        if "Traceback" in text or "NOT OURS" in text:
            wrong.append("a traceback: " + text[-800:])
        allowed = {*self.codes, *({143} if "TERM" in hurt else set()), *(-getattr(signal, "SIG" + name) for name in hurt)}
        if code is not None and code not in allowed:
            wrong.append(f"exit code {code}: {text[-800:]}")
        if code == 1 and not text.strip():
            wrong.append("failed without a word")
        return wrong


def busy() -> float:
    """How much longer than on a quiet machine things may take, now; not so long that nothing would be missed."""
    return min(3.0, max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1)))


def is_guard(pid: int) -> bool:
    """Whether it is somebody's guard."""
    words = processes.words_of(pid)
    return "-I" in words and "-S" in words
