"""Wrong names that a script asks by."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from akrunner.worker import reading
from akrunner.worker.asking import told, unknown
from akrunner.worker.common import taken_of
from akrunner.worker.config import BatchTaskConfig, StreamTaskConfig

SCHEMA = [{"name": name} for name in ("id", "label", "pixels")]


@pytest.mark.parametrize(
    ("kind", "method", "name", "words"),
    [
        (BatchTaskConfig, "dataset", "shuffel", "dataset() has no argument 'shuffel'; did you mean 'shuffle'?"),
        (BatchTaskConfig, "batches", "shuffle", "batches() has no argument 'shuffle'; it is one of dataset() and per_worker_dataset()"),
        (BatchTaskConfig, "batches", "defualts", "batches() has no argument 'defualts'; did you mean 'defaults'?"),
        (BatchTaskConfig, "per_worker_dataset", "uneven", "per_worker_dataset() has no argument 'uneven'; it is one of dataset() and"),
        (BatchTaskConfig, "steps_per_epoch", "xyzzy", "steps_per_epoch() has no argument 'xyzzy'; it takes batch_size, drop_remainder"),
        (StreamTaskConfig, "batches", "colums", "batches() has no argument 'colums'; did you mean 'columns'?"),
        (StreamTaskConfig, "dataset", "lable", "lable=: there is no such argument; did you mean 'label'. The dataset of a stream takes batch_size,"),
    ],
)  # fmt: skip
def test_an_argument_that_is_not_there(kind: Any, method: str, name: str, words: str) -> None:
    with pytest.raises(TypeError) as e:
        getattr(kind(), method)(3, **{name: 1})
    assert str(e.value).startswith(words)


def test_people_see_the_arguments() -> None:
    assert list(inspect.signature(BatchTaskConfig.batches).parameters)[:3] == ["self", "batch_size", "defaults"]


def test_a_column_that_is_not_there() -> None:
    with pytest.raises(ValueError, match=r"there is no column 'lable'; columns: id, label, pixels; did you mean 'label'\?"):
        taken_of(SCHEMA, ["lable"])
    with pytest.raises(ValueError, match="there is no column 'x'; columns: id"):
        taken_of(SCHEMA, ["x"])
    assert taken_of(SCHEMA, ["label"]) == [{"name": "label"}]


def test_a_seed_of_nothing() -> None:
    with pytest.raises(ValueError, match="seed=7 means nothing without shuffle="):
        reading.check_seed(7, False, None)
    reading.check_seed(7, 10, None)
    reading.check_seed(None, False, None)


class _Asked:
    @told
    def dataset(self, batch_size: int = 1) -> int:
        return batch_size


def test_a_method_gets_what_it_has_and_the_rest_is_an_error() -> None:
    assert _Asked().dataset(batch_size=3) == 3
    with pytest.raises(TypeError, match="did you mean 'batch_size'"):
        _Asked().dataset(batchsize=3)  # type: ignore[call-arg]
    assert unknown(_Asked, "dataset", "xyzzy", ["a", "b"]) == "dataset() has no argument 'xyzzy'; it takes a, b"


def test_autograph_leaves_a_method_as_it_is() -> None:
    """By this attribute, which TensorFlow asks a function for that it comes upon when it traces another one."""
    assert hasattr(_Asked().dataset, "autograph_info__")
