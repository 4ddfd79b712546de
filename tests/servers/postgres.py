"""A real PostgreSQL: of the wheel pgserver, or the system's. It runs as nobody where this process is root's, as it has to."""

from __future__ import annotations

import contextlib
import functools
import glob
import os
import pwd
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import NOT_RUN

USER, PASSWORD = "akr", "s3cret-w0rd"


def binaries() -> str | None:
    with contextlib.suppress(ImportError):
        import importlib.util

        found = importlib.util.find_spec("pgserver")
        if found is not None and found.submodule_search_locations:
            return os.path.join(next(iter(found.submodule_search_locations)), "pginstall")
    installed = sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"))
    return os.path.dirname(os.path.dirname(installed[-1])) if installed else None


class Postgres:
    """Attributes: url: of the database, as a job takes it, without a password, which PGPASSWORD has."""

    def __init__(self, install: str, base: Path) -> None:
        self._base = base
        self._as: dict[str, Any] = {}
        if os.geteuid() == 0:
            nobody = pwd.getpwnam("nobody")
            self._as = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
            os.chown(base, nobody.pw_uid, nobody.pw_gid)
            if not install.startswith("/usr/"):
                install = _copied(install, base)
        self._bin = os.path.join(install, "bin")
        (base / "password").write_text(PASSWORD)
        os.chmod(base / "password", 0o644)
        self._run(
            "initdb",
            "-D",
            str(base / "data"),
            "-U",
            USER,
            "--auth=scram-sha-256",
            f"--pwfile={base / 'password'}",
            "-E",
            "UTF8",
            "--locale=C",
        )
        self.port = _free()
        options = f"-p {self.port} -k {base} -c listen_addresses=127.0.0.1 -c fsync=off"
        self._run("pg_ctl", "-D", str(base / "data"), "-o", options, "-l", str(base / "log"), "-w", "start")
        self.url = f"postgresql://{USER}@127.0.0.1:{self.port}/postgres"

    def _run(self, name: str, *words: str) -> None:
        subprocess.run(
            [os.path.join(self._bin, name), *words], check=True, cwd=self._base, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, timeout=300, **self._as,
        )  # fmt: skip

    def stop(self) -> None:
        if "_database" in self.__dict__:
            self._database.close()
        self._run("pg_ctl", "-D", str(self._base / "data"), "-m", "immediate", "-w", "stop")

    @functools.cached_property
    def _database(self) -> Any:
        """What connections share: the driver reads the server's types, which takes forty times what a connection does."""
        import adbc_driver_postgresql
        from adbc_driver_manager import dbapi

        return dbapi._SharedDatabase(adbc_driver_postgresql.connect(self.url.replace("@", f":{PASSWORD}@")))

    def sql(self, *statements: str) -> list[Any]:
        """Run statements and commit them. Returns: the rows of the last one."""
        from adbc_driver_manager import AdbcConnection, dbapi

        database = self._database
        with dbapi.Connection(database, AdbcConnection(database._db)) as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
            rows = cursor.fetchall() if cursor.description else []
            connection.commit()
        return rows


def _copied(install: str, base: Path) -> str:
    """A wheel's files where somebody else than root may look, with the libraries it brings beside them."""
    package = Path(install).parent
    for one in (package, package.with_name(package.name + ".libs")):
        if one.is_dir():
            shutil.copytree(one, base / "wheel" / one.name)
    subprocess.run(["chmod", "-R", "a+rX", str(base / "wheel")], check=True)
    return str(base / "wheel" / package.name / "pginstall")


def _free() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@pytest.fixture(scope="session")
def _server() -> Iterator[Postgres]:
    install = binaries()
    if install is None:
        pytest.skip(
            f"{NOT_RUN}a real PostgreSQL: there is no wheel of pgserver for Python {sys.version_info[0]}.{sys.version_info[1]}; apt-get install postgresql"
        )
    base = Path(tempfile.mkdtemp(prefix="akrunner-postgres-"))
    os.chmod(base, 0o755)
    try:
        server = Postgres(install, base)
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(base)


@pytest.fixture
def postgres(_server: Postgres, monkeypatch: pytest.MonkeyPatch) -> Postgres:
    """The server of all tests, without a table of an earlier one."""
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    _server.sql("DROP SCHEMA public CASCADE", "CREATE SCHEMA public")
    return _server
