"""`akrunner pack` of URLs: whatever a server does, the run ends soon, in a bounded memory, and says what it was."""

from __future__ import annotations

import contextlib
import http.server
import io
import json
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

import akrunner
from akrunner.folders import pool, remote
from tests import hosts

pytestmark = [pytest.mark.usefixtures("leaves_nothing"), pytest.mark.slow]


def picture() -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (20, 16), "red").save(out, "JPEG")
    return out.getvalue()


_LARGE = 400_000


class _Hostile(http.server.BaseHTTPRequestHandler):
    """What is served is in the name. The server counts, and can be told to be well."""

    server: Any

    def log_message(self, *_: Any) -> None:
        pass

    def do_GET(self) -> None:
        self.close_connection = True
        name = self.path.rpartition("/")[2]
        counts: dict[str, int] = self.server.counts
        counts[name] = counts.get(name, 0) + 1
        with contextlib.suppress(OSError):
            {
                "endless": self._endless,
                "stalls": self._stalls,
                "short": self._short,
                "round": self._round,
                "file": self._to_file,
                "large": self._large,
            }.get(name.partition(".")[0].partition("-")[0], self._other)(name)

    def _headers(self, code: int, *more: Any) -> None:
        self.send_response(code)
        for key, value in more:
            self.send_header(key, value)
        self.end_headers()

    def _endless(self, _: str) -> None:
        self._headers(200, ("Content-Type", "image/jpeg"))
        while True:
            self.wfile.write(bytes(1 << 16))

    def _large(self, _: str) -> None:
        self._headers(200)
        self.wfile.write(picture() + bytes(_LARGE))

    def _stalls(self, _: str) -> None:
        self._headers(200, ("Content-Length", "100000"))
        self.wfile.write(picture())
        self.server.over.wait(60)

    def _short(self, _: str) -> None:
        self._headers(200, ("Content-Length", str(len(picture()) + 9)))
        self.wfile.write(picture())

    def _round(self, name: str) -> None:
        self._headers(302, ("Location", f"/{name}"))

    def _to_file(self, _: str) -> None:
        self._headers(302, ("Location", "file:///etc/passwd"))

    def _other(self, name: str) -> None:
        kind, _, wanted = name.partition(".")[0].partition("-")
        if (kind == "once" and self.server.counts[name] == 1) or (kind == "fails" and not self.server.well):
            self._headers(int(wanted), ("Content-Length", "0"))
            return
        self._headers(200, ("Content-Length", str(len(picture()))))
        self.wfile.write(picture())


@contextlib.contextmanager
def served() -> Iterator[Any]:
    server: Any = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Hostile)
    server.counts, server.well, server.over = {}, False, threading.Event()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server
    finally:
        server.over.set()
        server.shutdown()
        thread.join()
        server.server_close()


def listed(folder: Path, server: Any, *names: str) -> Path:
    path = folder / "list.csv"
    path.write_text("url\n" + "".join(f"http://127.0.0.1:{server.server_port}/{name}\n" for name in names))
    return path


def test_what_servers_do_is_said_in_words_and_what_may_come_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "_PAUSE", 0.01)
    with served() as server:
        names = [
            "good.jpg",
            "once-503.jpg",
            "endless.jpg",
            "short.jpg",
            "round.jpg",
            "file.jpg",
            "fails-500.jpg",
            "fails-404.jpg",
        ]
        every, few = names, [name for name in names if name not in ("short.jpg", "file.jpg")]
        source = listed(tmp_path, server, *every)
        with pytest.raises(akrunner.ReadError, match=r"3 files could not be fetched, 3 broken images"):
            akrunner.pack(source, tmp_path / "out", max_file_size="1MB")
        done = akrunner.pack(source, tmp_path / "out", max_file_size="1MB", bad_rows="skip")
        assert done.rows == 2
        broken = {path.rpartition("/")[2]: why for path, why in done.skipped}
        unfetched = {path.rpartition("/")[2]: why for path, why in done.unfetched}
        assert sorted(broken) == ["endless.jpg", "fails-404.jpg", "file.jpg"]
        assert sorted(unfetched) == ["fails-500.jpg", "round.jpg", "short.jpg"]
        assert "more than 1,000,000 bytes" in broken["endless.jpg"] and "--max-file-size" in broken["endless.jpg"]
        assert "leads on to file:///etc/passwd" in broken["file.jpg"] and "404" in broken["fails-404.jpg"]
        assert "HTTP 500" in unfetched["fails-500.jpg"] and "3 tries" in unfetched["fails-500.jpg"]
        assert "redirected without an end" in unfetched["round.jpg"] and "broke off after" in unfetched["short.jpg"]
        assert done.skipped_rows == done.unfetched_rows == 3
        server.well = True
        again = akrunner.pack(source, tmp_path / "out", bad_rows="skip")
        # 500 and 404 have come to an end, for whoever asks again
        assert (again.rows, again.skipped_rows, again.skipped_before, again.unfetched_rows, again.total_rows) == (2, 2, 2, 2, 4)
        parts = sorted(path.name for path in (tmp_path / "out" / ".pack").glob("0*"))
        again = akrunner.pack(source, tmp_path / "out", bad_rows="skip")
        assert (again.rows, again.skipped_rows, again.skipped_before, again.unfetched_rows) == (0, 2, 2, 2)
        assert sorted(path.name for path in (tmp_path / "out" / ".pack").glob("0*")) == parts, (
            "what is as it was is not noted again"
        )
        told = json.loads((tmp_path / "out" / "dataset.json").read_text())
        assert told["skipped_rows"] == len(told["skipped"]) == 2
        assert sorted(one["path"].rpartition("/")[2] for one in told["unfetched"]) == ["round.jpg", "short.jpg"]
        with pytest.raises(akrunner.ReadError, match=r"2 files could not be fetched, 2 broken images"):
            akrunner.pack(source, tmp_path / "out", max_file_size="1MB")
        # that run began a part, with those that it tried again: each is named once
        again = akrunner.pack(source, tmp_path / "out", max_file_size="1MB", bad_rows="skip")
        names = [path for path, _ in again.skipped]
        # again a part that was begun, of which nothing is new: it goes
        with pytest.raises(akrunner.ReadError, match=r"2 broken images"):
            akrunner.pack(source, tmp_path / "out", max_file_size="1MB")
        once_more = akrunner.pack(source, tmp_path / "out", max_file_size="1MB", bad_rows="skip")
        assert (once_more.skipped_rows, once_more.skipped_before, once_more.skipped) == (2, 2, again.skipped)
        assert not (tmp_path / "out" / ".pack" / f"{int(parts[-1]) + 2:04d}").exists()
        # what never came was not packed, and is not missed
        fewer = akrunner.pack(listed(tmp_path, server, *few), tmp_path / "out", max_file_size="1MB", bad_rows="skip")
        assert [one for one in fewer.warnings if "gone" in one] == []
        source = listed(tmp_path, server, *every)
        dry = akrunner.pack(source, tmp_path / "dry", max_file_size="1MB", dry_run=True)
        said = [one for one in dry.warnings if "learn their sizes" in one]
        assert (
            said[0].startswith("4 of 8 files would not be packed (") and "no other file but 8 to learn their sizes" in said[0]
        )
        assert dry.rows == sum(dry.splits.values()) == 4
        assert not (tmp_path / "dry").exists() and dry.skipped_rows == 0
        assert again.skipped_rows == len(names) == len(set(names)) == 2, again


