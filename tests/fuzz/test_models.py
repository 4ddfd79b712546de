"""Model tables and SavedModels of any bytes: nothing but ModelError, and nothing left of what was no model."""

from __future__ import annotations

import base64
import io
import os
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from akrunner.errors import ModelError
from akrunner.model import Model
from akrunner.signature import read_signatures
from tests.fuzz import mutated, randomness, rounds, tried
from tests.unit.test_signature import MODEL

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=5,
)
HEADS = st.text(max_size=20) | st.lists(
    st.fixed_dictionaries(
        {"name": st.sampled_from(["m.zip", "..", "...", "/x/m.zip", "a\0"]) | JSON, "chunks": st.integers(-1, 3) | JSON}
    ),
    max_size=3,
).map(str)


def model_zip() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("m/saved_model.pb", MODEL)
        archive.writestr("m/variables/variables.index", b"x" * 100)
    return out.getvalue()


@pytest.fixture
def temp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only directory anything may be made in."""
    folder = tmp_path / "a" / "b" / "tmp"
    folder.mkdir(parents=True)
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def opened(rows: list[Any], temp: Path) -> None:
    try:
        model = Model.from_table(pa.table({"model_id": range(len(rows)), "model_info": pa.array(rows, pa.string())}))
        assert os.path.realpath(model.path).startswith(str(temp))
        del model
    except ModelError as e:
        assert str(e).isprintable()
    assert not os.listdir(temp) and os.listdir(temp.parent) == ["tmp"] and os.listdir(temp.parent.parent) == ["b"]


def test_tables(temp: Path) -> None:
    piece = base64.b64encode(model_zip()).decode()

    @given(HEADS, st.lists(st.sampled_from([piece, piece[:100], "", "!"]) | st.text(max_size=8) | st.none(), max_size=3))
    def tables(head: str, pieces: Any) -> None:
        opened([head.replace("'", '"'), *pieces], temp)

    tables()


def test_damaged_tables(temp: Path) -> None:
    rng = randomness()
    for _ in rounds(100):
        data = tried("model.zip", mutated(model_zip(), rng))
        opened(["m.zip", base64.b64encode(data).decode()], temp)


def test_damaged_signatures(tmp_path: Path) -> None:
    rng = randomness()
    for _ in rounds(1500):
        (tmp_path / "saved_model.pb").write_bytes(tried("saved_model.pb", mutated(MODEL, rng)))
        try:
            read_signatures(str(tmp_path))
        except ModelError as e:
            assert "is not a SavedModel that can be read" in str(e)
