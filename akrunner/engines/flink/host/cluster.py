"""A session cluster from the pip package, for trying things out: a JobManager and TaskManagers on this machine.

::

    FOLDER/conf     config.yaml, log4j files of the package
    FOLDER/lib      jars
    FOLDER/log      the lines that each process prints
    FOLDER/tmp      the processes' temp directory, and that of jobs' tasks
    FOLDER/cluster.json    the processes' pids, the REST address
"""

from __future__ import annotations

import glob
import json
import os
import random
import re
import shlex
import shutil
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from akrunner.engines.flink.host.java import java_home, no_flight_recorder
from akrunner.errors import ConfigError
from akrunner.foreign import ours
from akrunner.launch.asking import ask

#: name of a process -> Java's memory options; its class. The memory is as Flink's scripts divide 1024 and 1600 MiB for a
#: process
_PROCESSES: Mapping[str, tuple[list[str], str]] = {
    "jobmanager": (
        ["-Xmx448m", "-Xms448m", "-XX:MaxMetaspaceSize=256m"],
        "org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint",
    ),
    "taskmanager": (
        ["-Xmx384m", "-Xms384m", "-XX:MaxDirectMemorySize=231m", "-XX:MaxMetaspaceSize=384m"],
        "org.apache.flink.runtime.taskexecutor.TaskManagerRunner",
    ),
}
_TASK_MEMORY = {
    "network.min": "103m", "network.max": "103m", "managed.size": "409m", "task.heap.size": "256m", "task.off-heap.size": "0b",
    "framework.heap.size": "128m", "framework.off-heap.size": "128m", "jvm-metaspace.size": "384m",
    "jvm-overhead.min": "192m", "jvm-overhead.max": "192m",
}  # fmt: skip
#: variables with class path entries, in the order of Flink's scripts
_FILE_SYSTEMS = ("HADOOP_CLASSPATH", "HADOOP_CONF_DIR", "YARN_CONF_DIR", "HBASE_CONF_DIR")
#: the key of users' options for every Java; what prints config.yaml as JSON
_OPTIONS = "env.java.opts.all"
_AS_JSON = """
import json, sys
from ruamel.yaml import YAML
with open(sys.argv[1], encoding="utf-8") as f:
    json.dump(YAML(typ="safe").load(f), sys.stdout, default=str)
"""
_STATE = "cluster.json"
_TEMP = "tmp"
#: seconds between SIGTERM and SIGKILL; a TaskManager that has run Python functions would wait longer, for processes that are
#: gone
_GRACE_SECONDS = 2.0
_START_SECONDS = 90.0
#: a process that is killed is noticed within seconds, after two calls that it has not answered
_HEARTBEAT_MILLIS = 2000


@dataclass(frozen=True)
class Cluster:
    """A running cluster.

    Attributes:
        folder: its folder.
        address: "host:port" of its REST service.
        processes: pid -> when the process was started.
    """

    folder: str
    address: str
    processes: dict[int, float]
    #: the processes that are this process's own children, which it must wait for
    children: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def alive(self) -> bool:
        """Whether each of its processes is running."""
        return all(_process(pid, started) is not None for pid, started in self.processes.items())

    def overview(self) -> dict[str, int]:
        """Return Flink's own numbers: `slots-total`, `slots-available`, `taskmanagers`.

        Raises:
            OSError: the cluster does not answer.
        """
        with urllib.request.urlopen(f"http://{self.address}/overview", timeout=5) as answer:
            found: dict[str, int] = json.load(answer)
            return found

    def stop(self) -> None:
        """End every process of the cluster, and all the processes that these have started.

        Nothing of the cluster is left either if a Ctrl-C comes while the processes are given the time to end by themselves.
        """
        # a child keeps its pid until it has been waited for; `processes` may lack it yet
        groups = {child.pid for child in self.children if child.poll() is None}
        groups |= {pid for pid, started in self.processes.items() if _process(pid, started) is not None}
        tree: list[psutil.Process] = []
        try:
            tree += [one for pid in groups for one in _process_tree(pid)]
            _signal(groups, signal.SIGTERM)
            psutil.wait_procs(tree, timeout=_GRACE_SECONDS)
        finally:
            if any(one.is_running() for one in tree) or any(child.poll() is None for child in self.children):
                _signal(groups, signal.SIGKILL)
            for one in tree:
                with suppress(psutil.Error):
                    one.kill()
            for child in self.children:
                # a killed process whose system call does not return ends later: nobody could do more
                with suppress(subprocess.TimeoutExpired):
                    child.wait(10.0)
            shutil.rmtree(os.path.join(self.folder, _TEMP), ignore_errors=True)
            with suppress(OSError):
                os.unlink(os.path.join(self.folder, _STATE))


