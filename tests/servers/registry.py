"""A schema registry in this process: what Confluent's does for Avro, by its REST protocol, which its own client speaks, too."""

from __future__ import annotations

import base64
import http.server
import json
import threading
import urllib.parse
from collections.abc import Iterator
from typing import Any

import pytest

_WIDER = {"int": {"long", "float", "double"}, "long": {"float", "double"}, "float": {"double"}}


class Refusal(Exception):
    def __init__(self, status: int, code: int, message: str) -> None:
        super().__init__(message)
        self.status, self.code = status, code


class Registry:
    """Attributes: url; asked: (method, path) of each request; login: "user:password" that it wants, "" for none; fails: whether it
    answers every request with 500; hidden: whether a proxy before it answers every request with a page of its own, and 404."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []
        self.login = ""
        self.fails = self.hidden = False
        #: schemas by their id, from 1 on; subject -> ids of its versions, from 1 on
        self._schemas: list[dict[str, Any]] = []
        self._subjects: dict[str, list[int]] = {}
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"registry": self}))
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)

    def add(self, subject: str, schema: Any, **more: Any) -> int:
        """Register a schema, whether it fits the versions before or not. Args: more: schemaType, references. Returns: its id."""
        entry = {"schema": json.dumps(schema), **more}
        if entry not in self._schemas:
            self._schemas.append(entry)
        number = self._schemas.index(entry) + 1
        versions = self._subjects.setdefault(subject, [])
        if number not in versions:
            versions.append(number)
        return number

    def schema(self, subject: str) -> Any:
        """Return the newest schema of a subject."""
        return json.loads(self._schemas[self._subjects[subject][-1] - 1]["schema"])

    def answer(self, method: str, path: str, body: Any) -> Any:
        """Return the answer to a request. Raises: Refusal."""
        match [method, *(urllib.parse.unquote(part) for part in path.strip("/").split("/"))]:
            case ["GET", "schemas", "ids", number]:
                if not 0 < int(number) <= len(self._schemas):
                    raise Refusal(404, 40403, f"Schema {number} not found")
                return self._schemas[int(number) - 1]
            case ["GET", "subjects"]:
                return list(self._subjects)
            case ["GET", "subjects", subject, "versions"]:
                return list(range(1, len(self._versions(subject)) + 1))
            case ["GET", "subjects", subject, "versions", version]:
                return self._version(subject, version)
            case ["POST", "subjects", subject, "versions"]:
                same = {"schema": json.dumps(json.loads(body["schema"]))}
                known = [number for number in self._subjects.get(subject, []) if self._schemas[number - 1] == same]
                why = [] if known or subject not in self._subjects else self._odd(subject, "latest", body)
                if why:
                    raise Refusal(409, 409, f"Schema being registered is incompatible with an earlier schema: {why}")
                return {"id": known[0] if known else self.add(subject, json.loads(body["schema"]))}
            case ["POST", "subjects", subject]:
                for version, number in enumerate(self._versions(subject), 1):
                    if json.loads(self._schemas[number - 1]["schema"]) == json.loads(body["schema"]):
                        return {"subject": subject, "version": version, "id": number, **self._schemas[number - 1]}
                raise Refusal(404, 40403, "Schema not found")
            case ["POST", "compatibility", "subjects", subject, "versions", version]:
                why = self._odd(subject, version, body)
                return {"is_compatible": not why, "messages": why}
        raise Refusal(404, 404, "HTTP 404 Not Found")

    def _versions(self, subject: str) -> list[int]:
        if subject not in self._subjects:
            raise Refusal(404, 40401, f"Subject '{subject}' not found.")
        return self._subjects[subject]

    def _version(self, subject: str, version: str) -> dict[str, Any]:
        versions = self._versions(subject)
        at = len(versions) if version == "latest" else int(version)
        if not 0 < at <= len(versions):
            raise Refusal(404, 40402, f"Version {version} not found.")
        return {"subject": subject, "version": at, "id": versions[at - 1], **self._schemas[versions[at - 1] - 1]}

    def _odd(self, subject: str, version: str, body: Any) -> list[str]:
        """Return why the records of a version cannot be read by a new schema (BACKWARD, what a registry checks unless it is told
        otherwise); of schemas of plain fields."""
        old = {one["name"]: one for one in json.loads(self._version(subject, version)["schema"])["fields"]}
        why = []
        for field in json.loads(body["schema"])["fields"]:
            if field["name"] not in old:
                why += [] if "default" in field else [f"READER_FIELD_MISSING_DEFAULT_VALUE {field['name']}"]
                continue
            before, now = (
                set(map(str, one if isinstance(one, list) else [one])) for one in (old[field["name"]]["type"], field["type"])
            )
            if not all(one in now or _WIDER.get(one, set()) & now for one in before):
                why.append(f"TYPE_MISMATCH {field['name']}")
        return why


class _Handler(http.server.BaseHTTPRequestHandler):
    registry: Registry
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._answer(None)

    def do_POST(self) -> None:
        self._answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

    def _answer(self, body: Any) -> None:
        path = self.path.partition("?")[0]
        self.registry.asked.append((self.command, path))
        wanted = "Basic " + base64.b64encode(self.registry.login.encode()).decode()
        try:
            if self.registry.fails:
                raise Refusal(500, 50001, "Error in the backend data store")
            if self.registry.login and self.headers.get("Authorization") != wanted:
                raise Refusal(401, 401, "Unauthorized")
            status, answer = 200, self.registry.answer(self.command, path, body)
        except Refusal as e:
            status, answer = e.status, {"error_code": e.code, "message": str(e)}
        data = json.dumps(answer).encode()
        if self.registry.hidden:
            status, data = 404, b"<html>no such page</html>"
        self.send_response(status)
        self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *words: Any) -> None:
        """Print nothing."""


@pytest.fixture
def registry() -> Iterator[Registry]:
    one = Registry()
    yield one
    one.close()
