"""A real server of Flight SQL: of the wheel roapi, which serves files and takes no rows."""

from __future__ import annotations

import functools
import importlib.util
import os
import shutil
import socket
import subprocess
import sysconfig
import time
from collections.abc import Iterator
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.conftest import NOT_RUN

ROWS = 200_000


@functools.cache
def table() -> pa.Table:
    """The rows of `sales`; made when they are wanted, which takes a third of a second."""
    return pa.table(
        {
            "id": pa.array(range(ROWS), pa.int64()),
            "s": pa.array([None if number % 3 == 0 else f"row {number}" for number in range(ROWS)]),
            "price": pa.array([Decimal(number).scaleb(-2) for number in range(ROWS)], pa.decimal128(10, 2)),
            "at": pa.array(range(ROWS), pa.timestamp("us")),
            "many": pa.array([[number] * (number % 3) for number in range(ROWS)], pa.list_(pa.int32())),
        }
    )


@pytest.fixture(scope="session")
def flightsql(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a server with the table `sales`, which has the rows of `table`, without ?table=."""
    program = shutil.which("roapi", path=os.pathsep.join([sysconfig.get_path("scripts"), os.environ.get("PATH", "")]))
    if program is None or importlib.util.find_spec("adbc_driver_flightsql") is None:
        pytest.skip(f"{NOT_RUN}a real server of Flight SQL: pip install roapi adbc-driver-flightsql")
    folder = tmp_path_factory.mktemp("roapi")
    pq.write_table(table(), folder / "sales.parquet")
    ports = [_free() for _ in range(3)]
    words = [f"--addr-{name}=127.0.0.1:{port}" for name, port in zip(("http", "postgres", "flight-sql"), ports)]
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(
            [program, *words, f"--table=sales={folder}/sales.parquet"], cwd=folder, stdout=log, stderr=log
        )
    try:
        _wait_for(ports[2], server)
        yield f"flightsql://127.0.0.1:{ports[2]}?tls=off"
    finally:
        server.terminate()
        server.wait(30)


def _free() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _wait_for(port: int, server: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + 60
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            assert server.poll() is None and time.monotonic() < until
            time.sleep(0.05)
