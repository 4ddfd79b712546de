"""Checks of the network that TensorFlow's servers, and akrunner's own, need: ports, names and proxies."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Mapping

from akrunner.checkup.lines import BROKEN, LOOK, OK, Line
from akrunner.foreign import in_words

_SECONDS = 5.0
_FEW_PORTS = 1000
_PROXIES = ("grpc_proxy", "https_proxy", "HTTPS_PROXY", "http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY")

#: a proxy's address; the groups are scheme, user and password, host and port
_ADDRESS = re.compile(
    r"([a-z][a-z0-9+.-]{0,15}://)?([^@/\s]{1,1000}@)?((?:\[[0-9a-f:.]{2,45}\]|(?:[a-z0-9-]{1,63}\.){0,9}[a-z0-9-]{1,63})(?::[0-9]{1,5})?)/?",
    re.I,
)


def ports(root: str = "/") -> list[Line]:
    """Check that a port of this machine can be opened and reached, and how many ports there are.

    Args: root: where the kernel's files are.
    """
    do = "a container without a loopback interface, a firewall of this machine: ip link set lo up; no rule for 127.0.0.0/8"
    try:
        with socket.socket() as server:
            server.bind(("127.0.0.1", 0))
            server.listen(1)
            server.settimeout(_SECONDS)
            with socket.create_connection(server.getsockname(), _SECONDS):
                server.accept()[0].close()
    except OSError as e:
        return [Line("ports", BROKEN, f"127.0.0.1: {in_words(e)}; the tasks of a job cannot reach each other", do)]
    first, last = _range(root)
    if last - first < _FEW_PORTS:
        return [
            Line(
                "ports",
                LOOK,
                f"127.0.0.1 answers; ports {first} to {last} only",
                "sysctl net.ipv4.ip_local_port_range gives more",
            )
        ]
    return [Line("ports", OK, f"127.0.0.1 answers; {first} to {last}")]


def names(root: str = "/") -> list[Line]:
    """Check that `localhost` and this machine's own name can be resolved."""
    lines = []
    try:
        found = sorted({str(info[4][0]) for info in socket.getaddrinfo("localhost", None)})
        local = all(one.startswith("127.") or one == "::1" for one in found)
        lines.append(
            Line("localhost", OK, f"is {', '.join(found)}")
            if local
            else Line("localhost", LOOK, f"is {', '.join(found)}", "/etc/hosts: 127.0.0.1 localhost")
        )
    except OSError as e:
        lines.append(Line("localhost", LOOK, f"is no name here: {in_words(e)}", "/etc/hosts: 127.0.0.1 localhost"))
    own = socket.gethostname()
    try:
        lines.append(Line("host name", OK, f"{own} is {socket.gethostbyname(own)}"))
    except OSError as e:
        lines.append(
            Line(
                "host name",
                LOOK,
                f"{own} is no name here: {in_words(e)}",
                "jobs of this machine alone do without it; for others give --advertised-host, or a line in /etc/hosts",
            )
        )
    return lines


def proxies(environ: Mapping[str, str] = os.environ) -> list[Line]:
    """Check the proxy variables: gRPC between TensorFlow's servers uses a proxy unless no_proxy names this machine."""
    named = [name for name in _PROXIES if environ.get(name)]
    if not named:
        return []
    without = ",".join(environ.get(name, "") for name in ("no_grpc_proxy", "no_proxy", "NO_PROXY"))
    told = f"{named[0]}={_address(environ[named[0]])}"
    parts = {part.strip() for part in without.split(",")}
    if parts & {"127.0.0.1", "localhost", "*", "127.0.0.0/8"}:
        return [Line("proxy", OK, f"{told}, not for this machine itself")]
    return [
        Line(
            "proxy",
            LOOK,
            f"{told}, and no_proxy does not name this machine",
            "export no_proxy=localhost,127.0.0.1: TensorFlow's servers are asked through the proxy else",
        )
    ]


def _address(value: str) -> str:
    """Return a proxy's address without user and password. A value that is no address may be a secret, and is not returned."""
    found = _ADDRESS.fullmatch(value.strip())
    return f"{found[1] or ''}{'***@' if found[2] else ''}{found[3]}" if found else "something that is no address"


def _range(root: str) -> tuple[int, int]:
    try:
        with open(os.path.join(root, "proc/sys/net/ipv4/ip_local_port_range")) as f:
            first, last = f.read().split()
            return int(first), int(last)
    except (OSError, ValueError):
        return 32768, 60999
