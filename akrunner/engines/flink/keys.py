"""The keys by which the two ends of a Flink job prove what they are: certificates of an authority that only this job has,
and a token that neither end sends.

::

    host      certificate for HOST, key   <- mutual TLS ->   certificate for AGENTS, key      agents, all with the same
    host      proof(token, nonce)         <------------->    nonce, proof(token, nonce)       agents

Without TLS (`tls=False`) there are only the proofs. Standard library only, as in `akrunner.engines.flink.taskmanager.agent`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
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

#: the names in the certificates: the address of a machine does not tell whose machine it is
HOST, AGENTS = "host.akrunner", "agents.akrunner"


@dataclass(frozen=True)
class Keys:
    """The keys of one end.

    Attributes:
        token: the job's token.
        authority, certificate, key: PEM text; all empty without TLS.
    """

    token: str = dataclasses.field(repr=False)
    authority: str = dataclasses.field(default="", repr=False)
    certificate: str = dataclasses.field(default="", repr=False)
    key: str = dataclasses.field(default="", repr=False)

    @property
    def tls(self) -> bool:
        return bool(self.authority)

    def proof(self, end: str, *words: str) -> str:
        """Return the proof that `end` knows the token. It is made from the token and the words; the token cannot be found
        from it."""
        said = "\n".join((end, *(f"{len(word)}:{word}" for word in words)))
        return hmac.new(self.token.encode(), said.encode(), hashlib.sha256).hexdigest()

    def proves(self, shown: str, end: str, *words: str) -> bool:
        """Whether `shown` is the proof of `end` for these words."""
        return hmac.compare_digest(shown.encode(), self.proof(end, *words).encode())

    def context(self, server: bool) -> ssl.SSLContext:
        """Return the TLS context for the sockets of this end. It accepts no certificate but the other end's."""
        made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if server else ssl.PROTOCOL_TLS_CLIENT)
        made.minimum_version = ssl.TLSVersion.TLSv1_3
        made.verify_mode = ssl.CERT_REQUIRED
        made.load_verify_locations(cadata=self.authority)
        if server:
            # connections are not resumed, and an end that only writes would never read the tickets
            made.num_tickets = 0
        with _as_file(self.certificate + self.key) as path:
            made.load_cert_chain(path)
        return made


@contextlib.contextmanager
def _as_file(text: str) -> Iterator[str]:
    """Yield the path of a file that holds the text for as long as the block lasts. It is in memory, or in a directory
    that only this user can read: OpenSSL reads keys from files only."""
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
    """Return a new token."""
    return secrets.token_hex(32)


def nonce() -> str:
    """Return a random text that was not used before."""
    return secrets.token_hex(16)


@dataclass(frozen=True)
class Door:
    """The address and keys by which an agent connects to its host.

    Attributes:
        host: the host's address.
        port: the port of the service.
        rows: the port of the rows.
        keys: the agent's keys.
    """

    host: str
    port: int
    rows: int
    keys: Keys

    def carried(self) -> dict[str, Any]:
        """Return it as plain values, which can be sent to the agents."""
        return dataclasses.asdict(self)

    @classmethod
    def of(cls, carried: Mapping[str, Any]) -> Door:
        """Return the door that `carried` has turned into plain values."""
        return cls(carried["host"], int(carried["port"]), int(carried["rows"]), Keys(**carried["keys"]))

    @functools.cached_property
    def context(self) -> ssl.SSLContext:
        """The TLS context for an agent's sockets: made once, as OpenSSL takes a millisecond to read the keys."""
        return self.keys.context(server=False)

    @property
    def shown(self) -> str:
        return f"{self.host}:{self.port}"
