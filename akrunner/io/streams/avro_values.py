"""Avro values of messages, whose schemas are in a registry, to columns and back, many at once.

::

    0, 4 bytes of the schema's id, the record's bytes          a message's value

    messages of one id  ->  one block of an Avro file          fastavro reads it without a call of Python for each
                            record, guard, record, guard ...   a guard that is not where it must be: a value is cut or too long
"""

from __future__ import annotations

import importlib
import io
import itertools
import operator
import os
import struct
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from akrunner.errors import AkrunnerError, SinkError, SourceError, WriteError
from akrunner.io import formats
from akrunner.io.casts import asked
from akrunner.io.formats.avro import bare, columns_of, library, record_of, records_of
from akrunner.io.streams.base import Address
from akrunner.io.streams.registry import Registered, Registry
from akrunner.io.streams.values import NotTheirs, Where, first_odd
from akrunner.wire.near import nearest

_HEAD = struct.Struct(">bI")
_GUARD_BYTES = 16
_LATEST, _NEW = "latest", "new"
#: seconds after which a registry is asked again for a schema that it said it does not have: a server of it that follows another one
#: learns of a new schema a moment later
_AGAIN_SECONDS = 0.5
#: seconds for which it is believed then
_BELIEVED_SECONDS = 10.0
#: how many schemas it is asked for in one go, so that few of them share the pause before it is asked again
_AT_ONCE = 100


class _Odd(Exception):
    """Values cannot be read. The text says why."""


# -- reading


class AvroColumns:
    """Makes columns of Avro values.

    Args:
        address: the topic's URL: `schema=` is the version by which values are read, the newest unless given.
    Attributes:
        schema: the columns of that version.
    Raises:
        SourceError: the registry does not answer, has no such schema, or no columns can hold its records.
    """

    def __init__(self, address: Address) -> None:
        library("source")
        self._address = address
        self._registry = Registry(address)
        version = address.url.options.get("schema", _LATEST)
        if version != _LATEST and not version.isdecimal():
            raise address.wrong(f"schema={version}: give a version's number, or {_LATEST}")
        found = self._registry.version(version)
        if found is None:
            raise address.wrong(
                f"the registry has no schema {'' if version == _LATEST else f'{version} '}of {self._registry.subject!r}; is it the "
                "right name (subject=)?"
            )
        self._reader = found
        columns = columns_of(found.told, found.called, None)
        # a message without a value is a row of nulls
        self.schema = pa.schema([pa.field(field.name, field.type) for field in columns])
        self._schemas = _Schemas(self._registry, self._reader, self.schema)

    def begin(self) -> None:
        """Begin with new values. Until then the registry's word that it lacks an id stays: who looks for the bad ones of some values
        reads them several times."""
        self._schemas.forget()

    def columns(self, schema: pa.Schema, values: Sequence[bytes | None], where: Where | None) -> pa.RecordBatch:
        """Return one row for each value.

        Args:
            schema: the columns to return, in the type to return; others are ignored.
            values: the values; None is a row of nulls.
            where: says where a value is, by its number; None: nobody asks which one cannot be read, which takes long to find.
        Raises:
            Away: the registry does not answer.
            NotTheirs: the registry refuses the schema of a value; or `schema` is of no such columns. It does not say where the value
                is, but has its number.
            SourceError: a value is no record of a registered schema, or does not fit the schema; the error says where it is.
        """
        lacking = next((name for name in schema.names if name not in self.schema.names), None)
        if lacking is not None:
            wrong = self._address.wrong(
                f"{self._reader.called} has no column {lacking!r}, which input_schema= names"
                f"{nearest(lacking, self.schema.names)}"
            )
            raise NotTheirs(str(wrong))
        begin = _HEAD.size
        heads = pa.array([None if one is None else one[:begin] for one in values], pa.binary()).dictionary_encode()
        numbers = heads.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        firsts = {one.as_py(): int(np.argmax(numbers == at)) for at, one in enumerate(heads.dictionary)}
        self._schemas.learn({number: row for head, row in firsts.items() if (number := _id_of(head)) is not None})
        parts, rows = [], []
        for number in np.unique(numbers):
            here = np.flatnonzero(numbers == number)
            rows.append(here)
            if number < 0:
                parts.append(pa.nulls(len(here), pa.struct(list(self.schema))))
                continue
            decoder = self._decoder(heads.dictionary[int(number)].as_py(), where(int(here[0])) if where is not None else "")
            bodies = [one[begin:] for one in map(values.__getitem__, here.tolist()) if one is not None]
            parts.append(self._read(decoder, bodies, here, where))
        every = pa.concat_arrays(parts) if parts else pa.array([], pa.struct(list(self.schema)))
        if len(parts) > 1:
            every = every.take(np.argsort(np.concatenate(rows), kind="stable"))
        found = dict(zip(self.schema.names, every.flatten()))
        return pa.RecordBatch.from_arrays([self._asked(found[field.name], field, where) for field in schema], schema=schema)

    def _decoder(self, head: bytes, where: str) -> _Decoder:
        """Return what reads the values that begin so."""
        number = _id_of(head)
        if number is None:
            raise SourceError(
                f"source: {where} is no Avro value of a schema registry, which begins with 0 and the schema's id: take value=json or "
                "value=raw"
            )
        found = self._schemas.decoder(number)
        if isinstance(found, str):
            raise SourceError(f"source: {where} cannot be read as Avro: {found}")
        return found

    def _read(self, decoder: _Decoder, bodies: list[bytes], rows: Any, where: Where | None) -> pa.StructArray:
        try:
            return decoder.read(bodies)
        except _Odd as e:
            if where is None:
                raise SourceError(f"source: {e}") from None
            row, why = first_odd(len(bodies), lambda begin, end: decoder.read(bodies[begin:end]), _Odd)
            raise SourceError(
                f"source: {where(int(rows[row]))} cannot be read as Avro of schema {decoder.number}: {why}"
            ) from None

    def _asked(self, column: pa.Array, field: pa.Field, where: Where | None) -> pa.Array:
        try:
            return asked(column, field, 0)
        except SourceError:
            if where is None:
                raise
            row, why = first_odd(len(column), lambda begin, end: asked(column[begin:end], field, 0), SourceError)
            raise SourceError(f"source: {where(row)}: {str(why).partition(f'column {field.name!r}: ')[2]}") from None


