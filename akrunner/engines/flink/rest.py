"""Talks to a Flink cluster's REST service: its address, what the cluster has, what runs there, and how to end it.

What answers there may be anything, so every answer is limited in bytes and in time, and its shape is checked.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import io
import json
import os
import re
import socket
import ssl
import threading
import urllib.parse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from akrunner.engines.flink.connections import shut
from akrunner.errors import ClusterError, ConfigError
from akrunner.foreign import redacted, secrets
from akrunner.urls import unclear
from akrunner.wire.ready import readable

_SECONDS = 20.0
_ANSWER_BYTES = 64 << 20
_LINE_BYTES = 1 << 20
_WORDS = 300
#: how long Flink keeps a copy of a log if nothing else is set; the longest of such times that is waited for
_COPY_SECONDS, _COPY_LIMIT = 3.0, 60.0
#: variable with "user:password", for a REST service that asks for them
CREDENTIALS = "AKRUNNER_FLINK_CREDENTIALS"
#: Flink's own variable: lines of "Header: value" that its REST client sends
HEADERS = "FLINK_REST_CLIENT_HEADERS"
_PYTHON_JAR = re.compile(r"flink-python-[^/]*\.jar$")
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True)
class Address:
    """The address of a REST service.

    Attributes:
        scheme: http or https.
        host: the host.
        port: the port.
        path: the path before Flink's own paths, "" or "/flink".
        headers: the headers sent with every request. Credentials are among them, so they are never shown.
    """

    scheme: str
    host: str
    port: int
    path: str = ""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, master: str) -> Address:
        """Return the address that a text stands for.

        Args:
            master: "host:port", or a URL: "https://host/flink/", "https://user:password@host:8443/flink". Credentials
                come from it, or from the environment (`CREDENTIALS`, `HEADERS`).
        Raises:
            ConfigError: it is neither.
        """
        url = master if "://" in master else f"http://{master}"
        if unclear(url):
            raise _no_address(master, "a password is written percent-encoded: %2F for /, %23 for #")
        try:
            parts = urllib.parse.urlsplit(url)
            host, port = parts.hostname, parts.port
        except ValueError as e:
            raise _no_address(master, str(e)) from None
        if "://" not in master and (port is None or parts.path or parts.query or parts.fragment):
            raise _no_address(master)
        if parts.scheme not in _PORTS or not host or parts.query or parts.fragment or not _plain(host + parts.path):
            raise _no_address(master)
        if port is None:
            port = _PORTS[parts.scheme]
        if not 0 < port < 65536:
            raise _no_address(master, "the port is 1 to 65535")
        headers = _headers(os.environ.get(HEADERS, ""))
        given = os.environ.get(CREDENTIALS)
        if parts.username is not None:
            given = f"{urllib.parse.unquote(parts.username)}:{urllib.parse.unquote(parts.password or '')}"
        if given:
            headers["Authorization"] = "Basic " + base64.b64encode(given.encode()).decode()
        return cls(parts.scheme, host, port, parts.path.rstrip("/"), headers)

    @property
    def shown(self) -> str:
        """The address as `FlinkEngine(master=)` takes it, without credentials: "host:port" if that says all."""
        where = f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"
        return where if self.scheme == "http" and not self.path else f"{self.scheme}://{where}{self.path}"

    @property
    def flink_options(self) -> dict[str, str]:
        """Flink's own configuration for a client that submits there. The headers reach that client through the
        environment (`HEADERS`)."""
        host, port = self.host, str(self.port)
        options = {"rest.address": host, "rest.port": port, "jobmanager.rpc.address": host, "jobmanager.rpc.port": port}
        if self.path:
            options["rest.path"] = self.path
        if self.scheme == "https":
            options["security.ssl.rest.enabled"] = "true"
        return options

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> Address:
        """Return the address that `flink_options` are of. The headers come from the environment (`HEADERS`)."""
        scheme = "https" if options.get("security.ssl.rest.enabled") == "true" else "http"
        headers = _headers(os.environ.get(HEADERS, ""))
        return cls(scheme, options["rest.address"], int(options["rest.port"]), options.get("rest.path", ""), headers)

    @property
    def header_lines(self) -> str:
        """The headers as Flink reads them from the environment."""
        return "\n".join(f"{name}:{value}" for name, value in self.headers.items())

    def url(self, path: str) -> str:
        """Return the URL of one of Flink's own paths, without credentials."""
        return (self.shown if "://" in self.shown else f"http://{self.shown}") + path


