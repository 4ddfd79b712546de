"""What reading and writing Kafka have in common, with a stand-in for librdkafka."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from akrunner.errors import SourceError
from akrunner.io.streams.kafka_client import Client, brokers, kafka_address


def client(url: str) -> Client:
    return Client(kafka_address(url, ("config",), SourceError, "source"))


def test_brokers_have_ports() -> None:
    assert brokers(kafka_address("kafka://a,b:1,[::1]/t", (), SourceError, "source")) == "a:9092,b:1,[::1]:9092"


@pytest.mark.parametrize(
    ("url", "words"), [("kafka://me:pw@b/t", "passwords do not go"), ("kafka://b/a/b", "write kafka://broker")]
)
def test_a_wrong_url_is_refused(url: str, words: str) -> None:
    with pytest.raises(SourceError, match=words):
        kafka_address(url, (), SourceError, "source")


def test_settings_of_a_registry_are_not_librdkafkas(made: list[Any], tmp_path: Path) -> None:
    (tmp_path / "c").write_text("schema.registry.url=http://r\nbasic.auth.user.info=me:pw\nsasl.password=pass-w0rd\n")
    one = client(f"kafka://b/t?config={tmp_path / 'c'}")
    assert {"schema.registry.url", "basic.auth.user.info"}.isdisjoint(one.settings)
    assert one.hidden("wrong pass-w0rd") == "wrong ***"


def test_a_login_that_is_refused_is_kept(made: list[Any]) -> None:
    one = client("kafka://b/t")

    class Error:
        def __init__(self, code: int) -> None:
            self._code = code

        def code(self) -> int:
            return self._code

        def str(self) -> str:
            return "refused"

        def fatal(self) -> bool:
            return False

    one._note(Error(one.kafka.KafkaError._ALL_BROKERS_DOWN))
    assert (one.down, one.fatal) == ("refused", None)
    one._note(Error(one.kafka.KafkaError._AUTHENTICATION))
    assert one.fatal == "refused"
