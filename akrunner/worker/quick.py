"""TensorFlow's import, a fifth quicker: Python does not look for garbage meanwhile, and never again among what was made.

What is imported stays: half a million objects, which the collector would look through seven times while they are made, and once more at
each full collection of the script's.
"""

from __future__ import annotations

import gc
from typing import Any, Callable

from akrunner.worker import imports

_NAME = "tensorflow"


def afterwards(call: Callable[[], Any]) -> None:
    """Call it when TensorFlow has been imported: now, if it is already."""
    imports.when_imported(_NAME, lambda module: call(), _quickly)


def import_quickly() -> None:
    """Have TensorFlow's import, whenever it comes, be so."""
    imports.when_imported(_NAME, around=_quickly)


def _quickly(load: Callable[[], Any]) -> None:
    collects = gc.isenabled()
    gc.disable()
    try:
        load()
    finally:
        if collects:
            gc.enable()
    gc.freeze()
