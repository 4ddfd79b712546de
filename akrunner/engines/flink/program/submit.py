"""Submits jobs' subtasks to Flink, in a process of its own: Java starts and ends with that process.

::

    stdin    lines of JSON, each an `Order`: {"submit": number, ...}, {"cancel": number}, {"hurry": number}, {"look": number, ...}; when it
             ends, all jobs that are not detached are cancelled, and the process ends
    stdout   lines of JSON, each a `Word`: {"of": number, "job": id}, {"of": number, "state": ...}, {"of": number, "failed": words}
"""

from __future__ import annotations

import atexit
import functools
import glob
import json
import os
import re
import select
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypedDict

if TYPE_CHECKING:
    from akrunner.engines.flink.rest import Rest

#: seconds between two questions about a job of which something is expected: it was submitted, cancelled or hurried a short time ago
_POLL_SECONDS = 0.2
_EXPECTED_SECONDS = 15.0
#: seconds between two questions about one that merely runs: each is work for the JobManager. Who watches the job asks it, too
_RUNS_POLL_SECONDS = 2.0
_CANCEL_SECONDS = 10.0
#: seconds that the cluster may take to say it
_ANSWER_SECONDS = 10.0
#: the states of a job that has ended, in Flink's words
ENDED = ("FINISHED", "FAILED", "CANCELED")
#: the state of a job whose JobManager has gone, or has ceased to lead; another one may take the job over (high availability)
SUSPENDED = "SUSPENDED"
NOT_TAKEN_OVER = "its JobManager has gone, and within {:g} s no other one has taken the job over"
#: Flink's name for a cluster inside the program's Java, which is gone with its job
LOCAL = "MiniCluster"
#: seconds that another JobManager may take to take a job over: Flink's own sessions of ZooKeeper end after a minute
TAKE_OVER_SECONDS = 75.0
_TRUSTSTORE = "security.ssl.rest.truststore"
_NO_SECRET = "akrunner"
#: Python's first words of an error, with which Beam tells Java of it
_TRACEBACK = "Traceback (most recent call last):"


class Order(TypedDict, total=False):
    """What the submitter wants: that a job is submitted, that one is cancelled, that the end of one is said without delay, or to know
    whether this process can be used for another one.

    Attributes:
        submit: the number that the job gets; `cancel` and `hurry` have the number of a job that got one.
        look: a number of its own: of it, FINISHED is said if the process can be used, or why it cannot.
        since: only of `look`: when the process was started, in seconds since 1970.
        package: the path of akrunner as a zip.
        remote: Flink's options for the cluster's REST service; None for a cluster inside this process.
        brings_python: whether the job brings Flink's Python to the cluster.
        name: the job's name in Flink.
        python: the interpreter of Flink's Python workers.
        options: the user's settings of Flink.
        subtasks: how many there are, one for each task.
        door: the host's door, as `Door.carried` gives it; a detached job has none yet.
        archive, module, tag: only of a detached job: the path of the zip that tells the host what to do, the module that it
            runs, and the mark of its lines in logs.
        host, agents: only of a detached job: the keys of both ends.
    """

    submit: int
    cancel: int
    hurry: int
    look: int
    since: float
    package: str
    remote: Mapping[str, str] | None
    brings_python: bool
    name: str
    python: str
    options: Mapping[str, str]
    subtasks: int
    door: Mapping[str, Any]
    archive: str
    module: str
    tag: str
    host: Mapping[str, Any]
    agents: Mapping[str, Any]


class Word(TypedDict, total=False):
    """What is known of a job. Attributes: of: its number; job: Flink's id of it; state: Flink's word for its state; failed: why it
    has failed."""

    of: int
    job: str
    state: str
    failed: str


class States:
    """A job's state, asked for again and again. The cluster may give no answer, or call the job SUSPENDED, as long as another
    JobManager may still take the job over.

    Args:
        ask: returns Flink's word for the state.
    Attributes:
        state: Flink's latest word; "" before the first.
    """

    def __init__(self, ask: Callable[[], str]) -> None:
        self.state = ""
        self._ask = ask
        #: since when no JobManager is known to have the job
        self._since: float | None = None

    def ended(self) -> bool:
        """Ask for the state. Returns: whether the job has ended, or nobody has taken it over in time.

        Raises:
            Exception: there was no answer for so long.
        """
        now = time.monotonic()
        since = now if self._since is None else self._since
        late = now - since > TAKE_OVER_SECONDS
        try:
            self.state = self._ask()
        except Exception as e:
            if late or is_over(e):
                raise
            self._since = since
            return False
        self._since = since if self.state == SUSPENDED else None
        return self.state in ENDED or (self.state == SUSPENDED and late)


