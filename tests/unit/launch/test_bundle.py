"""What travels to a worker's interpreter."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import akrunner
from akrunner.launch.bundle import bundle_bytes


def test_what_is_in_it() -> None:
    with zipfile.ZipFile(io.BytesIO(bundle_bytes())) as bundle:
        names = set(bundle.namelist())
    tops = {name.split("/")[0] for name in names}
    theirs = {"flink_ml_framework", "flink_ml_tensorflow", "flink_ml_tensorflow2"}
    theirs |= {"dl_on_flink_framework", "dl_on_flink_tensorflow", "dl_on_flink_pytorch"}
    assert tops == {"__main__.py", "akrunner", "akdl"} | theirs
    assert {"akdl/models/tf/dnn/dnn_batch.py", "akrunner/worker/main.py", "akrunner/wire/frames.py"} <= names
    assert not any(name.startswith(("akrunner/api", "akrunner/worker/akdl")) for name in names)


def test_every_package_of_it_is_installed() -> None:
    """Only directories with an __init__.py go into a wheel."""
    root = Path(akrunner.__file__).parent
    folders = {path.parent for path in root.rglob("*.py")}
    assert [str(f) for f in folders if not (f / "__init__.py").exists()] == []
