"""The agent's end of the service in `control.proto`: its stream of messages to and from the host.

Standard library, and gRPC and protobuf, which PyFlink brings. Imported beside a subtask only.
"""

from __future__ import annotations

import queue
import socket
import threading
import time
from collections.abc import Iterator
from types import TracebackType
from typing import Any

from akrunner.engines.flink import threads
from akrunner.engines.flink.connections import CONNECT_SECONDS
from akrunner.engines.flink.control import (
    AGENT_END,
    HOST_END,
    HOST_MESSAGE_LIMIT,
    METHOD,
    NONCE,
    PROOF,
    VERSION,
    keepalive,
    library,
)
from akrunner.engines.flink.keys import HOST, Door, nonce

#: how many messages may wait to be sent; `say` blocks while there are more
_WAITING = 64
_TICK = 0.1
_AGAIN_SECONDS = 0.5
#: seconds for the last messages to arrive
_LAST_SECONDS = 5.0
#: what OpenSSL says, in gRPC's words, of a certificate that is not the host's
_SOMEBODY_ELSE = (
    "CERTIFICATE_VERIFY_FAILED",
    "verification failed",
    "Hostname Verification",
    "Peer name",
    "UNKNOWN_CA",
    "WRONG_VERSION",
)


class HostGone(Exception):
    """The stream has ended before the host said that the job is over."""


class JobFailed(Exception):
    """The job has failed, in the host's words.

    Attributes:
        final: whether it would fail again.
    """

    def __init__(self, words: str, final: bool = False) -> None:
        super().__init__(words)
        self.final = final


