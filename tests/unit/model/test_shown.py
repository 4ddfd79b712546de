"""A model in a notebook: what it takes and gives."""

from __future__ import annotations

from pathlib import Path

from akrunner.model import Model, shown
from tests.unit.test_markup import read
from tests.unit.test_signature import MODEL, write


def test_its_signatures(tmp_path: Path) -> None:
    model = Model(write(tmp_path, MODEL))
    assert model._repr_html_() == shown.model(model)
    text = read(shown.model(model))
    assert text.startswith(f"Model {tmp_path}size0.0 MB in 1 fileserving_defaultnametypeshapetakesanystringany shape")
    assert "takesxfloat32[?, 4]givesyint64[?]" in text and "__saved_model_init_op" not in text


def test_a_model_that_is_damaged_or_gone(tmp_path: Path) -> None:
    model = Model(write(tmp_path, b"\xff"))
    assert "is not a SavedModel that can be read" in read(model._repr_html_())
    (tmp_path / "saved_model.pb").unlink()
    assert "has no saved_model.pb" in read(model._repr_html_())
