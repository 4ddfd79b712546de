"""Packages as pip leaves them, for tests of entry points: modules and a dist-info in a directory that is on `sys.path`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest


def install(
    site: Path, name: str, modules: Mapping[str, str], points: Mapping[str, Mapping[str, str]], patched: pytest.MonkeyPatch
) -> None:
    """Args: site: the directory; name: of the package; modules: file -> text; points: group -> name -> what it names."""
    info = site / f"{name.replace('-', '_')}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    told = [f"[{group}]\n" + "".join(f"{one} = {what}\n" for one, what in names.items()) for group, names in points.items()]
    (info / "entry_points.txt").write_text("\n".join(told))
    for file, text in modules.items():
        (site / file).write_text(text)
    patched.syspath_prepend(str(site))