def _no_address(master: str, why: str = "") -> ConfigError:
    url = master if "://" in master else f"http://{master}"
    shown = redacted(master if "://" in master else master.rpartition("@")[2], secrets(url))
    return ConfigError(
        f"master={shown!r} (--flink-master): give 'host:port' or a URL, 'https://host/flink', of the cluster's REST address"
        + (f" ({redacted(why, secrets(url))})" if why else "")
    )


def _plain(text: str) -> bool:
    return all(33 <= ord(letter) < 127 for letter in text)


def _headers(text: str) -> dict[str, str]:
    pairs = (line.partition(":") for line in text.split("\n"))
    return {name.strip(): value.strip() for name, _, value in pairs if name.strip() and value.strip()}


class Rest:
    """A client of a REST service. Every method raises ClusterError if there is no proper answer.

    Args:
        master: as `Address.of` takes it, or an Address.
        seconds: how long a whole answer may take, except for logs.
        keep: whether a connection is kept for the next question, which is half of the work that a question is for both ends. Must be
            closed then.
    """

    def __init__(self, master: str | Address, seconds: float = _SECONDS, keep: bool = False) -> None:
        self.address = Address.of(master) if isinstance(master, str) else master
        self.master = self.address.shown
        self._seconds = seconds
        self._keep = keep
        self._kept: list[http.client.HTTPConnection] = []

    def close(self) -> None:
        """Close the connection that is kept, and keep none any more."""
        self._keep = False
        while self._kept:
            self._kept.pop().close()

    def overview(self) -> dict[str, Any]:
        """Return what the cluster has: `slots-available`, `flink-version`."""
        found = self._object("/overview")
        if not isinstance(found.get("slots-available"), int):
            raise self._not_flink("/overview")
        return found

    def log_seconds(self) -> float:
        """Return how old a log may be when the service gives it, in seconds: it keeps a copy of each for so long
        (`web.refresh-interval`)."""
        try:
            found = self._object("/config").get("refresh-interval")
        except ClusterError:
            found = None
        return min(found / 1000, _COPY_LIMIT) if isinstance(found, int) and found >= 0 else _COPY_SECONDS

    def free_slots(self) -> int:
        """Return the number of task slots that no job has."""
        return int(self.overview()["slots-available"])

    def version(self) -> str:
        """Return the version of its Flink, such as "2.3.0"; "" if it does not say."""
        return _shown(str(self.overview().get("flink-version", "")))

    def jobs(self) -> list[dict[str, Any]]:
        """Return the jobs that it knows, each with `jid`, `name`, `state`, `start-time`, `duration`, `tasks`."""
        found = self._object("/jobs/overview").get("jobs")
        if not isinstance(found, list) or not all(_is_job(job) for job in found):
            raise self._not_flink("/jobs/overview")
        return found

    def state(self, job: str) -> str:
        """Return Flink's word for the state of a job.

        Raises:
            ClusterError: with `missing` set if the cluster does not know the job.
        """
        path = f"/jobs/{_quoted(job)}/status"
        state = self._object(path).get("status")
        if not isinstance(state, str):
            raise self._not_flink(path)
        return state

    def traces(self, job: str) -> list[str]:
        """Return the Java exceptions of a job; the root cause comes first."""
        path = f"/jobs/{_quoted(job)}/exceptions"
        try:
            entries = self._object(path).get("exceptionHistory", {}).get("entries", [])
            return [str(trace["stacktrace"]) for entry in entries for trace in [entry, *entry.get("concurrentExceptions", [])]]
        except (AttributeError, KeyError, TypeError):
            raise self._not_flink(path) from None

    def taskmanagers(self) -> list[str]:
        """Return the ids of the TaskManagers."""
        try:
            return [str(one["id"]) for one in self._object("/taskmanagers")["taskmanagers"]]
        except (KeyError, TypeError):
            raise self._not_flink("/taskmanagers") from None

    def has_python(self) -> bool:
        """Whether Flink's Python is in the cluster's own `lib`. A job need not bring it then, which is 42 MB to each machine.

        The JobManager's `lib` stands for all machines: Flink does not tell those of the others.
        """
        path = "/jobmanager/environment"
        found = self._object(path).get("classpath")
        if not isinstance(found, list):
            raise self._not_flink(path)
        return any(_PYTHON_JAR.match(os.path.basename(str(jar))) for jar in found)

    def cancel(self, job: str) -> None:
        """Ask Flink to end a job."""
        with self._answer(f"/jobs/{_quoted(job)}?mode=cancel", "PATCH", self._seconds):
            pass

    def log(self, taskmanager: str, unfinished: bool = True) -> Iterator[str]:
        """Yield the lines of a TaskManager's log. A line longer than 1 MiB comes as several.

        Args:
            unfinished: whether to yield a last line that has no end, as somebody is about to write the rest of it.
        Raises:
            ClusterError: with `answered` set if the answer breaks off. The line in which it does, and of an answer in chunks some
                kilobytes before it, are not yielded.
        """
        path = f"/taskmanagers/{_quoted(taskmanager)}/log"
        with self._answer(path, "GET", None) as answer:
            # the own `readline` of an answer in chunks does not notice that its last ones are missing
            lines = io.BufferedReader(answer) if answer.chunked else answer
            while line := lines.readline(_LINE_BYTES):
                ends = line.endswith(b"\n") or len(line) == _LINE_BYTES
                # nothing says that a body is shorter than its head says
                if ends or (unfinished and not answer.length):
                    yield line.decode("utf-8", "replace").rstrip("\n")
            if answer.length:
                raise self._broken(path, f"{answer.length} bytes are missing")

    def _object(self, path: str) -> dict[str, Any]:
        with self._answer(path, "GET", self._seconds) as answer:
            data = answer.read(_ANSWER_BYTES + 1)
        if len(data) > _ANSWER_BYTES:
            raise ClusterError(f"{self._named}: {self.address.url(path)} answers with more than {_ANSWER_BYTES >> 20} MiB")
        try:
            found = json.loads(data)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise self._not_flink(path)
        return found

    @property
    def _named(self) -> str:
        return f"master={self.master!r} (--flink-master)"

    def _not_flink(self, path: str) -> ClusterError:
        return ClusterError(f"{self._named}: what answers at {self.address.url(path)} is not Flink")

    def _broken(self, path: str, why: str) -> ClusterError:
        return ClusterError(f"{self._named}: the answer of {self.address.url(path)} breaks off: {why}", answered=True)

    @contextlib.contextmanager
    def _answer(self, path: str, method: str, seconds: float | None) -> Iterator[http.client.HTTPResponse]:
        """Send a request, and yield its answer.

        Args:
            seconds: how long the whole answer may take; None limits each of its pieces instead.
        """
        url, connection = self.address.url(path), self._connection()
        late, begun, whole = threading.Event(), False, False
        timer: threading.Timer | None = None
        try:
            if connection.sock is None:
                connection.connect()
            if seconds is not None:
                # a server that sends a byte now and then never exceeds the connection's own time limit
                timer = threading.Timer(seconds, _end, (connection.sock, late))
                timer.daemon = True
                timer.start()
            last = {} if self._keep else {"Connection": "close"}
            connection.request(method, self.address.path + path, headers={**last, **self.address.headers})
            with contextlib.closing(connection.getresponse()) as answer:
                self._check(answer, url)
                begun = True
                yield answer
                whole = answer.isclosed()
            if late.is_set():
                raise TimeoutError
        except (OSError, ValueError, http.client.HTTPException) as e:
            if isinstance(e, ClusterError):
                raise
            timed_out = late.is_set() or isinstance(e, TimeoutError)
            if begun and not late.is_set():
                raise self._broken(path, f"no more of it within {self._seconds:g} s" if timed_out else _in_words(e)) from None
            why = f"no answer within {self._seconds:g} s" if timed_out else _in_words(e)
            raise ClusterError(f"{self._named}: no Flink cluster answers at {url}: {why}") from None
        finally:
            if timer is not None:
                timer.cancel()
            if whole and not late.is_set() and self._keep and not self._kept:
                self._kept.append(connection)
                if not self._keep:
                    # somebody has closed it meanwhile
                    self.close()
            else:
                connection.close()

    def _connection(self) -> http.client.HTTPConnection:
        """Return the connection that is kept, or one that is not connected yet."""
        with contextlib.suppress(IndexError):
            kept = self._kept.pop()
            # nothing comes there unasked, but that the other end closes it
            if kept.sock is not None and not readable(kept.sock.fileno(), 0):
                return kept
            kept.close()
        # no proxy, as with Flink's own client
        address = self.address
        if address.scheme == "https":
            return http.client.HTTPSConnection(
                address.host, address.port, timeout=self._seconds, context=ssl.create_default_context()
            )
        return http.client.HTTPConnection(address.host, address.port, timeout=self._seconds)

    def _check(self, answer: http.client.HTTPResponse, url: str) -> None:
        if answer.status < 300:
            return
        said = answer.read(1 << 16).decode("utf-8", "replace")
        if answer.status == 404 or "NotFoundException" in said:
            raise ClusterError(f"{self._named}: there is no {url}", missing=True)
        if answer.status in (401, 403):
            raise ClusterError(
                f"{self._named}: {url} answers {answer.status}: it wants other credentials: {CREDENTIALS}=user:password in the "
                "environment",
                answered=True,
            )
        if answer.status < 400:
            where = redacted(_shown(answer.headers.get("Location") or ""))
            raise ClusterError(f"{self._named}: {url} leads to {where!r}; give that address")
        raise ClusterError(f"{self._named}: {url} answers {answer.status} {_shown(answer.reason)}", answered=True)


