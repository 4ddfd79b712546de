"""Ports, names and proxies: what `test_services` leaves out of them."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest

from akrunner.checkup import network
from akrunner.checkup.lines import BROKEN, LOOK, OK
from akrunner.checkup.network import names, ports, proxies


def kernel(root: Path, text: str | None) -> str:
    folder = root / "proc/sys/net/ipv4"
    folder.mkdir(parents=True)
    if text is not None:
        (folder / "ip_local_port_range").write_text(text)
    return str(root)


@pytest.mark.parametrize(
    "text, state, words",
    [
        ("50000\t51000\n", OK, "50000 to 51000"), ("50000\t50999\n", LOOK, "ports 50000 to 50999 only"), (None, OK, "32768 to 60999"), ("", OK, "32768 to 60999"), ("x y\n", OK, "32768 to 60999"), ("1\n", OK, "32768 to 60999"),
    ],
)  # fmt: skip
def test_how_many_ports_there_are_is_the_kernels_word(tmp_path: Path, text: str | None, state: str, words: str) -> None:
    (line,) = ports(kernel(tmp_path, text))
    assert (line.about, line.state) == ("ports", state) and words in line.found
    assert ("sysctl" in line.do) == (state == LOOK)


def test_a_port_that_cannot_be_had_is_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    class Refusing(socket.socket):
        def bind(self, address: Any) -> None:
            raise OSError(99, "Cannot assign requested address")

    monkeypatch.setattr(network.socket, "socket", Refusing)
    (line,) = ports()
    assert line.state == BROKEN and line.found.startswith("127.0.0.1: ") and "loopback" in line.do


@pytest.mark.parametrize(
    "addresses, state", [(["127.0.0.1"], OK), (["127.0.0.1", "::1"], OK), (["127.0.1.1"], OK), (["10.0.0.7"], LOOK), (["127.0.0.1", "10.0.0.7"], LOOK)]
)  # fmt: skip
def test_localhost_is_this_machine_and_no_other(addresses: list[str], state: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = [(0, 0, 0, "", (address, 0)) for address in addresses * 2]
    monkeypatch.setattr(network.socket, "getaddrinfo", lambda *asked: found)
    monkeypatch.setattr(network.socket, "gethostname", lambda: "me")
    monkeypatch.setattr(network.socket, "gethostbyname", lambda name: "10.0.0.7")
    localhost, own = names()
    assert localhost.state == state and localhost.found == f"is {', '.join(sorted(addresses))}", "each once"
    assert ("/etc/hosts" in localhost.do) == (state == LOOK)
    assert (own.state, own.found) == (OK, "me is 10.0.0.7")


@pytest.mark.parametrize("without", ["localhost", "127.0.0.1", "*", "127.0.0.0/8", "corp , 127.0.0.1", "a,,localhost"])
@pytest.mark.parametrize("variable", ["no_proxy", "NO_PROXY", "no_grpc_proxy"])
def test_a_proxy_that_this_machine_is_not_asked_through_is_fine(variable: str, without: str) -> None:
    (line,) = proxies({"http_proxy": "proxy:3128", variable: without})
    assert line.state == OK and line.found == "http_proxy=proxy:3128, not for this machine itself"


@pytest.mark.parametrize("without", ["", "corp", "localhost.corp", "127.0.0.2"])
def test_a_proxy_that_it_is_asked_through_is_told(without: str) -> None:
    (line,) = proxies({"http_proxy": "proxy:3128", "no_proxy": without})
    assert line.state == LOOK and "no_proxy" in line.do


def test_the_proxy_that_grpc_takes_is_named_of_several() -> None:
    (line,) = proxies({"all_proxy": "a:1", "https_proxy": "b:2", "grpc_proxy": "c:3"})
    assert line.found.startswith("grpc_proxy=c:3,")
    assert proxies({"http_proxy": ""}) == []


@pytest.mark.parametrize(
    "value, shown",
    [
        ("http://proxy.corp:3128/", "http://proxy.corp:3128"), ("http://me:secret@proxy:3128", "http://***@proxy:3128"), ("[::1]:3128", "[::1]:3128"), (" proxy ", "proxy"),
        ("secret with blanks", "something that is no address"), ("http://h:3128/secret", "something that is no address"), ("http://h:3128?secret", "something that is no address"),
    ],
)  # fmt: skip
def test_of_a_proxy_only_its_address_is_shown(value: str, shown: str) -> None:
    (line,) = proxies({"http_proxy": value})
    assert line.found.startswith(f"http_proxy={shown}, ") and "secret" not in line.found
