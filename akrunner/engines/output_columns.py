"""The columns that the rows of a job have: those of its output schema, or those of the first batch that a task wrote."""

from __future__ import annotations

import pyarrow as pa

from akrunner import codec
from akrunner.column_types import DTYPES, TIMES, family_of
from akrunner.errors import DataError, SchemaError
from akrunner.schema import Field, Schema, is_list, is_text, shortened
from akrunner.spec import JobSpec, TaskSpec
from akrunner.wire import frames
from akrunner.wire.features import BYTES, KINDS

_GIVE = "give output_schema= (--output-schema), "


class OutputColumns:
    """The columns of a job's output, which are known from the start, or from the first batch on.

    The first batch of every other task must have the same columns, of the same types: it is chance which task's batch
    comes first, and the result must not depend on chance.

    Attributes:
        schema: the columns; None if the job writes no rows, or no batch has come yet.
        inferred: whether the types come from the first batch. The user has not asked for them then, so no value may be
            changed to fit them.
    """

    def __init__(self, job: JobSpec) -> None:
        self.schema: Schema | None = job.output_schema
        self.inferred = self.schema is None and job.output_inferred
        self._given = job.schema
        self._read = {field.name: _read_as(field, job.data_format) for field in job.schema}
        self._by: TaskSpec | None = None
        self._looked_at: set[tuple[TaskSpec, int]] = set()

    def of(self, task: TaskSpec, frame: frames.Frame) -> Schema | None:
        """Return the columns of a frame that a task wrote; None if the job writes no rows.

        Raises:
            ProtocolError: the frame is not what the protocol says.
            DataError: the frame does not say what a column is, or says something else than another task's.
        """
        if self.inferred and (task, frame.kind) not in self._looked_at:
            schema = _inferred(codec.frame_types(frame, self._read))
            if self.schema is None:
                self.schema, self._by = schema, task
            else:
                self._compare(schema)
            self._looked_at.add((task, frame.kind))
        return self.schema

    def refused(self, why: str) -> str:
        """Return words for what a task did wrong when it wrote a row that does not fit.

        Args:
            why: the message of the error.
        """
        if not self.inferred:
            return f"wrote a row that output_schema= (--output-schema) refuses: {why}"
        if self.schema is None:
            return f"wrote rows, and there is no output_schema= (--output-schema): {why}"
        return (
            f"wrote a row that does not fit the first batch, which decides without output_schema=: {why}; if that is right, "
            f"{_GIVE}with types that hold all rows: the first batch says {self.schema.words!r}"
        )

    @property
    def warnings(self) -> list[str]:
        """Warnings about times of the table that were written as whole numbers: only their names say that they were times."""
        if not self.inferred or self.schema is None:
            return []
        given = {field.name: field for field in self._given if family_of(field.value_type) in TIMES}
        times: dict[str, pa.DataType] = {}
        for field in self.schema:
            was = given.get(field.name)
            if was is not None and was.is_list == field.is_list and pa.types.is_integer(field.value_type):
                times[field.name] = pa.list_(was.value_type) if was.is_list else was.type
        if not times:
            return []
        meant = Schema(tuple(Field(field.name, times.get(field.name, field.type)) for field in self.schema))
        unsaid = [name for name, data_type in times.items() if not _has_words(data_type)]
        if unsaid:
            types = ", ".join(
                f"{field.name!r}: {_in_python(field.type) if field.name in unsaid else repr(field.words)}" for field in meant
            )
            said = f"{{{types}}} (in Python: --output-schema has no words for {', '.join(map(shortened, unsaid))})"
        else:
            said = f"{meant.words!r} (--output-schema)"
        return [
            f"written as whole numbers, as times cross: {', '.join(map(shortened, times))}. To have times again, give "
            f"output_schema={said}"
        ]

    def _compare(self, found: Schema) -> None:
        assert self.schema is not None and self._by is not None
        wanted, given = _types(self.schema), _types(found)
        for name in [*wanted, *given]:
            have, want = given.get(name), wanted.get(name)
            if have != want:
                raise DataError(
                    f"column {shortened(name)} {_has(have)} here, and {_has(want)} in the first batch of {self._by.name}",
                    column=name,
                )


def _read_as(field: Field, data_format: str) -> pa.DataType:
    """Return the Arrow type in which a script gets a column of the input. A column that the script hands on has this type
    where its values leave the type open."""
    if field.kind == BYTES:
        own = pa.string() if is_text(field.value_type) else pa.binary()
    else:
        own = DTYPES[field.dtype if data_format == "columns" else KINDS[field.kind].dtype].arrow
        # no file has half-precision floats
        own = pa.float32() if pa.types.is_float16(own) else own
    return pa.list_(own) if field.is_list else own


def _has_words(data_type: pa.DataType) -> bool:
    """Whether the type is a time, or a list of times, that `Schema.words` can write."""
    own = data_type.value_type if is_list(data_type) else data_type
    return bool(pa.types.is_date32(own) or (pa.types.is_timestamp(own) and own.tz in (None, "UTC")))


def _in_python(data_type: pa.DataType) -> str:
    """Return the Python expression that makes a pyarrow type of times."""
    if is_list(data_type):
        return f"pyarrow.list_({_in_python(data_type.value_type)})"
    if pa.types.is_timestamp(data_type):
        return f"pyarrow.timestamp({data_type.unit!r}, {data_type.tz!r})"
    # date64[ms], time32[ms], time64[us], duration[us]
    name = str(data_type).partition("[")[0]
    return f"pyarrow.{name}({'' if name == 'date64' else repr(data_type.unit)})"


def _has(data_type: pa.DataType | None) -> str:
    return f"is {data_type}" if data_type is not None else "is missing"


def _types(schema: Schema) -> dict[str, pa.DataType]:
    return {field.name: field.type for field in schema}


def _inferred(types: dict[str, pa.DataType | None]) -> Schema:
    """Return the schema of columns with these types.

    Raises:
        DataError: the type of a column is not known, or cannot be a column's.
    """
    for name, data_type in types.items():
        if data_type is None:
            raise DataError(
                f"column {shortened(name)} of the first batch has no value that says its type; {_GIVE}as 'name type, ...'",
                column=name,
            )
    if not types:
        raise DataError(f"the first batch has no columns; {_GIVE}as 'name type, ...'")
    try:
        return Schema.from_arrow(pa.schema(list(types.items())))
    except SchemaError as e:
        raise DataError(str(e)) from None
