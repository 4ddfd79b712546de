"""A registry of schemas, by the REST protocol of Confluent's (Apicurio, Karapace and Redpanda speak it, too).

::

    GET  /schemas/ids/7                        the schema that a message names
    GET  /subjects/t-value/versions/latest     the newest schema of a topic
    POST /subjects/t-value/versions            a new schema; the same schema gets the number that it has

The address is `registry=`, or `schema.registry.url` in the file that `config=` names. That file also has what the registry asks
for: `schema.registry.basic.auth.user.info=USER:PASSWORD` or `schema.registry.bearer.auth.token`, and
`schema.registry.ssl.ca.location`.
"""

from __future__ import annotations

import base64
import http.client
import json
import ssl
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass
from typing import Any

from akrunner.errors import AkrunnerError
from akrunner.io.streams.base import START_SECONDS, Address, Away
from akrunner.io.streams.kafka_client import VARIABLE

#: options of a URL that are for value=avro
OPTIONS = ("registry", "subject", "schema")
_TYPE = "application/vnd.schemaregistry.v1+json"
_PREFIX = "schema.registry."
#: the most bytes of an answer
_LONGEST = 16 << 20
_NOT_FOUND, _CONFLICT = 404, 409
#: the registry's own word, by its `error_code`, that no schema has an id
_NO_SUCH_SCHEMA = 40403
_REFUSED = (401, 403)
_FAILED = 500


def check_options(address: Address) -> None:
    """Check that a URL has options of a registry only if its values are Avro. Raises: AkrunnerError: it has."""
    odd = next((name for name in OPTIONS if name in address.url.options), None)
    if odd is not None and address.url.options.get("value") != "avro":
        raise address.wrong(f"{odd}= is for value=avro: add it, or leave {odd}= out")


@dataclass(frozen=True)
class Registered:
    """A schema that is registered.

    Attributes:
        number: its id, which messages have.
        told: the schema, as Avro's JSON says it.
        called: its name in errors.
    """

    number: int
    told: Any
    called: str


class Refused(Exception):
    """The registry's answer is an error.

    Attributes:
        status: of HTTP.
        code: the `error_code` in the answer; None: it has none, as the answer of a proxy.
    """

    def __init__(self, status: int, text: str, code: Any = None) -> None:
        super().__init__(text)
        self.status = status
        self.code = code


