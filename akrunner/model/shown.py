"""A model as HTML for notebooks: what it takes and gives."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from akrunner import markup
from akrunner.errors import ModelError
from akrunner.foreign import redacted
from akrunner.signature import Signature, read_signatures

if TYPE_CHECKING:
    from akrunner.model import Model

#: how many signatures, and how many inputs and outputs of one, are shown; how many files are counted
_SIGNATURES, _TENSORS, _FILES = 5, 40, 10_000
#: the signature that Keras adds to some models, which nobody calls
_OF_INIT = "__saved_model_init_op"


def model(told: Model) -> str:
    """Return the HTML of a model."""
    try:
        found = [one for every in read_signatures(told.path).values() for one in every.values() if one.key != _OF_INIT]
        said = "".join(map(_signature, found[:_SIGNATURES]))
    except (ModelError, OSError) as e:
        # a temporary directory may be gone, and a notebook still shows what it can
        said = markup.warned([e])
    return markup.block(
        markup.head("Model", redacted(told.path)),
        markup.facts({"size": _size(told.path), "checkpoint": markup.text(redacted(told.checkpoint or ""))}),
        said,
        markup.line("<code>model.save(path)</code> keeps it, <code>akrunner.predict(model, table)</code> runs it", small=True),
    )


def _signature(told: Signature) -> str:
    rows = [
        (way, one.name, one.dtype, str(one).removeprefix(f"{one.name} {one.dtype} "))
        for way, tensors in (("takes", told.inputs), ("gives", told.outputs))
        for one in list(tensors.values())[:_TENSORS]
    ]
    return markup.line(f"<code>{markup.text(told.key)}</code>") + markup.table(["", "name", "type", "shape"], rows)


def _size(path: str) -> str:
    size = number = 0
    for folder, _, names in os.walk(path):
        for name in names[: _FILES - number]:
            number += 1
            size += os.lstat(os.path.join(folder, name)).st_size
        if number >= _FILES:
            return f"more than {size / 1e6:,.1f} MB"
    return f"{size / 1e6:,.1f} MB in {number:,} file{'s' * (number != 1)}" if number else ""
