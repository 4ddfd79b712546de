"""Pages that are served: to whom, and what."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from akrunner.errors import ConfigError
from akrunner.history import record, series
from akrunner.history.series import Series
from akrunner.reports import page
from akrunner.runs.serving import RunServer
from tests.unit.runs.conftest import Make


@pytest.fixture
def server(make: Make, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunServer]:
    monkeypatch.setattr(page, "library", lambda: "the library")
    with RunServer() as made:
        thread = threading.Thread(target=made.serve_forever, args=(0.01,))
        thread.start()
        yield made
        made.shutdown()
        thread.join()


def asked(server: RunServer, path: str, **headers: str) -> tuple[int, str, Any]:
    """Return status, text and headers of an answer."""
    connection = http.client.HTTPConnection(*server.server_address[:2], timeout=10)  # type: ignore[misc]
    try:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode(), answer.headers
    finally:
        connection.close()


def cookie(server: RunServer) -> dict[str, str]:
    return {"Cookie": f"akrunner-{server.server_address[1]}={server.token}"}


def test_the_token_becomes_a_cookie_and_leaves_the_address(server: RunServer) -> None:
    assert server.url == f"http://127.0.0.1:{server.server_address[1]}/?token={server.token}" and len(server.token) >= 32
    status, _, headers = asked(server, f"/?token={server.token}")
    assert status == 303 and headers["Location"] == "/"
    assert headers["Set-Cookie"] == f"{cookie(server)['Cookie']}; HttpOnly; SameSite=Strict; Path=/"
    assert asked(server, f"/runs/r1?token={server.token}")[2]["Location"] == "/runs/r1"
    assert asked(server, f"//evil.example/?token={server.token}")[2]["Location"] == "/"


def test_who_does_not_know_it_gets_nothing(server: RunServer, make: Make) -> None:
    make()
    port = server.server_address[1]
    for headers in (
        {},
        {"Cookie": f"akrunner-{port}=wrong"},
        {"Cookie": 'akrunner-1="'},
        {"Cookie": f"akrunner-{port}=\x7f\xe9"},
    ):
        status, text, _ = asked(server, "/", **headers)
        assert status == 403 and "r1" not in text and server.token not in text
    assert asked(server, "/?token=wrong")[0] == 403
    # a name of another site that leads to this machine
    assert asked(server, "/", **cookie(server), Host=f"evil.example:{port}")[0] == 403
    assert asked(server, "/", **cookie(server), Host=f"localhost:{port}")[0] == 200


@pytest.mark.parametrize("other", ['x={"a":1}', "foo[bar]=1", '"', "=", "akrunner-1=wrong"])
def test_cookies_of_other_programs_do_not_matter(other: str, server: RunServer) -> None:
    own = cookie(server)["Cookie"]
    for line in (f"{other}; {own}", f"{own};{other}"):
        assert asked(server, "/", Cookie=line)[0] == 200
    assert asked(server, "/", Cookie=f"{other}; {own}x")[0] == 403


def test_what_is_no_address_and_a_page_that_cannot_be_made_are_answered(
    server: RunServer, make: Make, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    make()
    with socket.create_connection(server.server_address[:2], timeout=10) as connection:  # type: ignore[arg-type]
        connection.sendall(f"GET http://[ HTTP/1.0\r\nHost: localhost:{server.server_address[1]}\r\n\r\n".encode())
        assert b" 400 " in connection.makefile("rb").readline()
    monkeypatch.setattr(page, "told", lambda *_: 1 // 0)
    status, text, _ = asked(server, "/runs/r1", **cookie(server))
    assert status == 500 and "ZeroDivisionError" in text
    # a line, and no traceback
    assert capfd.readouterr().err.count("\n") == 1


def test_it_listens_on_this_machine_alone(server: RunServer) -> None:
    assert server.server_address[0] == "127.0.0.1"
    with pytest.raises(ConfigError, match=r"port=\d+: .*; --port 0 takes one that is free"):
        RunServer(server.server_address[1])


def test_runs_are_listed_and_shown(server: RunServer, make: Make) -> None:
    make(state=record.FAILED, error="JobError", message="it failed")
    make()
    status, text, headers = asked(server, "/", **cookie(server))
    assert status == 200 and 'href="/runs/r2"' in text and "it failed" in text and headers["Cache-Control"] == "no-store"
    assert headers["X-Frame-Options"] == "DENY" and headers["Content-Type"] == "text/html; charset=utf-8"
    assert 'href="/runs/r2"' not in asked(server, "/?failed=1", **cookie(server))[1]
    assert "<h1>r1" in asked(server, "/runs/r1", **cookie(server))[1]
    for path in ("/runs/r9", "/runs/../r1", "/runs/last", "/etc/passwd", "/runs/r1/run.json"):
        assert asked(server, path, **cookie(server))[0] == 404, path


def test_what_is_new_of_a_run_that_goes_on(server: RunServer, make: Make) -> None:
    path = make(state=record.RUNNING, ended=None)
    text = asked(server, "/runs/r1", **cookie(server))[1]
    assert 'data-live="yes"' in text and 'data-state="running"' in text and "connect-src 'self'" in text
    metrics = Series(path, series.METRICS)
    metrics.add({"task": "chief:0", "step": 1, "time_ns": 5, "loss": 0.5})
    metrics.close()
    now = json.loads(asked(server, "/runs/r1/now", **cookie(server))[1])
    assert [plot["id"] for plot in now["plots"]] == ["curve-0"] and 'id="curve-0"' in now["body"]


def test_a_browser_that_goes_away_is_no_error(server: RunServer, capfd: pytest.CaptureFixture[str]) -> None:
    with socket.create_connection(server.server_address[:2]) as gone:  # type: ignore[arg-type]
        gone.sendall(b"GET / HTTP/1.1\r\n")
    assert asked(server, "/")[0] == 403
    assert capfd.readouterr().err == ""