def is_over(error: Exception) -> bool:
    """Whether no later answer can be another one: the error is none of a cluster elsewhere, but of what asks it."""
    return type(error).__name__ not in ("Py4JJavaError", "ClusterError") or LOCAL in str(error)


class Running:
    """One job that runs.

    Args:
        here: whether its cluster is inside this process: it is gone when the job has ended, and so is what it knows.
        rest: is asked for the job's state; None: the client is, which makes a new client of Java's each time, ten times the work.
    Attributes:
        asked: when its state is to be asked for, in seconds of `time.monotonic`.
    """

    def __init__(self, number: int, client: Any, here: bool = False, rest: Rest | None = None) -> None:
        self.number = number
        self.client = client
        self.state = ""
        # of another cluster's job it is asked for when there is one: Java asks the cluster for it again and again until then
        self._result = client.get_job_execution_result() if here else None
        self._pause = _POLL_SECONDS if here else _RUNS_POLL_SECONDS
        self.hurry()
        job = str(client.get_job_id())
        self._rest = rest
        self._states = States(functools.partial(rest.state, job) if rest is not None else self._said)
        say(Word(of=number, job=job))

    def _said(self) -> str:
        return str(self.client.get_job_status().result()).rsplit(".", 1)[-1]

    def hurry(self) -> None:
        """Expect that the job's state changes soon."""
        self.asked = time.monotonic()
        self._expected = self.asked + _EXPECTED_SECONDS

    def look(self) -> bool:
        """Report what has become of the job. Returns whether it has ended. Raises: Exception: the cluster does not answer any more."""
        ended = True
        try:
            ended = self._states.ended()
        finally:
            if ended and self._rest is not None:
                self._rest.close()
        now = time.monotonic()
        self.asked = now + (_POLL_SECONDS if now < self._expected else self._pause)
        state = self._states.state
        if ended and state == SUSPENDED:
            say(Word(of=self.number, failed=NOT_TAKEN_OVER.format(TAKE_OVER_SECONDS)))
        if state == "FAILED":
            try:
                (self._result or self.client.get_job_execution_result()).result()
            except BaseException as e:
                say(Word(of=self.number, failed=words(e)))
        if state != self.state:
            self.state = state
            say(Word(of=self.number, state=state))
        return ended

    def cancel(self) -> None:
        if self.state not in ENDED:
            self.hurry()
            self.client.cancel().result()


def main() -> int:
    jobs: dict[int, Running] = {}
    rest = b""
    while True:
        pause = max(0.0, min(job.asked for job in jobs.values()) - time.monotonic()) if jobs else None
        readable, _, _ = select.select([0], [], [], pause)
        if readable:
            data = os.read(0, 1 << 16)
            if not data:
                break
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                heed(json.loads(line), jobs)
        for number, job in list(jobs.items()):
            if time.monotonic() < job.asked:
                continue
            try:
                if job.look():
                    del jobs[number]
            except BaseException as e:
                # the cluster does not answer any more
                del jobs[number]
                say(Word(of=number, failed=words(e)))
    end(jobs)
    return 0


def heed(word: Order, jobs: dict[int, Running]) -> None:
    """Handle one line of the submitter."""
    if "submit" in word:
        try:
            if "archive" in word:
                say(Word(of=word["submit"], job=str(detached(word).get_job_id())))
            else:
                remote = word.get("remote")
                jobs[word["submit"]] = Running(word["submit"], submitted(word), remote is None, _asked(remote))
        except BaseException as e:
            say(Word(of=word["submit"], failed=words(e)))
    elif word.get("cancel") in jobs:
        try:
            jobs[word["cancel"]].cancel()
        except BaseException as e:
            say(Word(of=word["cancel"], failed=words(e)))
    elif word.get("hurry") in jobs:
        jobs[word["hurry"]].hurry()
    elif "look" in word:
        try:
            why = changed(word["since"])
        except BaseException as e:
            why = words(e)
        say(Word(of=word["look"], failed=why) if why else Word(of=word["look"], state="FINISHED"))