def start(
    folder: str, python: str, taskmanagers: int = 2, slots: int = 2, port: int = 8081, host: str = "127.0.0.1"
) -> Cluster:
    """Start a cluster, and wait until all its slots are there.

    Args:
        folder: the folder for its configuration and logs.
        python: an interpreter with PyFlink.
        taskmanagers: the number of TaskManagers.
        slots: the number of slots of each.
        port: the port of its web address; 0 for any free port.
        host: the address of this machine that it listens on.
    Raises:
        ConfigError: a cluster of that folder is running already, there is no PyFlink or no Java, the port is taken, or
            the cluster did not come up.
    """
    there = running(folder)
    if there is not None:
        raise ConfigError(f"a cluster of this folder is running: http://{there.address} (akrunner flink stop ends it)")
    home = flink_home(python)
    java = java_home(python)
    words = _own_words(python, home)
    for again in (True, True, False):
        rest = _checked(port) if port else _any_port()
        try:
            return _bring_up(folder, home, java, python, words, taskmanagers, slots, host, rest)
        except ConfigError:
            # another process may have taken the port after it was chosen and before Java bound it
            if port or not again or not _address_in_use(folder):
                raise
    raise AssertionError("unreachable")


def _bring_up(
    folder: str, home: str, java: str, python: str, words: Sequence[str], taskmanagers: int, slots: int, host: str, rest: int
) -> Cluster:
    conf, logs, lib, temp = (os.path.join(folder, name) for name in ("conf", "log", "lib", _TEMP))
    for made in (conf, logs, lib, temp):
        shutil.rmtree(made, ignore_errors=True)
        os.makedirs(made, mode=0o700)
    for name in os.listdir(os.path.join(home, "conf")):
        shutil.copy(os.path.join(home, "conf", name), conf)
    # put Flink's Python into the cluster itself: if each job loaded it anew, it would never be released, and some fifty jobs
    # would fill the metaspace
    for jar in [*glob.glob(f"{home}/lib/*.jar"), *glob.glob(f"{home}/opt/flink-python-*.jar")]:
        os.symlink(jar, os.path.join(lib, os.path.basename(jar)))
    _configure(os.path.join(conf, "config.yaml"), host, rest, _any_port(), slots, python, temp, words)
    for name in _PROCESSES:
        # before anything is started
        java_words(name, java, os.environ)
    cluster = Cluster(folder, f"{host}:{rest}", {})
    try:
        for name, count in (("jobmanager", 1), ("taskmanager", taskmanagers)):
            for number in range(count):
                cluster.children.append(process := spawn(folder, home, java, name, number))
                cluster.processes[process.pid] = psutil.Process(process.pid).create_time()
        with open(os.path.join(folder, _STATE), "w") as f:
            json.dump({"address": cluster.address, "processes": cluster.processes}, f)
        _wait_for_slots(cluster, taskmanagers * slots)
    except BaseException as e:
        try:
            cluster.stop()
        finally:
            # what the caller is to hear of, whatever happens to `stop`
            raise e
    return cluster


def running(folder: str) -> Cluster | None:
    """Return the cluster of a folder; None if there is none, or it has died."""
    try:
        with open(os.path.join(folder, _STATE)) as f:
            state = json.load(f)
    except (OSError, ValueError):
        return None
    cluster = Cluster(folder, state["address"], {int(pid): started for pid, started in state["processes"].items()})
    return cluster if any(_process(pid, started) for pid, started in cluster.processes.items()) else None


def flink_home(python: str) -> str:
    """Return the directory of an interpreter's PyFlink.

    Raises:
        ConfigError: the interpreter has no PyFlink.
    """
    code = "import os, pyflink; print(os.path.dirname(pyflink.__file__))"
    try:
        done = ask([python, "-c", code], 60)
    except OSError as e:
        raise ConfigError(f"{python}: {e}") from None
    if done.code:
        raise ConfigError(
            f"{python} has no PyFlink: pip install 'akrunner[flink]', or name one that has it (akrunner flink start --python PATH)"
        )
    return done.out.strip()


