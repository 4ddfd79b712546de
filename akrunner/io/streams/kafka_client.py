"""What reading and writing Kafka have in common: the URL, the settings of librdkafka, and whether the brokers are there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from akrunner.errors import AkrunnerError
from akrunner.io.streams.base import START_SECONDS, Address, client
from akrunner.wire.near import nearest

VARIABLE = "KAFKA_CONFIG"
#: the port of a broker whose URL names none
PORT = 9092
#: the beginnings of the names of settings that are a schema registry's (`akrunner.io.streams.registry`), not librdkafka's
_OTHERS = ("schema.registry.", "basic.auth.")


def kafka_address(url: str, options: Sequence[str], kind: type[AkrunnerError], parameter: str) -> Address:
    """Take the URL of a topic apart, as `Address.of` does. Raises: AkrunnerError: of the class `kind`: it is wrong."""
    address = Address.of(url, options, kind, parameter)
    if "@" in address.hosts:
        raise address.wrong(f"passwords do not go into the URL: write them to a file of settings, config=FILE or {VARIABLE}")
    if not address.hosts or not address.path or "/" in address.path:
        raise address.wrong("write kafka://broker[:port][,broker[:port]]/topic")
    return address


def brokers(address: Address) -> str:
    """Return the brokers of a URL, each with its port."""
    return ",".join(host if _has_port(host) else f"{host}:{PORT}" for host in address.hosts.split(","))


class Client:
    """What a consumer and a producer have in common.

    Args:
        address: the URL.
    Attributes:
        name: the URL without secrets and without options.
        address: the URL.
        settings: the settings of librdkafka.
        kafka: confluent_kafka.
    """

    def __init__(self, address: Address) -> None:
        self.address = address
        self.name = address.name
        self.kafka = client("confluent_kafka", "kafka")
        given = address.settings(VARIABLE)
        self.settings: dict[str, Any] = {
            "bootstrap.servers": brokers(address),
            **{name: value for name, value in given.items() if not name.startswith(_OTHERS)},
        }
        # librdkafka would print every try to reach a broker on stderr
        self.settings["log_level"] = 2
        self.settings["error_cb"] = self._note
        self.down: str | None = None
        self.fatal: str | None = None

    def _note(self, error: Any) -> None:
        kinds = self.kafka.KafkaError
        if error.code() in (kinds._AUTHENTICATION, kinds._SSL) or error.fatal():
            self.fatal = self.hidden(error.str())
        elif error.code() == kinds._ALL_BROKERS_DOWN:
            self.down = self.hidden(error.str())

    def hidden(self, text: str) -> str:
        """Return a text of librdkafka's without the values of secret settings."""
        for name, value in self.settings.items():
            if (
                isinstance(value, str)
                and len(value) > 3
                and any(word in name for word in ("password", "secret", ".pem", "jaas"))
            ):
                text = text.replace(value, "***")
        return text

    def made(self, kind: str, more: Mapping[str, Any]) -> Any:
        """Return a client of librdkafka. Raises: AkrunnerError: a setting is wrong."""
        try:
            return getattr(self.kafka, kind)({**self.settings, **more})
        except self.kafka.KafkaException as e:
            raise self.address.wrong(f"its settings: {self.hidden(e.args[0].str())}") from None

    def check_topic(self, kafka: Any, must_be: bool) -> None:
        """Check that the brokers answer, and know the topic. Raises: AkrunnerError: they do not."""
        try:
            found = kafka.list_topics(self.address.path, timeout=START_SECONDS).topics[self.address.path]
        except self.kafka.KafkaException as e:
            if self.fatal is not None:
                raise self.address.wrong(
                    f"the broker refused the login: {self.fatal}; config= names the file of settings"
                ) from None
            raise self.address.wrong(
                f"no broker has answered within {START_SECONDS:g} s at {self.settings['bootstrap.servers']} "
                f"({self.hidden(e.args[0].str())}); is it the right address, and does it need settings (config=FILE)?"
            ) from None
        error = found.error
        if error is None or (error.code() == self.kafka.KafkaError.UNKNOWN_TOPIC_OR_PART and not must_be):
            return
        if error.code() == self.kafka.KafkaError.UNKNOWN_TOPIC_OR_PART:
            others = [name for name in kafka.list_topics(timeout=START_SECONDS).topics if not name.startswith("__")]
            raise self.address.wrong(f"there is no topic {self.address.path!r}{nearest(self.address.path, others)}")
        if error.code() != self.kafka.KafkaError.LEADER_NOT_AVAILABLE:
            raise self.address.wrong(self.hidden(error.str()))


def _has_port(host: str) -> bool:
    return host.rpartition(":")[2].isdecimal() and not host.endswith("]")