class Line:
    """The stream. A context manager.

    Args:
        who: the fields of `Register`.
    Attributes:
        address: this machine's address on the way to the host.
    Raises:
        JobFailed: nothing answers, or something other than the job's host does, or a host of another version.
    """

    def __init__(self, door: Door, **who: Any) -> None:
        from akrunner.engines.flink import control_pb2

        self._pb: Any = control_pb2
        self._grpc: Any = library()
        self._door = door
        self._out: queue.Queue[Any] = queue.Queue(_WAITING)
        self._words: queue.Queue[Any] = queue.Queue()
        self._gone = threading.Event()
        self._reading: threading.Thread | None = None
        self.address = self._asked()
        self._channel = self._made()
        try:
            self._greeted(who)
        except BaseException:
            self._channel.close()
            raise

    def _asked(self) -> str:
        """Check that something answers at the host's address; the system's own error is clear. Returns this machine's
        address on the way there."""
        try:
            with socket.create_connection((self._door.host, self._door.port), timeout=CONNECT_SECONDS) as asked:
                return str(asked.getsockname()[0])
        except OSError as e:
            # perhaps Flink has started the job again after its submitter has ended
            raise JobFailed(f"what submitted this job does not answer at {self._door.shown}: {e.strerror or e}", True) from e

    def _made(self) -> Any:
        options = [
            ("grpc.max_receive_message_length", HOST_MESSAGE_LIMIT),
            ("grpc.max_send_message_length", -1),
            ("grpc.enable_retries", 0),
            # the machine's proxy is for addresses outside
            ("grpc.enable_http_proxy", 0),
            ("grpc.use_local_subchannel_pool", 1),
            ("grpc.initial_reconnect_backoff_ms", 200),
            *keepalive(),
        ]
        keys, host = self._door.keys, self._door.host
        where = f"[{host}]:{self._door.port}" if ":" in host else self._door.shown
        if not keys.tls:
            return self._grpc.insecure_channel(where, options)
        shown = self._grpc.ssl_channel_credentials(keys.authority.encode(), keys.key.encode(), keys.certificate.encode())
        return self._grpc.secure_channel(where, shown, [*options, ("grpc.ssl_target_name_override", HOST)])

    def _greeted(self, who: Any) -> None:
        """Call until a host answers. Nothing is taken from the host before it has proved itself."""
        deadline = time.monotonic() + CONNECT_SECONDS
        while True:
            # a new queue: messages for a call that has failed are dropped
            self._out = queue.Queue(_WAITING)
            said = nonce()
            metadata = ((NONCE, said), (PROOF, self._door.keys.proof(AGENT_END, said)))
            method = self._channel.stream_stream(
                METHOD, request_serializer=self._pb.Said.SerializeToString, response_deserializer=self._pb.Told.FromString
            )
            self._call = method(self._saying(self._out, self._pb.Register(version=VERSION, **who)), metadata=metadata)
            patience = threading.Timer(CONNECT_SECONDS, self._call.cancel)
            patience.daemon = True
            patience.start()
            try:
                shown, first = dict(self._call.initial_metadata()), next(self._call)
            except (self._grpc.RpcError, StopIteration):
                self._out.put(None)
                self._refused(self._call.code(), str(self._call.details()), deadline)
                continue
            finally:
                patience.cancel()
            if not self._door.keys.proves(str(shown.get(PROOF, "")), HOST_END, said):
                self._out.put(None)
                self._call.cancel()
                raise JobFailed(f"who answers at {self._door.shown} does not know the job's token", True)
            break
        if first.welcome.version != VERSION:
            raise JobFailed(
                f"the host speaks version {first.welcome.version} of akrunner's protocol on Flink, its agent {VERSION}", True
            )
        self._reading = threads.started("line", self._died, self._read)

    def _refused(self, code: Any, why: str, deadline: float) -> None:
        """Return after a pause if another call may succeed.

        Raises:
            JobFailed: another call would fail as well.
        """
        where, codes = self._door.shown, self._grpc.StatusCode
        if code in (codes.FAILED_PRECONDITION, codes.ALREADY_EXISTS, codes.PERMISSION_DENIED):
            raise JobFailed(f"the host at {where} refuses this agent: {why}", True)
        if code == codes.UNIMPLEMENTED:
            raise JobFailed(f"who answers at {where} does not know this job's agents", True)
        if any(words in why for words in _SOMEBODY_ELSE):
            raise JobFailed(f"who answers at {where} is not this job's host: {why}", True)
        if time.monotonic() > deadline:
            raise JobFailed(f"what submitted this job does not answer at {where}: {why}", True)
        time.sleep(_AGAIN_SECONDS)

    def _saying(self, words: queue.Queue[Any], register: Any) -> Iterator[Any]:
        yield self._pb.Said(register=register)
        while (word := words.get()) is not None:
            yield word

    def _read(self) -> None:
        try:
            for word in self._call:
                self._words.put(word)
        except self._grpc.RpcError:
            pass  # the host is gone, in whatever way
        finally:
            self._gone.set()
            # wakes who waits for a message
            self._words.put(None)

    def _died(self, name: str, error: BaseException) -> None:
        self._gone.set()

    def say(self, **word: Any) -> None:
        """Send a message. Blocks while too many others wait to be sent.

        Args:
            word: the field of `Said`, by name.
        Raises:
            HostGone: the stream has ended.
        """
        made = self._pb.Said(**word)
        while not self._gone.is_set():
            try:
                self._out.put(made, timeout=_TICK)
                return
            except queue.Full:
                continue
        raise HostGone("the job's host has gone")

    def hear(self) -> Any:
        """Wait for the next message, and return it.

        Raises:
            HostGone: the stream has ended.
        """
        while (word := self.heard(None)) is None:
            pass
        return word

    def heard(self, seconds: float | None) -> Any:
        """Return the next message; None if none comes within that time, or somebody calls `wake`. Args: seconds: None: until one of these, or the
        end of the stream.

        Raises:
            HostGone: the stream has ended.
        """
        over = self._gone.is_set()
        try:
            return self._words.get_nowait() if over else self._words.get(timeout=seconds)
        except queue.Empty:
            if over:
                raise HostGone("the job's host has gone") from None
            return None

    def wake(self) -> None:
        """Have who waits in `heard` look around."""
        self._words.put(None)

    def __enter__(self) -> Line:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            self._out.put(None, timeout=_LAST_SECONDS)
            self._gone.wait(_LAST_SECONDS)
        except queue.Full:
            pass
        self._call.cancel()
        self._channel.close()
        if self._reading is not None:
            self._reading.join(_LAST_SECONDS)