def _end(connection: socket.socket, late: threading.Event) -> None:
    late.set()
    shut(connection, socket.SHUT_RDWR)


def _quoted(part: str) -> str:
    return urllib.parse.quote(part, safe="")


def _in_words(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {error.verify_message} (SSL_CERT_FILE names the certificates to trust)"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return _shown(str(error) or type(error).__name__)


def _shown(text: str) -> str:
    """Return what an unknown server says, fit for an error message."""
    return "".join(letter for letter in text[:_WORDS] if letter.isprintable())


def _is_job(job: Any) -> bool:
    kinds = {"jid": str, "name": str, "state": str, "start-time": int, "duration": int, "tasks": dict}
    return (
        isinstance(job, dict)
        and all(isinstance(job.get(name), kind) for name, kind in kinds.items())
        and all(isinstance(job["tasks"].get(name), int) for name in ("total", "running"))
    )


def about_python(why: str, python: str = "") -> str:
    """Return what is to be added to Flink's reason for the end of a job if it is about the Python that TaskManagers run; "" if it is not.

    Args:
        why: Flink's words.
        python: the path of that Python; "" if it is not known.
    """
    words = r"python-dist-\S*\): error=2,|No module named 'pyflink'"
    if python:
        # when a job starts, Flink starts nothing else; later, a connector may start a program that is not there
        words += "|error=2, No such file"
    if not re.search(words, why):
        return ""
    run = f"run {python}" if python else "run a Python that is not there, or has no PyFlink"
    return (
        f"; the TaskManagers {run} (python_executable=, --flink-worker-python): name an interpreter with PyFlink that every machine of the "
        "cluster has under the same path"
    )
