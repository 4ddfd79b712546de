"""What `dataset`'s arguments may be: said before TensorFlow is imported."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from akrunner.worker import mapping, reading
from akrunner.worker.column_rows import Columns
from akrunner.worker.config import BatchTaskConfig, StreamTaskConfig
from akrunner.worker.data import Examples
from akrunner.worker.examples import ExampleRows
from akrunner.worker.images import Images
from akrunner.worker.reading import Order, Reading, check_counts

BYTES = {"kind": "bytes", "shape": []}
SCHEMA: list[dict[str, Any]] = [
    {"name": "image", "type": "varbinary", **BYTES},
    {"name": "path", "type": "string", **BYTES},
    {"name": "label", "type": "bigint", "kind": "int64", "shape": []},
]


@pytest.mark.parametrize(
    "asked, words",
    [
        ({"map": 4}, "map=4: give a function of a batch"),
        ({"interleave": "path"}, "interleave='path': give a function of a row's columns"),
        ({"interleave": lambda: 1}, r"is called with \(row\): write def interleave\(row\)"),
        ({"interleave": lambda row, more: 1}, r"takes \(row, more\), and is called with \(row\)"),
        ({"cache": "ram"}, "cache='ram': give True"),
        ({"cache": 1.5}, "cache=1.5"),
        ({"cache": []}, r"cache=\[\]"),
        ({"prefetch": "2"}, "prefetch='2': give a whole number"),
        ({"prefetch": True}, "prefetch=True: give a whole number"),
        ({"prefetch": -2}, "prefetch=-2: give how many"),
        ({"prefetch": 1 << 70}, "it is too large"),
        ({"deterministic": 0}, "deterministic=0: give True, or False"),
        ({"image": True, "interleave": len}, "decode it in map="),
    ],
)
def test_refused_with_words(asked: dict[str, Any], words: str) -> None:
    with pytest.raises((TypeError, ValueError), match=words):
        Reading(**asked)


@pytest.mark.parametrize(
    "counts, words",
    [
        ((0,), "batch_size=0"),
        ((True,), "batch_size=True"),
        ((3.5,), r"batch_size=3\.5"),
        ((1 << 70,), "too large"),
        ((4, -1), "shuffle=-1"),
        ((4, "much"), "shuffle='much'"),
        ((4, True, -2), "repeat=-2"),
        ((4, True, 0), "repeat=0: give the number of epochs, 1 at least; None for ever"),
        ((4, True, 1, "x"), "seed='x'"),
    ],
)
def test_numbers_of_rows(counts: Any, words: str) -> None:
    with pytest.raises((TypeError, ValueError), match=words):
        check_counts(*counts)


@pytest.mark.parametrize(
    "function, label, weighted, parts",
    [
        (lambda a, b: a, None, False, "(columns)"),
        (lambda a: a, "y", False, "(features, label)"),
        (lambda a, b: a, "y", True, "(features, label, weight)"),
    ],
)
def test_a_map_that_takes_something_else(function: Any, label: Any, weighted: bool, parts: str) -> None:
    with pytest.raises(TypeError) as told:
        mapping.check_arguments(function, label, weighted)
    assert f"is called with {parts}: write def map{parts}" in str(told.value)
    for good in (lambda *batch: batch, lambda a, b=1, c=2: a, dict):
        mapping.check_arguments(good, None, False)


@pytest.mark.parametrize(
    "error, kind, words",
    [
        (RuntimeError("in user code:\n\n    /x/train.py:5 f  *\n        x[1]\n\n    KeyError: 'petal'\n"), ValueError, "map=dict raised KeyError"),
        (TypeError("in converted code:\n\n    /x/train.py:5 f  *\n\n    TypeError: bad\n"), TypeError, "at line 5 of /x/train.py: bad"),
        (TypeError(f'in user code:\n    File "{mapping.__file__}", line 9, in f\n    TypeError: bad'), TypeError, "raised TypeError: bad"),
        (TypeError("Unsupported return value from function passed to Dataset.map(): None."), TypeError, "returns None"),
        (ValueError("Length for attr 'output_shapes' of 0 must be at least minimum 1"), TypeError, "returns None"),
        (RuntimeError("no words"), ValueError, "raised RuntimeError: no words"),
    ],
)  # fmt: skip
def test_a_map_that_fails(error: Exception, kind: Any, words: str) -> None:
    made = mapping.refused(dict, error)
    assert type(made) is kind and words in str(made)


def test_an_interleave_that_fails() -> None:
    for returned, words in ((None, "None"), ([1, 2], "what is of type list")):
        told = mapping.no_dataset(len, returned)
        assert type(told) is TypeError and f"interleave=len returns {words}: return a tf.data.Dataset" in str(told)
    assert "interleave=len raised ZeroDivisionError: " in str(
        mapping.refused(len, ZeroDivisionError("division by zero"), "interleave")
    )


@pytest.mark.parametrize("name", ["cache", "shuffle", "seed", "repeat", "uneven", "split", "interleave", "cash"])
def test_what_a_stream_does_not_take(name: str) -> None:
    with pytest.raises(TypeError, match=f"{name}=: .*The dataset of a stream takes batch_size, "):
        StreamTaskConfig().dataset(4, **{name: True})
    taken = [part for part in inspect.signature(StreamTaskConfig.dataset).parameters if part not in ("self", "other")]
    with pytest.raises(TypeError) as told:
        reading.check_stream({name: 1})
    assert str(told.value).endswith("takes {} and {}".format(", ".join(taken[:-1]), taken[-1]))


@pytest.mark.parametrize(
    ("size", "words"),
    [(0, "batch_size=0: a batch has one row at least"), (-1, "one row at least"), ("a", "batch_size='a': give a whole number")],
)
def test_the_size_of_a_batch_is_checked_wherever_one_is_given(size: Any, words: str) -> None:
    for rows in (Columns(SCHEMA, "rows"), ExampleRows(SCHEMA, "rows"), Examples(SCHEMA, "rows")):
        with pytest.raises((TypeError, ValueError), match=words):
            rows.batches(size)
    with pytest.raises((TypeError, ValueError), match=words):
        BatchTaskConfig(dataset_length=4).steps_per_epoch(size)


def test_what_is_fine() -> None:
    assert Reading(deterministic=None).deterministic is True
    assert Reading(cache="memory").cache == "memory" and Reading(cache=None).cache is None
    reading.check_stream({})
    for counts in ((4,), (4, False), (4, True, None, 7), (4, 100, -1)):
        check_counts(*counts)
    assert Reading(prefetch=0).prefetch == 0 and Reading(prefetch=-1).prefetch == -1 and Reading().prefetch == 2
    assert Reading(cache=True).cache == "memory" and Reading(cache=False).cache is None
    assert Reading(image=(4, 4)).by_row and not Reading(map=len, cache="disk").by_row


@pytest.mark.parametrize(
    "asked, words",
    [
        ((4,), r"\(height, width\)"),
        ("224x224", r"\(height, width\)"),
        ((0, 4), "1 to 65536 pixels"),
        ((True, 4), r"\(height, width\)"),
        ({"hight": 4}, "there is no 'hight'"),
        ({"channels": True}, "'channels': True"),
        ({"fit": "zoom"}, "'fit': 'zoom'"),
        ({"dtype": ["uint8"]}, "'dtype'"),
        ({"augment": "mirror"}, "'augment': 'mirror'"),
        ({"augment": 3}, "'augment': 3"),
        ({"column": "label"}, "those of bytes: image, path"),
    ],
)
def test_images_refused_with_words(asked: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Images(asked, SCHEMA)


def test_which_column_has_the_images() -> None:
    assert Images(True, SCHEMA).column == "image"
    assert Images({"column": "path"}, SCHEMA).column == "path"
    assert Images(True, [{**SCHEMA[0], "name": "photo"}, *SCHEMA[1:]]).column == "photo", "the only binary one"
    with pytest.raises(ValueError, match="which column"):
        Images(True, SCHEMA[1:])
    assert Images({"size": (2, 3), "augment": True}, SCHEMA).augment == ("flip", "shift")
    assert Images((2, 3), SCHEMA).bytes_each() == 18


def test_autograph_translates_what_calls_the_scripts_function_alone() -> None:
    for augment, translated in ((True, False), (None, False), (["flip", lambda pixels: pixels], True)):
        made = Images({"size": (2, 3), **({"augment": augment} if augment else {})}, SCHEMA)
        assert hasattr(made.as_written(lambda row: row), "autograph_info__") != translated
        assert hasattr(made.decoded, "autograph_info__")
        assert not hasattr(made.finished, "autograph_info__"), "it calls the script's"


def test_what_is_kept_does_not_change_the_batches() -> None:
    def order(**given: Any) -> Order:
        return Order(Reading(cache=True), 5, 0, given.get("repeat", 1), False, None, given.get("rows"))

    assert order(rows=12).whole() and order(rows=10, repeat=3).whole() and order(rows=10, repeat=None).whole()
    assert not order(rows=12, repeat=2).whole() and not order(repeat=2).whole()


def test_a_cache_that_does_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "_free", lambda: 1 << 30)
    reading.check_room(1 << 29, "the rows")
    with pytest.raises(ValueError, match=r"the rows take about 2\.0 GiB, and 1\.0 GiB of memory are free: cache='disk'"):
        reading.check_room(1 << 31, "the rows")
    monkeypatch.setattr(reading, "_free", lambda: None)
    reading.check_room(1 << 62, "the rows")


@pytest.mark.parametrize(
    "asked, decoding, finishing",
    [
        ({"size": (4, 4), "augment": True}, ["decodes", "images", "resizes"], ["augments", "floats", "images"]),
        ({"augment": "flip", "dtype": "uint8"}, ["decodes", "images"], ["images"]),
        ({"augment": ["flip", "contrast"], "dtype": "uint8"}, ["decodes", "images"], ["augments", "images"]),
    ],
)
def test_the_doctor_is_told_what_image_asks_for(asked: dict[str, Any], decoding: list[str], finishing: list[str]) -> None:
    made = Images(asked, SCHEMA)
    assert (sorted(made.of_decoding()), sorted(made.of_finishing())) == (decoding, finishing)
