"""A cluster whose REST service is behind TLS, a path prefix and credentials."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psutil
import pytest

import akrunner
from akrunner import detached
from akrunner.engines.flink import FlinkEngine
from akrunner.engines.flink.host import client, cluster
from akrunner.engines.flink.rest import CREDENTIALS
from tests.conftest import ENDS, FLINK, Script, nothing_is_left
from tests.servers import proxy

BODY = """
    def main(task_config):
        for batch in task_config.batches(2):
            task_config.output_writer.write_batch({"a": batch["a"] * 2})
    """


class Lister:
    """An observer that looks what lists of processes show meanwhile."""

    def __init__(self) -> None:
        self.shown: set[str] = set()
        #: which processes have submitted, besides those of engines that tests share
        self.submits: set[int] = set()
        self._before = {child.pid for child in psutil.Process().children()}

    def progress(self, progress: Any) -> None:
        for child in psutil.Process().children(recursive=True):
            try:
                words = child.cmdline()
            except psutil.Error:
                continue
            self.shown.add(" ".join(words))
            if "akrunner.engines.flink.program.submit" in words and child.pid not in self._before:
                self.submits.add(child.pid)

    def log(self, task: str, line: str) -> None:
        pass


def test_a_job_through_tls_a_path_and_credentials(
    flink_cluster: cluster.Cluster, leaves_nothing: Path, script: Script, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, lister = script(BODY), Lister()
    with proxy.before(flink_cluster.address, "/flink", "me:geheim", tmp_path) as before:
        master = f"https://127.0.0.1:{before.port}/flink/"
        with pytest.raises(akrunner.ClusterError, match="its certificate is not trusted: .*SSL_CERT_FILE"):
            akrunner.run(path, {"a": [1]}, output_schema="a bigint", engine=FlinkEngine(master, python=str(FLINK)))
        monkeypatch.setenv("SSL_CERT_FILE", before.certificate)
        with pytest.raises(akrunner.ClusterError, match=f"answers 401: it wants other credentials: {CREDENTIALS}") as raised:
            akrunner.run(
                path,
                {"a": [1]},
                output_schema="a bigint",
                engine=FlinkEngine(master.replace("://", "://me:falsch@"), python=str(FLINK)),
            )
        assert "falsch" not in str(raised.value) and before.refused
        monkeypatch.setenv(CREDENTIALS, "me:geheim")
        before.refused.clear()
        # the second job has what submitted the first one, however long that takes to answer beside other tests
        monkeypatch.setattr(client, "_WELL_SECONDS", ENDS)
        with akrunner.warm(workers=1, preload=()) as warm:
            for rows in ([1, 2, 3], [4]):
                engine = FlinkEngine(master, python=str(FLINK))
                result = akrunner.run(
                    path, {"a": rows}, output_schema="a bigint", data_format="columns", engine=engine, observer=lister
                )
                assert sorted(result.table["a"].to_pylist()) == [2 * row for row in rows]
                assert warm.status()["submitters"] == 1 and "to submit to Flink" in repr(warm)
        assert len(lister.submits) == 1 and not any(map(psutil.pid_exists, lister.submits))
        assert any(job.state == "FINISHED" for job in detached.listed(engine.master))
        assert before.refused == []
    assert lister.shown and not [line for line in lister.shown if "geheim" in line]
    nothing_is_left(flink_cluster)
