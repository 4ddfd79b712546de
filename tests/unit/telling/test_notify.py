"""Telling a URL or a function of the end of a job, and what becomes of it if that fails."""

from __future__ import annotations

import http.server
import json
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from akrunner.errors import ConfigError
from akrunner.telling import notify
from akrunner.telling.notify import Notify, check_notify, shown


class Hook:
    """A server that keeps what it is POSTed. Attributes: answers: its next codes, then 200; seconds: how long it waits before each; came: (path, headers, body)."""

    def __init__(self) -> None:
        self.answers: list[int] = []
        self.wait = threading.Event()
        self.slow = False
        self.came: list[tuple[str, Any, Any]] = []
        hook = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                hook.came.append((self.path, self.headers, body))
                if hook.slow:
                    hook.wait.wait(30)
                self.send_response(hook.answers.pop(0) if hook.answers else 200)
                self.send_header("Location", "/elsewhere")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *args: Any) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()
        self.place = f"127.0.0.1:{self._server.server_address[1]}"

    def close(self) -> None:
        self.wait.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hook]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(notify, "_PAUSE", 0.01)
    made = Hook()
    yield made
    made.close()


def test_a_url_gets_the_object(hook: Hook) -> None:
    assert Notify(f"http://{hook.place}/a/T0KEN?x=1#gone").tell({"ok": True, "x": float("nan")}) is None
    [(path, headers, body)] = hook.came
    assert path == "/a/T0KEN?x=1" and body == {"ok": True, "x": None}
    assert headers["Content-Type"] == "application/json" and "Authorization" not in headers


def test_a_user_and_a_password_are_basic_authentication(hook: Hook) -> None:
    assert Notify(f"http://me:p%40ss@{hook.place}/").tell({}) is None
    assert hook.came[0][1]["Authorization"] == "Basic bWU6cEBzcw=="


@pytest.mark.parametrize(
    ("answers", "tries", "told"),
    [
        ([503, 429], 3, None),
        ([500, 502, 504], 3, "it answered 504 Gateway Timeout"),
        ([404], 1, "it answered 404 Not Found"),
        # it would become a GET, or tell a stranger
        ([302], 1, "it answered 302 Found"),
    ],
)
def test_it_is_tried_again_where_that_may_help(answers: list[int], tries: int, told: str | None, hook: Hook) -> None:
    hook.answers = list(answers)
    warning = Notify(f"http://{hook.place}/T0KEN").tell({"ok": True})
    assert len(hook.came) == tries
    expected = (
        None if told is None else f"notify: http://{hook.place} was not told of the end of the job: {told} (notify=, --notify)"
    )
    assert warning == expected


def test_a_server_that_does_not_answer_is_given_up(hook: Hook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notify, "_HASTY_SECONDS", 0.2)
    hook.slow = True
    began = time.monotonic()
    warning = Notify(f"http://{hook.place}/").tell({}, hasty=True)
    assert time.monotonic() - began < 10 and len(hook.came) == 1
    assert warning is not None and warning.endswith("it has not answered within 0.2 s (notify=, --notify)")


def test_a_server_that_is_not_there_is_a_warning(hook: Hook) -> None:
    hook.close()
    warning = Notify(f"http://u:secret@{hook.place}/T0KEN").tell({}, hasty=True)
    assert warning is not None and "nobody listens there" in warning and "T0KEN" not in warning and "secret" not in warning


@pytest.mark.parametrize("error", [UnicodeError("label empty or too long"), RuntimeError("can't start new thread")])
def test_whatever_goes_wrong_is_a_warning(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def heard(*given: Any) -> None:
        raise error

    monkeypatch.setattr(notify, "heard", heard)
    warning = Notify("http://h/T0KEN").tell({}, hasty=True)
    assert warning is not None and warning.startswith("notify: http://h was not told of the end of the job: ")


def test_a_function_gets_a_dict_and_may_fail() -> None:
    seen: list[Any] = []
    assert Notify(seen.append).tell({"ok": True, "shares": (1, 2)}) is None
    assert seen == [{"ok": True, "shares": [1, 2]}]
    assert (
        Notify(lambda body: 1 / 0).tell({})
        == "notify: the function raised ZeroDivisionError: division by zero (notify=, --notify)"
    )


@pytest.mark.parametrize(
    "wrong", ["hooks.example.com/T0KEN", "ftp://h/T0KEN", "http:///T0KEN", "http://h:x/T0KEN", "http://h/T0KEN y", "http://hooks..example.com/T0KEN", "http://h/T0KEN\u00e4", "", 7, ["http://h/T0KEN"]]
)  # fmt: skip
def test_what_cannot_be_told_is_refused_without_its_secret(wrong: Any) -> None:
    with pytest.raises(ConfigError, match="^notify: ") as raised:
        check_notify(wrong)
    assert "T0KEN" not in str(raised.value)


def test_what_a_message_shows_of_a_url() -> None:
    assert shown("https://me:secret@h.example:8443/T0KEN?key=x") == "https://h.example:8443"
