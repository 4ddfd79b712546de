"""What the two ends of a Flink job prove themselves with: certificates of an authority that is the job's own, and a token that neither sends.

::

    host      certificate for HOST, key   <- mutual TLS ->   certificate for AGENTS, key      agents, all the same
    host      proof(token, nonce)         <------------->    nonce, proof(token, nonce)       agents

Without TLS (`tls=False`) the proofs are all there is. Standard library only, as `akrunner.engines.flink.taskmanager.agent`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import hmac
import os
import secrets
import shutil
import ssl
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from akrunner.leftovers.private import private_file

#: names in the certificates: where a machine is says nothing of whose it is
HOST, AGENTS = "host.akrunner", "agents.akrunner"


@dataclass(frozen=True)
class Keys:
    """One end's. Attributes: token: of the job; authority, certificate, key: PEM, all empty without TLS."""

    token: str = dataclasses.field(repr=False)
    authority: str = dataclasses.field(default="", repr=False)
    certificate: str = dataclasses.field(default="", repr=False)
    key: str = dataclasses.field(default="", repr=False)

    @property
    def tls(self) -> bool:
        return bool(self.authority)

    def proof(self, end: str, *words: str) -> str:
        """What shows that `end` knows the token: made of it and of the words, which it is not found from."""
        said = "\n".join((end, *(f"{len(word)}:{word}" for word in words)))
        return hmac.new(self.token.encode(), said.encode(), hashlib.sha256).hexdigest()

    def proves(self, shown: str, end: str, *words: str) -> bool:
        """Ask whether `shown` is that."""
        return hmac.compare_digest(shown.encode(), self.proof(end, *words).encode())

    def context(self, server: bool) -> ssl.SSLContext:
        """For sockets of this end, which take none but the other end's certificate."""
        made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if server else ssl.PROTOCOL_TLS_CLIENT)
        made.minimum_version = ssl.TLSVersion.TLSv1_3
        made.verify_mode = ssl.CERT_REQUIRED
        made.load_verify_locations(cadata=self.authority)
        if server:
            # connections are not resumed, and whoever only writes would never read the tickets
            made.num_tickets = 0
        with _as_file(self.certificate + self.key) as path:
            made.load_cert_chain(path)
        return made


@contextlib.contextmanager
def _as_file(text: str) -> Iterator[str]:
    """A path that has the text meanwhile, in memory or in a directory of this user's alone: OpenSSL reads keys from files only."""
    if hasattr(os, "memfd_create") and os.path.isdir("/proc/self/fd"):
        fd = os.memfd_create("akrunner", os.MFD_CLOEXEC)
        try:
            os.write(fd, text.encode())
            yield f"/proc/self/fd/{fd}"
        finally:
            os.close(fd)
        return
    folder = tempfile.mkdtemp(prefix="akrunner-")
    try:
        path = os.path.join(folder, "key.pem")
        with private_file(path) as file:
            file.write(text)
        yield path
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def token() -> str:
    """A new one."""
    return secrets.token_hex(32)


def nonce() -> str:
    """Something nobody has said before."""
    return secrets.token_hex(16)


@dataclass(frozen=True)
class Door:
    """How an agent comes to its host. Attributes: host; port: of the service; rows: port of the rows; keys: the agent's."""

    host: str
    port: int
    rows: int
    keys: Keys

    def carried(self) -> dict[str, Any]:
        """As plain values, for what carries it to the agents."""
        return dataclasses.asdict(self)

    @classmethod
    def of(cls, carried: Mapping[str, Any]) -> Door:
        """Of `carried`."""
        return cls(carried["host"], int(carried["port"]), int(carried["rows"]), Keys(**carried["keys"]))

    @property
    def shown(self) -> str:
        return f"{self.host}:{self.port}"
