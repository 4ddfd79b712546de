"""Tables in MaxCompute: reads by ranges side by side, and writes by blocks, against PyODPS alone, over a server of the tests in a process of its own."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
from odps import ODPS
from odps.tunnel import TableTunnel

from akrunner.tables.credentials import Credentials
from akrunner.tables.maxcompute import MaxComputeTables
from akrunner.tables.names import TableName
from tests.servers.maxcompute import ACCESS_ID, ACCESS_KEY

Row = tuple[str, str, str, str, str, bool]
ROWS = 1_000_000
#: bytes a second of each connection, as over a network
_NETWORK = 10e6


@contextlib.contextmanager
def _serving(rate: float) -> Iterator[tuple[MaxComputeTables, Any]]:
    """A store, and the client it uses."""
    command = [sys.executable, "-m", "tests.servers.maxcompute", str(ROWS), str(rate)]
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    with subprocess.Popen(command, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin is not None and server.stdout is not None
        endpoint = server.stdout.readline().strip()
        client = ODPS(ACCESS_ID, ACCESS_KEY, project="p", endpoint=endpoint, overwrite_global=False, logview_host=endpoint)
        yield MaxComputeTables("p", Credentials(ACCESS_ID, ACCESS_KEY, endpoint, "this program")), TableTunnel(client)
        server.stdin.close()


def _speed(call: Callable[[], Any], times: int = 3) -> float:
    """Rows a second, the best of several runs after a warm-up."""
    call()
    taken = []
    for _ in range(times):
        began = time.perf_counter()
        call()
        taken.append(time.perf_counter() - began)
    return ROWS / min(taken)


def maxcompute(ratio_row: Callable[..., Row]) -> list[Row]:
    """A table of a bigint, a double and a string."""
    rows: list[Row] = []
    table, out = TableName.parse("p.t"), TableName.parse("p.out")
    for rate, what, goal in ((_NETWORK, "at 10 MB/s a connection", 2.5), (0.0, "as fast as this machine serves them", 0.7)):
        with _serving(rate) as (store, client):

            def alone(client: Any = client) -> None:
                session = client.create_download_session("t")
                with session.open_arrow_reader(0, session.count) as reader:
                    assert sum(batch.num_rows for batch in reader) == ROWS

            def ours(store: MaxComputeTables = store) -> None:
                assert sum(batch.num_rows for batch in store.read(table)) == ROWS

            rows.append(ratio_row(f"MaxCompute: read, {what}", _speed(ours), _speed(alone), goal, "PyODPS alone, one range"))
            if not rate:
                held = pa.Table.from_batches(list(store.read(table)))
                rows.append(_writes(store, client, held, out, ratio_row))
    return rows


def _writes(store: MaxComputeTables, client: Any, held: pa.Table, out: TableName, ratio_row: Callable[..., Row]) -> Row:
    def alone() -> None:
        session = client.create_upload_session("out", overwrite=True)
        with session.open_arrow_writer(0) as writer:
            for batch in held.to_batches(1000):
                writer.write(batch)
        session.commit([0])

    def ours() -> None:
        output = store.output(out)
        part = output.part("chief")
        for batch in held.to_batches(1000):
            part.write(batch)
        store.commit([output])

    return ratio_row("MaxCompute: write, batches of 1,000", _speed(ours), _speed(alone), 0.3, "PyODPS alone, one block")
