"""A task's end of the service."""

from __future__ import annotations

import threading
from typing import Any, Callable, Dict, Iterator, Optional, Tuple

import grpc

from akrunner.cluster.rendezvous import rendezvous_pb2 as pb
from akrunner.cluster.rendezvous.server import SERVICE, TOKEN
from akrunner.errors import RendezvousError

_KINDS = {pb.Event.COMPLETE: "complete", pb.Event.FAILED: "failed", pb.Event.LOST: "lost", pb.Event.OVER: "over"}


class RendezvousClient:
    """One task. Close it, or use it as a context manager.

    Args:
        target: "host:port" of the service; token: of the job.
        task: its name, "worker:0"; attempt: of the job.
        patience: seconds a call may take before the service counts as gone.
    """

    def __init__(self, target: str, token: str, task: str, attempt: int = 0, patience: float = 10.0) -> None:
        self._target = target
        self._task = task
        self._attempt = attempt
        self._patience = patience
        self._metadata = ((TOKEN, token),)
        self._channel = grpc.insecure_channel(target)
        self._ended = threading.Event()
        self._beating: Optional[threading.Thread] = None
        self._calls = {
            name: self._channel.unary_unary(
                f"/{SERVICE}/{name}", request_serializer=_serialized, response_deserializer=kind.FromString
            )
            for name, kind in (("Register", pb.Cluster), ("Heartbeat", pb.Answer), ("Finished", pb.Answer))
        }

    def register(self, host: str, port: int, timeout: float = 60.0) -> Dict[str, str]:
        """Say where this task is, and wait until all are there.

        Returns: task -> "host:port" of every task.
        Raises: RendezvousError: some did not come in time, and the message names them; the token is wrong; another has failed
            meanwhile; the service is not there.
        """
        return self.registering(host, port, timeout)()

    def registering(self, host: str, port: int, timeout: float = 60.0) -> Callable[[], Dict[str, str]]:
        """As `register`, without waiting: what it returns is called for the outcome."""
        request = pb.Member(task=self._task, host=host, port=port, attempt=self._attempt, timeout=timeout)
        # the service may come up after the task does
        call = self._calls["Register"].future(
            request, metadata=self._metadata, timeout=timeout + self._patience, wait_for_ready=True
        )
        return lambda: dict(self._outcome(call).addresses)

    def beat(self) -> Tuple[bool, str]:
        """One sign of life. Returns: (whether this task should stop, why)."""
        answer = self._call("Heartbeat", pb.Sign(task=self._task, attempt=self._attempt))
        return answer.stop, answer.why

    def keep_beating(self, every: float, stop: Callable[[str], None]) -> None:
        """Give signs of life from a thread, until `close`; `stop(why)` is called once when this task should stop, which it
        should as well when the service has gone."""

        def beat() -> None:
            while not self._ended.wait(every):
                try:
                    told, why = self.beat()
                except RendezvousError as e:
                    told, why = True, str(e)
                if told:
                    if not self._ended.is_set():
                        stop(why)
                    return

        self._beating = threading.Thread(target=beat, name=f"akrunner-beat-{self._task}", daemon=True)
        self._beating.start()

    def finished(self) -> None:
        """This task has done its work."""
        self._call("Finished", pb.Outcome(task=self._task, attempt=self._attempt, ok=True))

    def failed(self, what: str) -> None:
        """It has not. Args: what: one sentence, which the others are told."""
        self._call("Finished", pb.Outcome(task=self._task, attempt=self._attempt, ok=False, what=what))

    def watch(self) -> Iterator[Tuple[str, str, str]]:
        """(kind, task, what) as it happens: complete, failed, lost; over is the last."""
        call = self._channel.unary_stream(
            f"/{SERVICE}/Watch", request_serializer=_serialized, response_deserializer=pb.Event.FromString
        )
        try:
            for event in call(pb.Sign(task=self._task, attempt=self._attempt), metadata=self._metadata, wait_for_ready=True):
                yield _KINDS[event.kind], event.task, event.what
        except grpc.RpcError as e:
            raise self._error(e) from None

    def close(self) -> None:
        self._ended.set()
        if self._beating is not None and self._beating is not threading.current_thread():
            self._beating.join(self._patience)
        self._channel.close()

    def _call(self, name: str, request: Any) -> Any:
        return self._outcome(self._calls[name].future(request, metadata=self._metadata, timeout=self._patience))

    def _outcome(self, call: Any) -> Any:
        try:
            return call.result()
        except grpc.RpcError as e:
            raise self._error(e) from None

    def _error(self, error: Any) -> RendezvousError:
        code, said = error.code(), error.details()
        if code in (grpc.StatusCode.FAILED_PRECONDITION, grpc.StatusCode.UNAUTHENTICATED):
            return RendezvousError(f"[{self._task}] {said}")
        return RendezvousError(f"[{self._task}] the rendezvous service at {self._target} does not answer: {code.name} {said}")

    def __enter__(self) -> "RendezvousClient":
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()


def _serialized(message: Any) -> bytes:
    return bytes(message.SerializeToString())