def spawn(folder: str, home: str, java: str, name: str, number: int, before: Sequence[str] = ()) -> subprocess.Popen[bytes]:
    """Start one process of a cluster whose folder exists.

    Flink's own scripts do no more, except that they first start Java three times to ask for what is known here.

    Args:
        folder: the cluster's folder.
        home: the directory of PyFlink.
        java: JAVA_HOME.
        name: "jobmanager" or "taskmanager".
        number: the number of the process among those of that name.
        before: words to put before the command.
    """
    conf, logs, temp = _folders(folder)
    command = [*before, *command_of(folder, java, name, number, os.environ)]
    environ = {
        **os.environ, "FLINK_HOME": home, "FLINK_CONF_DIR": conf, "FLINK_LOG_DIR": logs, "JAVA_HOME": java,
        "FLINK_LIB_DIR": os.path.join(folder, "lib"), "FLINK_OPT_DIR": os.path.join(home, "opt"),
        "FLINK_PLUGINS_DIR": os.path.join(home, "plugins"), "FLINK_BIN_DIR": os.path.join(home, "bin"),
        "TMPDIR": temp,
    }  # fmt: skip
    with open(os.path.join(logs, f"{name}-{number}.txt"), "wb") as out:
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True, env=environ, cwd=logs
        )


def command_of(folder: str, java: str, name: str, number: int, environ: Mapping[str, str]) -> list[str]:
    """Return the command of a process of a cluster, whose configuration is written.

    Args:
        folder, java, name, number: as for `spawn`.
        environ: the environment, which may hold options for Java.
    Raises:
        ConfigError: a variable is not as a shell reads it.
    """
    conf, logs, temp = _folders(folder)
    settings = f"file:{conf}/log4j-console.properties"
    said = [f"-Djava.io.tmpdir={temp}", "-Dlog.file=" + os.path.join(logs, f"flink-{name}-{number}.log")]
    said += [f"-D{key}={settings}" for key in ("log4j.configuration", "log4j.configurationFile")]
    memory, main = _PROCESSES[name]
    command = [os.path.join(java, "bin", "java"), *memory, "-XX:+IgnoreUnrecognizedVMOptions"]
    # of two that say different things, Java takes the last: users' words stand behind akrunner's
    command += [*no_flight_recorder(environ), *_java_options(conf), *java_words(name, java, environ), *said]
    return [*command, "-classpath", class_path(os.path.join(folder, "lib"), environ), main, "--configDir", conf]


def _folders(folder: str) -> tuple[str, str, str]:
    """Return a cluster's directories of its configuration, its logs and its temporary files."""
    return os.path.join(folder, "conf"), os.path.join(folder, "log"), os.path.join(folder, _TEMP)


def class_path(lib: str, environ: Mapping[str, str]) -> str:
    """Return the class path in the order of Flink's scripts: its jars, then the entries for file systems."""
    jars = sorted(glob.glob(os.path.join(lib, "*.jar")), key=lambda jar: ("flink-dist" in jar, jar))
    # each jar by its real path: an archive of classes (-XX:SharedArchiveFile) is valid for every folder then
    return os.pathsep.join([*map(os.path.realpath, jars), *(environ[name] for name in _FILE_SYSTEMS if environ.get(name))])


def java_words(name: str, java: str, environ: Mapping[str, str]) -> list[str]:
    """Return the options that Flink's scripts add from the environment, and those that a Java after 17 needs.

    Args:
        name: as for `spawn`.
    Raises:
        ConfigError: a variable is not as a shell reads it.
    """
    own = {"jobmanager": "FLINK_ENV_JAVA_OPTS_JM", "taskmanager": "FLINK_ENV_JAVA_OPTS_TM"}[name]
    words = ["-Djava.security.manager=allow"] if _version(java) > 17 else []
    for variable in ("JVM_ARGS", "FLINK_ENV_JAVA_OPTS", own):
        with ours(ConfigError, f"{variable} is not as a shell reads it"):
            words += shlex.split(environ.get(variable, ""))
    return words


def _version(java: str) -> int:
    """Return the version of the Java in a directory, from the `release` file that every Java has; 0 if there is none."""
    try:
        with open(os.path.join(java, "release")) as f:
            said = re.search(r'^JAVA_VERSION="(\d+)', f.read(), re.MULTILINE)
    except OSError:
        return 0
    return int(said.group(1)) if said else 0


def _java_options(conf: str) -> list[str]:
    """Return the words of the cluster's config.yaml, as `_configure` has written them."""
    with open(os.path.join(conf, "config.yaml"), encoding="utf-8") as f:
        said = next(line for line in f if line.startswith(f"{_OPTIONS}: "))
    return shlex.split(json.loads(said.partition(": ")[2]))


