"""JSON with a checksum of itself: what was changed is not read."""

from __future__ import annotations

import json
from typing import Any

import pytest

from akrunner.io.seals import CHECKSUM, sealed, unsealed

VALUE: dict[str, Any] = {"rows": 3, "names": ["é", "\u2028", 'a"b\\'], "deep": {"a": [None, True, 1.5]}}


@pytest.mark.parametrize("value", [VALUE, {"a": 1}, {"a": {}}, {CHECKSUM: "of the user's own"}, {"a": "\n}\n"}])
def test_what_was_sealed_comes_back(value: dict[str, Any]) -> None:
    assert unsealed(sealed(value)) == value


def test_sealed_text_is_json_that_people_can_read() -> None:
    text = sealed(VALUE)
    found = json.loads(text)
    assert list(found)[-1] == CHECKSUM and len(found.pop(CHECKSUM)) == 8 and found == VALUE
    assert "é" in text and text.endswith("}\n")


def test_any_character_that_was_changed_is_noticed() -> None:
    text = sealed(VALUE)
    for at in range(len(text)):
        assert unsealed(text[:at] + ("x" if text[at] != "x" else "y") + text[at + 1 :]) is None
        assert unsealed(text[:at] + text[at + 1 :]) is None
        assert unsealed(text[:at]) is None


@pytest.mark.parametrize("text", ["", "{}", "null\n", "x" * 100, json.dumps(VALUE), sealed(VALUE) + "\n", " " + sealed(VALUE)])
def test_what_was_never_sealed(text: str) -> None:
    assert unsealed(text) is None
