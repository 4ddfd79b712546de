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
from tests.conftest import FLINK, Script, need_flink, not_run, start_cluster

pytestmark = pytest.mark.flink

HERE, THERE, AWAY = "10.199.77.1", "10.199.77.2", "akrunner-away"


def ip(*words: str) -> bool:
    done = subprocess.run(["ip", *words], capture_output=True, text=True)
    return done.returncode == 0


@pytest.fixture
def split(tmp_path: Path) -> Iterator[cluster.Cluster]:
    """A cluster of two TaskManagers with a slot each, one behind a link."""
    need_flink()
    if shutil.which("ip") is None or not ip("netns", "add", AWAY):
        not_run("a cut network", "it is cut between network namespaces (`ip netns add`), which takes root and iproute2")
    away = None
    try:
        assert ip("link", "add", "akr0", "type", "veth", "peer", "name", "akr1")
        assert ip("link", "set", "akr1", "netns", AWAY)
        assert ip("addr", "add", f"{HERE}/24", "dev", "akr0") and ip("link", "set", "akr0", "up")
        for words in (
            ("addr", "add", f"{THERE}/24", "dev", "akr1"),
            ("link", "set", "akr1", "up"),
            ("link", "set", "lo", "up"),
        ):
            assert ip("-n", AWAY, *words)
        folder = tmp_path / "here"
        folder.mkdir()
        started = start_cluster(folder, taskmanagers=1, slots=1, host=HERE)
        try:
            away = taskmanager_away(folder, tmp_path / "away")
            deadline = time.monotonic() + 60
            while started.overview()["slots-total"] < 2:
                assert time.monotonic() < deadline, "the TaskManager behind the link did not come"
                time.sleep(0.2)
            yield started
        finally:
            started.stop()
            if away is not None:
                os.killpg(away.pid, 9)
                away.wait(60)
    finally:
        ip("netns", "del", AWAY)
        ip("link", "del", "akr0")


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

    def cut() -> None:
        while len(os.listdir(notes)) < 2:
            time.sleep(0.1)
        assert ip("link", "set", "akr0", "down")
        cut_at.append(time.monotonic())

    cutting = threading.Thread(target=cut, daemon=True)
    cutting.start()
    with pytest.raises(akrunner.TaskDiedError, match=rf"the TaskManager on {THERE}, or its Python worker, has gone"):
        akrunner.run(
            script(body), {"a": [1, 2]}, num_workers=2, user_params={"notes": str(notes)}, timeout=120,
            engine=FlinkEngine(split.address, python=str(FLINK), host=HERE),
        )  # fmt: skip
    assert time.monotonic() - cut_at[0] < SILENCE_SECONDS + 30
    deadline = cut_at[0] + SILENCE_SECONDS + 45
    tasks = [int(name) for name in os.listdir(notes)]
    while any(map(alive, tasks)) and time.monotonic() < deadline:
        time.sleep(0.5)
    assert not any(map(alive, tasks)), "the task behind the link ends by itself"


def alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False
