"""A MaxCompute for PyODPS: REST service, SQL and tunnel on one port, over tables in memory.

::

    PyODPS -> /projects/P/tables, .../instances      describe, list, SQL (DuckDB runs its SELECT)
           -> /projects/P/tables/T?downloads ...     tunnel: sessions, ranges of rows as Arrow with checksums, blocks, one commit

Signatures are checked. `faults` are switches: of the next requests, or of every n-th.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import io
import json
import re
import struct
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, parse_qsl, unquote, urlsplit
from xml.sax.saxutils import escape

import duckdb
import google_crc32c
import pyarrow as pa
import pytest

from akrunner.tables import ddl, types

ACCESS_ID, ACCESS_KEY = "LTAItestkey", "test-Secret-of-maxcompute"
_CHUNK = 65536
_SPECS = re.compile(r"""(\w+)\s*=\s*['"]?([^'",/]*)['"]?""")
#: between the partitions of one ALTER TABLE
_NEXT = re.compile(r"\)[\s,]*partition\s*\(", re.IGNORECASE)


@dataclass
class Table:
    """Attributes: columns: (name, MaxCompute's type); keys: of partitions; data: partition -> its rows."""

    columns: list[tuple[str, str]]
    keys: list[str] = field(default_factory=list)
    comment: str = ""
    lifecycle: int = -1
    data: dict[tuple[str, ...], pa.Table] = field(default_factory=dict)
    modified: int = 1

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([(name, types.parse_type(words)) for name, words in self.columns])

    def as_json(self) -> dict[str, Any]:
        return {
            "columns": [{"name": name, "type": words, "isNullable": True} for name, words in self.columns],
            "partitionKeys": [{"name": key, "type": "string"} for key in self.keys],
            "comment": self.comment,
            "lifecycle": self.lifecycle,
            "lastModifiedTime": self.modified,
        }


@dataclass
class Faults:
    """Attributes: errors: status of every n-th request of the tunnel's data, (status, n); cut: how many downloads break in the middle;
    short: how many end early as if whole; slow: seconds a download waits; expired: how many requests say that their session is over;
    rate: bytes a second of each download; late: how many commits are done and answered with a 500; refuse: uploads of blocks that are refused, all of them."""

    errors: tuple[int, int] = (0, 0)
    cut: int = 0
    short: int = 0
    slow: float = 0.0
    rate: float = 0.0
    expired: int = 0
    late: int = 0
    refuse: bool = False


class _Wrong(Exception):
    """What is answered: status, code, message."""


class MaxCompute:
    """Attributes: url; tables: project -> table -> Table; faults; requests: (method, path) of each; ranges: rows of each download;
    together: the most downloads at a time; statements: what SQL was run."""

    def __init__(self, project: str = "p") -> None:
        self.tables: dict[str, dict[str, Table]] = {project: {}}
        self.faults = Faults()
        self.requests: list[tuple[str, str]] = []
        self.ranges: list[tuple[int, int]] = []
        self.statements: list[str] = []
        self.together = self._now = 0
        self._lock = threading.RLock()
        self._count = 0
        self._downloads: dict[str, tuple[Table, pa.Table]] = {}
        self._uploads: dict[str, dict[str, Any]] = {}
        self._instances: dict[str, dict[str, Any]] = {}
        server = self

        class Handler(_Handler):
            place = server

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.host = f"127.0.0.1:{self._server.server_address[1]}"
        self.url = f"http://{self.host}/api"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()

    def __enter__(self) -> MaxCompute:
        return self

    def __exit__(self, *_: Any) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(60)

    # -- for tests

    def put(self, name: str, rows: pa.Table, keys: tuple[str, ...] = (), partition: tuple[str, ...] = ()) -> Table:
        """Make a table, or a partition of one, of the project p."""
        table = self.tables["p"].setdefault(name, Table([(f.name, types.words_of(f)) for f in rows.schema], list(keys)))
        table.data[partition] = rows.cast(table.schema)
        table.modified += 1
        return table

    def rows(self, name: str, partition: tuple[str, ...] = ()) -> pa.Table:
        return self.tables["p"][name].data[partition]

    def environment(self) -> dict[str, str]:
        return {
            "ALIBABA_CLOUD_ACCESS_KEY_ID": ACCESS_ID,
            "ALIBABA_CLOUD_ACCESS_KEY_SECRET": ACCESS_KEY,
            "ODPS_ENDPOINT": self.url,
        }

    def forget_sessions(self) -> None:
        """As after 24 hours."""
        self._downloads.clear()
        self._uploads.clear()

    def open_uploads(self) -> int:
        return sum(one["status"] == "NORMAL" for one in self._uploads.values())

    # -- REST

    def answer(self, handler: _Handler, method: str, path: str, query: dict[str, str], body: bytes) -> None:
        with self._lock:
            self.requests.append((method, handler.path))
        parts = [unquote(part) for part in path.strip("/").split("/")]
        if parts[0] == "api":
            parts = parts[1:]
        if parts[:1] == ["tenants"]:
            return handler.json({"Tenant": {"Name": "t", "TenantId": "1", "Parameters": {}}})
        if parts[:1] == ["logview"]:
            return handler.text("http://logview.invalid")
        if parts[:1] != ["projects"]:
            raise _Wrong(404, "NoSuchObject", "no such thing")
        if len(parts) == 1:
            names = "".join(f"<Project><Name>{name}</Name></Project>" for name in self.tables)
            return handler.xml(f"<Projects><Marker/><MaxItems>1000</MaxItems>{names}</Projects>")
        if parts[1] not in self.tables:
            raise _Wrong(404, "ODPS-0420111", f"Project not found - '{parts[1]}'")
        project = self.tables[parts[1]]
        if parts[2:] == ["tunnel"]:
            return handler.text(self.host)
        if parts[2:3] == ["instances"]:
            return self._instance(handler, method, parts, query, body)
        if parts[2:] == ["tables"]:
            names = "".join(f"<Table><Name>{name}</Name></Table>" for name in sorted(project))
            return handler.xml(f"<Tables><Marker/><MaxItems>1000</MaxItems>{names}</Tables>")
        if len(parts) == 4 and parts[2] == "tables":
            if parts[3].lower() not in project:
                raise _Wrong(
                    404, "NoSuchObject", f"ODPS-0130131:Table not found - table {parts[1]}.{parts[3]} cannot be resolved"
                )
            return self._table(handler, method, project[parts[3].lower()], parts[3], query, body)
        return handler.xml("<Project><Name>p</Name></Project>")

    def _table(self, handler: _Handler, method: str, table: Table, name: str, query: dict[str, str], body: bytes) -> None:
        if {"downloads", "downloadid", "uploads", "uploadid"} & set(query):
            return self._tunnel(handler, method, table, query, body)
        if "partitions" in query:
            found = ""
            for partition in sorted(table.data):
                values = zip(table.keys, partition)
                found += (
                    "<Partition>" + "".join(f'<Column Name="{k}" Value="{escape(v)}"/>' for k, v in values) + "</Partition>"
                )
            return handler.xml(f"<Partitions><Marker/><MaxItems>1000</MaxItems>{found}</Partitions>")
        if "partition" in query:
            if _spec(table, query["partition"]) not in table.data:
                raise _Wrong(404, "NoSuchPartition", "the specified partition does not exist")
            meta = json.dumps({"createTime": 1, "lastModifiedTime": table.modified})
            return handler.xml(f"<Partition><Schema><![CDATA[{meta}]]></Schema></Partition>")
        schema = json.dumps(table.as_json())
        return handler.xml(
            f'<Table format="Json"><Name>{name}</Name><TableId/><Schema format="Json"><![CDATA[{schema}]]></Schema>'
            f"<Comment>{escape(table.comment)}</Comment></Table>"
        )

    # -- tunnel

    def _tunnel(self, handler: _Handler, method: str, table: Table, query: dict[str, str], body: bytes) -> None:
        self._fail(query)
        if "downloads" in query:
            session = uuid.uuid4().hex
            partition = _spec(table, query.get("partition", ""))
            if partition not in table.data and (table.keys or table.data):
                raise _Wrong(400, "NoSuchPartition", "The specified partition does not exist.")
            rows = table.data.get(partition, table.schema.empty_table())
            self._downloads[session] = (table, rows)
            return handler.json(self._download(session, table, rows))
        if "downloadid" in query:
            if query["downloadid"] not in self._downloads:
                raise _Wrong(404, "NoSuchDownload", "The specified download id does not exist.")
            table, rows = self._downloads[query["downloadid"]]
            if "data" in query:
                return self._send(handler, rows, query)
            return handler.json(self._download(query["downloadid"], table, rows))
        if "uploads" in query:
            session = uuid.uuid4().hex
            partition = _spec(table, query.get("partition", ""))
            if table.keys and partition not in table.data:
                raise _Wrong(404, "NoSuchPartition", "The specified partition does not exist.")
            over = query.get("overwrite") == "true"
            self._uploads[session] = {"table": table, "to": partition, "over": over, "blocks": {}, "status": "NORMAL"}
            return handler.json(self._upload(session))
        if query["uploadid"] not in self._uploads:
            raise _Wrong(404, "NoSuchUpload", "The specified upload id does not exist.")
        if method == "PUT":
            self._uploads[query["uploadid"]]["blocks"][int(query["blockid"])] = _decoded(body, table.schema)
            return handler.json({})
        if method == "POST":
            self._commit(query["uploadid"])
            if self.faults.late:
                self.faults.late -= 1
                raise _Wrong(500, "InternalServerError", "the answer is lost")
        return handler.json(self._upload(query["uploadid"]))

    def _fail(self, query: dict[str, str]) -> None:
        """Whatever is switched on."""
        faults = self.faults
        with self._lock:
            if faults.expired and ("data" in query or "blockid" in query):
                faults.expired -= 1
                self.forget_sessions()
            if faults.refuse and "blockid" in query:
                raise _Wrong(403, "NoPermission", "You have NO privilege 'odps:Update' on {acs:odps:*:projects/p/tables/t}.")
            status, nth = faults.errors
            self._count += 1
            if nth and self._count % nth == 0:
                raise _Wrong(status, "InternalServerError" if status == 500 else "ServiceUnavailable", "Service internal error")

    def _download(self, session: str, table: Table, rows: pa.Table) -> dict[str, Any]:
        return {"DownloadID": session, "Status": "normal", "RecordCount": rows.num_rows, "Schema": table.as_json()}

    def _upload(self, session: str) -> dict[str, Any]:
        upload = self._uploads[session]
        blocks = [{"BlockID": number} for number in upload["blocks"]]
        schema = upload["table"].as_json()
        return {"UploadID": session, "Status": upload["status"].lower(), "UploadedBlockList": blocks, "Schema": schema}

    def _commit(self, session: str) -> None:
        upload = self._uploads[session]
        if upload["status"] != "NORMAL":
            raise _Wrong(409, "StatusConflict", "You cannot complete the specified operation under the current upload status.")
        table: Table = upload["table"]
        with self._lock:
            new = [upload["blocks"][number] for number in sorted(upload["blocks"])]
            old = [] if upload["over"] else [table.data[upload["to"]]] if upload["to"] in table.data else []
            table.data[upload["to"]] = pa.concat_tables([table.schema.empty_table(), *old, *new])
            table.modified += 1
            upload["status"] = "CLOSED"

    def _send(self, handler: _Handler, rows: pa.Table, query: dict[str, str]) -> None:
        first, count = (int(number) for number in re.findall(r"\d+", query["rowrange"]))
        wanted = query["columns"].split(",") if query.get("columns") else rows.column_names
        rows = rows.select([name for name in rows.column_names if name in wanted]).slice(first, count)
        if self.faults.short and rows.num_rows:
            self.faults.short -= 1
            rows = rows.slice(0, rows.num_rows // 2)
        with self._lock:
            self._now += 1
            self.together = max(self.together, self._now)
            self.ranges.append((first, count))
        try:
            time.sleep(self.faults.slow)
            whole = not self.faults.cut
            self.faults.cut -= not whole
            handler.chunks(self._slowly(_encoded(rows)), whole)
        finally:
            with self._lock:
                self._now -= 1

    def _slowly(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        for piece in pieces:
            if self.faults.rate:
                time.sleep(len(piece) / self.faults.rate)
            yield piece

    # -- SQL

    def _instance(self, handler: _Handler, method: str, parts: list[str], query: dict[str, str], body: bytes) -> None:
        if method == "POST" and len(parts) == 3:
            found = re.search(r"<Query>(?:<!\[CDATA\[)?(.*?)(?:\]\]>)?</Query>", body.decode(), re.DOTALL)
            assert found
            session = uuid.uuid4().hex
            self._instances[session] = self._run(parts[1], found[1].strip().rstrip(";").strip())
            return handler.xml("", 201, {"Location": f"{self.url}/projects/{parts[1]}/instances/{session}"})
        instance = self._instances[parts[3]]
        if "downloads" in query or "downloadid" in query:
            rows: pa.Table = instance["rows"]
            if "instance_tunnel_limit_enabled" in query:
                instance["rows"] = rows = rows.slice(0, 10_000)
            if "data" in query:
                return self._send(handler, rows, query)
            columns = [{"name": f.name, "type": types.words_of(f), "isNullable": True} for f in rows.schema]
            schema = {"columns": columns, "partitionKeys": []}
            return handler.json({"DownloadID": "i", "Status": "normal", "RecordCount": rows.num_rows, "Schema": schema})
        task = f'<Task Type="SQL"><Name>AnonymousSQLTask</Name><Status>{instance["status"]}</Status>'
        if "result" in query:
            result = f'<Result Format="text"><![CDATA[{instance["text"]}]]></Result>'
            return handler.xml(f"<Instance><Tasks>{task}{result}</Task></Tasks></Instance>")
        return handler.xml(f"<Instance><Status>Terminated</Status><Tasks>{task}</Task></Tasks></Instance>")

    def _run(self, project: str, sql: str) -> dict[str, Any]:
        self.statements.append(sql)
        try:
            rows = _Sql(self.tables, project).run(sql)
        except _Failed as e:
            return {"status": "Failed", "text": f"ODPS-0130131:[1,1] {e}", "rows": None}
        return {"status": "Success", "text": "" if rows is None else str(rows.to_pylist()), "rows": rows}


class _Failed(Exception):
    """A statement that cannot be done."""


class _Sql:
    """As much of MaxCompute's SQL as tests use."""

    def __init__(self, tables: dict[str, dict[str, Table]], project: str) -> None:
        self._tables, self._project = tables, project

    def run(self, sql: str) -> pa.Table | None:
        """Returns: rows of a SELECT."""
        self._sql, sql = sql, sql.replace("`", "")
        for pattern, does in (
            (r"create table .*\(", self._create),
            (r"drop table (if exists )?([\w.]+)$", self._drop),
            (r"alter table ([\w.]+) add (if not exists )?partition \((.*)\)$", self._add),
            (r"alter table ([\w.]+) drop (if exists )?partition \((.*)\)$", self._drop_partition),
            (r"alter table ([\w.]+) rename to (\w+)$", self._rename),
            (r"insert (into|overwrite) table ([\w.]+)(?: partition \((.*?)\))?\s+(select.*)$", self._insert),
        ):  # fmt: skip
            found = re.match(pattern, sql, re.IGNORECASE | re.DOTALL)
            if found:
                does(*found.groups())
                return None
        return self._select(sql)

    def _at(self, name: str) -> tuple[dict[str, Table], str]:
        owner, _, table = name.lower().rpartition(".")
        return self._tables[owner or self._project], table

    def _there(self, name: str) -> Table:
        project, table = self._at(name)
        if table not in project:
            raise _Failed(f"Table not found - table {name} cannot be resolved")
        return project[table]

    def _create(self) -> None:
        made = ddl.parse_create(self._sql)
        project, table = self._at(made.table.replace("`", ""))
        if table in project:
            if made.if_not_exists:
                return
            raise _Failed(f"Table or view already exists - table or view {made.table} is already defined")
        assert made.info is not None
        columns = [(column.name, types.words_of(column)) for column in made.info.columns]
        project[table] = Table(columns, list(made.info.partitions), made.info.comment, made.info.lifecycle or -1)
        if not made.info.partitions:
            project[table].data[()] = project[table].schema.empty_table()

    def _drop(self, fine: str, name: str) -> None:
        project, table = self._at(name)
        if project.pop(table, None) is None and not fine:
            raise _Failed(f"Table not found - table {name} cannot be resolved")

    def _rename(self, name: str, to: str) -> None:
        project, table = self._at(name)
        self._there(name)
        project[to.lower()] = project.pop(table)

    def _add(self, name: str, fine: str, spec: str) -> None:
        table = self._there(name)
        keys = [_spec(table, one) for one in _NEXT.split(spec)]
        if set(keys) & set(table.data) and not fine:
            raise _Failed("Partition already exists - the partition is there")
        for key in keys:
            table.data.setdefault(key, table.schema.empty_table())

    def _drop_partition(self, name: str, fine: str, spec: str) -> None:
        table = self._there(name)
        keys = [_spec(table, one) for one in _NEXT.split(spec)]
        if not fine and not set(keys) <= set(table.data):
            raise _Failed("Partition not found - there is no such partition")
        for key in keys:
            table.data.pop(key, None)

    def _insert(self, how: str, name: str, spec: str, select: str) -> None:
        table = self._there(name)
        rows = self._select(select).rename_columns([column for column, _ in table.columns]).cast(table.schema)
        key = _spec(table, spec or "")
        old = [] if how.lower() == "overwrite" else [table.data[key]] if key in table.data else []
        table.data[key] = pa.concat_tables([*old, rows])
        table.modified += 1

    def _select(self, sql: str) -> pa.Table:
        with duckdb.connect() as connection:
            for project, tables in self._tables.items():
                connection.execute(f"create schema {project}")
                for name, table in tables.items():
                    parts = [self._with_keys(table, key, rows) for key, rows in table.data.items()]
                    connection.register("rows_", pa.concat_tables(parts) if parts else table.schema.empty_table())
                    connection.execute(f"create table {project}.{name} as select * from rows_")
                    connection.unregister("rows_")
            connection.execute(f"use {self._project}")
            try:
                return connection.sql(sql).to_arrow_table()
            except duckdb.Error as e:
                raise _Failed(f"Semantic analysis exception - {e}") from e

    def _with_keys(self, table: Table, key: tuple[str, ...], rows: pa.Table) -> pa.Table:
        for name, value in zip(table.keys, key):
            rows = rows.append_column(name, pa.array([value] * rows.num_rows, pa.string()))
        return rows


def _spec(table: Table, text: str) -> tuple[str, ...]:
    """A partition, as `pt='a',hour='b'`, -> its values in the table's order."""
    given = {key.lower(): value for key, value in _SPECS.findall(text)}
    return tuple(given[key] for key in table.keys if key in given)


def _encoded(rows: pa.Table) -> Iterator[bytes]:
    """An Arrow stream without its schema, in chunks with checksums."""
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows, 16384)
    data = memoryview(sink.getbuffer())[rows.schema.serialize().size :]
    yield struct.pack("!I", _CHUNK)
    every = google_crc32c.Checksum()
    for at in range(0, len(data) + 1, _CHUNK):
        chunk = bytes(data[at : at + _CHUNK])
        every.update(chunk)
        if len(chunk) == _CHUNK:
            yield chunk + struct.pack("!I", google_crc32c.value(chunk))
        else:
            yield chunk + every.digest()


def _decoded(body: bytes, schema: pa.Schema) -> pa.Table:
    """What a client sent as a block. Raises: _Wrong: a checksum is not right."""
    size = struct.unpack("!I", body[:4])[0]
    data, every = [], google_crc32c.Checksum()
    for at in range(4, len(body), size + 4):
        piece = body[at : at + size + 4]
        chunk, sum_ = piece[:-4], piece[-4:]
        every.update(chunk)
        wanted = every.digest() if len(piece) < size + 4 else struct.pack("!I", google_crc32c.value(chunk))
        if sum_ != wanted:
            raise _Wrong(400, "ChecksumError", "the checksum is not right")
        data.append(chunk)
    stream = b"".join([schema.serialize().to_pybytes(), *data])
    return pa.ipc.open_stream(io.BytesIO(stream)).read_all()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    place: MaxCompute

    def log_message(self, *_: Any) -> None:
        pass

    def _serve(self) -> None:
        body = self._body()
        url = urlsplit(self.path)
        try:
            self._check_signature(url)
            query = {key: values[0] for key, values in parse_qs(url.query, keep_blank_values=True).items()}
            self.place.answer(self, self.command, url.path, query, body)
        except _Wrong as e:
            status, code, message = e.args
            words = f"<Code>{code}</Code><Message><![CDATA[{message}]]></Message><RequestId>r1</RequestId><HostId>h</HostId>"
            self.xml(f'<?xml version="1.0"?><Error>{words}</Error>', status)
        except ConnectionError:
            self.close_connection = True

    do_GET = do_POST = do_PUT = do_HEAD = do_DELETE = _serve

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        found = []
        while size := int(self.rfile.readline().strip() or b"0", 16):
            found.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(found)

    def _check_signature(self, url: Any) -> None:
        """Raises: _Wrong."""
        name, _, signature = (self.headers.get("Authorization") or "").removeprefix("ODPS ").rpartition(":")
        access_id, *scope = name.split("/")
        if access_id != ACCESS_ID:
            raise _Wrong(401, "ODPS-0410051", "Invalid credentials - accessId not found")
        path = unquote(url.path).removeprefix("/api")
        query = sorted(dict(parse_qsl(unquote(url.query), keep_blank_values=True)).items())
        signed = {k.lower(): v for k, v in self.headers.items() if k.lower().startswith("x-odps-") or k.lower() in ("content-type", "content-md5", "date")}  # fmt: skip
        signed = {"content-type": "", "content-md5": "", **signed, **{k: v for k, v in query if k.startswith("x-odps-")}}
        lines = [f"{k}:{v}" if k.startswith("x-odps-") else v for k, v in sorted(signed.items())]
        resource = path + ("?" + "&".join(f"{k}={v}" if v else k for k, v in query) if query else "")
        text = "\n".join([self.command, *lines, resource]).encode()
        key = ACCESS_KEY.encode()
        if scope:
            key = b"aliyun_v4" + key
            for part in (scope[0], scope[1], "odps", "aliyun_v4_request"):
                key = hmac.new(key, part.encode(), hashlib.sha256).digest()
        if base64.b64encode(hmac.new(key, text, hashlib.sha1).digest()).decode() != signature:
            raise _Wrong(401, "ODPS-0410042", "Invalid signature value - User signature dose not match")

    def xml(self, text: str, status: int = 200, headers: dict[str, str] | None = None) -> None:
        self._reply(text.encode(), "application/xml", status, headers)

    def json(self, found: Any) -> None:
        self._reply(json.dumps(found).encode(), "application/json")

    def text(self, text: str) -> None:
        self._reply(text.encode(), "text/plain")

    def _reply(self, body: bytes, kind: str, status: int = 200, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {**(headers or {}), "Content-Type": kind, "x-odps-request-id": "r1"}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def chunks(self, pieces: Iterator[bytes], whole: bool) -> None:
        """Send pieces as they come. Args: whole: False: hang up in the middle."""
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for number, piece in enumerate(pieces):
            if number == 2 and not whole:
                self.wfile.write(b"%x\r\n" % len(piece) + piece[:100])
                self.close_connection = True
                return
            self.wfile.write(b"%x\r\n" % len(piece) + piece + b"\r\n")
        self.wfile.write(b"0\r\n\r\n")


@pytest.fixture
def maxcompute(monkeypatch: pytest.MonkeyPatch) -> Iterator[MaxCompute]:
    """A server with an empty project p, and the environment that leads to it."""
    monkeypatch.delenv("AKRUNNER_TABLES", raising=False)
    with MaxCompute() as server:
        for name, value in server.environment().items():
            monkeypatch.setenv(name, value)
        yield server


def _main() -> None:
    """Serve a table of N rows until standard input is closed, each download at so many bytes a second (0: as it can): for measurements."""
    rows, rate = int(sys.argv[1]), float(sys.argv[2])
    numbers = pa.array(range(rows), pa.int64())
    texts = pa.array([f"row {number % 1000}" for number in range(rows)])
    with MaxCompute() as server:
        server.faults.rate = rate
        server.put("t", pa.table({"id": numbers, "x": numbers.cast(pa.float64()), "s": texts}))
        server.put("out", pa.table({"id": numbers[:0], "x": numbers[:0].cast(pa.float64()), "s": texts[:0]}))
        print(server.url, flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            sys.stdin.read()


if __name__ == "__main__":
    _main()
