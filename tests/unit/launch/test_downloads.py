"""What stands behind a URL, as a server sends it: pieces, how they are compressed, when to try once more, and where not to go."""

from __future__ import annotations

import email.message
import gzip
import hashlib
import http.client
import http.server
import io
import itertools
import random
import re
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from akrunner.errors import UserFilesError
from akrunner.launch import downloads, limits
from akrunner.launch.trees import CHUNK, Blame

BLAME = Blame("user_files")
Answers = dict[str, tuple[dict[str, str], bytes]]


@pytest.fixture
def answers() -> Answers:
    """Path -> headers and body of the answer."""
    return {}


@pytest.fixture
def server(answers: Answers) -> Iterator[str]:
    asked: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            headers, body = answers[self.path]
            self.send_response(206 if "Content-Range" in headers else 200)
            for name, value in {"Content-Length": str(len(body)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments: object) -> None: ...

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()
        thread.join()


def budget(most: int = 1 << 30) -> limits.Budget:
    return limits.downloading("it", BLAME, most)


def read(url: str, **more: Any) -> list[bytes]:
    return list(downloads.from_web(url, budget(), **more))


def test_a_large_file_comes_in_pieces_and_whole(server: str, answers: Answers) -> None:
    body = bytes(range(256)) * (CHUNK // 128)
    answers["/a"], answers["/empty"] = ({}, body), ({}, b"")
    pieces = read(f"{server}/a")
    assert b"".join(pieces) == body and max(map(len, pieces)) <= CHUNK
    assert b"".join(read(f"{server}/empty")) == b""


def test_what_is_announced_too_large_is_not_read(server: str, answers: Answers) -> None:
    answers["/a"] = {}, b"x" * 100
    assert b"".join(downloads.from_web(f"{server}/a", budget(100))) == b"x" * 100
    with pytest.raises(UserFilesError, match="^user_files: it has more than 99 bytes"):
        next(downloads.from_web(f"{server}/a", budget(99)))


@pytest.mark.parametrize("announced", ["104", "96"])
def test_another_length_than_was_announced_is_an_error(server: str, answers: Answers, announced: str) -> None:
    answers["/a"] = {"Content-Length": announced}, b"x" * 100
    if announced == "104":
        with pytest.raises(OSError, match="^it broke off after 100 of 104 bytes$|IncompleteRead"):
            read(f"{server}/a")
    else:
        assert b"".join(read(f"{server}/a")) == b"x" * 96, "what stands behind it is nothing of the answer"


@pytest.mark.parametrize("given", ["bytes 0-99/3334", "bytes 100-199/200", "bytes 0-99/*", "nonsense"])
def test_a_part_that_nobody_has_asked_for_is_not_taken_for_the_whole(server: str, answers: Answers, given: str) -> None:
    answers["/a"] = {"Content-Range": given}, b"x" * 100
    with pytest.raises(
        OSError, match=rf"^its server sends a part of it, which nobody has asked for \(206, {re.escape(given)}\)$"
    ):
        read(f"{server}/a")
    answers["/a"] = {"Content-Range": "bytes 0-99/100"}, b"x" * 100
    assert b"".join(read(f"{server}/a")) == b"x" * 100


def test_signs_of_any_language_and_blanks_are_written_as_urls_have_them(server: str, answers: Answers) -> None:
    answers["/gr%C3%B6%C3%9Fe%20a.csv?x=%C3%A4&y=a%2Fb"] = {}, b"1"
    assert read(f"{server}/größe a.csv?x=ä&y=a%2Fb#behind") == [b"1"]


@pytest.mark.parametrize("way", ["gzip", "x-gzip", " GZIP "])
def test_what_was_compressed_for_the_way_is_unpacked_if_asked_for(server: str, answers: Answers, way: str) -> None:
    body = b"rows\n" * 1000
    answers["/a.csv"] = {"Content-Encoding": way}, gzip.compress(body, mtime=0)
    assert b"".join(read(f"{server}/a.csv", unzipped=True)) == body
    assert b"".join(read(f"{server}/a.csv")) == gzip.compress(body, mtime=0), "a file stays as it is"


def test_several_parts_are_unpacked_and_what_stands_behind_is_not(server: str, answers: Answers) -> None:
    answers["/a"] = {"Content-Encoding": "gzip"}, gzip.compress(b"one ") + gzip.compress(b"two") + b"\0" * 9
    assert b"".join(read(f"{server}/a", unzipped=True)) == b"one two"


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_a_part_may_begin_anywhere_in_a_piece(size: int) -> None:
    """Also with its first byte in one piece and its second in the next."""
    for body, text in (
        (gzip.compress(b"one ") + gzip.compress(b"two"), b"one two"),
        (gzip.compress(b"one ") + gzip.compress(b"two") + b"\x1f", b"one two"),
        (b"\x1f", b"\x1f"),
        (b"\x1fplain", b"\x1fplain"),
        (b"", b""),
    ):
        for first in range(min(size, len(body)) + 1):
            cuts = [0, *range(first, len(body), size), len(body)]
            pieces = [body[begin:end] for begin, end in itertools.pairwise(cuts) if begin < end]
            assert b"".join(downloads._inflated(iter(pieces))) == text


def test_what_only_says_that_it_is_compressed_comes_as_it_is(server: str, answers: Answers) -> None:
    answers["/a"] = {"Content-Encoding": "gzip"}, b"plain" * (CHUNK // 2)
    assert b"".join(read(f"{server}/a", unzipped=True)) == b"plain" * (CHUNK // 2)
    answers["/empty"] = {"Content-Encoding": "gzip"}, b""
    assert b"".join(read(f"{server}/empty", unzipped=True)) == b""


def test_a_few_bytes_that_unpack_to_many_come_in_pieces(server: str, answers: Answers) -> None:
    answers["/a"] = {"Content-Encoding": "gzip"}, gzip.compress(bytes(5 * CHUNK))
    sizes = [len(piece) for piece in read(f"{server}/a", unzipped=True)]
    assert sum(sizes) == 5 * CHUNK and max(sizes) <= CHUNK


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (gzip.compress(b"rows" * 100)[:-9], "^it broke off before its compressed bytes had ended$"),
        (gzip.compress(random.Random(5).randbytes(1000))[:500] + b"\xff" * 600, "^it was damaged on its way: "),
        (b"\x1f\x8b\xff" + b"0" * 20, "^it was damaged on its way: "),
    ],
    ids=["cut short", "noise within", "another header"],
)
def test_what_was_damaged_on_its_way_is_told(server: str, answers: Answers, body: bytes, words: str) -> None:
    answers["/a"] = {"Content-Encoding": "gzip"}, body
    with pytest.raises(OSError, match=words):
        read(f"{server}/a", unzipped=True)


def test_a_way_that_nobody_has_asked_for_is_refused(server: str, answers: Answers) -> None:
    answers["/a"] = {"Content-Encoding": "br"}, b"x"
    with pytest.raises(ValueError, match="^its server sends it compressed as br, which nobody has asked for$"):
        read(f"{server}/a", unzipped=True)
    assert read(f"{server}/a") == [b"x"]


def test_a_store_is_read_in_pieces() -> None:
    import fsspec

    body = b"x" * (CHUNK + 1)
    with fsspec.open("memory://there/large.bin", "wb") as f:
        f.write(body)
    assert [len(piece) for piece in downloads.from_anywhere("memory://there/large.bin")] == [CHUNK, 1]
    with pytest.raises(FileNotFoundError):
        next(downloads.from_anywhere("memory://there/nothing"))


def test_the_checksum_of_a_file(tmp_path: Path) -> None:
    body = b"x" * (CHUNK + 1)
    (tmp_path / "a").write_bytes(body)
    assert downloads.sha256(str(tmp_path / "a"), BLAME) == hashlib.sha256(body).hexdigest()
    with pytest.raises(UserFilesError, match=r"^user_files: cannot read .*/gone"):
        downloads.sha256(str(tmp_path / "gone"), BLAME)


@pytest.mark.parametrize(
    ("url", "web"),
    [("http://a", True), ("HTTPS://a", True), ("ftp://a", False), ("s3://http://a", False), ("https:/a", False), ("", False)],
)
def test_which_urls_are_of_the_web(url: str, web: bool) -> None:
    assert downloads.is_web(url) == web


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://host/a", ""),
        ("http://[::1]:80/a", ""),
        ("http://host:65535", ""),
        ("http:///a", "it names no host"),
        ("http://user:word@/a", "it names no host"),
        ("http://host:0/a", "there is no port 0"),
        ("http://host:65536/a", "Port out of range 0-65535"),
        ("http://[::1/a", "Invalid IPv6 URL"),
    ],
)
def test_why_a_url_leads_nowhere(url: str, words: str) -> None:
    assert downloads.no_host(url) == words


