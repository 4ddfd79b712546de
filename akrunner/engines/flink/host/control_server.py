"""The host's end of the connections to its agents (`akrunner.engines.flink.taskmanager.agent`): the service that they
call, and the port of rows."""

from __future__ import annotations

import contextlib
import queue
import resource
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent import futures
from typing import Any

from akrunner.engines.flink import control_pb2 as pb
from akrunner.engines.flink import threads
from akrunner.engines.flink.control import (
    AGENT_END,
    AGENT_MESSAGE_LIMIT,
    HOST_END,
    METHOD,
    NONCE,
    PROOF,
    VERSION,
    keepalive,
    library,
    quiet,
)
from akrunner.engines.flink.host.acceptor import STRANGERS, Acceptor
from akrunner.engines.flink.host.subtask import RemoteSubtask
from akrunner.engines.flink.keys import AGENTS, Door, Keys
from akrunner.errors import ConfigError

grpc: Any = library()
#: seconds that a connection to the service may take to prove whose it is; an agent that was too slow calls again
HELLO_SECONDS = 10.0
#: at most how many connections to the service there may be besides the agents' own: strangers', until `HELLO_SECONDS` are over
_STRANGERS = 1024
#: the most bytes of the names and proofs with which an agent calls
_METADATA_LIMIT = 8 << 10
#: seconds that agents may take to leave, once told to
_LEAVE_SECONDS = 2.0
_KINDS = (pb.Opening.IN, pb.Opening.OUT, pb.Opening.GIVE)


