"""A schema registry's answers and refusals, by its own protocol."""

from __future__ import annotations

from pathlib import Path

import pytest

from akrunner.errors import SourceError
from akrunner.io.streams.base import Address, Away
from akrunner.io.streams.registry import Registered, Registry, check_options
from tests.servers.registry import Registry as Server

LONG = {"type": "record", "name": "r", "fields": [{"name": "id", "type": "long"}]}
MORE = {**LONG, "fields": [*LONG["fields"], {"name": "s", "type": "string"}]}
OPTIONS = ("value", "registry", "subject", "schema", "config")


def address(query: str) -> Address:
    return Address.of(f"kafka://b/my.topic?value=avro&{query}", OPTIONS, SourceError, "source")


def of(server: Server, more: str = "") -> Registry:
    return Registry(address(f"registry={server.url}/{more}"))


def test_versions_and_numbers(registry: Server) -> None:
    one = of(registry)
    assert one.subject == "my.topic-value" and one.latest() is None
    first, second = registry.add("my.topic-value", LONG), registry.add("my.topic-value", MORE)
    assert one.latest() == Registered(second, MORE, "version 2 of 'my.topic-value'")
    assert one.version("1") == Registered(first, LONG, "version 1 of 'my.topic-value'") and one.version("3") is None
    found = one.by_number(first)
    assert found is not None and found.told == LONG


def test_only_the_registry_itself_says_that_it_has_no_schema(registry: Server) -> None:
    number = registry.add("my.topic-value", LONG)
    one = of(registry)
    assert one.by_number(99) is None and "has no schema 99, the id in it; is it the topic's registry" in one.lacks(99)
    with pytest.raises(SourceError, match=f"refuses schema {number}: HTTP 404 Not Found"):
        of(registry, "other/path").by_number(number)
    registry.hidden = True
    with pytest.raises(SourceError, match="refuses schema 99: Not Found"):
        one.by_number(99)


def test_a_subject_has_any_name(registry: Server) -> None:
    registry.add("a/b c", LONG)
    found = of(registry, "&subject=a/b%20c").latest()
    assert found is not None and found.told == LONG


def test_a_schema_is_registered_once_and_only_if_it_fits(registry: Server) -> None:
    one = of(registry)
    one.check(MORE)
    assert "my.topic-value" not in registry.answer("GET", "/subjects", None), "to check registers nothing"
    first = one.register(LONG)
    assert one.register(LONG).number == first.number == 1
    for call in (one.check, one.register):
        with pytest.raises(SourceError, match=r"does not fit the versions.*MISSING_DEFAULT_VALUE s.*schema=latest"):
            call(MORE)
    one.check(LONG)


def test_a_login_is_in_the_file_of_settings_and_never_shown(registry: Server, tmp_path: Path) -> None:
    registry.login = "me:pass-w0rd"
    registry.add("my.topic-value", LONG)
    with pytest.raises(SourceError, match=r"refuses the login \(Unauthorized\); schema.registry.basic.auth.user.info="):
        of(registry).latest()
    file = tmp_path / "c"
    for name in ("schema.registry.basic.auth.user.info", "basic.auth.user.info"):
        file.write_text(f"schema.registry.url={registry.url}\n{name}=me:pass-w0rd\n")
        assert Registry(address(f"config={file}")).latest() is not None
    file.write_text("schema.registry.basic.auth.user.info=me:an0ther\n")
    with pytest.raises(SourceError) as told:
        of(registry, f"&config={file}").latest()
    assert "an0ther" not in str(told.value)


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("", "needs the schema registry's address: registry=http://host:8081"),
        ("registry=host:8081", "needs the schema registry's address"),
        ("registry=http://me:pass-w0rd@host", "passwords do not go into registry="),
    ],
)
def test_a_wrong_address_is_told(query: str, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KAFKA_CONFIG", raising=False)
    with pytest.raises(SourceError, match=words) as told:
        Registry(address(query))
    assert "pass-w0rd" not in str(told.value)


def test_a_registry_that_does_not_answer(registry: Server) -> None:
    one = of(registry)
    registry.fails = True
    with pytest.raises(SourceError, match="fails .*is it the right address"):
        one.latest()
    with pytest.raises(Away, match="fails"):
        one.by_number(1)
    registry.close()
    with pytest.raises(Away, match="does not answer"):
        one.by_number(1)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"schemaType": "PROTOBUF"}, "is of PROTOBUF"),
        ({"references": [{"name": "x", "subject": "x", "version": 1}]}, "refers to other schemas"),
    ],
)
def test_schemas_of_other_kinds_are_refused(more: dict[str, object], words: str, registry: Server) -> None:
    registry.add("my.topic-value", LONG, **more)
    with pytest.raises(SourceError, match=words):
        of(registry).latest()


def test_options_of_a_registry_are_for_avro() -> None:
    check_options(address("subject=s"))
    with pytest.raises(SourceError, match="subject= is for value=avro"):
        check_options(Address.of("kafka://b/t?subject=s", OPTIONS, SourceError, "source"))