def _asked(remote: Mapping[str, str] | None) -> Rest | None:
    """Return what is asked for the state of a job. Args: remote: as in `Order`."""
    if remote is None:
        return None
    from akrunner.engines.flink.rest import Address, Rest

    return Rest(Address.from_options(remote), _ANSWER_SECONDS, keep=True)


def changed(since: float) -> str:
    """Return which file this process, or its Java, would load otherwise if it began now, in words; "" if there is none.

    Args:
        since: when it was started, in seconds since 1970.
    Raises:
        Exception: Java does not answer.
    """
    from pyflink.java_gateway import get_gateway

    get_gateway().jvm.System.nanoTime()
    # what comes into its own folder is for one job
    own = os.path.join(os.getcwd(), "")
    for path in _loaded():
        try:
            late = os.stat(path).st_mtime > since
        except OSError:
            # not each place to look for modules is there
            late = path not in sys.path
        if late and not os.path.join(path, "").startswith(own):
            return f"{path} has changed"
    return ""


def _loaded() -> set[str]:
    """Return the files of this process and its Java, and the directories in which Python looks for modules."""
    import pyflink

    home = os.environ.get("FLINK_HOME") or os.path.dirname(pyflink.__file__)
    settings = os.environ.get("FLINK_CONF_DIR", os.path.join(home, "conf"))
    java = [os.path.join(os.environ["JAVA_HOME"], name) for name in ("release", os.path.join("bin", "java"))]
    modules = [str(module.__file__) for module in list(sys.modules.values()) if getattr(module, "__file__", None)]
    jars = glob.glob(os.path.join(home, "*", "*.jar"))
    return {sys.executable, *java, *jars, *glob.glob(os.path.join(settings, "*")), *modules, *filter(None, sys.path)}


def end(jobs: dict[int, Running]) -> None:
    """Cancel all jobs, so that none runs on after the submitter is gone."""
    deadline = time.monotonic() + _CANCEL_SECONDS
    for job in jobs.values():
        try:
            job.cancel()
        except BaseException:
            pass
    while jobs and time.monotonic() < deadline:
        for number, job in list(jobs.items()):
            try:
                if job.look():
                    del jobs[number]
            except BaseException:
                del jobs[number]
        time.sleep(0.1)


def submitted(order: Order) -> Any:
    """Submit a job, and return the client of the running job."""
    from pyflink.common import Types

    from akrunner.engines.flink.taskmanager.function import Subtask

    count = order["subtasks"]
    environment = _environment(order, {})
    places = environment.from_collection(list(range(count)), type_info=Types.INT()).set_parallelism(1)
    # from one sender, as many elements as there are receivers: each receiver gets one
    running = places.rebalance().process(Subtask(order["door"]), output_type=Types.INT())
    running.name("akrunner").set_parallelism(count).print().set_parallelism(count)
    return environment.execute_async(order["name"])


def detached(order: Order) -> Any:
    """Submit a job whose host is one of its own subtasks (`akrunner.engines.flink.taskmanager.detached_host`), and return the
    client of the running job."""
    from pyflink.common import Types

    from akrunner.engines.flink.taskmanager.detached_host import FOLDER, START, WAIT
    from akrunner.engines.flink.taskmanager.function import DetachedSubtask, HostSubtask

    count = order["subtasks"]
    # the host's address must reach the subtasks before the second element blocks its subtask
    environment = _environment(order, {"python.fn-execution.bundle.size": "1"})
    environment.add_python_archive(order["archive"], FOLDER)
    steps = environment.from_collection([START, WAIT], type_info=Types.STRING()).set_parallelism(1)
    host = (
        steps.process(HostSubtask(count, order["module"], order["tag"], order["host"]), output_type=Types.STRING())
        .name("host")
        .set_parallelism(1)
    )
    running = host.rebalance().process(DetachedSubtask(order["agents"]), output_type=Types.INT())
    running.name("akrunner").set_parallelism(count).print().set_parallelism(count)
    return environment.execute_async(order["name"])


