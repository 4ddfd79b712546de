# ruff: noqa: UP006, UP035, UP045 -- the worker half runs on Python 3.7, whose types are written so
"""Shapes of JSON objects: made as dicts, checked by what they declare."""

from __future__ import annotations

import json
from typing import Any, Dict, List, Optional

import pytest

from akrunner.wire.frames import WireError
from akrunner.wire.shapes import Amount, Count, Int64, Name, Number, Positive, Text, TypedDict, check, escaped, fields_of, fits

# without the annotations of the future: they are read at run time
Inner = type("Inner", (TypedDict,), {"__annotations__": {"rows": Count}})
Base = type("Base", (TypedDict,), {"__annotations__": {"inner": Inner, "many": List[Inner], "told": Optional[Text]}})
Whole = type("Whole", (Base,), {"__annotations__": {"more": Dict[str, Amount]}}, total=False)
BODY: dict[str, Any] = {"inner": {"rows": 1}, "many": [{"rows": 2}], "told": None}


def test_a_shape_is_a_dict_of_its_fields() -> None:
    made = Whole(**BODY, more={"a": 0.5})
    assert json.loads(json.dumps(made)) == {**BODY, "more": {"a": 0.5}} and isinstance(made, dict)
    required, optional = fields_of(Whole)
    assert (list(required), list(optional)) == (["inner", "many", "told"], ["more"])
    assert fields_of(Base) == (required, {}) and fields_of(TypedDict) == ({}, {})


def test_an_object_is_checked_with_all_that_is_in_it() -> None:
    check("whole", {**BODY, "newer": 1}, Whole)
    for wrong, words in (
        ({"inner": {}}, "a whole has no 'inner.rows'"),
        ({"inner": {"rows": -1}}, "a whole has the 'inner.rows' -1"),
        ({"inner": []}, r"a whole has the 'inner' \[\]"),
        ({"many": [{"rows": 1}, {}]}, r"a whole has no 'many\[1\].rows'"),
        ({"many": [{"rows": 1}, 5]}, r"a whole has the 'many\[1\]' 5"),
        ({"many": {}}, "a whole has the 'many' {}"),
        ({"told": 3}, "a whole has the 'told' 3"),
        ({"more": {"a": -1}}, "a whole has the 'more' "),
    ):
        with pytest.raises(WireError, match=f"^{words}"):
            check("whole", {**BODY, **wrong}, Whole)
    with pytest.raises(WireError, match="^a whole has no 'told'$"):
        check("whole", {key: value for key, value in BODY.items() if key != "told"}, Whole)


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        (Count, [0, (1 << 63) - 1], [-1, 1 << 63, 1.0, True, None]),
        (Positive, [1], [0, True]),
        (Int64, [-(1 << 63), 0], [1 << 63, True, 0.0]),
        (Number, [-1, 0.5, float("inf")], [True, "1", 1 << 63]),
        (Amount, [0, 0.5], [-1, float("inf"), float("nan"), 1e308, None]),
        (Text, ["", "é"], ["\ud800", 1]),
        (Name, ["\udcff"], [1, None]),
        (bool, [True, False], [1, None]),
        (float, [1, 0.5], [True]),
        (int, [1], [True, 1.0]),
        (Any, [None, []], []),
        (Optional[Count], [None, 1], [-1]),
        (Dict[str, Optional[str]], [{}, {"a": None}], [[], {"a": 1}]),
        (List[List[Count]], [[], [[1], []]], [[1], None]),
    ],
)
def test_what_fits_an_annotation(kind: Any, good: list[Any], bad: list[Any]) -> None:
    assert all(fits(value, kind) for value in good)
    assert not any(fits(value, kind) for value in bad)


def test_any_text_can_be_told() -> None:
    told = escaped({"at": "/d\udce9/two.py:4", "\ud800": ["\udce9", ("é", 1, None, 0.5, True)], "own": {"in": "\udfff"}})
    assert told == {"at": "/d\\udce9/two.py:4", "\\ud800": ["\\udce9", ["é", 1, None, 0.5, True]], "own": {"in": "\\udfff"}}
    assert fits(told["at"], Text) and all(type(given) is type(escaped(given)) for given in (1, True, 0.5, None, "é", [], {}))
