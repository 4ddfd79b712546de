"""Where the cluster of `akrunner flink start` keeps its files."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from akrunner.cli import flink
from akrunner.cli.main import main
from akrunner.engines.flink.host import cluster as clusters


def test_its_directory_is_its_users_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "akrunner" / "flink"
    folder.mkdir(parents=True, mode=0o755)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert flink.running_cluster() is None
    assert [path.stat().st_mode & 0o777 for path in (folder, folder.parent)] == [0o700, 0o700]


def test_without_one_nothing_is_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "akrunner").write_text("no directory")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert main(["flink", "start"]) == 2 and "XDG_STATE_HOME" in capsys.readouterr().err
    assert main(["flink", "stop"]) == 0 and capsys.readouterr().out == "no cluster is running\n"


def test_no_cluster_is_stopped_at_another_port(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    stopped: list[str] = []
    cluster = SimpleNamespace(address="localhost:18991", stop=lambda: stopped.append("stopped"))
    monkeypatch.setattr(flink, "running_cluster", lambda: cluster)
    assert main(["flink", "stop", "--port", "8991"]) == 2
    assert (
        "port=8991 (--port): the cluster that `akrunner flink start` has started is at localhost:18991"
        in capsys.readouterr().err
    )
    assert not stopped
    assert main(["flink", "stop", "--port", "18991"]) == 0 and stopped == ["stopped"]


@pytest.mark.parametrize(
    "line", ["start --port -1", "start --port 65536", "stop --port -1", "stop --port 0", "stop --port 70000"]
)
def test_a_port_that_there_cannot_be_is_refused(
    line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(flink, "running_cluster", lambda: pytest.fail("it was looked for"))
    monkeypatch.setattr(clusters, "start", lambda *given: pytest.fail("it was started"))
    assert main(["flink", *line.split()]) == 2
    assert f"Invalid value for '--port': '{line.split()[-1]}'" in capsys.readouterr().err


def test_the_line_to_copy_has_the_interpreter_that_was_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("AKRUNNER_FLINK_PYTHON", "/x/python")
    monkeypatch.setattr(clusters, "start", lambda *given: SimpleNamespace(address="localhost:1"))
    assert main(["flink", "start", "--python", "/y/python"]) == 0
    out, err = capsys.readouterr()
    assert (
        out.endswith("akrunner run SCRIPT --engine flink --flink-master localhost:1 --flink-python /y/python ...\n")
        and err == ""
    )
    assert main(["flink", "start"]) == 0
    out, err = capsys.readouterr()
    assert out.endswith(" --flink-master localhost:1 ...\n")
    assert err.startswith("akrunner: AKRUNNER_FLINK_PYTHON is not read: ") and "give --python" in err