def _id_of(head: bytes) -> int | None:
    """Return the id of a schema in the first bytes of a value; None if there is none."""
    if len(head) < _HEAD.size or head[0] != 0:
        return None
    number: int = _HEAD.unpack(head)[1]
    return number


class _Schemas:
    """The schemas that values were written by, each of which the registry is asked for once.

    Args:
        registry: the registry.
        reader: the schema that the values are read by.
        columns: the columns of that schema.
    """

    def __init__(self, registry: Registry, reader: Registered, columns: pa.Schema) -> None:
        self._registry = registry
        self._reader = reader
        self._columns = columns
        #: id -> what reads its records, or why nothing does
        self._decoders: dict[int, _Decoder | str] = {}
        #: ids that the registry does not have -> when it has said so for the second time
        self._lacking: dict[int, float] = {}

    def learn(self, rows: Mapping[int, int]) -> None:
        """Ask the registry for schemas, up to those among which it lacks one.

        Args:
            rows: the ids of the schemas -> the number of the first value of each, for errors.
        Raises:
            Away: the registry does not answer.
            NotTheirs: it refuses a schema.
        """
        new = [number for number in rows if number not in self._decoders and number not in self._lacking]
        for begin in range(0, len(new), _AT_ONCE):
            lacking = [number for number in new[begin : begin + _AT_ONCE] if not self._ask(number, rows[number])]
            if lacking:
                time.sleep(_AGAIN_SECONDS)
                lacking = [number for number in lacking if not self._ask(number, rows[number])]
                self._lacking |= dict.fromkeys(lacking, time.monotonic())
            if lacking:
                return

    def decoder(self, number: int) -> _Decoder | str:
        """Return what reads the records of a schema, or why nothing does. `learn` was called for it, and for those before it."""
        return self._registry.lacks(number) if number in self._lacking else self._decoders[number]

    def forget(self) -> None:
        """Forget what the registry lacked a while ago: somebody may have registered it since."""
        until = time.monotonic() - _BELIEVED_SECONDS
        self._lacking = {number: said for number, said in self._lacking.items() if said > until}

    def _ask(self, number: int, row: int) -> bool:
        """Ask the registry for a schema. Returns: whether it has it. Raises: as `learn`."""
        try:
            writer = self._registry.by_number(number)
        except AkrunnerError as e:
            raise NotTheirs(str(e).removeprefix("source: "), row) from None
        if writer is None:
            return False
        try:
            self._decoders[number] = _Decoder(writer, self._reader, self._columns)
        except (AkrunnerError, _Odd) as e:
            self._decoders[number] = str(e).removeprefix("source: ")
        return True


