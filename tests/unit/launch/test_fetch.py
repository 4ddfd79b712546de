"""User files from anywhere: a real server, real files."""

from __future__ import annotations

import hashlib
import http.server
import threading
from pathlib import Path
from typing import Iterator, List

import pytest

from akrunner.errors import UserFilesError
from akrunner.launch import downloads
from akrunner.launch.fetch import fetch


class Server(http.server.BaseHTTPRequestHandler):
    asked: List[str] = []
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
    thread = threading.Thread(target=running.serve_forever, daemon=True)
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
