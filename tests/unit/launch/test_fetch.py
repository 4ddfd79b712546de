"""User files from anywhere: a real server, real files."""

from __future__ import annotations

import base64
import concurrent.futures
import hashlib
import http.server
import itertools
import os
import socket
import threading
import time
import types
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from akrunner.errors import JobTimeoutError, UserFilesError
from akrunner.io.limits import limited
from akrunner.launch import downloads, timed
from akrunner.launch.fetch import fetch


class Server(http.server.BaseHTTPRequestHandler):
    asked: list[str] = []
    failures = 0

    def do_GET(self) -> None:
        self.asked.append(self.path)
        if self.path == "/gone.py":
            self.send_error(404)
            return
        if Server.failures > 0:
            Server.failures -= 1
            self.send_error(503)
            return
        body = b"def main(c): pass\n"
        self.send_response(200)
        self.send_header("Content-Length", str(len(body) + (10 if self.path == "/short.py" else 0)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: object) -> None: ...


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[str]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(downloads.time, "sleep", lambda seconds: None)
    Server.asked.clear()
    Server.failures = 0
    running = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
    thread = threading.Thread(target=running.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{running.server_port}"
    running.shutdown()
    running.server_close()
    thread.join()


BODY = b"def main(c): pass\n"
DIGEST = hashlib.sha256(BODY).hexdigest()


def test_downloads(server: str) -> None:
    got = fetch(f"{server}/my%20train.py?version=3", "user_files")
    assert Path(got.path).name == "my train.py" and Path(got.path).read_bytes() == BODY and got.name == ""
    Server.failures = 2
    assert Path(fetch(f"{server}/train.py#other.py", "user_files").path).read_bytes() == BODY
    assert fetch(f"{server}/train.py#other.py", "user_files").name == "other.py"


def test_a_checksum(server: str) -> None:
    url = f"{server}/train.py#sha256={DIGEST}&b.py"
    assert fetch(url, "user_files").name == "b.py"
    before = len(Server.asked)
    fetch(url, "user_files")
    assert len(Server.asked) == before, "what has the right checksum is not downloaded again"
    with pytest.raises(UserFilesError, match=f"has sha256 {DIGEST}, not the 000"):
        fetch(f"{server}/train.py#sha256={'0' * 64}", "user_files")
    with pytest.raises(UserFilesError, match="64 hexadecimal digits"):
        fetch(f"{server}/train.py#sha256=12", "user_files")


def test_what_cannot_be_had(server: str, tmp_path: Path) -> None:
    with pytest.raises(UserFilesError, match=r"script: cannot download .*HTTP 404: there is nothing of that name$"):
        fetch(f"{server}/gone.py", "script")
    assert Server.asked.count("/gone.py") == 1, "what is not there is not asked for again"
    Server.failures = 3
    with pytest.raises(UserFilesError, match=r"503.*\(3 tries\)"):
        fetch(f"{server}/train.py", "script")
    with pytest.raises(UserFilesError, match="broke off after 18 of 28 bytes|IncompleteRead|3 tries"):
        fetch(f"{server}/short.py", "script")
    with pytest.raises(UserFilesError, match="cannot download nonsense://a/b"):
        fetch("nonsense://a/b", "script")
    with pytest.raises(UserFilesError, match="cannot connect: nobody listens"):
        fetch("http://127.0.0.1:9/x.py", "script")
    with pytest.raises(UserFilesError, match="would lie outside the work dir"):
        fetch(f"{server}/a.zip#../b", "user_files")


def test_local(tmp_path: Path) -> None:
    path = tmp_path / "a#b.py"
    path.write_bytes(BODY)
    assert fetch(path, "user_files").path == str(path), "a file may have a # in its name"
    plain = tmp_path / "c.py"
    plain.write_bytes(BODY)
    assert fetch(f"{plain}#d.py&sha256={DIGEST}", "user_files").name == "d.py"
    assert fetch(plain.as_uri(), "user_files").path == str(plain)
    with pytest.raises(UserFilesError, match="there is no .*nothing.py"):
        fetch(f"file://{tmp_path}/nothing.py", "user_files")


def test_anything_fsspec_opens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import fsspec

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with fsspec.open("memory://there/train.py", "wb") as f:
        f.write(BODY)
    assert Path(fetch("memory://there/train.py", "user_files").path).read_bytes() == BODY


def test_a_store_that_sends_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import fsspec.implementations.memory

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(downloads, "SLOWEST_SECONDS", 0.05)
    monkeypatch.setattr(downloads.time, "sleep", lambda seconds: None)
    over = threading.Event()
    monkeypatch.setattr(fsspec.implementations.memory.MemoryFile, "read", lambda *given: over.wait(60) and b"")
    with fsspec.open("memory://there/late.py", "wb") as f:
        f.write(BODY)
    try:
        with pytest.raises(
            UserFilesError, match=r"cannot download memory://there/late.py: it has sent nothing for 0.05 s \(3 tries\)"
        ):
            fetch("memory://there/late.py", "user_files")
    finally:
        over.set()
    assert not list((tmp_path / "cache").rglob("*.partial"))


def test_a_store_that_hardly_sends(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = itertools.count(0, 20)
    monkeypatch.setattr(timed, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    with pytest.raises(OSError, match="it sends less than 16 bytes in 60 s"):
        list(timed.timed((piece for piece in [b"x"] * 9), 60, 16))
    before = threading.enumerate()
    assert list(timed.timed((piece for piece in [b"x" * 16] * 9), 60, 16)) == [b"x" * 16] * 9
    assert set(threading.enumerate()) <= set(before)


def test_a_store_is_closed_when_nobody_wants_more() -> None:
    closed = threading.Event()

    def pieces() -> Iterator[bytes]:
        try:
            while True:
                yield b"x"
        finally:
            closed.set()

    before = threading.enumerate()
    drawn = timed.timed(pieces(), 60, 1)
    assert next(drawn) == b"x"
    drawn.close()
    assert closed.is_set() and set(threading.enumerate()) <= set(before)


# -- servers that mean no good


class Hostile(http.server.BaseHTTPRequestHandler):
    """What it does stands in the path."""

    protocol_version = "HTTP/1.1"
    asked: list[str] = []

    def do_GET(self) -> None:
        self.asked.append(self.path)
        name = self.path.strip("/").partition("/")[0].partition("?")[0]
        try:
            getattr(self, "do_" + name.replace("-", "_"))()
        except OSError:
            pass  # whoever asked has gone
        self.close_connection = True

    def answer(self, code: int = 200, **headers: str) -> None:
        self.send_response(code)
        for header, value in headers.items():
            self.send_header(header.replace("_", "-"), value)
        self.end_headers()

    def do_endless(self) -> None:
        self.answer(Transfer_Encoding="chunked")
        while True:
            self.wfile.write(b"100000\r\n" + bytes(1 << 20) + b"\r\n")

    def do_announced(self) -> None:
        self.answer(Content_Length=str(1 << 50))

    def do_longer(self) -> None:
        self.answer(Content_Length="5")
        self.wfile.write(b"12345" + b"6" * 1000)

    def do_nonsense(self) -> None:
        self.answer(Content_Length="-7")
        self.wfile.write(b"12345")

    def do_stalls(self) -> None:
        self.answer(Content_Length="100")
        self.wfile.write(b"1")
        self.wfile.flush()
        self.rfile.read(1)

    def do_drips(self) -> None:
        self.answer(Content_Length=str(1 << 20))
        while True:
            self.wfile.write(b"1")
            self.wfile.flush()
            time.sleep(0.01)

    def do_drips_headers(self) -> None:
        self.wfile.write(b"HTTP/1.1 200 OK\r\n")
        while True:
            self.wfile.write(b"X")
            self.wfile.flush()
            time.sleep(0.01)

    def do_loop(self) -> None:
        self.answer(302, Location=self.path, Content_Length="0")

    def do_to_file(self) -> None:
        self.answer(302, Location="file:///etc/passwd", Content_Length="0")

    def do_to_ftp(self) -> None:
        self.answer(302, Location="ftp://127.0.0.1/x?token=geheim", Content_Length="0")

    def do_moved(self) -> None:
        self.answer(302, Location="/ok/moved.py", Content_Length="0")

    def do_moved_endless(self) -> None:
        self.answer(302, Location="/ok/moved.py", Transfer_Encoding="chunked")
        while True:
            self.wfile.write(b"100000\r\n" + bytes(1 << 20) + b"\r\n")

    def do_ok(self) -> None:
        self.answer(Content_Length=str(len(BODY)))
        self.wfile.write(BODY)

    def do_who(self) -> None:
        told = self.headers.get("Authorization", "nobody").encode()
        self.answer(Content_Length=str(len(told)))
        self.wfile.write(told)

    def do_garbage(self) -> None:
        self.wfile.write(os.urandom(3000))

    def log_message(self, *arguments: object) -> None: ...


@pytest.fixture
def hostile(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[str]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(downloads, "SILENCE", 0.3)
    monkeypatch.setattr(downloads, "SLOWEST_SECONDS", 0.4)
    monkeypatch.setattr(downloads, "_TRIES", 1)
    Hostile.asked.clear()
    running = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hostile)
    running.daemon_threads = True
    thread = threading.Thread(target=running.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{running.server_port}"
    running.shutdown()
    running.server_close()
    thread.join()
    left = [path.name for path in (tmp_path / "cache").rglob("*.partial")]
    # nor the directory of one that did not come
    left += [path.name for path in (tmp_path / "cache").glob("akrunner/downloads/*") if not any(path.iterdir())]
    assert not left, left


@pytest.mark.parametrize(
    ("path", "words"),
    [
        (
            "endless/a.bin#max=5MB",
            r"has more than 5 MB; if it should, write http://.*/endless/a.bin#max=10MB, or set AKRUNNER_MAX_DOWNLOAD=10MB",
        ),
        ("announced/a.bin", r"has more than 17.2 GB; if it should, write .*#max=1125900GB"),
        ("stalls/a.bin", "no answer in time"),
        ("drips/a.bin", "it sends less than 16.4 kB in 0.4 s"),
        ("drips-headers/a.bin", "it sends less than 16.4 kB in 0.4 s"),
        ("loop/a.bin", "infinite loop"),
        ("to-file/a.bin", "'file:///etc/passwd' is not allowed"),
        ("to-ftp/a.bin", r"it leads on to ftp://127.0.0.1/x\?token=\*\*\*, which"),
        ("garbage/a.bin", "cannot download"),
        ("ok/..%2f..%2f..", "names no file"),
        ("ok/%00a.py", "names no file"),
        ("ok/a%5c..%5cb.py", "names no file"),
        ("ok/a%0ab.py", "names no file"),
        ("ok/" + "x" * 256, "names no file"),
        ("ok/", r"names no file: '' .*; give it a name, http://.*/ok/#name"),
    ],
)
def test_servers_that_mean_no_good(hostile: str, tmp_path: Path, path: str, words: str) -> None:
    with pytest.raises(UserFilesError, match=words) as e:
        fetch(f"{hostile}/{path}", "user_files")
    assert str(e.value).startswith("user_files: ")
    assert not [p for p in tmp_path.rglob("*") if p.is_file()], "nothing is kept of it"


def test_names_from_outside(hostile: str, tmp_path: Path) -> None:
    """It is unquoted first, then it is what stands behind the last /."""
    for path, name in (
        ("ok/..%2f..%2f.bashrc", ".bashrc"),
        ("moved/%2e%2e%2fx.py", "x.py"),
        ("moved-endless/y", "y"),
        ("ok/#n.py", "download"),
    ):
        got = Path(fetch(f"{hostile}/{path}", "user_files").path)
        assert got.name == name and got.read_bytes() == BODY
        assert got.parent.parent == tmp_path / "cache" / "akrunner" / "downloads"
    assert Path(fetch(f"{hostile}/longer/a", "user_files").path).read_bytes() == b"12345"
    assert Path(fetch(f"{hostile}/nonsense/a", "user_files").path).read_bytes() == b"12345"


def test_passwords(hostile: str) -> None:
    """They go to the host they are for, and into no error."""
    place = hostile.removeprefix("http://")
    got = Path(fetch(f"http://user:p%40ss%2Fword@{place}/who/a", "user_files").path)
    assert got.read_bytes() == b"Basic " + base64.b64encode(b"user:p@ss/word")
    for url in (f"http://user:geheim@{place}/loop/a", f"{hostile}/loop/a?X-Amz-Signature=geheim&token=geheim"):
        for more in ("", "#max=0", "#sha256=1", "#../x"):
            with pytest.raises(UserFilesError) as e:
                fetch(url + more, "user_files")
            assert "geheim" not in str(e.value) and "***" in str(e.value)


@pytest.mark.parametrize("url", ["http://u:secret@[::1/x.py", "http://u:secret@\u2100.com/x.py"])
def test_what_is_no_url(url: str) -> None:
    with pytest.raises(UserFilesError, match="user_files: .*: its port is no number") as caught:
        fetch(url, "user_files")
    assert "secret" not in str(caught.value)


def test_the_cache_is_the_users_alone(hostile: str, tmp_path: Path) -> None:
    wide = tmp_path / "cache" / "akrunner" / "downloads"
    wide.mkdir(parents=True)
    for folder in (wide, wide.parent):
        folder.chmod(0o777)
    before = os.umask(0)
    try:
        got = Path(fetch(f"{hostile}/ok/a.py", "user_files").path)
    finally:
        os.umask(before)
    assert got.stat().st_mode & 0o777 == 0o600
    assert [p.stat().st_mode & 0o777 for p in (got.parent, wide, wide.parent)] == [0o700] * 3


@pytest.mark.parametrize("path", ["stalls/a.bin", "drips/a.bin", "drips-headers/a.bin"])
def test_a_download_has_no_more_time_than_its_job(path: str, hostile: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(downloads, "SILENCE", 30.0)
    monkeypatch.setattr(downloads, "SLOWEST_SECONDS", 30.0)
    monkeypatch.setattr(downloads, "_TRIES", 3)
    with limited(0.2, None):
        assert Path(fetch(f"{hostile}/ok/a.py", "script").path).read_bytes() == BODY
        with pytest.raises(JobTimeoutError, match=rf"timeout=0\.2 s .* the download of {hostile}/{path} \(script\)$"):
            fetch(f"{hostile}/{path}", "script")
        # nor is anything begun without time
        Hostile.asked.clear()
        with pytest.raises(JobTimeoutError, match="the download of"):
            fetch(f"{hostile}/ok/a.py", "script")
        assert not Hostile.asked


@pytest.mark.slow
def test_the_pause_before_another_try_is_in_the_time_of_the_job(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    Server.failures = 9
    slept: list[float] = []
    monkeypatch.setattr(downloads.time, "sleep", slept.append)
    monkeypatch.setattr(downloads, "check_time", lambda what: 0.1)
    with pytest.raises(UserFilesError, match=r"\(3 tries\)$"):
        fetch(f"{server}/a.py", "user_files")
    # other threads sleep, too
    assert slept.count(0.1) == 2 and 0.5 not in slept


def test_a_store_has_no_more_time_than_its_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import fsspec.implementations.memory

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    over = threading.Event()
    monkeypatch.setattr(fsspec.implementations.memory.MemoryFile, "read", lambda *given: over.wait(60) and b"")
    with fsspec.open("memory://there/late.py", "wb") as f:
        f.write(BODY)
    try:
        with limited(0.1, None), pytest.raises(JobTimeoutError, match=r"the download of memory://there/late\.py \(model\)$"):
            fetch("memory://there/late.py", "model")
    finally:
        over.set()
    assert not list((tmp_path / "cache").rglob("*.partial"))


def test_two_at_a_time(hostile: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # the server's queue is short: some wait until the system tries once more to reach it
    monkeypatch.setattr(downloads, "SILENCE", 30.0)
    monkeypatch.setattr(downloads, "SLOWEST_SECONDS", 30.0)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        got = set(pool.map(lambda _: fetch(f"{hostile}/ok/a.py", "user_files").path, range(24)))
    assert len(got) == 1 and Path(got.pop()).read_bytes() == BODY


def test_no_room_for_a_download(hostile: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cache").write_text("a file")
    with pytest.raises(UserFilesError, match=r"user_files: cannot keep downloads in the cache, .* \(XDG_CACHE_HOME\)"):
        fetch(f"{hostile}/ok/a.py", "user_files")


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/null", "/proc/self/environ", "/sys/kernel/notes"])
def test_what_is_no_file(path: str, tmp_path: Path) -> None:
    for given in (path, f"file://{path}", f"{path}#a.bin"):
        with pytest.raises(UserFilesError, match=r"requirements: .* is (a device|made up by the system)"):
            fetch(given, "requirements")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UserFilesError, match=r"script: .*/pipe is a pipe, not a file"):
        fetch(tmp_path / "pipe", "script")


@pytest.mark.parametrize("given", ["", "a\0b", b"a", None, 7, "x#max=many", "x#max=0", "x#a&b", "s3://"])
def test_what_is_no_path(given: Any) -> None:
    with pytest.raises(UserFilesError, match="^user_files: "):
        fetch(given, "user_files")


def test_the_addresses_of_a_host_have_the_time_together(hostile: str, monkeypatch: pytest.MonkeyPatch) -> None:
    port = int(hostile.rpartition(":")[2])
    given: list[tuple[Any, float | None]] = []
    now = [100.0]
    here = threading.get_ident()

    class Deaf(socket.socket):
        def connect(self, place: Any) -> None:
            # threads of other tests may connect meanwhile
            if threading.get_ident() == here:
                given.append((place[0], self.gettimeout()))
            if place[0] != "127.0.0.1":
                now[0] += self.gettimeout() or 0.0
                raise TimeoutError("timed out")
            super().connect(place)

    def addresses(*names: str) -> Any:
        # the last is of a family that nobody has
        families = [-1 if name == "none" else socket.AF_INET for name in names]
        return lambda *_: [(family, socket.SOCK_STREAM, 0, "", (name, port)) for family, name in zip(families, names)]

    with monkeypatch.context() as patched:
        patched.setattr(downloads.socket, "socket", Deaf)
        patched.setattr(downloads.socket, "getaddrinfo", addresses("10.0.0.1", "10.0.0.2", "10.0.0.3"))
        # a clock of the test's own, which goes on by as much as is waited
        patched.setattr(downloads, "time", types.SimpleNamespace(monotonic=lambda: now[0]))
        with pytest.raises(TimeoutError):
            downloads._connected(("host", port), 0.3)
        assert [seconds for _, seconds in given] == pytest.approx([0.1, 0.1, 0.1])
        patched.setattr(downloads.socket, "getaddrinfo", addresses("none", "10.0.0.1", "127.0.0.1"))
        with downloads._connected(("host", port), 0.3) as connection:
            assert connection.gettimeout() == 0.3
        patched.setattr(downloads.socket, "getaddrinfo", addresses())
        with pytest.raises(OSError, match="host has no address"):
            downloads._connected(("host", port), 0.3)
