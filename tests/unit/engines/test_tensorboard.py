"""Reports of tasks as event files of TensorBoard, read back from the files."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import struct
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from akrunner.codec import tfrecord
from akrunner.engines.tensorboard import EventFiles
from akrunner.errors import ConfigError
from akrunner.schema import Schema
from akrunner.spec import JobSpec, ScriptSpec


def fields(data: bytes) -> list[tuple[int, Any]]:
    """The fields of a message: (number, value)."""
    stream, found = io.BytesIO(data), []
    while key := stream.read(1):
        number, kind = key[0] >> 3, key[0] & 7
        if kind == 1:
            found.append((number, struct.unpack("<d", stream.read(8))[0]))
        elif kind == 5:
            found.append((number, struct.unpack("<f", stream.read(4))[0]))
        else:
            size = varint(stream)
            found.append((number, size if kind == 0 else stream.read(size)))
    return found


def varint(stream: io.BytesIO) -> int:
    value = shift = 0
    while True:
        byte = stream.read(1)[0]
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value


def events(folder: Path) -> list[dict[int, Any]]:
    """The events of the one file of a task, whose checksums are right."""
    (path,) = folder.iterdir()
    data = path.read_bytes()
    starts, ends, used = tfrecord.cut(data)
    assert used == len(data)
    tfrecord.check(np.frombuffer(data, np.uint8), starts, ends, path.name, 0, 0)
    return [dict(fields(data[start:end])) for start, end in zip(starts, ends)]


def values(event: dict[int, Any]) -> dict[str, float]:
    told = [dict(fields(value)) for _, value in fields(event[5])]
    return {one[1].decode(): one[2] for one in told}


def test_a_report_is_an_event_behind_the_version(tmp_path: Path) -> None:
    files = EventFiles(str(tmp_path / "board"), [])
    files.write("worker:0", {"loss": 0.5, "genauigkeit/ä": -2.0}, 7, 1_500_000_000)
    first, report = events(tmp_path / "board" / "worker-0")
    assert first == {1: 1.5, 3: b"brain.Event:2"}
    assert (report[1], report[2], values(report)) == (1.5, 7, {"loss": 0.5, "genauigkeit/ä": -2.0})
    assert next((tmp_path / "board" / "worker-0").iterdir()).name.startswith("events.out.tfevents.")
    files.close(True)


def test_each_task_has_a_directory_and_steps_of_its_own(tmp_path: Path) -> None:
    files = EventFiles(str(tmp_path), [])
    for task, step in (("chief:0", None), ("chief:0", None), ("worker:0", None), ("chief:0", 10), ("chief:0", None)):
        files.write(task, {"x": 1.0}, step, 0)
    assert [event[2] for event in events(tmp_path / "chief-0")[1:]] == [0, 1, 10, 11]
    assert [event[2] for event in events(tmp_path / "worker-0")[1:]] == [0]
    files.close(True)


def test_a_step_below_zero_is_kept_as_one(tmp_path: Path) -> None:
    files = EventFiles(str(tmp_path), [])
    files.write("chief:0", {"x": 1.0}, -1, 0)
    # an int64 has all its 64 bits in a varint
    assert events(tmp_path / "chief-0")[1][2] == (1 << 64) - 1
    files.close(True)


def test_a_report_without_metrics_is_an_event_without_values(tmp_path: Path) -> None:
    files = EventFiles(str(tmp_path), [])
    files.write("chief:0", {}, 3, 0)
    report = events(tmp_path / "chief-0")[1]
    assert report[2] == 3 and values(report) == {}
    files.close(True)


def test_a_full_disk_ends_the_files_with_one_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    warnings: list[str] = []
    files = EventFiles(str(tmp_path), warnings)
    files.write("chief:0", {"x": 1.0}, 0, 0)

    def full(*given: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(files, "_put", full)
    files.write("chief:0", {"x": 1.0}, 1, 0)
    monkeypatch.undo()
    files.write("chief:0", {"x": 1.0}, 2, 0)
    (warning,) = warnings
    assert (
        warning.startswith(f"tensorboard: reports are no longer written to {tmp_path}: ")
        and "(tensorboard=, --tensorboard)" in warning
    )
    assert [event[2] for event in events(tmp_path / "chief-0")[1:]] == [0]
    files.close(True)


def test_a_directory_that_cannot_be_made_is_an_error_of_its_parameter(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="^tensorboard: cannot make .*file/board"):
        EventFiles(str(tmp_path / "file" / "board"), [])


def test_the_params_are_a_session_which_tensorboard_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the tab HPARAMS asks its server for. Two jobs are two rows, and two tasks of one job are one."""
    # a module of this name has TensorBoard read without TensorFlow
    monkeypatch.setitem(sys.modules, "tensorboard.compat.notf", types.ModuleType("notf"))
    hparams: dict[str, bool | float | str] = {"lr": 0.1, "größe": "klein\ud800", "flag": True, "epochs": 3}
    for name, given, tasks in (("a", hparams, ["chief:0", "worker:0"]), ("b", {**hparams, "lr": 0.2}, ["chief:0"])):
        with contextlib.suppress(ZeroDivisionError), EventFiles(str(tmp_path / name), [], given, f"r-{name}") as files:
            for task in tasks:
                for step, loss in enumerate((1.0, 0.5 if task == "chief:0" else 0.7)):
                    files.write(task, {"loss": loss}, step, 1_500_000_000)
            1 / (name == "a")
    first, second = _rows(tmp_path)
    assert [dict(one.hparams.items())["lr"].number_value for one in (first, second)] == [0.1, 0.2]
    told = first.hparams
    assert (told["größe"].string_value, told["flag"].bool_value, told["epochs"].number_value) == ("klein?", True, 3.0)
    assert [one.name for one in first.sessions] == [os.path.join("a", "chief-0"), os.path.join("a", "worker-0")]
    assert first.name.startswith("a r-a 20") and [one.status for one in (*first.sessions, *second.sessions)] == [1, 1, 2]
    assert [round(one.metric_values[0].value, 6) for one in (first, second)] == [0.6, 0.5]
    # where only the directory of one job is shown
    [alone] = _rows(tmp_path / "b")
    assert alone.sessions[0].name == "chief-0" and alone.metric_values[0].value == 0.5


