"""What a task is told: written and read by one declaration."""

import json

import pytest

from akrunner.wire import context
from akrunner.wire.frames import WireError

SCRIPT = {
    "path": "a.py",
    "real": "/home/a.py",
    "module": "",
    "program": False,
    "context_entry": "",
    "pai": False,
    "args": ["--x", "1"],
}
TOLD = {
    "mode": "train",
    "task": "worker 0",
    "tf_config": {"cluster": {"worker": ["localhost:1", "localhost:2"]}, "task": {"type": "worker", "index": 0}},
    "alone": False,
    "stays": False,
    "first": "worker 0",
    "cluster_flags": False,
    "num_workers": 2,
    "attempt": 0,
    "resume": False,
    "read_as": {"skip": 0},
    "run_id": "2a",
    "cpus": [0, 1],
    "fed": ["worker 0", "worker 1"],
    "task_dir": "/t",
    "work_dir": "/w",
    "data_format": "examples",
    "barriers": False,
    "places": False,
    "goes_on_with": None,
    "splits": [],
    "dataset_file": "/t/dataset.tfrecord",
    "script": SCRIPT,
    "output_file": "/t/output.tfrecord",
    "file_names": {"a.py": "/home/a.py"},
    "user_params": {"lr": 0.1},
    "schema": [{"name": "id"}],
    "output_schema": None,
    "output_inferred": False,
    "checkpoint_dir": None,
    "saved_model_dir": "/t/saved_model",
    "flush_seconds": 1,
    "latest_ckpt_dir": None,
    "env": {"A": "1"},
    "overlay": "",
    "model": "",
    "tables": None,
    "profile_input": 0,
}


def test_what_is_told_is_read():
    assert context.read(json.loads(json.dumps(TOLD))) == TOLD
    # a host that is newer may say more
    assert context.read({**TOLD, "another": 1})["another"] == 1


@pytest.mark.parametrize("field", sorted(TOLD))
def test_a_field_that_is_missing_is_named(field):
    with pytest.raises(WireError, match=f"a context has no '{field}'"):
        context.read({name: value for name, value in TOLD.items() if name != field})


def test_a_field_within_another_is_named():
    with pytest.raises(WireError, match="a context has no 'script.args'"):
        context.read({**TOLD, "script": {name: value for name, value in SCRIPT.items() if name != "args"}})


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("num_workers", "2"),
        ("num_workers", True),
        ("num_workers", 2.0),
        ("alone", 0),
        ("flush_seconds", "1"),
        ("flush_seconds", True),
        ("cpus", [0, "1"]),
        ("cpus", None),
        ("env", {"A": 1}),
        ("checkpoint_dir", 3),
        ("output_schema", ["id"]),
        ("tables", []),
        ("tf_config", []),
        ("script", "a.py"),
    ],
)
def test_a_value_of_another_type_is_named(field, value):
    with pytest.raises(WireError, match=rf"a context has the '{field}(\[0\])?' "):
        context.read({**TOLD, field: value})


def test_a_role_of_another_type_is_named():
    role = {"type": "worker", "index": "0"}
    with pytest.raises(WireError, match="a context has the 'tf_config.task.index' '0'"):
        context.read({**TOLD, "tf_config": {"cluster": {}, "task": role}})