class _Decoder:
    """Reads the records of one schema by another one, the reader's.

    Args:
        writer: the schema that the records were written by.
        reader: the schema that the columns are of.
        columns: those columns.
    Raises:
        _Odd: a value would be read as another one than was written.
    """

    def __init__(self, writer: Registered, reader: Registered, columns: pa.Schema) -> None:
        self.number = writer.number
        self._fastavro = importlib.import_module("fastavro")
        if writer.number != reader.number:
            _check_units(columns_of(writer.told, writer.called, None), reader, columns)
            _check_defaults(writer.told, reader)
        self._kind = pa.struct([("value", pa.struct(list(columns))), ("guard", pa.binary(_GUARD_BYTES))])
        self._sync = os.urandom(_GUARD_BYTES)
        try:
            self._reader = self._fastavro.parse_schema(_guarded(bare(reader.told)))
            head = io.BytesIO()
            self._fastavro.writer(head, _guarded(bare(writer.told)), [], codec="null", sync_marker=self._sync)
        except Exception as e:
            raise _Odd(f"{writer.called} is no schema of Avro ({e})") from None
        self._head = head.getvalue()

    def read(self, bodies: list[bytes]) -> pa.StructArray:
        """Return the records of some values, without their heads. Raises: _Odd: one cannot be read."""
        guard = os.urandom(_GUARD_BYTES)
        data = guard.join([*bodies, b""])
        block = io.BytesIO(b"".join((self._head, _number(len(bodies)), _number(len(data)), data, self._sync)))
        try:
            records = list(self._fastavro.reader(block, self._reader))
            made = pa.array(records, self._kind)
        except Exception as e:
            # fastavro has no error of its own for bytes that are no record
            raise _Odd(f"{type(e).__name__}: {e}" if str(e) else type(e).__name__) from None
        value, guards = made.flatten()
        if len(made) != len(bodies) or not pc.all(pc.equal(guards, pa.scalar(guard, guards.type)), min_count=0).as_py():
            raise _Odd("its bytes are more or fewer than those of one record")
        return value


def _guarded(told: Any) -> Any:
    """Return the schema of a record with a guard behind it."""
    guard = {"type": "fixed", "name": "akrunner_guard_", "size": _GUARD_BYTES}
    fields = [{"name": "value", "type": told}, {"name": "guard", "type": guard}]
    return {"type": "record", "name": "akrunner_guarded_", "fields": fields}


def _check_defaults(written: Any, reader: Registered) -> None:
    """Check that defaults that are taken are what fastavro gives: for bytes it gives JSON's text. Raises: _Odd."""
    there = {field["name"] for field in written["fields"]}
    for field in reader.told["fields"]:
        default = field.get("default")
        if (
            there.isdisjoint(_names(field))
            and isinstance(default, str)
            and not default.isascii()
            and "bytes" in str(field["type"])
        ):
            raise _Odd(
                f"it has no column {field['name']!r}, whose default in {reader.called} is bytes that are not read: take value=raw"
            )


def _names(field: Any) -> list[str]:
    return [field["name"], *field.get("aliases", [])]


def _check_units(written: pa.Schema, reader: Registered, columns: pa.Schema) -> None:
    """Check that times and decimals mean the same in both schemas, as Avro would take the number alone over. Raises: _Odd."""
    others = {field["name"]: _names(field) for field in reader.told["fields"]}
    for field in columns:
        name = next((one for one in others[field.name] if one in written.names), None)
        if name is not None and not _same_units(written.field(name).type, field.type):
            raise _Odd(
                f"its column {name!r} is {written.field(name).type}, and {field.type} in {reader.called}, by which it is read: Avro "
                "does not convert them"
            )


def _same_units(one: pa.DataType, other: pa.DataType) -> bool:
    if pa.types.is_struct(one) and pa.types.is_struct(other):
        both = {field.name for field in one} & {field.name for field in other}
        return all(_same_units(one.field(name).type, other.field(name).type) for name in both)
    for nested in (pa.types.is_list, pa.types.is_map):
        if nested(one) and nested(other):
            return _same_units(one.field(one.num_fields - 1).type, other.field(other.num_fields - 1).type)
    exact = (pa.types.is_temporal, pa.types.is_decimal)
    return one == other or not any(is_one(kind) for is_one in exact for kind in (one, other))


def _number(value: int) -> bytes:
    """Return a number of 0 or more as Avro writes a long."""
    value <<= 1
    octets = bytearray()
    while value > 0x7F:
        octets.append(value & 0x7F | 0x80)
        value >>= 7
    octets.append(value)
    return bytes(octets)


