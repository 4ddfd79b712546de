"""A job's keys: proofs that only the token makes, certificates that only the other end has, and a door that is carried as plain values."""

from __future__ import annotations

import json
import os
import re
import socket
import ssl
import threading
from pathlib import Path
from typing import Any

import pytest

from akrunner.engines.flink import keys as keys_module
from akrunner.engines.flink.host.issue import JobKeys, issued
from akrunner.engines.flink.keys import AGENTS, HOST, Door, Keys, nonce, token


@pytest.fixture(scope="module")
def made() -> JobKeys:
    return issued()


def test_a_proof_is_proved_by_whoever_has_the_same_token() -> None:
    shown = Keys("token").proof("agent", "p", "1")
    assert Keys("token", "of", "another", "end").proves(shown, "agent", "p", "1")
    assert re.fullmatch("[0-9a-f]{64}", shown)


@pytest.mark.parametrize(
    ("token", "end", "words"),
    [
        ("Token", "agent", ("p", "1")),
        ("token", "host", ("p", "1")),
        ("token", "agent", ("p", "2")),
        ("token", "agent", ("1", "p")),
        ("token", "agent", ("p",)),
        ("token", "agent", ("p", "1", "")),
        # the same letters, cut elsewhere
        ("token", "agent", ("p1",)),
        ("token", "agent", ("p\n1",)),
        ("token", "agent", ("p\n1:1",)),
    ],
)
def test_it_proves_nothing_else(token: str, end: str, words: tuple[str, ...]) -> None:
    shown = Keys("token").proof("agent", "p", "1")
    assert not Keys(token).proves(shown, end, *words)


@pytest.mark.parametrize("shown", ["", "a", "ü" * 64, "\ud7ff"])
def test_what_is_no_proof_at_all_proves_nothing(shown: str) -> None:
    assert not Keys("token").proves(shown, "agent", "p")


def test_tokens_and_nonces_are_new_each_time() -> None:
    assert len({make() for make in (token, nonce) for _ in range(50)}) == 100
    assert len(token()) == 64 and len(nonce()) == 32


def test_keys_without_an_authority_are_for_a_connection_without_tls(made: JobKeys) -> None:
    assert not Keys("token").tls and made.agents.tls


def shaken(server: Keys, client: Keys, name: str) -> list[Any]:
    """What either end of a handshake has got: the names in the other's certificate, or an error."""
    one, other = socket.socketpair()
    found: list[Any] = [None, None]

    def shake(at: int, keys: Keys, connection: socket.socket) -> None:
        named = {} if at == 0 else {"server_hostname": name}
        try:
            with keys.context(server=at == 0).wrap_socket(connection, server_side=at == 0, **named) as tls:
                # an end that is refused hears of it when it reads
                tls.sendall(b"x")
                assert tls.recv(1) == b"x" and tls.version() == "TLSv1.3"
                found[at] = [value for _, value in (tls.getpeercert() or {})["subjectAltName"]]
        except (OSError, AssertionError) as e:
            found[at] = e
        finally:
            connection.close()

    thread = threading.Thread(target=shake, args=(0, server, one))
    thread.start()
    shake(1, client, other)
    thread.join(30)
    return found


def test_both_ends_see_each_others_certificate(made: JobKeys) -> None:
    assert shaken(made.host, made.agents, HOST) == [[AGENTS], [HOST]]


@pytest.mark.parametrize("server", [True, False])
def test_neither_end_speaks_an_older_tls(made: JobKeys, server: bool) -> None:
    context = made.host.context(server)
    assert context.minimum_version == ssl.TLSVersion.TLSv1_3 and context.verify_mode == ssl.CERT_REQUIRED
    assert context.check_hostname is not server


def test_an_agent_does_not_take_another_agent_for_the_host(made: JobKeys) -> None:
    server, client = shaken(made.agents, made.agents, HOST)
    assert isinstance(client, ssl.SSLCertVerificationError) and not isinstance(server, list)


@pytest.mark.parametrize("stranger", ["host", "agents"])
def test_keys_of_another_job_are_refused(made: JobKeys, stranger: str) -> None:
    other = issued()
    ends = {"host": made.host, "agents": made.agents, stranger: getattr(other, stranger)}
    assert not any(isinstance(one, list) for one in shaken(ends["host"], ends["agents"], HOST))


def test_a_key_is_in_no_file_where_memory_can_be_one(made: JobKeys, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = set(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else set()
    with keys_module._as_file("the text, ü") as path:
        if not path.startswith("/proc/self/fd/"):
            pytest.skip("this system has no files in memory")
        assert Path(path).read_text() == "the text, ü" and list(tmp_path.iterdir()) == []
    assert set(os.listdir("/proc/self/fd")) <= before, "it is closed"


def test_a_door_is_the_same_after_json() -> None:
    door = Door("fe80::1", 7001, 7002, Keys("token", "a", "c", "k"))
    again = Door.of(json.loads(json.dumps(door.carried())))
    assert again == door and again.keys.key == "k"


def test_a_door_shows_where_it_is_and_no_key() -> None:
    door = Door("10.0.0.1", 7001, 7002, Keys("geheim", "authority", "certificate", "privat"))
    assert door.shown == "10.0.0.1:7001"
    assert not any(word in repr(door) for word in ("geheim", "authority", "certificate", "privat"))


@pytest.mark.parametrize("lacking", ["host", "port", "rows", "keys"])
def test_a_door_that_lacks_something_is_none(lacking: str) -> None:
    carried = Door("h", 1, 2, Keys("token")).carried()
    del carried[lacking]
    with pytest.raises(KeyError, match=lacking):
        Door.of(carried)