def answered(code: int) -> urllib.error.HTTPError:
    return urllib.error.HTTPError("http://host", code, "", email.message.Message(), io.BytesIO())


@pytest.mark.parametrize(
    ("error", "final"),
    [
        (answered(404), True),
        (answered(499), True),
        (answered(500), False),
        (answered(503), False),
        (ConnectionResetError(), False),
        (TimeoutError(), False),
        (urllib.error.URLError("no route"), False),
        (http.client.IncompleteRead(b""), False),
        (http.client.InvalidURL(), True),
        (FileNotFoundError(), True),
        (PermissionError(), True),
        (ValueError("no URL"), True),
        (ImportError("s3fs"), True),
        (KeyError("of a library"), True),
    ],
)
def test_what_the_next_try_would_not_change(error: Exception, final: bool) -> None:
    assert downloads.is_final(error) == final
    if isinstance(error, urllib.error.HTTPError):
        error.close()


@pytest.mark.parametrize(
    ("url", "target", "words"),
    [
        ("http://a/x", "https://b/y", ""),
        ("http://a/x", "http://b/y", ""),
        ("https://a/x", "HTTPS://b/y", ""),
        ("https://a/x", "http://b/y", "leads on to http://b/y, which is not https://$"),
        ("HTTPS://a/x", "http://b/y", "which is not https://$"),
        ("http://a/x", "ftp://b/y", "which is not https:// or http://$"),
        ("http://a/x", "file:///etc/passwd", "which is not https:// or http://$"),
        ("http://a/x", "http:///y", "which is no URL: it names no host$"),
    ],
)
def test_where_a_server_may_lead_on_to(url: str, target: str, words: str) -> None:
    """No password goes over a line that everybody can read, because of a server."""
    body = io.BytesIO(b"endless")
    given = (urllib.request.Request(url), body, 302, "Found", email.message.Message(), target)
    if words:
        with pytest.raises(ValueError, match=words):
            downloads._Redirects().redirect_request(*given)
    else:
        request = downloads._Redirects().redirect_request(*given)
        assert request is not None and request.full_url == target
    assert body.closed, "what comes with it is not read"
