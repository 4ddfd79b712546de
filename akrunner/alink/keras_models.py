"""The model table of Alink's KerasSequential operators: a description, the SavedModel's zip, and the labels.

::

    model_id                                      model_info                                            label_value
    number of a string * 2^20 + number of         a slice of a string; string 0: the description,       null
        a slice of the string                         JSON; 1, 2, ...: [i, "text of row i"], the zip
    2147483647 * 2^20 + number of the label       null                                                  a label
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from akrunner.errors import ModelError
from akrunner.foreign import ours
from akrunner.model import MODEL_SCHEMA, Model

_SLICES = 1 << 20
_LONGEST = 32768
_LABELS = 2147483647


@dataclass(frozen=True)
class KerasModel:
    """A KerasSequential model, the name of its input column, and its labels.

    Attributes:
        model: the SavedModel.
        tensor_col: the column that feeds the model.
        labels: the labels, in the order of the model's outputs; None: the model is a regression.
    """

    model: Model
    tensor_col: str
    labels: pa.Array | None

    def to_table(self, label_type: pa.DataType) -> pa.Table:
        """Return the model as a model table. Args: label_type: type of the column `label_value`."""
        meta = {
            "tensorCol": self.tensor_col,
            "tfInputCols": [self.tensor_col],
            "tfOutputSignatureDef": "y" if self.labels is None else "logits",
            "taskType": "REGRESSION" if self.labels is None else "CLASSIFICATION",
            "isOutputLogits": self.labels is not None,
            "preprocessPipelineModelSchemaStr": "",
            "preprocessPipelineModelPartitionStart": 0,
            "preprocessPipelineModelPartitionSize": 0,
            "tfModelPartitionStart": 0,
        }
        # every value is encoded as JSON before the whole is, as Alink encodes its params
        strings = [json.dumps({name: json.dumps(value) for name, value in meta.items()})]
        rows: list[str] = self.model.to_table()["model_info"].to_pylist()
        strings += [json.dumps([i, text]) for i, text in enumerate(rows)]
        ids: list[int] = []
        infos: list[str | None] = []
        for number, text in enumerate(strings):
            for slice, at in enumerate(range(0, len(text), _LONGEST)):
                ids.append(number * _SLICES + slice)
                infos.append(text[at : at + _LONGEST])
        count = 0 if self.labels is None else len(self.labels)
        labels = pa.nulls(len(ids), label_type)
        if self.labels is not None:
            labels = pa.concat_arrays([labels, self.labels.cast(label_type)])
        ids += [_LABELS * _SLICES + number for number in range(count)]
        return pa.table(
            [pa.array(ids, pa.int64()), pa.array(infos + [None] * count, pa.string()), labels], schema=keras_schema(label_type)
        )

    @classmethod
    def from_table(cls, table: pa.Table) -> KerasModel:
        """Read a model table, whose rows may be in any order.

        Raises: ModelError: the table is not the model of a KerasSequential operator, or is damaged.
        """
        if table.num_columns != 3 or table.column_names[:2] != ["model_id", "model_info"]:
            raise ModelError(
                f"the model has the columns {', '.join(table.column_names)}: a KerasSequential model has model_id, model_info "
                "and label_value"
            )
        with ours(ModelError, "the model table is damaged"):
            table = table.sort_by("model_id")
            ids = table["model_id"].cast(pa.int64())
            labels = table.filter(pc.greater_equal(ids, _LABELS * _SLICES)).column(2).combine_chunks()
            strings = _strings(table.filter(pc.less(ids, _LABELS * _SLICES)))
        if not strings:
            raise ModelError("the model table is empty")
        try:
            meta: dict[str, Any] = {name: json.loads(value) for name, value in json.loads(strings[0]).items()}
            rows = [(int(i), str(text)) for i, text in map(json.loads, strings[1:])]
            column = meta["tfInputCols"][0] if meta.get("tfInputCols") else meta["tensorCol"]
            regression = "REGRESSION" in str(meta.get("taskType", "")).upper()
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as e:
            raise ModelError(f"the model table is damaged: its description is not Alink's: {e}") from None
        # rows before the one with the name of a zip belong to a pipeline that prepares the input
        first = next((i for i, (_, text) in enumerate(rows) if text.endswith(".zip") and len(text) < 1024), None)
        if first is None:
            raise ModelError("the model table is damaged: no row of it is the name of a zip")
        texts = [text for _, text in rows[first:]]
        model = Model.from_table(pa.table([pa.array(range(len(texts)), pa.int64()), pa.array(texts)], schema=MODEL_SCHEMA))
        if not regression and not len(labels):
            raise ModelError("the model table is damaged: it has no labels")
        return cls(model, column, None if regression else labels)


def _strings(table: pa.Table) -> list[str]:
    """Return the texts, each joined from its slices."""
    parts: dict[int, list[str]] = {}
    for number, text in zip(table["model_id"].to_pylist(), table["model_info"].to_pylist()):
        parts.setdefault(number // _SLICES, []).append(text)
    return ["".join(part) for _, part in sorted(parts.items())]


def keras_schema(label_type: pa.DataType) -> pa.Schema:
    """Return the schema of a model table. Args: label_type: type of the column `label_value`."""
    return pa.schema([*MODEL_SCHEMA, ("label_value", label_type)])
