"""The engines by name, and those that installed packages add.

::

    "local", "flink"  ->  a built-in engine, imported now
    "abc"             ->  entry point `akrunner.engines`: abc = "their_package:Abc"  ->  their_package.Abc(), imported now

A package cannot take a built-in engine's name: built-in ones are looked at first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from akrunner.checks import shown
from akrunner.engines.base import Engine
from akrunner.errors import ConfigError
from akrunner.foreign import ours
from akrunner.installed import Installed
from akrunner.spec import Capabilities
from akrunner.wire.near import nearest


def _local() -> Engine:
    from akrunner.engines.local import LocalEngine

    return LocalEngine()


def _flink() -> Engine:
    from akrunner.engines.flink import FlinkEngine

    return FlinkEngine()


#: to add an engine to akrunner itself, add its module and a row here
BUILT_IN: dict[str, Callable[[], Engine]] = {"local": _local, "flink": _flink}


def _wrong(name: str, found: Any) -> str | None:
    """Return why an object that a package has registered under a name makes no engine, as half a sentence; None if it may
    make one."""
    return None if callable(found) else f"it is {type(found).__name__}, and no class or function that makes an engine"


INSTALLED: Installed[Callable[[], Engine]] = Installed("akrunner.engines", "engine", _wrong, ConfigError)


def names() -> list[str]:
    """Return the names of all engines. Imports nothing."""
    return [*BUILT_IN, *(name for name in INSTALLED.names() if name not in BUILT_IN)]


def engine_of(engine: str | Engine) -> Engine:
    """Return the engine of that name, or `engine` itself if it is one already.

    Raises:
        ConfigError: there is no such engine; or the package that adds it cannot be imported, or makes something else.
    """
    if not isinstance(engine, str):
        lacks = _lacks(engine)
        if lacks:
            raise ConfigError(
                f"engine must be {', '.join(map(repr, names()))} or an engine (akrunner.engines.flink.FlinkEngine), not "
                f"{shown(engine)}: {lacks}"
            )
        return engine
    if engine in BUILT_IN:
        return BUILT_IN[engine]()
    if engine not in INSTALLED.names():
        raise ConfigError(f"engine={engine!r}: known engines are {', '.join(names())}{nearest(engine, names())}")
    make = INSTALLED.get(engine)
    place = f"engine {engine!r} of the package {INSTALLED.package(engine)}"
    with ours(ConfigError, f"{place} cannot be made"):
        made = make()
    lacks = _lacks(made) or (f"its name is {made.name!r}" if made.name != engine else "")
    if lacks:
        raise ConfigError(f"{place} cannot be used: {lacks}")
    return made


def _lacks(engine: Any) -> str:
    """Return what an object lacks to be an engine, as half a sentence; "" if it lacks nothing."""
    with ours(ConfigError, "engine: it cannot be asked what it is"):
        if isinstance(engine, type):
            return "it is a class, and not yet made"
        if not isinstance(getattr(engine, "name", None), str):
            return "it has no name"
        if not isinstance(getattr(engine, "capabilities", None), Capabilities):
            return "it has no capabilities (akrunner.spec.Capabilities)"
        lacking = next((name for name in ("check", "run") if not callable(getattr(engine, name, None))), None)
        return f"it has no {lacking}()" if lacking else ""
