"""Graphics cards and cores of this machine."""

from __future__ import annotations

import os
import shutil

from akrunner.launch.asking import ask


def gpus() -> list[str]:
    """Return the graphics cards, named as in CUDA_VISIBLE_DEVICES: those that this variable lists, or, if it is not set, those
    that the driver's tool lists.
    """
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        return [name.strip() for name in visible.split(",") if name.strip() and name.strip() != "-1"]
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return []
    try:
        listed = ask([tool, "-L"], 10)
    except OSError:
        return []
    count = sum(line.startswith("GPU ") for line in listed.out.splitlines()) if listed.code == 0 else 0
    return [str(number) for number in range(count)]


def cpus() -> list[int]:
    """Return the numbers of the cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))
