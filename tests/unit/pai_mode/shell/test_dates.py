"""What `date` prints: now, and the days that daily jobs ask for."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from akrunner.pai_mode.shell.dates import printed

#: 2020-03-01 12:34:56, a Sunday
NOW = 1583066096.7


@pytest.fixture(autouse=True)
def zone() -> Iterator[pytest.MonkeyPatch]:
    """The machine's clock is that of Greenwich, unless a test has another."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("TZ", "UTC0")
        time.tzset()
        yield patched
    time.tzset()


@pytest.mark.parametrize(
    "words, shown",
    [
        (["+%Y%m%d"], "20200301"),
        (["+%F %T"], "2020-03-01 12:34:56"),
        (["+%-m/%-d %e"], "3/1  1"),
        (["+%j %u %w %y %H%M%S"], "061 7 0 20 123456"),
        (["+%s"], "1583066096"),
        (["+100%% %n%t."], "100% \n\t."),
        (["+\u65e5%d"], "\u65e501"),
        (["-I"], "2020-03-01"),
        (["--rfc-3339=date"], "2020-03-01"),
        (["-u", "+%H"], "12"),
    ],
)
def test_now_in_the_form_that_is_asked_for(words: list[str], shown: str) -> None:
    assert printed(words, NOW) == f"{shown}\n"


@pytest.mark.parametrize(
    "asked, shown",
    [
        ("yesterday", "2020-02-29 12:34:56"),
        ("tomorrow", "2020-03-02 12:34:56"),
        ("now", "2020-03-01 12:34:56"),
        ("-1 day", "2020-02-29 12:34:56"),
        ("1 day ago", "2020-02-29 12:34:56"),
        ("-1day", "2020-02-29 12:34:56"),
        ("+2 weeks", "2020-03-15 12:34:56"),
        ("last month", "2020-02-01 12:34:56"),
        ("next year", "2021-03-01 12:34:56"),
        ("3 hours ago", "2020-03-01 09:34:56"),
        ("1 day ago 2 hours ago", "2020-02-29 10:34:56"),
        ("2020-1-2", "2020-01-02 00:00:00"),
        ("2020/01/02", "2020-01-02 00:00:00"),
        ("20200301 -2 months", "2020-01-01 00:00:00"),
        ("20200131 +1 month", "2020-03-02 00:00:00"),
        ("20190131 1 month", "2019-03-03 00:00:00"),
        ("-1 day 20200301", "2020-02-29 00:00:00"),
        ("2020-03-01 10:00", "2020-03-01 10:00:00"),
        ("10:00:05", "2020-03-01 10:00:05"),
        ("20191231 23:59:59 1 second", "2020-01-01 00:00:00"),
        ("@86400", "1970-01-02 00:00:00"),
    ],
)
def test_a_day_that_is_asked_for(asked: str, shown: str) -> None:
    assert printed(["-d", asked, "+%F %T"], NOW) == f"{shown}\n"


def test_the_day_is_asked_for_in_three_spellings() -> None:
    for words in (["-d", "yesterday"], ["-dyesterday"], ["--date=yesterday"], ["--date", "yesterday"]):
        assert printed([*words, "+%d"], NOW) == printed(["+%d", *words], NOW) == "29\n"


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["-d", "yesterday"],
        ["-d"],
        ["+"],
        ["+%Y", "+%m"],
        ["+%Z"],
        ["+%"],
        ["-R"],
        ["-s", "20200101", "+%F"],
        ["-d", "", "+%F"],
        ["-d", "2020-02-30", "+%F"],
        ["-d", "20201301", "+%F"],
        ["-d", "25:00", "+%F"],
        ["-d", "10:60", "+%F"],
        ["-d", "next friday", "+%F"],
        ["-d", "monday", "+%F"],
        ["-d", "day", "+%F"],
        ["-d", "20200101 20200102", "+%F"],
        ["-d", "10:00 11:00", "+%F"],
        ["-d", "-1 day ago", "+%F"],
        ["-d", "2 yesterday", "+%F"],
        ["-d", "yesterday ago", "+%F"],
        ["-d", "10:00 +0800", "+%F"],
        ["-d", "0999-01-01", "+%F"],
        ["-d", "99999999 months", "+%F"],
        ["-d", "yesterday", "-d", "tomorrow", "+%F"],
    ],
)
def test_what_is_not_known_is_not_guessed(words: list[str]) -> None:
    assert printed(words, NOW) is None


def test_a_zone_is_the_machines_unless_the_command_says_otherwise(zone: pytest.MonkeyPatch) -> None:
    zone.setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3")
    time.tzset()
    assert printed(["+%H"], NOW) == "13\n" and printed(["-u", "+%H"], NOW) == "12\n"
    assert printed(["-d", "2020-07-01", "+%s"], NOW) == "1593554400\n"
    assert printed(["-u", "-d", "2020-07-01", "+%s"], NOW) == "1593561600\n"


def test_an_hour_that_a_clock_leaves_out_is_none(zone: pytest.MonkeyPatch) -> None:
    zone.setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3")
    time.tzset()
    assert printed(["-d", "2020-03-29 02:30", "+%F"], NOW) is None
    assert printed(["-d", "2020-03-29 03:30", "+%T"], NOW) == "03:30:00\n"