# -- writing


def check_avro(address: Address, schema: pa.Schema) -> None:
    """Check that rows can become Avro values by the registry's schema, and register nothing.

    Raises:
        SinkError: they cannot, or the registry does not answer.
    """
    formats.named("avro").check(schema)
    registry = Registry(address)
    if _by_version(address) is None:
        registry.check(record_of(schema))
    else:
        _fitting(address, registry, schema)


def _by_version(address: Address) -> str | None:
    """Return the version by which rows are written; None: by a schema of their own, which is registered."""
    version = address.url.options.get("schema", _NEW)
    if version not in (_NEW, _LATEST) and not version.isdecimal():
        raise address.wrong(f"schema={version}: give a version's number, {_LATEST}, or {_NEW}")
    return None if version == _NEW else version


def _fitting(address: Address, registry: Registry, schema: pa.Schema) -> tuple[Registered, pa.Schema]:
    """Return the registered schema by which rows are written, and its columns that the rows have. Raises: SinkError: they do not fit."""
    version = _by_version(address) or _LATEST
    found = registry.version(version)
    if found is None:
        raise address.wrong(
            f"the registry has no schema {version} of {registry.subject!r}; schema={_NEW} registers the rows' own"
        )
    try:
        columns = columns_of(found.told, found.called, None)
    except SourceError as e:
        raise address.wrong(str(e).removeprefix("source: ")) from None
    lost = next((name for name in schema.names if name not in columns.names), None)
    if lost is not None:
        raise address.wrong(f"{found.called} has no column {lost!r}, which would be lost{nearest(lost, columns.names)}")
    told = {field["name"]: field for field in found.told["fields"]}
    lacking = next((name for name in columns.names if name not in schema.names and "default" not in told[name]), None)
    if lacking is not None:
        raise address.wrong(f"{found.called} has a column {lacking!r} without a default, and the rows have no such column")
    for field in schema:
        try:
            pa.array([], field.type).cast(columns.field(field.name).type)
        except pa.ArrowException:
            kind = columns.field(field.name).type
            raise address.wrong(f"column {field.name!r} is {field.type}, and {kind} in {found.called}: CAST it") from None
    return found, pa.schema([columns.field(name) for name in schema.names])


class AvroValues:
    """Makes an Avro value of each row.

    Args:
        address: the topic's URL: `schema=` is the version that rows are written by; unless given, the rows' own schema is
            registered.
        schema: the schema of the rows.
    Raises:
        SinkError: Avro cannot hold such rows, the registry does not take their schema, or they do not fit its schema.
    """

    def __init__(self, address: Address, schema: pa.Schema) -> None:
        formats.named("avro").check(schema)
        fastavro = library("output", SinkError)
        registry = Registry(address)
        if _by_version(address) is None:
            self._columns = schema
            registered = registry.register(record_of(schema))
        else:
            registered, self._columns = _fitting(address, registry, schema)
        self._head = _HEAD.pack(0, registered.number)
        self._schema = fastavro.parse_schema(registered.told)
        self._write = fastavro.schemaless_writer
        self._name, self._called = address.name, registered.called

    def of(self, batch: pa.RecordBatch) -> list[bytes]:
        """Return the value of each row.

        Raises:
            WriteError: a row does not fit the registered schema.
        """
        try:
            columns = [asked(column, field, 0) for column, field in zip(batch.columns, self._columns)]
            return self._made(pa.RecordBatch.from_arrays(columns, schema=self._columns))
        except Exception as e:
            # fastavro has no error of its own for a value that does not fit
            why = str(e).removeprefix("input_schema: ")
            raise WriteError(f"output: {self._name}: a row does not fit {self._called}: {why}") from None

    def _made(self, batch: pa.RecordBatch) -> list[bytes]:
        stream, count = io.BytesIO(), batch.num_rows
        # for each row, in loops of C: the head, the record, and where it ends
        heads = map(stream.write, itertools.repeat(self._head, count))
        rows = map(self._write, itertools.repeat(stream), itertools.repeat(self._schema), records_of(batch))
        ends = itertools.starmap(stream.tell, itertools.repeat((), count))
        cuts = list(map(operator.itemgetter(2), zip(heads, rows, ends)))
        data = stream.getvalue()
        return [data[begin:end] for begin, end in zip([0, *cuts], cuts)]

    def close(self) -> None:
        """Make no more."""
