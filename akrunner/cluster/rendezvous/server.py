"""The service: one for a job, in a thread of its own, for any number of tasks."""

from __future__ import annotations

import asyncio
import hmac
import threading
import time
from typing import Any, AsyncIterator, Callable, Dict, List, Optional, Sequence, Set, Tuple

import grpc

from akrunner.cluster.rendezvous import rendezvous_pb2 as pb
from akrunner.cluster.rendezvous.members import Members, named
from akrunner.errors import ConfigError, RendezvousError

SERVICE = "akrunner.rendezvous.Rendezvous"
TOKEN = "akrunner-token"
#: seconds a task waits for the others unless it says otherwise
_PATIENCE = 60.0


class RendezvousServer:
    """A running service; close it, or use it as a context manager.

    Args:
        tasks: names of all tasks of the job; token: what every call must carry.
        host: address to listen on; port: 0 for any.
        attempt: of the job; heartbeat_limit: seconds of silence after which a task is lost, by `clock`.
    Attributes: port: it listens on.
    Raises: ConfigError: it cannot listen there.
    """

    def __init__(
        self,
        tasks: Sequence[str],
        token: str,
        host: str = "127.0.0.1",
        port: int = 0,
        attempt: int = 0,
        heartbeat_limit: float = 30.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._service = _Service(Members(tuple(tasks), attempt, heartbeat_limit), token, clock)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="akrunner-rendezvous", daemon=True)
        self._thread.start()
        try:
            self.port = self._call(self._service.start(f"{host}:{port}"))
        except BaseException:
            self._end_thread()
            raise

    @property
    def missing(self) -> List[str]:
        """Tasks that have not registered yet."""
        return list(self._on_loop(lambda: self._service.members.missing))

    @property
    def failed(self) -> List[Tuple[str, str]]:
        """(task, what befell it), the first one first."""
        return list(self._on_loop(lambda: self._service.members.failed))

    @property
    def addresses(self) -> Dict[str, str]:
        """task -> "host:port", of those that have registered."""
        return dict(self._on_loop(lambda: self._service.members.addresses))

    def stop_all(self, why: str) -> None:
        """Tell every task, at its next sign of life or at once if it watches, that the job is over."""
        self._call(self._service.stop_all(why))

    def restart(self, attempt: int) -> None:
        """A new attempt: everybody must register again; whoever is of the old one is refused."""
        self._call(self._service.restart(attempt))

    def close(self) -> None:
        if self._thread.is_alive():
            self._call(self._service.close())
            self._end_thread()

    def _end_thread(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5.0)
        self._loop.close()

    def _call(self, coroutine: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(30)

    def _on_loop(self, look: Callable[[], Any]) -> Any:
        async def there() -> Any:
            return look()

        return self._call(there())

    def __enter__(self) -> "RendezvousServer":
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()


class _Service:
    """The calls, all on one event loop."""

    def __init__(self, members: Members, token: str, clock: Callable[[], float]) -> None:
        self.members = members
        self._clock = clock
        self._token = token.encode()
        self._begin()
        self._over = ""
        self._server: Optional[Any] = None
        self._watch: Optional["asyncio.Task[None]"] = None

    def _begin(self) -> None:
        self._complete = asyncio.Event()
        self._failed = asyncio.Event()
        self._watchers: Set["asyncio.Queue[pb.Event]"] = set()

    async def start(self, address: str) -> int:
        # asyncio's own: made where they are used
        self._begin()
        self._server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
        handlers: Dict[str, Tuple[Any, Any]] = {
            "Register": (self._register, pb.Member),
            "Heartbeat": (self._heartbeat, pb.Sign),
            "Finished": (self._finished, pb.Outcome),
        }
        methods = {
            name: grpc.unary_unary_rpc_method_handler(
                self._guarded(call), request_deserializer=kind.FromString, response_serializer=_serialized
            )
            for name, (call, kind) in handlers.items()
        }
        methods["Watch"] = grpc.unary_stream_rpc_method_handler(
            self._watched, request_deserializer=pb.Sign.FromString, response_serializer=_serialized
        )
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, methods),))
        try:
            port = self._server.add_insecure_port(address)
        except RuntimeError as e:
            raise ConfigError(f"rendezvous: cannot listen on {address}: {e}") from None
        if not port:
            raise ConfigError(f"rendezvous: cannot listen on {address}")
        await self._server.start()
        self._watch = asyncio.ensure_future(self._look_for_the_lost())
        return int(port)

    async def close(self) -> None:
        assert self._server is not None and self._watch is not None
        self._watch.cancel()
        await self.stop_all("the service has ended")
        await self._server.stop(0.5)

    async def stop_all(self, why: str) -> None:
        self._over = self._over or why
        self._tell(pb.Event(kind=pb.Event.OVER, what=why))
        self._failed.set()

    async def restart(self, attempt: int) -> None:
        await self.stop_all(f"attempt {attempt} begins")
        self.members = Members(self.members.tasks, attempt, self.members.limit)
        self._over = ""
        self._begin()

    # -- the calls

    async def _register(self, member: Any, context: Any) -> Any:
        members, complete, failed = self.members, self._complete, self._failed
        members.join(member.task, f"{_bracketed(member.host)}:{member.port}", member.attempt, self._clock())
        if members.complete:
            complete.set()
            self._tell(pb.Event(kind=pb.Event.COMPLETE))
        waits = [asyncio.ensure_future(event.wait()) for event in (complete, failed)]
        try:
            await asyncio.wait(waits, timeout=member.timeout or _PATIENCE, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
        if complete.is_set():
            return pb.Cluster(addresses=members.addresses)
        if failed.is_set():
            first = members.failed
            raise RendezvousError(f"[{first[0][0]}] {first[0][1]}" if first else self._over or "the job is over")
        missing = members.missing
        there = len(members.tasks) - len(missing)
        raise RendezvousError(
            f"{there} of {len(members.tasks)} tasks are there after {member.timeout or _PATIENCE:g} s; missing: {named(missing)}"
        )

    async def _heartbeat(self, sign: Any, context: Any) -> Any:
        self.members.sign(sign.task, sign.attempt, self._clock())
        return self._answer()

    async def _finished(self, outcome: Any, context: Any) -> Any:
        self.members.finish(outcome.task, outcome.attempt, outcome.ok, outcome.what)
        if not outcome.ok:
            self._failed.set()
            self._tell(pb.Event(kind=pb.Event.FAILED, task=outcome.task, what=outcome.what))
        elif self.members.over:
            self._tell(pb.Event(kind=pb.Event.OVER, what="every task has finished"))
        return self._answer()

    def _answer(self) -> Any:
        if self._over:
            return pb.Answer(stop=True, why=self._over)
        failed = self.members.failed
        return pb.Answer(stop=bool(failed), why=f"[{failed[0][0]}] {failed[0][1]}" if failed else "")

    async def _watched(self, sign: Any, context: Any) -> AsyncIterator[Any]:
        await self._admit(context)
        queue: "asyncio.Queue[pb.Event]" = asyncio.Queue()
        watchers = self._watchers
        watchers.add(queue)
        try:
            if self._complete.is_set():
                yield pb.Event(kind=pb.Event.COMPLETE)
            for task, what in self.members.failed:
                yield pb.Event(kind=pb.Event.FAILED, task=task, what=what)
            if self._over:
                yield pb.Event(kind=pb.Event.OVER, what=self._over)
                return
            while True:
                event = await queue.get()
                yield event
                if event.kind == pb.Event.OVER:
                    return
        finally:
            watchers.discard(queue)

    # -- beneath

    def _guarded(self, call: Any) -> Any:
        """With the token looked at first, and what `Members` refuses as the answer."""

        async def guarded(request: Any, context: Any) -> Any:
            await self._admit(context)
            try:
                return await call(request, context)
            except RendezvousError as e:
                await context.abort(grpc.StatusCode.FAILED_PRECONDITION, str(e))

        return guarded

    async def _admit(self, context: Any) -> None:
        given = dict(context.invocation_metadata() or ()).get(TOKEN, "")
        if not hmac.compare_digest(str(given).encode(), self._token):
            await context.abort(grpc.StatusCode.UNAUTHENTICATED, "this is not the token of the job")

    def _tell(self, event: Any) -> None:
        for queue in self._watchers:
            queue.put_nowait(event)

    async def _look_for_the_lost(self) -> None:
        while True:
            await asyncio.sleep(min(1.0, self.members.limit / 4))
            for task in self.members.lose(self._clock()):
                self._failed.set()
                self._tell(pb.Event(kind=pb.Event.LOST, task=task, what=dict(self.members.failed)[task]))


def _serialized(message: Any) -> bytes:
    return bytes(message.SerializeToString())


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host
