"""What GNU's `date` prints, for the forms that daily jobs use.

::

    date +%Y%m%d                             now
    date -d yesterday +%F, -d "-1 day"       also "1 day ago", "last month", "2020-03-01 10:00:00", @1583000000
    date -d "20200301 -2 months" +%Y%m%d     20200101; one month after 31 January is the 2nd or 3rd of March, as with GNU's
"""

from __future__ import annotations

import calendar
import datetime
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

_UNITS = {
    "year": ("month", 12), "month": ("month", 1), "fortnight": ("day", 14), "week": ("day", 7), "day": ("day", 1),
    "hour": ("second", 3600), "minute": ("second", 60), "min": ("second", 60), "second": ("second", 1), "sec": ("second", 1),
}  # fmt: skip
_WORDS = {"yesterday": -1, "tomorrow": 1, "today": 0, "now": 0}
_ITEM = re.compile(
    r"\s*(?:(?P<date>\d{8}(?!\d)|\d{4}-\d\d?-\d\d?(?![\d-])|\d{4}/\d\d?/\d\d?(?![\d/]))"
    r"|(?P<time>\d\d?:\d\d(?::\d\d)?(?![\d:.])(?!\s*[-+]))"
    r"|(?P<count>[-+]?\s*\d{1,9}|next|last|)\s*(?P<unit>[a-z]+?)s?(?![a-z])(?P<ago>\s+ago(?![a-z]))?)",
    re.IGNORECASE,
)
_FORMAT = re.compile(r"%(?P<flag>-?)(?P<letter>[YmdHMSFTyjsuwVGUWDRe%nt])|[^%]")


@dataclass
class _When:
    """A parsed date. Attributes: day, clock: the date and time of day, if named; more: months, days and seconds to add."""

    day: tuple[int, int, int] | None = None
    clock: tuple[int, int, int] | None = None
    more: dict[str, int] = field(default_factory=lambda: {"month": 0, "day": 0, "second": 0})


def printed(texts: Sequence[str], now: float) -> str | None:
    """Return what `date` prints, None if it is unknown.

    Args:
        texts: the words after `date`.
        now: the current time, in seconds since 1970.
    """
    shape, asked, universal = "", None, False
    rest = list(texts)
    while rest:
        one = rest.pop(0)
        if one in ("-d", "--date") and rest and asked is None:
            asked = rest.pop(0)
        elif one.startswith(("--date=", "-d")) and one != "-d" and asked is None:
            asked = one[7:] if one.startswith("--date=") else one[2:]
        elif one in ("-u", "--utc", "--universal"):
            universal = True
        elif one in ("-I", "-Idate", "--iso-8601", "--rfc-3339=date") and not shape:
            shape = "%F"
        elif one.startswith("+") and not shape:
            shape = one[1:]
        else:
            return None
    if not shape or not _FORMAT.sub("", shape) == "":
        return None
    moment = int(now) if asked is None else _moment(asked, now, universal)
    if moment is None or time.gmtime(moment).tm_year < 1001:
        # a year of fewer than four digits is printed in another form
        return None
    return _shown(shape, moment, universal) + "\n"


def _moment(text: str, now: float, universal: bool) -> int | None:
    """Return the moment that a text such as "1 day ago" names, in seconds since 1970. None if akrunner cannot read it."""
    stamp = re.fullmatch(r"@(\d{1,11})", text)
    if stamp is not None:
        return int(stamp[1])
    when = _read(text)
    if when is None:
        return None
    here = time.gmtime(now) if universal else time.localtime(now)
    year, month, day = when.day or here[:3]
    named = when.day is not None or when.clock is not None
    clock = when.clock or ((0, 0, 0) if named else here[3:6])
    try:
        datetime.datetime(year, month, day, *clock[:2])
        months = year * 12 + month - 1 + when.more["month"]
        first = datetime.date(months // 12, months % 12 + 1, 1)
        there = first + datetime.timedelta(days=day - 1 + when.more["day"])
        fields = (there.year, there.month, there.day, *clock)
        made = calendar.timegm((*fields, 0, 0, 0)) if universal else int(time.mktime((*fields, 0, 0, -1)))
    except (ValueError, OverflowError):
        return None
    if not universal and tuple(time.localtime(made)[:6]) != fields:
        # this hour does not exist: it is skipped when daylight saving time begins
        return None
    return made + when.more["second"]


def _read(text: str) -> _When | None:
    """Parse the text after `-d`; None if akrunner does not understand all of it."""
    made, at, text = _When(), 0, text.strip()
    if not text:
        return None
    while at < len(text):
        match = _ITEM.match(text, at)
        if match is None or (at and match.start() == match.end()) or not _put(made, match):
            return None
        at = match.end()
        if at < len(text) and not text[at].isspace():
            return None
    return made


def _put(made: _When, match: re.Match[str]) -> bool:
    if match["date"]:
        numbers = re.findall(r"\d+", match["date"])
        if len(numbers) == 1:
            numbers = [numbers[0][:4], numbers[0][4:6], numbers[0][6:]]
        known, made.day = made.day, (int(numbers[0]), int(numbers[1]), int(numbers[2]))
        return known is None
    if match["time"]:
        clock = [*(int(one) for one in match["time"].split(":")), 0]
        before, made.clock = made.clock, (clock[0], clock[1], clock[2])
        return before is None and clock[0] < 24 and clock[1] < 60 and clock[2] < 60
    unit, count = match["unit"].lower(), match["count"].lower().replace(" ", "")
    if unit in _WORDS:
        made.more["day"] += _WORDS[unit]
        return not count and not match["ago"] and match[0].lower().endswith(unit)
    if unit not in _UNITS or not count:
        return False
    number = {"next": 1, "last": -1}.get(count)
    if number is None:
        number = int(re.sub(r"\s", "", count))
        if match["ago"] and count[0] in "-+":
            return False
    kind, times = _UNITS[unit]
    made.more[kind] += number * times * (-1 if match["ago"] else 1)
    return True


def _shown(shape: str, moment: int, universal: bool) -> str:
    there = time.gmtime(moment) if universal else time.localtime(moment)
    own = {"s": str(moment), "%": "%", "n": "\n", "t": "\t"}
    found: list[str] = []
    for match in _FORMAT.finditer(shape):
        letter = match["letter"]
        if not letter:
            found.append(match[0])
            continue
        text = own.get(letter) or time.strftime(f"%{letter}", there)
        found.append((text.lstrip("0 ") or "0") if match["flag"] and letter in "mdHMSjyVUWe" else text)
    return "".join(found)
