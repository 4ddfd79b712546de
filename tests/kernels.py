"""A kernel of a notebook, asked as JupyterLab asks it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import pytest

from tests.conftest import ENDS

#: seconds for a cell that runs a job
CELL = 120.0


class Told(NamedTuple):
    """What a cell has told. Attributes: kind: of the message: stream, display_data, ...; content: the message's."""

    kind: str
    content: Any


class Kernel:
    """Attributes: process: the kernel's."""

    def __init__(self, manager: Any, client: Any) -> None:
        self._manager, self._client = manager, client
        self.process = psutil.Process(manager.provisioner.process.pid)

    def run(self, code: str, look: Callable[[Told], None] = lambda told: None) -> list[Told]:
        """Run a cell. Args: look: is called with each message while it runs. Returns: all messages but those about its state."""
        found: list[Told] = []

        def take(message: Any) -> None:
            told = Told(message["msg_type"], message["content"])
            if told.kind not in ("status", "execute_input"):
                found.append(told)
                look(told)

        self._client.execute_interactive(code, output_hook=take, timeout=CELL)
        return found

    def interrupt(self) -> None:
        """As the square button does."""
        self._manager.interrupt_kernel()


def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have Jupyter and IPython write their own files nowhere else, and the kernel find akrunner."""
    for name in ("JUPYTER_RUNTIME_DIR", "JUPYTER_DATA_DIR", "JUPYTER_CONFIG_DIR", "IPYTHONDIR"):
        folder = tmp_path / name.lower()
        folder.mkdir()
        monkeypatch.setenv(name, str(folder))
    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")


@contextlib.contextmanager
def started(cwd: Path) -> Iterator[Kernel]:
    """A kernel; afterwards it is gone."""
    from jupyter_client.manager import start_new_kernel

    manager, client = start_new_kernel(startup_timeout=ENDS, kernel_name="python3", cwd=str(cwd))
    kernel = Kernel(manager, client)
    try:
        yield kernel
    finally:
        client.stop_channels()
        manager.shutdown_kernel()
        manager.cleanup_resources()
        assert not kernel.process.is_running()
