"""-Dcluster, -DgpuRequired and -DworkerCount -> how many tasks of each role, and which resources each task may use."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from akrunner.checks import MOST_TASKS, why_not
from akrunner.errors import ConfigError
from akrunner.pai_mode.parameters import number
from akrunner.wire.near import nearest

ROLES = ("ps", "worker", "chief", "evaluator")
#: what -Dcluster says of each role: number of tasks, hundredths of a core, hundredths of a graphics card, megabytes
_WORDS = ("count", "cpu", "gpu", "memory")
_SHAPE = '{"ps":{"count":1,"cpu":600},"worker":{"count":2,"cpu":600,"gpu":100,"memory":30000}}'


@dataclass(frozen=True)
class Tasks:
    """The tasks that a command asks for.

    Attributes:
        num_workers: the number of tasks that train, including the chief.
        num_ps: the number of parameter servers.
        evaluator: whether there is an evaluator.
        given: whether the command has -Dcluster, or several workers. Then flags tell the script of the other tasks, even if
            there are no others.
        gpus, cpus: graphics cards and cores of each worker; None if the command does not say.
    """

    num_workers: int = 1
    num_ps: int = 0
    evaluator: bool = False
    given: bool = False
    gpus: int | None = None
    cpus: int | None = None


def tasks_of(parameters: Mapping[str, str]) -> Tasks:
    """Return the tasks that a command's parameters ask for.

    Raises:
        ConfigError: -Dcluster is not a JSON object of roles, or is given together with -DgpuRequired.
    """
    text, gpus = parameters.get("cluster", ""), parameters.get("gpuRequired", "")
    if text and gpus and gpus != "0":
        raise ConfigError(
            "cluster and gpuRequired should not be set at the same time: gpuRequired is for one machine; write gpu into the "
            "roles of -Dcluster"
        )
    if not text:
        workers = number("workerCount", parameters["workerCount"], 1) if parameters.get("workerCount") else 1
        return Tasks(workers, given=workers > 1, gpus=_cards(number("gpuRequired", gpus)) if gpus else None)
    roles = _roles(text)
    if "worker" not in roles and "chief" not in roles:
        raise ConfigError(f"-Dcluster names no worker: write {_SHAPE}")
    counts = {role: roles[role].get("count", 1) for role in roles}
    for role in ("chief", "evaluator"):
        if counts.get(role, 0) > 1:
            raise ConfigError(f"-Dcluster: there can be one {role}, not {counts[role]}")
    workers = counts.get("chief", 0) + counts.get("worker", 0)
    if not workers:
        raise ConfigError("-Dcluster: there must be at least one worker")
    of = roles.get("worker") or roles.get("chief", {})
    return Tasks(
        workers,
        counts.get("ps", 0),
        bool(counts.get("evaluator", 0)),
        True,
        _cards(of["gpu"]) if "gpu" in of else None,
        max(1, of["cpu"] // 100) if of.get("cpu") else None,
    )


def _roles(text: str) -> dict[str, dict[str, int]]:
    given = _object(text)
    roles: dict[str, dict[str, int]] = {}
    for role, about in given.items():
        if role not in ROLES:
            raise ConfigError(f"-Dcluster: there is no role {role!r}{nearest(role, list(ROLES))}; known are {', '.join(ROLES)}")
        if isinstance(about, int) and not isinstance(about, bool):
            about = {"count": about}
        if not isinstance(about, dict):
            raise ConfigError(f"-Dcluster: {role} must be an object, as in {_SHAPE}")
        roles[role] = {}
        for word, value in about.items():
            if word not in _WORDS:
                raise ConfigError(f"-Dcluster: {role} has {word!r}{nearest(word, list(_WORDS))}; known are {', '.join(_WORDS)}")
            roles[role][word] = _whole(role, word, value)
    return roles


def _object(text: str) -> dict[str, Any]:
    """Parse a JSON object, even one with the backslashes that protected it from one or more shells.

    Raises:
        ConfigError: the text is not a JSON object.
    """
    try:
        found = json.loads(text)
    except ValueError as first:
        try:
            found = json.loads(text.replace("\\", ""))
        except ValueError:
            raise ConfigError(f"-Dcluster is not JSON: {why_not(first)}; write {_SHAPE}") from None
    except RecursionError:
        raise ConfigError("-Dcluster is nested too deep") from None
    if isinstance(found, str):
        return _object(found)
    if not isinstance(found, dict):
        raise ConfigError(f"-Dcluster must be an object of roles: write {_SHAPE}")
    return found


def _whole(role: str, word: str, value: Any) -> int:
    try:
        whole = value if isinstance(value, int) and not isinstance(value, bool) else int(str(value))
    except ValueError:
        raise ConfigError(f"-Dcluster: {word} of {role} must be a whole number, not {value!r}") from None
    most = MOST_TASKS if word == "count" else 10**9
    if not 0 <= whole <= most:
        raise ConfigError(f"-Dcluster: {word} of {role} is {whole}: between 0 and {most}")
    return whole


def _cards(hundredths: int) -> int:
    """Return the number of whole cards, rounded up: 100 hundredths are one card, and a part of a card counts as a whole one."""
    return -(-hundredths // 100)
