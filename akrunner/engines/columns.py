"""Which columns the rows of a job have: those of its output schema, or of the first batch that a task wrote."""

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
    """Known from the start, or from the first batch on. The first batch of every other task must have the same columns, of the same
    types: whose batch comes first is chance, and the result is to be none.

    Attributes:
        schema: the columns; None: the job writes none, or no batch has come yet; inferred: nobody has asked for their types, so that no value may
            change for them.
    """

    def __init__(self, job: JobSpec) -> None:
        self.schema: Schema | None = job.output_schema
        self.inferred = self.schema is None and job.output_inferred
        self._given = job.schema
        self._read = {field.name: _read_as(field, job.data_format) for field in job.schema}
        self._by: TaskSpec | None = None
        self._looked_at: set[tuple[TaskSpec, int]] = set()

    def of(self, task: TaskSpec, frame: frames.Frame) -> Schema | None:
        """The columns of a frame that a task wrote; None: the job writes no rows.

        Raises: ProtocolError: the frame is not what the protocol says; DataError: it does not say what a column is, or says something else
            than another task.
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
        """What a task did that wrote a row that does not fit. Args: why: of the error."""
        if not self.inferred:
            return f"wrote a row that output_schema= (--output-schema) refuses: {why}"
        if self.schema is None:
            return f"wrote rows, and there is no output_schema= (--output-schema): {why}"
        return (
            f"wrote a row that does not fit the first batch, which decides without output_schema=: {why}; if that is right, {_GIVE}"
            f"with types that hold all rows: the first batch says {self.schema.words!r}"
        )

    @property
    def warnings(self) -> list[str]:
        """Times of the table that are whole numbers in what was written: nothing but their name says that they were times."""
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
            f"written as whole numbers, as times cross: {', '.join(map(shortened, times))}. To have times again, give output_schema={said}"
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
    """The type of the input's column as a script gets it: what it hands on is of that type, where the values leave it open."""
    if field.kind == BYTES:
        own = pa.string() if is_text(field.value_type) else pa.binary()
    else:
        own = DTYPES[field.dtype if data_format == "columns" else KINDS[field.kind].dtype].arrow
        # no file has halves
        own = pa.float32() if pa.types.is_float16(own) else own
    return pa.list_(own) if field.is_list else own


def _has_words(data_type: pa.DataType) -> bool:
    """Whether it is a time, or a list of them, that `Schema.words` can say."""
    own = data_type.value_type if is_list(data_type) else data_type
    return bool(pa.types.is_date32(own) or (pa.types.is_timestamp(own) and own.tz is None))


def _in_python(data_type: pa.DataType) -> str:
    """What makes a type of times of pyarrow's."""
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
    """Raises: DataError: a column says no type, or cannot be one."""
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