def _strangers(most: int) -> int:
    """Return how many strangers' connections may be open here, besides those that agents have a place for: with these, which strangers
    may take before the agents come, and with those at the port of rows, no more than half of the files that this process may open; but 16
    here at least. Args: most: the agents' places."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return _STRANGERS if limit == resource.RLIM_INFINITY else max(16, min(_STRANGERS, limit // 2 - STRANGERS - most))


class ControlServer:
    """Waits for agents. Must be closed.

    Args:
        host: the address to listen on.
        keys: the keys of this end.
        port: the port of the service; the rows have the next one. None for two free ports.
        agents: how many agents are to come.
    Attributes:
        port: the port of the service.
        rows: the port of the rows.
        arrived: the subtasks that have come, in the order in which they came.
        broken: the error of which one of its threads died; None if none has.
    Raises:
        ConfigError: it cannot listen there.
    """

    def __init__(self, host: str, keys: Keys, port: int | None = None, agents: int = 1) -> None:
        self.arrived: queue.Queue[RemoteSubtask] = queue.Queue()
        self.broken: str | None = None
        self._keys = keys
        self._remotes: dict[str, RemoteSubtask] = {}
        self._lock = threading.Lock()
        # a job that Flink starts again has the subtasks of two attempts for a while
        most = 2 * agents + 16
        options = [
            ("grpc.so_reuseport", 0),
            ("grpc.max_receive_message_length", AGENT_MESSAGE_LIMIT),
            ("grpc.max_send_message_length", -1),
            ("grpc.absolute_max_metadata_size", _METADATA_LIMIT),
            ("grpc.max_metadata_size", _METADATA_LIMIT),
            ("grpc.max_concurrent_streams", 2),
            ("grpc.max_allowed_incoming_connections", most + _strangers(most)),
            ("grpc.server_handshake_timeout_ms", int(1000 * HELLO_SECONDS)),
            # for clients that have shaken hands, and then ask for nothing
            ("grpc.max_connection_idle_ms", int(1000 * HELLO_SECONDS)),
            *keepalive(),
        ]
        with quiet():
            self._server = grpc.server(_Threads(self._died), options=options, maximum_concurrent_rpcs=most)
        self._server.add_generic_rpc_handlers((_Service(keys, self._attend),))
        self.port = self._listening(host, port or 0)
        try:
            self.acceptor = Acceptor(host, port + 1 if port else 0, keys, self._let_in, self._died)
        except OSError as e:
            # only a server that was started lets go of its port
            self._server.start()
            self._server.stop(None).wait()
            raise _cannot_listen(host, port + 1 if port else 0, e) from None
        self.rows = self.acceptor.port
        self._server.start()

    def _listening(self, host: str, port: int) -> int:
        where = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        try:
            # gRPC does not say why it cannot listen on an address; a plain socket does
            with socket.create_server((host, port)):
                pass
            if self._keys.tls:
                chain = [(self._keys.key.encode(), self._keys.certificate.encode())]
                shown = grpc.ssl_server_credentials(chain, self._keys.authority.encode(), require_client_auth=True)
                return int(self._server.add_secure_port(where, shown))
            return int(self._server.add_insecure_port(where))
        except (OSError, RuntimeError) as e:
            raise _cannot_listen(host, port, e) from None

    def door(self, host: str, keys: Keys) -> Door:
        """Return the door by which agents connect here.

        Args:
            host: this machine's address, as the agents know it.
            keys: the agents' keys.
        """
        return Door(host, self.port, self.rows, keys)

    def close(self) -> None:
        """End all connections, after the last words to the agents."""
        for remote in list(self._remotes.values()):
            remote.close()
        self._server.stop(_LEAVE_SECONDS).wait(2 * _LEAVE_SECONDS)
        self.acceptor.close()
        # close those that came meanwhile
        for remote in list(self._remotes.values()):
            remote.close()

    def _died(self, name: str, error: BaseException) -> None:
        self.broken = threads.words_of(name, error)

    # -- the service

    def _attend(self, words: Iterator[Any], context: Any) -> Iterator[Any]:
        """Serve one agent's stream. This runs in a thread of its own; another thread reads the agent's messages."""
        metadata = dict(context.invocation_metadata())
        # the host proves itself, too, before the agent takes anything from it
        context.send_initial_metadata(((PROOF, self._keys.proof(HOST_END, metadata[NONCE])),))
        remote = self._registered(words, context)
        yield pb.Told(welcome=pb.Welcome(version=VERSION))
        remote.hang_up = context.cancel
        context.add_callback(remote.close)
        threads.started("subtask", remote.died, remote.listen, words)
        self.arrived.put(remote)
        yield from remote.told()

    def _registered(self, words: Iterator[Any], context: Any) -> RemoteSubtask:
        try:
            who = next(words).register
        except Exception:
            # it is gone, or has sent something that is no message
            context.abort(grpc.StatusCode.CANCELLED, "it has not said who it is")
        if self._keys.tls and AGENTS.encode() not in context.auth_context().get("x509_subject_alternative_name", ()):
            context.abort(grpc.StatusCode.PERMISSION_DENIED, "this certificate is no agent's")
        if who.version != VERSION:
            words_of = f"the agent speaks version {who.version} of akrunner's protocol on Flink, its host version {VERSION}"
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, words_of)
        remote = RemoteSubtask(who.subtask, who.with_rows, who.attempt, who.job)
        remote.control_broken = lambda: self.broken
        with self._lock:
            taken = not who.agent or who.agent in self._remotes
            if not taken:
                self._remotes[who.agent] = remote
        if taken:
            context.abort(grpc.StatusCode.ALREADY_EXISTS, "an agent of this name has come already")
        return remote

    # -- the port of rows

    def _let_in(self, name: str, kind: int, connection: socket.socket) -> None:
        remote = self._remotes.get(name)
        if remote is None or kind not in _KINDS:
            raise ValueError("nobody waits for it")
        remote.channel(kind).put(connection)


def _cannot_listen(host: str, port: int, error: Exception) -> ConfigError:
    why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    where = f"port {port} of {host}" if port else host
    return ConfigError(
        f"host=, port= (--flink-host, --flink-port): cannot listen on {where}: {why}; agents connect to port= and the one "
        "behind it, so two jobs at a time need four ports"
    )


class _Service(grpc.GenericRpcHandler):  # type: ignore[misc, unused-ignore]
    """Finds the service's only method, for clients that have shown that they know the token: strangers get no thread."""

    def __init__(self, keys: Keys, attend: Callable[[Iterator[Any], Any], Iterator[Any]]) -> None:
        self._keys = keys
        self._handler = grpc.stream_stream_rpc_method_handler(
            attend, request_deserializer=pb.Said.FromString, response_serializer=pb.Told.SerializeToString
        )

    def service(self, handler_call_details: Any) -> Any:
        metadata = dict(handler_call_details.invocation_metadata)
        nonce, proof = (str(metadata.get(name, "")) for name in (NONCE, PROOF))
        known = bool(nonce) and self._keys.proves(proof, AGENT_END, nonce)
        return self._handler if known and handler_call_details.method == METHOD else None


class _Threads(futures.Executor):
    """Runs each stream in a daemon thread: the threads of the library's own pool would keep the interpreter from ending."""

    def __init__(self, died: threads.Failed) -> None:
        self._died = died

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> futures.Future[Any]:
        future: futures.Future[Any] = futures.Future()

        def run() -> None:
            with contextlib.suppress(futures.InvalidStateError):
                try:
                    result = fn(*args, **kwargs)
                except BaseException as e:
                    future.set_exception(e)
                    raise
                future.set_result(result)

        threads.started("stream", self._died, run)
        return future
