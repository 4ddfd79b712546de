"""The data of starting projects: the same each time, of the right form, and not too large."""

from __future__ import annotations

import csv
import io
import json
import struct

import numpy as np
import pytest

from akrunner.folders import png
from akrunner.starters import data


@pytest.mark.parametrize("name", data.MADE)
def test_they_are_the_same_each_time_and_small(name: str) -> None:
    made = data.MADE[name]()
    assert made == data.MADE[name]()
    assert sum(map(len, made.values())) < 1_000_000
    assert not [path for path in made if path.startswith("/") or ".." in path]


def rows(content: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(content.decode())))


def test_flats_have_nulls_and_a_rent_that_follows_from_the_area() -> None:
    made = data.flats()
    known, new = rows(made["flats.csv"]), rows(made["new.csv"])
    assert (len(known), len(new)) == (800, 20) and list(known[0]) == [*new[0], "rent"]
    assert 20 < sum(not row["age"] for row in known) < 120
    area, rent = (np.array([float(row[name]) for row in known]) for name in ("area", "rent"))
    assert np.corrcoef(area, rent)[0, 1] > 0.7 and rent.min() > 0


def test_messages_are_of_all_topics_and_their_days_are_filled_in() -> None:
    made = data.messages()
    known, new = rows(made["messages.csv"]), rows(made["new.csv"])
    assert (len(known), len(new)) == (900, 20)
    assert {row["topic"] for row in known} == {"delivery", "billing", "technical"}
    assert not [row for row in (*known, *new) if "{" in row["text"] or not row["text"]]
    # no message says its topic
    assert len({row["text"] for row in known}) > 800


def test_shapes_are_whole_images_that_fill_a_part_of_their_ground() -> None:
    made = data.shapes()
    assert [path.split("/")[1] for path in made if path.startswith("shapes/")] == [
        one for one in ("circle", "square", "triangle") for _ in range(80)
    ]
    assert sum(path.startswith("new/") for path in made) == 9
    for content in made.values():
        assert struct.unpack(">II", content[16:24]) == (data.SIDE, data.SIDE)
        assert png.fault(content) is None


def test_ratings_are_stars_of_different_pairs() -> None:
    made = rows(data.ratings()["ratings.csv"])
    assert len({(row["user"], row["film"]) for row in made}) == len(made) == 6000
    assert {row["stars"] for row in made} == {"1", "2", "3", "4", "5"}
    assert max(int(row["user"]) for row in made) == 199 and max(int(row["film"]) for row in made) == 119


def test_readings_change_half_way() -> None:
    made = [json.loads(line) for line in data.readings()["readings.jsonl"].splitlines()]
    assert [row["id"] for row in made] == list(range(6000))

    def slope(some: list[dict[str, float]]) -> float:
        return float(np.polyfit([row["load"] for row in some], [row["power"] for row in some], 1)[0])

    assert slope(made[:3000]) == pytest.approx(5.0, abs=0.2) and slope(made[3000:]) == pytest.approx(7.0, abs=0.2)
