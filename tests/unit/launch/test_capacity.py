"""How many tasks a machine could hold: more than anybody wants, and not without end."""

from __future__ import annotations

import resource

import pytest

from akrunner.errors import ConfigError
from akrunner.launch.capacity import check_fits, most_tasks


def test_it_says_how_many_and_why() -> None:
    most, why = most_tasks()
    assert 1 <= most <= 20_000 and why
    with pytest.raises(ConfigError, match=rf"^num_ps={10**9}: this machine holds at most {most} tasks \("):
        check_fits(num_workers=2, num_ps=10**9, parallelism=None)
    with pytest.raises(ConfigError, match="^parallelism="):
        check_fits(num_workers=None, num_ps=None, parallelism=most + 1)


def test_what_is_no_number_is_for_others_to_refuse() -> None:
    check_fits(num_workers="2", num_ps=None, parallelism=object())


@pytest.mark.parametrize(
    "kind, limit, words",
    [
        (resource.RLIMIT_AS, 700 << 20, r"700 MiB of address space \(ulimit -v\)"),
        (resource.RLIMIT_NOFILE, 10, r"10 open files \(ulimit -n\)"),
    ],
)
def test_what_this_process_may_have(kind: int, limit: int, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda asked: (limit if asked == kind else resource.RLIM_INFINITY,) * 2)
    with pytest.raises(ConfigError, match=rf"^this process may have {words}; a job needs at least"):
        check_fits(num_workers=1)