def _own_words(python: str, home: str) -> list[str]:
    """Return the words of `env.java.opts.all` in PyFlink's config.yaml, which PyFlink's own YAML library reads.

    Raises:
        ConfigError: the file is no YAML, or the value is not as a shell reads it.
    """
    path = os.path.join(home, "conf", "config.yaml")
    with ours(ConfigError, path):
        done = ask([python, "-c", _AS_JSON, path], 60)
        if done.code:
            raise ValueError((done.err.strip().splitlines() or [f"{python} ended with {done.code}"])[-1])
        return words_under(json.loads(done.out), _OPTIONS)


def words_under(config: Any, key: str) -> list[str]:
    """Return the words of a key, which stands in one line (`a.b.c: x`), in sections, or in both; [] if it is not there."""
    words: list[str] = []
    for name, value in config.items() if isinstance(config, dict) else ():
        if name == key and value is not None and not isinstance(value, dict):
            words = shlex.split(str(value))
        elif key.startswith(f"{name}."):
            words = words_under(value, key[len(name) + 1 :]) or words
    return words


def _configure(path: str, host: str, rest: int, rpc: int, slots: int, python: str, temp: str, words: Sequence[str]) -> None:
    """Write akrunner's settings over Flink's config.yaml. Args: words: of its `env.java.opts.all`, which is kept."""
    ours = {
        "jobmanager.rpc.address": host,
        "jobmanager.rpc.port": rpc,
        "jobmanager.bind-host": host,
        "heartbeat.interval": _HEARTBEAT_MILLIS,
        # a TaskManager that comes before the JobManager tries again soon
        "cluster.registration.error-delay": "500",
        "jobmanager.memory.heap.size": "448m",
        "rest.address": host,
        "rest.bind-address": host,
        "rest.port": rest,
        "taskmanager.host": host,
        "taskmanager.bind-host": host,
        **{f"taskmanager.memory.{key}": size for key, size in _TASK_MEMORY.items()},
        "taskmanager.cpu.cores": float(slots),
        "taskmanager.numberOfTaskSlots": slots,
        "classloader.resolve-order": "parent-first",
        "slot.request.timeout": "30 s",
        "python.executable": python,
        "io.tmp.dirs": temp,
    }
    # text of JSON is text of YAML, too
    java = json.dumps(shlex.join(words), ensure_ascii=False)
    with open(path, "w", encoding="utf-8") as f:
        f.write("".join(f"{key}: {value}\n" for key, value in ours.items()) + f"{_OPTIONS}: {java}\n")


def _wait_for_slots(cluster: Cluster, slots: int) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while True:
        try:
            if cluster.overview()["slots-total"] >= slots:
                return
        except (OSError, ValueError, KeyError):
            pass
        if not cluster.alive or time.monotonic() > deadline:
            raise ConfigError(
                f"the cluster did not come up; its logs are in {os.path.join(cluster.folder, 'log')}{_last_words(cluster)}"
            )
        time.sleep(0.2)


def _last_words(cluster: Cluster) -> str:
    logs = os.path.join(cluster.folder, "log")
    said: list[str] = []
    for name in sorted(os.listdir(logs)):
        with open(os.path.join(logs, name), errors="replace") as f:
            said += [f"  {name}: {line.strip()}" for line in f.read().splitlines()[-3:]]
    return "\n" + "\n".join(said) if said else ""


def _address_in_use(folder: str) -> bool:
    logs = glob.glob(os.path.join(folder, "log", "*"))
    return any("BindException" in Path(log).read_text(errors="replace") for log in logs)


def _checked(port: int) -> int:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as e:
            raise ConfigError(f"port {port}: {e.strerror}; --port names another one") from None
    return port


def _any_port() -> int:
    """Return a free port outside of those that the system assigns by itself: Java binds it seconds later, and the port
    cannot be held until then."""
    try:
        first = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    except (OSError, ValueError):
        first = 32768
    while True:
        try:
            return _checked(random.randrange(10000, max(first, 12000)))
        except ConfigError:
            continue


def _process(pid: int, started: float) -> psutil.Process | None:
    """Return the process that was started then, and no later process with the same pid; None if it has ended."""
    try:
        process = psutil.Process(pid)
        if abs(process.create_time() - started) < 1 and process.status() != psutil.STATUS_ZOMBIE:
            return process
    except psutil.Error:
        pass
    return None


def _signal(groups: Iterable[int], number: int) -> None:
    """Send a signal to process groups; one that has ended gets none."""
    for group in groups:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(group, number)


def _process_tree(pid: int) -> list[psutil.Process]:
    try:
        root = psutil.Process(pid)
        return [root, *root.children(recursive=True)]
    except psutil.Error:
        return []
