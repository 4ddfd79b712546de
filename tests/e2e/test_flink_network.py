"""The network to one TaskManager is cut: it is in a network namespace of its own, and its link is taken down."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

import akrunner
from akrunner.engines.flink import FlinkEngine
from akrunner.engines.flink.connections import SILENCE_SECONDS
from akrunner.engines.flink.host import cluster
from akrunner.engines.flink.host.java import java_home
from tests.breaking import AWAY, HERE, LINK, SLOTS, THERE, Clusters, ip
from tests.conftest import FLINK, Script, not_run, wait_for

pytestmark = pytest.mark.flink


@pytest.fixture
def split(clusters: Clusters, tmp_path: Path) -> Iterator[cluster.Cluster]:
    """A cluster, and one more TaskManager of it, which is behind a link."""
    there = clusters.with_jobmanager()
    if there.host != HERE:
        not_run("a cut network", "it is cut between network namespaces (`ip netns add`), which takes root and iproute2")
    # the JobManager knows of those that were killed
    wait_for(lambda: there.cluster.overview()["taskmanagers"] == len(there.alive) - 1)
    before = there.cluster.overview()["slots-total"]
    away = taskmanager_away(Path(there.cluster.folder), tmp_path / "away")
    try:
        wait_for(lambda: there.cluster.overview()["slots-available"] == before + SLOTS)
        yield there.cluster
    finally:
        # the JobManager hears that it is gone, so that nobody gets its slots
        ip("link", "set", LINK, "up")
        os.killpg(away.pid, 9)
        away.wait(60)
    try:
        wait_for(lambda: there.cluster.overview()["slots-total"] == there.cluster.overview()["slots-available"] == before)
    except AssertionError:
        # the next test has another one
        clusters.close()


def taskmanager_away(here: Path, there: Path) -> subprocess.Popen[bytes]:
    for folder in ("conf", "lib"):
        shutil.copytree(here / folder, there / folder, symlinks=True)
    (there / "log").mkdir()
    (there / "tmp").mkdir()
    config = (there / "conf" / "config.yaml").read_text()
    for key in ("taskmanager.host", "taskmanager.bind-host"):
        config = config.replace(f"{key}: {HERE}", f"{key}: {THERE}")
    (there / "conf" / "config.yaml").write_text(config.replace(str(here / "tmp"), str(there / "tmp")))
    away = ("ip", "netns", "exec", AWAY)
    return cluster.spawn(str(there), cluster.flink_home(str(FLINK)), java_home(str(FLINK)), "taskmanager", 0, away)


def test_the_link_is_cut(split: cluster.Cluster, leaves_nothing: Path, script: Script, tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    body = """
        import os, time

        def main(task_config):
            open(os.path.join(task_config.user_params["notes"], str(os.getpid())), "w").close()
            time.sleep(300)
        """
    cut_at = []
    # all slots there are, so that some are behind the link
    tasks = split.overview()["slots-total"]

    def cut() -> None:
        while len(os.listdir(notes)) < tasks:
            time.sleep(0.1)
        assert ip("link", "set", LINK, "down")
        cut_at.append(time.monotonic())

    cutting = threading.Thread(target=cut, daemon=True)
    cutting.start()
    with pytest.raises(akrunner.TaskDiedError, match=rf"the TaskManager on {THERE}, or its Python worker, has gone"):
        akrunner.run(
            script(body), {"a": [*range(tasks)]}, num_workers=tasks, user_params={"notes": str(notes)}, timeout=120,
            engine=FlinkEngine(split.address, python=str(FLINK), host=HERE),
        )  # fmt: skip
    assert time.monotonic() - cut_at[0] < SILENCE_SECONDS + 30
    deadline = cut_at[0] + SILENCE_SECONDS + 45
    pids = [int(name) for name in os.listdir(notes)]
    while any(map(alive, pids)) and time.monotonic() < deadline:
        time.sleep(0.5)
    assert not any(map(alive, pids)), "the tasks behind the link end by themselves"


def alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False
