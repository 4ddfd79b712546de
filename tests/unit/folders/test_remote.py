"""How much room is asked for a large file: what it was listed with, or what those before it needed."""

from __future__ import annotations

import contextlib
import gzip
import http.server
import socket
import socketserver
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import akrunner
from akrunner.folders import remote

_MB = 1 << 20


class Asked:
    """A fetcher of files that only have a size, and the room it has asked for."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.fetcher = remote.Fetcher(1 << 30)
        self.sizes: list[int] = []
        monkeypatch.setattr(remote.Room, "has", lambda room, ticket, size: self._has(size))
        monkeypatch.setattr(remote.downloads, "from_web", self._pieces)

    def _has(self, size: int) -> bool:
        self.sizes.append(size)
        return True

    def _pieces(self, url: str, budget: Any, unzipped: bool) -> Iterator[bytes]:
        left = int(url.rpartition("/")[2])
        while left:
            piece = bytes(min(left, _MB))
            left -= len(piece)
            yield piece

    def of(self, size: int, listed: int = -1) -> list[int]:
        """The room that was asked for one file, time after time."""
        self.sizes.clear()
        data, why = self.fetcher.get(f"http://host/{size}", listed, 1)
        assert (len(data or b""), why) == (size, "")
        return list(self.sizes)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    return Asked(monkeypatch)


def test_one_large_file_does_not_make_all_others_large(asked: Asked) -> None:
    assert asked.of(2 * _MB) == [8 * _MB] and asked.of(_MB) == []
    assert asked.of(33 * _MB)[-1] >= 33 * _MB
    wanted = [asked.of(2 * _MB)[0] for _ in range(8)]
    assert wanted[0] > 30 * _MB and wanted == sorted(wanted, reverse=True) and wanted[-1] == 8 * _MB


@pytest.mark.slow
def test_files_as_large_as_the_last_ask_once(asked: Asked) -> None:
    asked.of(33 * _MB)
    assert [len(asked.of(33 * _MB)) for _ in range(5)] == [1] * 5


def test_a_file_of_known_size_asks_for_that_and_says_nothing_of_others(asked: Asked) -> None:
    assert asked.of(33 * _MB, 33 * _MB) == [33 * _MB] and asked.of(3 * _MB, 3 * _MB) == [3 * _MB]
    assert asked.of(2 * _MB) == [8 * _MB]
    # it has grown since
    assert asked.of(3 * _MB, 2 * _MB) == [2 * _MB, 8 * _MB]


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("http:///x.jpg", "it is no URL: it names no host"),
        ("http://host:99999/x.jpg", "it is no URL: Port out of range 0-65535"),
        ("http://host:port/x.jpg", "it is no URL: Port could not be cast"),
        ("http://host:0/x.jpg", "it is no URL: there is no port 0"),
        ("http://[::1/x.jpg", "it is no URL: Invalid IPv6 URL"),
        (" http://host/x.jpg", "it is no URL"),
        ("http://ho st/x.jpg", "URL can't contain control characters"),
    ],
)
def test_what_can_be_no_url_is_broken_at_once(url: str, why: str) -> None:
    data, said = remote.Fetcher(_MB).get(url)
    assert data is None and why in said and not isinstance(said, remote.Unfetched)


class _Odd(socketserver.StreamRequestHandler):
    """Answers whoever asks with what the server has under the name."""

    server: Any

    def handle(self) -> None:
        name = self.rfile.readline().split()[1].decode().lstrip("/")
        while self.rfile.readline().strip():
            pass
        self.server.asked.append(name)
        self.wfile.write(self.server.answers[name])


@contextlib.contextmanager
def _answering(answers: dict[str, bytes]) -> Iterator[tuple[str, list[str]]]:
    """(the URL, what was asked for)."""
    server: Any = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Odd)  # type: ignore[arg-type]
    server.answers, server.asked = answers, []
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/", server.asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _sent(body: bytes, encoding: str, length: int = 0) -> bytes:
    return f"HTTP/1.0 200 OK\r\nContent-Encoding: {encoding}\r\nContent-Length: {length or len(body)}\r\n\r\n".encode() + body


@pytest.mark.slow
def test_what_a_server_has_compressed_on_its_way_comes_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "_PAUSE", 0.001)
    data = bytes(range(256)) * 5000
    zipped = gzip.compress(data)
    answers = {
        "x.jpg": _sent(zipped, "gzip"),
        "two.jpg": _sent(zipped + gzip.compress(b"more") + b"\0\0", "x-gzip"),
        "plain.jpg": _sent(data, "gzip"),
        "x.gz": _sent(zipped, "gzip"),
        "bomb.jpg": _sent(gzip.compress(bytes(50 * _MB)), "gzip"),
        "cut.jpg": _sent(zipped[:-20], "gzip"),
        "br.jpg": _sent(zipped, "br"),
    }
    with _answering(answers) as (url, _):
        got = {name: remote.Fetcher(2 * _MB).get(url + name) for name in answers}
    assert got["x.jpg"] == (data, "") and got["two.jpg"] == (data + b"more", "") and got["plain.jpg"] == (data, "")
    assert got["x.gz"] == (zipped, "")
    assert "more than 2,097,152 bytes" in got["bomb.jpg"][1] and "compressed as br" in got["br.jpg"][1]
    assert "broke off" in got["cut.jpg"][1] and isinstance(got["cut.jpg"][1], remote.Unfetched)


def test_an_answer_that_leads_nowhere_is_told_by_its_number_and_a_loop_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "_PAUSE", 0.001)
    answers = {"304": b"HTTP/1.0 304 Not Modified\r\n\r\n", "302": b"HTTP/1.0 302 Found\r\n\r\n"}
    with _answering(answers) as (url, _):
        answers["loop"] = f"HTTP/1.0 302 Found\r\nLocation: {url}loop\r\n\r\n".encode()
        said = {name: remote.Fetcher(_MB).get(url + name)[1] for name in answers}
    assert "304" in said["304"] and "302" in said["302"] and said["loop"] == "it is redirected without an end"


def test_what_speaks_no_http_and_where_a_server_leads_nowhere_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "_PAUSE", 0.001)
    answers = {"ssh": b"SSH-2.0-OpenSSH_9.2\r\n", "port": b"HTTP/1.0 302 Found\r\nLocation: http://localhost:99999/x\r\n\r\n"}
    with _answering(answers) as (url, asked):
        fetcher = remote.Fetcher(_MB)
        _, ssh = fetcher.get(url + "ssh")
        _, port = fetcher.get(url + "port")
    assert ssh == "what answers there does not speak HTTP (it says 'SSH-2.0-OpenSSH_9.2') (3 tries)"
    assert isinstance(ssh, remote.Unfetched)
    assert "it leads on to http://localhost:99999/x, which is no URL: Port out of range" in port
    assert not isinstance(port, remote.Unfetched) and asked.count("port") == 1


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("s3://", "it names no bucket: s3://BUCKET/PATH/TO/FILE"),
        ("s3:///x.jpg", "it names no bucket: s3://BUCKET/PATH/TO/FILE"),
        ("s3://bucket", "it names no file: s3://BUCKET/PATH/TO/FILE"),
        ("gs://bucket//", "it names no file: gs://BUCKET/PATH/TO/FILE"),
        ("s3://a b/x.jpg", "it is no URL: no bucket is called 'a b'"),
        ("oss://", "it names no bucket: oss://BUCKET/PATH/TO/FILE"),
        ("s3://arn:aws:s3:us-west-2:123:accesspoint/a/b.jpg", ""),
        ("s3://my.bucket_1/x", ""),
        ("simplecache::s3://", ""),
        ("hdfs:///x", ""),
    ],
)
def test_a_url_of_a_store_has_a_bucket_and_a_file(url: str, words: str) -> None:
    assert remote.odd_url(url) == words


def test_a_server_that_never_answers_is_asked_three_times_in_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote.downloads, "SILENCE", 0.2)
    monkeypatch.setattr(remote, "_PAUSE", 0.0)
    held: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def accept() -> None:
            with contextlib.suppress(OSError):
                while True:
                    held.append(server.accept()[0])

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        (tmp_path / "list.csv").write_text(f"path\nhttp://127.0.0.1:{server.getsockname()[1]}/x.jpg\n")
        with pytest.raises(akrunner.ReadError, match=r"no answer within 0\.2 s \(3 tries\)"):
            akrunner.pack(tmp_path / "list.csv", tmp_path / "out")
        server.shutdown(socket.SHUT_RDWR)
        thread.join(10)
    assert len(held) == 3
    for one in held:
        one.close()


@pytest.mark.parametrize(
    ("why", "fitting"),
    [
        (remote.too_large(1_000_000, 50), [False, True, True]),
        (remote.too_large(1_000_001, 50), [False, False, True]),
        (f"{remote.too_large(1, 1)}, and more", [False] * 3),
        ("a link that leads to nothing (max_file_size)", [False] * 3),
        ("", [False] * 3),
    ],
)
def test_whether_a_file_is_no_longer_too_large_is_told_by_the_exact_words(why: str, fitting: list[bool]) -> None:
    assert [remote.fits(why, most) for most in (999_999, 1_000_000, 1_000_001)] == fitting


def test_a_file_of_which_too_much_came_fits_where_more_is_allowed() -> None:
    with _answering({"a": b"HTTP/1.0 200 OK\r\n\r\n" + b"x" * 2000}) as (url, _):
        data, why = remote.Fetcher(1500).get(f"{url}/a")
    assert data is None and [remote.fits(why, most) for most in (1500, 1501)] == [False, True]