class Registry:
    """The registry of one topic's values.

    Args:
        address: the topic's URL.
    Attributes:
        subject: under this name are the versions of the topic's schema.
    Raises:
        AkrunnerError: the address is wrong or missing, or the settings cannot be read.
    """

    def __init__(self, address: Address) -> None:
        self._address = address
        settings = address.settings(VARIABLE)
        url = address.url.options.get("registry") or settings.get(f"{_PREFIX}url", "")
        parts = urllib.parse.urlsplit(url)
        if "@" in parts.netloc:
            raise address.wrong(
                f"passwords do not go into registry=: write {_PREFIX}basic.auth.user.info=USER:PASSWORD to a file of settings, "
                f"config=FILE or {VARIABLE}"
            )
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise address.wrong("value=avro needs the schema registry's address: registry=http://host:8081")
        self._url = url.rstrip("/")
        self._headers = {"Accept": _TYPE, "Content-Type": _TYPE}
        user = settings.get(f"{_PREFIX}basic.auth.user.info") or settings.get("basic.auth.user.info")
        token = settings.get(f"{_PREFIX}bearer.auth.token")
        if user is not None:
            self._headers["Authorization"] = "Basic " + base64.b64encode(user.encode()).decode()
        elif token is not None:
            self._headers["Authorization"] = f"Bearer {token}"
        self._certificates = settings.get(f"{_PREFIX}ssl.ca.location")
        self.subject = address.url.options.get("subject") or f"{address.path}-value"

    def latest(self) -> Registered | None:
        """Return the newest schema of the subject; None if it has none.

        Raises:
            AkrunnerError: the registry does not answer, or it is no schema of Avro.
        """
        return self.version("latest")

    def version(self, version: str) -> Registered | None:
        """Return a version of the subject's schema: its number, or "latest"; None if it is not there.

        Raises:
            AkrunnerError: as of `latest`.
        """
        try:
            found = self._ask(f"/subjects/{_quoted(self.subject)}/versions/{_quoted(version)}")
        except Away as e:
            raise self._address.wrong(f"{e}; is it the right address (registry=)?") from None
        except Refused as e:
            if e.status == _NOT_FOUND:
                return None
            raise self._wrong(e) from None
        return self._registered(found, found.get("id"), f"version {found.get('version')} of {self.subject!r}")

    def by_number(self, number: int) -> Registered | None:
        """Return the schema that has an id; None if the registry itself says that it has none.

        Raises:
            Away: the registry does not answer now.
            AkrunnerError: it is none of Avro; or it is refused, also by an answer that is not the registry's own (a proxy's 404).
        """
        try:
            return self._registered(self._ask(f"/schemas/ids/{number}"), number, f"schema {number}")
        except Refused as e:
            if (e.status, e.code) == (_NOT_FOUND, _NO_SUCH_SCHEMA):
                return None
            raise self._wrong(e, f"schema {number}") from None

    def lacks(self, number: int) -> str:
        """Return, in words, that the registry has no schema with an id."""
        return f"the registry {self._url} has no schema {number}, the id in it; is it the topic's registry (registry=)?"

    def check(self, told: Any) -> None:
        """Check that a schema may become the subject's newest. Raises: AkrunnerError: it may not."""
        path = f"/compatibility/subjects/{_quoted(self.subject)}/versions/latest?verbose=true"
        try:
            found = self._ask(path, {"schema": json.dumps(told)})
        except Away as e:
            raise self._address.wrong(f"{e}; is it the right address (registry=)?") from None
        except Refused as e:
            if e.status == _NOT_FOUND:
                return
            raise self._wrong(e) from None
        if found.get("is_compatible") is False:
            raise self._incompatible("; ".join(map(str, found.get("messages", []))))

    def register(self, told: Any) -> Registered:
        """Make a schema the subject's newest, unless it is one of its versions. Raises: AkrunnerError: it may not be."""
        try:
            found = self._ask(f"/subjects/{_quoted(self.subject)}/versions", {"schema": json.dumps(told)})
        except Away as e:
            raise self._address.wrong(f"{e}; is it the right address (registry=)?") from None
        except Refused as e:
            if e.status == _CONFLICT:
                raise self._incompatible(str(e)) from None
            raise self._wrong(e) from None
        return Registered(int(found["id"]), told, f"the rows' schema in {self.subject!r}")

    def _registered(self, found: Any, number: Any, called: str) -> Registered:
        kind = found.get("schemaType", "AVRO")
        if kind != "AVRO":
            raise self._address.wrong(f"{called} in the registry is of {kind}; Avro is read and written: take value=raw")
        if found.get("references"):
            raise self._address.wrong(
                f"{called} in the registry refers to other schemas (references), which akrunner does not put together: take "
                "value=raw, or register it as one schema"
            )
        try:
            return Registered(int(number), json.loads(found["schema"]), called)
        except (KeyError, TypeError, ValueError):
            raise self._address.wrong(
                f"the registry {self._url} answers no schema for {called}: is it a schema registry?"
            ) from None

    def _wrong(self, refused: Refused, asked: str | None = None) -> AkrunnerError:
        if refused.status in _REFUSED:
            return self._address.wrong(
                f"the registry {self._url} refuses the login ({refused}); {_PREFIX}basic.auth.user.info=USER:PASSWORD belongs into "
                f"the file of settings (config=FILE, or {VARIABLE})"
            )
        return self._address.wrong(f"the registry {self._url} refuses {asked or repr(self.subject)}: {refused}")

    def _incompatible(self, why: str) -> AkrunnerError:
        return self._address.wrong(
            f"the rows' schema does not fit the versions of {self.subject!r} that readers have ({why[:400]}); write by the newest of "
            "them (schema=latest), or name another subject="
        )

    def _ask(self, path: str, body: Any = None) -> Any:
        """Return the JSON of an answer. Raises: Away: none comes. Refused: it is an error."""
        data = json.dumps(body).encode() if body is not None else None
        request = urllib.request.Request(self._url + path, data, {})
        for name, value in self._headers.items():
            # a password must not go to a host that the request is redirected to
            request.add_unredirected_header(name, value)
        context = ssl.create_default_context(cafile=self._certificates) if self._url.startswith("https") else None
        try:
            with urllib.request.urlopen(request, timeout=START_SECONDS, context=context) as answer:
                found = json.loads(answer.read(_LONGEST))
        except urllib.error.HTTPError as e:
            with e:
                text, code = _message(e.read(_LONGEST), e.reason)
            if e.code >= _FAILED:
                raise Away(f"the registry {self._url} fails ({text})") from None
            raise Refused(e.code, text, code) from None
        except (OSError, http.client.HTTPException) as e:
            raise Away(f"the registry {self._url} does not answer ({getattr(e, 'reason', None) or e})") from None
        except ValueError:
            raise Refused(0, "its answer is no JSON; is it a schema registry?") from None
        if not isinstance(found, dict):
            raise Refused(0, "its answer is no object; is it a schema registry?")
        return found


def _message(data: bytes, reason: str) -> tuple[str, Any]:
    """Return what the body of an error says: (the message, `error_code`); (HTTP's reason, None) if the registry did not write it."""
    try:
        found = json.loads(data)
        return str(found["message"]), found.get("error_code")
    except (ValueError, KeyError, TypeError):
        return reason, None


def _quoted(name: str) -> str:
    return urllib.parse.quote(name, safe="")
