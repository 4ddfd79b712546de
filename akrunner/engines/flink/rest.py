"""A Flink cluster's REST address: what it has, what runs there, and its end."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any, Iterator

from akrunner.errors import ConfigError

_SECONDS = 30.0
ENDED = ("FINISHED", "FAILED", "CANCELED", "SUSPENDED")


class Rest:
    """Args: master: "host:port". Every method raises ConfigError when no Flink answers there, or it has no such thing."""

    def __init__(self, master: str) -> None:
        if not master.rpartition(":")[2].isdigit():
            raise ConfigError(f"master={master!r}: give 'host:port' of the cluster's REST address")
        self.master = master

    def get(self, path: str) -> Any:
        """The JSON there."""
        with self._open(path) as answer:
            try:
                return json.load(answer)
            except ValueError as e:
                raise ConfigError(f"master={self.master!r}: what answers is not Flink: {e}") from None

    def free_slots(self) -> int:
        """Task slots no job has."""
        overview = self.get("/overview")
        if not isinstance(overview, dict) or "slots-available" not in overview:
            raise ConfigError(f"master={self.master!r}: what answers is not Flink")
        return int(overview["slots-available"])

    def cancel(self, job: str) -> None:
        """Ask for its end."""
        self._open(f"/jobs/{job}?mode=cancel", "PATCH").close()

    def log(self, taskmanager: str) -> Iterator[str]:
        """The lines of a TaskManager's log."""
        with self._open(f"/taskmanagers/{taskmanager}/log") as answer:
            for line in answer:
                yield line.decode("utf-8", "replace").rstrip("\n")

    def _open(self, path: str, method: str = "GET") -> Any:
        url = f"http://{self.master}{path}"
        try:
            return urllib.request.urlopen(urllib.request.Request(url, method=method), timeout=_SECONDS)
        except urllib.error.HTTPError as e:
            with e:
                if e.code == 404:
                    raise ConfigError(f"master={self.master!r}: there is no {url}") from None
                raise ConfigError(f"master={self.master!r}: {url} answers {e.code} {e.reason}") from None
        except (OSError, ValueError) as e:
            raise ConfigError(f"master={self.master!r}: no Flink cluster answers at {url}: {e}") from None
