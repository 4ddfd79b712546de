"""Formats of directories of many small files: they are read and never written, and no name tells them."""

from __future__ import annotations

import pyarrow as pa
import pytest

from akrunner.errors import SinkError, SourceError
from akrunner.io import formats
from akrunner.io.formats import folders


@pytest.mark.parametrize("form", ["images", "texts", "lines"])
def test_they_are_known_as_inputs_alone(form: str) -> None:
    assert formats.is_folder(form) and form in formats.names(read=True) and form not in formats.names()
    assert formats.check_format(form, "input_format") == form
    with pytest.raises(
        SinkError,
        match=f"output_format='{form}': known formats are {', '.join(formats.names())}$",
    ):
        formats.check_format(form, "output_format", SinkError)
    with pytest.raises(SinkError, match=f"{form} files are read, and not written"):
        formats.named(form).check(pa.schema([]))
    assert formats.named(form).row_count("a") is None and not formats.named(form).begins(b"")


def test_other_formats_are_none_of_them() -> None:
    assert formats.FOLDERS == (folders.IMAGES, folders.TEXTS, folders.LINES)
    assert not any(map(formats.is_folder, [None, *formats.names()]))
    with pytest.raises(SourceError, match=r"known formats are csv, .*, images, texts, lines; did you mean 'images'\?"):
        formats.check_format("image", "input_format")
