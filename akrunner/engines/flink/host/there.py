"""Checks what must be there before a job is submitted to Flink: a way to its cluster, slots, and the same version of
Flink on both sides."""

from __future__ import annotations

import socket
import time

from akrunner.engines.flink.rest import Address, Rest
from akrunner.errors import ConfigError
from akrunner.launch.interpreters import pyflink_of

_LOOPBACK = "127.0.0.1"
_SLOTS_SECONDS = 3.0


def check_version(cluster: Rest, python: str, version: str) -> None:
    """Check that the cluster's Flink has the same version as the PyFlink that submits to it. Flink's own errors about
    that are hard to understand.

    Raises:
        ConfigError: the versions differ.
    """
    there = cluster.version()
    if there and _minor(there) != _minor(version):
        raise ConfigError(
            f"the cluster at {cluster.master} is Flink {there}, {python} has PyFlink {version}: name an interpreter with "
            f"apache-flink {_minor(there)} (FlinkEngine(python=...), --flink-python) or another cluster (master=, "
            "--flink-master)"
        )


def reachable_host(cluster: Address | None) -> str:
    """Return this machine's address as a cluster sees it; None stands for the local cluster."""
    if cluster is None:
        return _LOOPBACK
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            # no packet is sent: this only chooses the route
            probe.connect((cluster.host, cluster.port))
            return str(probe.getsockname()[0])
        except OSError:
            return _LOOPBACK


def check_slots(cluster: Rest, needed: int) -> None:
    """Check that the cluster has enough free slots. A job that has just ended may keep its slots for a moment, so this
    waits for them a little.

    Raises:
        ConfigError: there are too few.
    """
    deadline = time.monotonic() + _SLOTS_SECONDS
    while (free := cluster.free_slots()) < needed:
        if time.monotonic() > deadline:
            raise ConfigError(
                f"the job needs {needed} task slots, {free} free at {cluster.master}: start another TaskManager, or turn down "
                "num_workers= or num_ps="
            )
        time.sleep(0.2)


def pyflink_version(python: str) -> str:
    """Return the version of an interpreter's PyFlink, such as "2.3.0".

    Raises:
        ConfigError: it has none.
    """
    try:
        version = pyflink_of(python)
    except OSError as e:
        raise ConfigError(f"engine 'flink': {python} does not run (FlinkEngine(python=...), --flink-python): {e}") from None
    except ValueError:
        version = ""
    if not version:
        raise ConfigError(
            f"engine 'flink': {python} has no PyFlink; pip install 'akrunner[flink]', or name one that has: "
            "FlinkEngine(python=...), --flink-python"
        )
    return version


def _minor(version: str) -> str:
    """Return "2.3" for "2.3.0": within such a version, the Flink that submits and the Flink that runs are compatible."""
    return ".".join(version.split(".")[:2])
