"""Java for tests: each lives for seconds, so that what it does first, load classes and compile them, is most of what it does.

::

    scripts/flink --> python -m tests.java --> a cluster and a PyFlink program, once --> .envs/java/*.jsa, the classes each has loaded
    a test with the marker `flink`: every Java it starts has `environ()`          --> loads them from there (Java's class data sharing)

Without the archives, or with those of another Java or Flink, which Java finds out by itself, tests take longer and are the same.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import psutil

from akrunner.engines.flink.host import cluster
from akrunner.engines.flink.host.java import NO_FLIGHT_RECORDER, java_home
from akrunner.errors import ConfigError

ENVS = Path(os.environ.get("AKRUNNER_TEST_ENVS", Path(__file__).parents[1] / ".envs"))
_FOLDER = ENVS / "java"
#: only its quicker compiler; no threads that collect garbage beside others; no file of figures nobody reads
_QUICK = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData"]
#: one of another class path says that it does not fit on stdout, where some of Flink's scripts read
_QUIET = ["-Xlog:cds=off", "-Xlog:cds+dynamic=off"]
#: what is archived -> the variable that gives its Java options
_KINDS = {
    "program": "JAVA_TOOL_OPTIONS",
    "jobmanager": "FLINK_ENV_JAVA_OPTS_JM",
    "taskmanager": "FLINK_ENV_JAVA_OPTS_TM",
}
#: what those who run the tests give to the Java of clusters
GIVEN = {name: os.environ.get(name, "") for name in ("FLINK_ENV_JAVA_OPTS_JM", "FLINK_ENV_JAVA_OPTS_TM")}
#: Flink's schedulers look every 10 ms whether something is due, which takes a third of what a cluster without a job does
_TICKS = "-Dpekko.scheduler.tick-duration=100ms"
_GIVEN = os.environ.get("JAVA_TOOL_OPTIONS", "")
_ENDS = 300.0
_PROGRAM = Path(__file__).parent / "e2e" / "programs" / "archived.py"


def environ() -> dict[str, str]:
    """What every Java of a test is started with."""
    options: dict[str, list[str]] = {variable: [] for variable in _KINDS.values()}
    for kind, variable in _KINDS.items():
        archive = _FOLDER / f"{kind}.jsa"
        if archive.exists():
            options[variable] += [f"-XX:SharedArchiveFile={archive}", *_QUIET]
        if kind != "program":
            options[variable].append(_TICKS)
    options["JAVA_TOOL_OPTIONS"] = [*filter(None, [_GIVEN]), *_QUICK, NO_FLIGHT_RECORDER, *options["JAVA_TOOL_OPTIONS"]]
    return {variable: " ".join(words) for variable, words in options.items() if words}


def make() -> None:
    """Have the archives of the Java and the Flink that are there, unless they are there already."""
    python = str(ENVS / "flink" / "bin" / "python")
    java, home = java_home(python), cluster.flink_home(python)
    made_of = _of(java, home)
    stamp = _FOLDER / "stamp"
    if stamp.exists() and stamp.read_text() == made_of:
        return
    print("preparing .envs/java, what Flink loads when it starts", file=sys.stderr)
    _FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="akrunner-java-") as folder:
        _archived(Path(folder), python, java)
        for kind in _KINDS:
            made = Path(folder) / f"{kind}.jsa"
            if made.exists():
                # in the same file system first, so that nobody sees half of one
                shutil.copy(made, _FOLDER / f"{kind}.new")
                os.replace(_FOLDER / f"{kind}.new", _FOLDER / f"{kind}.jsa")
    stamp.write_text(made_of)


def _of(java: str, home: str) -> str:
    """What archives are of: which Java, which jars, which program."""
    release = Path(java, "release")
    jars = [(jar.name, jar.stat().st_size, jar.stat().st_mtime_ns) for jar in sorted(Path(home).glob("*/*.jar"))]
    return f"{java}\n{release.read_text() if release.exists() else ''}\n{jars}\n{_QUICK}\n{_PROGRAM.read_text()}"


def _archived(folder: Path, python: str, java: str) -> None:
    """Run a cluster and a program that archive what they have loaded when they end."""
    (folder / "temp").mkdir()
    quick = " ".join([*_QUICK, *_QUIET])
    dumps = {kind: f"-XX:ArchiveClassesAtExit={folder / kind}.jsa" for kind in _KINDS}
    os.environ.update(
        {
            "JAVA_TOOL_OPTIONS": quick, "FLINK_ENV_JAVA_OPTS_JM": dumps["jobmanager"],
            "FLINK_ENV_JAVA_OPTS_TM": dumps["taskmanager"], "TMPDIR": str(folder / "temp"), "XDG_STATE_HOME": str(folder),
            "XDG_CACHE_HOME": str(folder), "JAVA_HOME": java, "AKRUNNER_WARM": "0",
        }
    )  # fmt: skip
    started = cluster.start(str(folder / "cluster"), python, port=0, taskmanagers=1, slots=4)
    try:
        script = folder / "doubles.py"
        script.write_text(
            "def main(task_config):\n    for batch in task_config.batches(64):\n        task_config.output_writer.write_batch(batch)\n"
        )
        done = subprocess.run(
            [str(ENVS / "program" / "bin" / "python"), str(_PROGRAM), started.address, sys.executable, str(script)],
            env={**os.environ, "JAVA_TOOL_OPTIONS": f"{quick} {dumps['program']}"},
            capture_output=True,
            text=True,
            timeout=_ENDS,
        )
        if done.returncode:
            raise ConfigError(f"{_PROGRAM.name}: {done.stderr[-2000:]}")
        # `stop` has no patience for what they write at their end
        there = [psutil.Process(pid) for pid in started.processes]
        for process in reversed(there):
            process.send_signal(signal.SIGTERM)
            psutil.wait_procs([process], timeout=_ENDS)
    finally:
        started.stop()


if __name__ == "__main__":
    try:
        make()
    except (ConfigError, OSError, psutil.Error, subprocess.SubprocessError) as e:
        print(f"NOT PREPARED: .envs/java, without which tests on Flink take longer ({e})", file=sys.stderr)