def test_a_refused_connection_and_a_store_that_is_gone_are_not_broken_images(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "_PAUSE", 0.01)
    with served() as server:
        source = listed(tmp_path, server, "good.jpg")
    # a set without a row is none
    with pytest.raises(akrunner.ReadError, match="the only image could not be fetched: nothing was packed") as caught:
        akrunner.pack(source, tmp_path / "out", bad_rows="skip")
    assert (len(caught.value.broken), len(caught.value.unfetched)) == (0, 1) and not (tmp_path / "out").exists()
    words = [sys.executable, "-m", "akrunner", "pack", str(source), str(tmp_path / "other"), "--json"]
    failed = hosts.run(words, capture_output=True, text=True, timeout=120)
    told = json.loads(failed.stdout)
    assert failed.returncode == 3 and told["unfetched"][0][0].endswith("good.jpg") and "broken" not in told


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_server_that_says_nothing_keeps_nobody_from_ending_the_run(tmp_path: Path, number: int) -> None:
    with served() as server:
        source = listed(tmp_path, server, "good.jpg", "stalls.jpg")
        words = [sys.executable, "-m", "akrunner", "pack", str(source), str(tmp_path / "out")]
        process = hosts.Popen(words, stdout=hosts.PIPE, stderr=hosts.PIPE, text=True)
        deadline = time.monotonic() + 60
        while "stalls.jpg" not in server.counts and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        process.send_signal(number)
        # far less than the server's silence would take
        _, said = process.communicate(timeout=15)
        assert process.returncode == 128 + number, said


def test_large_files_wait_for_each_other_and_stop_when_told() -> None:
    fetcher = remote.Fetcher(1 << 30)
    with served() as server:
        found: list[Any] = []
        url = f"http://127.0.0.1:{server.server_port}/endless.jpg"
        threads = [threading.Thread(target=lambda ticket=i: found.append(fetcher.get(url, -1, ticket))) for i in range(4)]
        for thread in threads:
            thread.start()
        fetcher.stop()
        for thread in threads:
            thread.join(30)
            assert not thread.is_alive()
    assert [data for data, _ in found] == [None] * 4


@pytest.mark.parametrize("form", ["tfrecord", "parquet"])
def test_many_large_files_do_not_add_up_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    limit = 2_000_000
    for name, value in (("_LARGE", 10_000), ("_FIRST", 20_000)):
        monkeypatch.setattr(remote, name, value)
    monkeypatch.setattr(remote.Room.__init__, "__defaults__", (limit,))
    monkeypatch.setattr(pool, "_TOGETHER", 1_000_000)
    held: list[int] = []
    has = remote.Room.has

    def noted(self: remote.Room, ticket: int, size: int) -> bool:
        there = has(self, ticket, size)
        held.append(sum(self._held.values()))
        return there

    monkeypatch.setattr(remote.Room, "has", noted)
    with served() as server:
        table = listed(tmp_path, server, *(f"large-{i}.jpg" for i in range(90)), "fails-404.jpg")
        done = akrunner.pack(table, tmp_path / "out", format=form, bad_rows="skip")
    assert (done.rows, done.bytes > 90 * _LARGE) == (90, True)
    assert 0 < max(held) <= limit + 1_000_000 + 3 * _LARGE