def _environment(order: Order, more: dict[str, str]) -> Any:
    """Return the environment for a job. Args: more: settings that the job depends on; they win over the user's options."""
    from pyflink.common import Configuration

    count = order["subtasks"]
    configuration = Configuration()
    defaults = {
        "python.executable": order["python"],
        "python.client.executable": sys.executable,
        "parallelism.default": str(count),
        "pipeline.object-reuse": "true",
        "execution.runtime-mode": "STREAMING",
        "restart-strategy.type": "none",
        # a subtask that is blocked by an element cannot pass a checkpoint's barrier
        "execution.checkpointing.interval": None,
        "taskmanager.numberOfTaskSlots": str(count) if order["remote"] is None else None,
        "pipeline.name": order["name"],
    }
    for key, value in {**defaults, **order["options"], **more}.items():
        if value is not None:
            configuration.set_string(key, str(value))
    environment = environment_of(configuration, order["remote"], order["brings_python"])
    environment.add_python_file(order["package"])
    return environment


def environment_of(configuration: Any, remote: Mapping[str, str] | None, brings_python: bool = True) -> Any:
    """Return Flink's environment.

    Args:
        remote: the options for a cluster's REST service (`Address.flink_options`); None for a cluster inside this process.
        brings_python: whether jobs bring Flink's Python to the cluster.
    """
    from pyflink.datastream import StreamExecutionEnvironment

    if remote is None:
        return StreamExecutionEnvironment.get_execution_environment(configuration)
    import pyflink
    from pyflink.java_gateway import get_gateway

    jars = {}
    if brings_python:
        (jar,) = glob.glob(os.path.join(os.path.dirname(pyflink.__file__), "opt", "flink-python-*.jar"))
        jars["pipeline.jars"] = "file://" + jar
    for key, value in {"execution.target": "remote", **jars, **remote}.items():
        configuration.set_string(key, value)
    certificates = os.environ.get("SSL_CERT_FILE")
    if "security.ssl.rest.enabled" in remote and certificates and not configuration.contains_key(_TRUSTSTORE):
        configuration.set_string(_TRUSTSTORE, truststore(certificates))
        configuration.set_string(_TRUSTSTORE + "-password", _NO_SECRET)
    # PyFlink's own way to make an environment ignores execution.target
    java = get_gateway().jvm.org.apache.flink.streaming.api.environment.StreamExecutionEnvironment
    return StreamExecutionEnvironment(java(configuration._j_configuration))


def truststore(certificates: str) -> str:
    """Write the certificates that Python trusts to a file for Java, and return its path. The file is removed when this
    process ends.

    Args:
        certificates: the path of a PEM file.
    """
    from pyflink.java_gateway import get_gateway

    gateway = get_gateway()
    java = gateway.jvm.java
    store = java.security.KeyStore.getInstance("PKCS12")
    store.load(None, None)
    source = java.io.FileInputStream(certificates)
    for number, one in enumerate(java.security.cert.CertificateFactory.getInstance("X.509").generateCertificates(source)):
        store.setCertificateEntry(str(number), one)
    source.close()
    made, path = tempfile.mkstemp(prefix="akrunner-", suffix=".p12")
    os.close(made)
    atexit.register(_unlinked, path)
    target = java.io.FileOutputStream(path)
    # a store must have a password; the certificates are no secret
    password = gateway.new_array(gateway.jvm.char, len(_NO_SECRET))
    for at, letter in enumerate(_NO_SECRET):
        password[at] = letter
    store.store(target, password)
    target.close()
    return path


def _unlinked(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass  # its directory is gone


def words(error: BaseException) -> str:
    """Return the message of a Java exception: that of the last cause, if there are causes; if that is an error of Python's,
    with its traceback, what the traceback ends with."""
    text = str(error)
    trace = text.rpartition("Caused by: ")[2].partition("\n\tat ")[0].rpartition(_TRACEBACK)
    raised = [line for line in trace[2].splitlines() if line and not line.startswith(" ")]
    if trace[1] and raised:
        return raised[0]
    causes = [found.strip() for found in re.findall(r"Caused by: (.*)", text)]
    # py4j puts first which of its calls it was
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    own = [line[2:] for line in lines if line.startswith(": ")]
    return next(iter(causes[-1:] or own or lines), type(error).__name__)


def say(word: Word) -> None:
    try:
        print(json.dumps(word), flush=True)
    except OSError:
        pass  # the submitter is gone


if __name__ == "__main__":
    # what describes a function to Java imports the whole of Beam, to find out whether Beam is fast: most of what this process would compute.
    # Only Flink's Python workers use it
    sys.modules["apache_beam"] = None  # type: ignore[assignment]
    sys.exit(main())
