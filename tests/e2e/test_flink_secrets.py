"""A job's keys on a real cluster: Flink shows them nowhere, and no process, log or file of ours has them."""

from __future__ import annotations

import json
import socket
import threading
import urllib.request
from pathlib import Path

import psutil
import pytest

import akrunner
from akrunner.engines.flink import FlinkEngine
from akrunner.engines.flink.host import cluster, engine
from akrunner.engines.flink.host.issue import JobKeys, issued
from tests.conftest import FLINK, Script
from tests.unit.engines.flink.test_strangers import two_free_ports

WAITS = """
    import os, time

    def main(task_config):
        print("what it prints", flush=True)
        notes = task_config.user_params["notes"]
        open(os.path.join(notes, "here"), "w").close()
        while not os.path.exists(notes + "/over"):
            time.sleep(0.05)
    """


def shown(master: str, job: str) -> dict[str, str]:
    """What Flink's REST service, and so its web pages, say."""

    def get(path: str) -> str:
        with urllib.request.urlopen(f"http://{master}{path}", timeout=60) as answer:
            return str(answer.read().decode(errors="replace"))

    paths = [f"/jobs/{job}{part}" for part in ("", "/plan", "/config", "/exceptions", "/accumulators", "/checkpoints/config")]
    paths += [f"/jobs/{job}/vertices/{vertex['id']}" for vertex in json.loads(get(f"/jobs/{job}"))["vertices"]]
    paths += [
        "/config",
        "/jobmanager/config",
        "/jobmanager/environment",
        "/jobmanager/log",
        "/jobmanager/stdout",
        "/jobs/overview",
        "/jars",
    ]
    for one in json.loads(get("/taskmanagers"))["taskmanagers"]:
        paths += [f"/taskmanagers/{one['id']}{part}" for part in ("", "/log", "/stdout", "/thread-dump")]
    said = {}
    for path in paths:
        try:
            said[path] = get(path)
        except OSError:
            continue
    assert len(said) > 12, said.keys()
    return said


def test_a_jobs_keys_are_shown_nowhere(
    flink_cluster: cluster.Cluster, leaves_nothing: Path, script: Script, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[JobKeys] = []

    def noted(tls: bool) -> JobKeys:
        made.append(issued(tls))
        return made[0]

    monkeypatch.setattr(engine, "issued", noted)
    notes = tmp_path / "notes"
    notes.mkdir()
    failed: list[BaseException] = []
    port = two_free_ports()
    there = FlinkEngine(flink_cluster.address, python=str(FLINK), port=port)

    def run() -> None:
        try:
            akrunner.run(script(WAITS), {"a": [1]}, user_params={"notes": str(notes)}, engine=there)
        except BaseException as e:
            failed.append(e)

    running = threading.Thread(target=run)
    running.start()
    try:
        while not (notes / "here").exists():
            assert running.is_alive(), failed
            running.join(0.1)
        for one in (port, port + 1):
            socket.create_connection(("127.0.0.1", one), 20).close()
        with urllib.request.urlopen(f"http://{flink_cluster.address}/jobs", timeout=60) as answer:
            jobs = [one["id"] for one in json.load(answer)["jobs"] if one["status"] == "RUNNING"]
        said = {path: text for job in jobs for path, text in shown(flink_cluster.address, job).items()}
        for process in psutil.process_iter():
            try:
                said[f"process {process.pid}"] = " ".join([*process.cmdline(), *map(str, process.environ().items())])
            except (psutil.Error, OSError):
                continue
        (keys,) = made
        for path in [*Path(flink_cluster.folder, "log").rglob("*"), *leaves_nothing.rglob("*.txt")]:
            if path.is_file():
                said[str(path)] = path.read_text(errors="replace")
    finally:
        (notes / "over").touch()
        running.join(120)
    assert not failed
    secrets = [keys.agents.token, *(one.key.splitlines()[1] for one in (keys.host, keys.agents))]
    assert len(secrets) == 3
    assert [where for where, text in said.items() if any(secret in text for secret in secrets)] == []