def _rows(directory: Path) -> list[Any]:
    """The rows of the tab, in the order of their names, by TensorBoard's own reader."""
    from tensorboard.backend.event_processing import data_provider, plugin_event_multiplexer
    from tensorboard.context import RequestContext
    from tensorboard.plugins import base_plugin
    from tensorboard.plugins.hparams import api_pb2, backend_context, list_session_groups

    runs = plugin_event_multiplexer.EventMultiplexer().AddRunsFromDirectory(str(directory))
    runs.Reload()
    provider = data_provider.MultiplexerDataProvider(runs, str(directory))
    context = backend_context.Context(base_plugin.TBContext(logdir=str(directory), data_provider=provider))
    asked = api_pb2.ListSessionGroupsRequest(
        allowed_statuses=[0, 1, 2, 3], aggregation_type=api_pb2.AGGREGATION_AVG, start_index=0, slice_size=10
    )
    groups = list_session_groups.Handler(RequestContext(), context, "experiment", asked).run().session_groups
    return sorted(groups, key=lambda one: one.name)


def test_a_directory_with_the_curves_of_another_job_is_warned_of(tmp_path: Path) -> None:
    def opened(**given: Any) -> list[str]:
        warnings: list[str] = []
        job = JobSpec(ScriptSpec("s.py", "s.py"), Schema(()), "python", tensorboard=str(tmp_path / "[board]"), **given)
        with EventFiles.of(job, warnings) or contextlib.nullcontext() as files:
            assert files is not None
            files.write("chief:0", {"x": 1.0}, 0, 0)
        return warnings

    assert opened() == [] and opened(resume=True, checkpoint_dir=str(tmp_path)) == []
    [warning] = opened()
    assert warning.startswith(f"tensorboard: {tmp_path}/[board] has the curves of another job") and "(tensorboard=" in warning
