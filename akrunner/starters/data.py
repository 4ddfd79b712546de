"""The data of starting projects: small tables and images, made from a seed, with something in them that a model can learn.

Every call returns the same rows, whichever numpy there is: `RandomState` never changes its numbers.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Callable, Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

#: pixels of an image's side
SIDE = 32


def flats() -> Mapping[str, bytes]:
    """Return a table of 800 flats with their rents, in euros a month, and one of 20 flats without rents.

    The rent follows from area (square metres), district, floor, age (years; one in twelve is missing) and balcony, but for about 5 %.
    """
    chance = np.random.RandomState(7)
    count = 820
    districts = np.array(["centre", "harbour", "hills", "north", "west"])
    # euros for a square metre
    price = np.array([17.0, 13.5, 15.0, 9.5, 11.5])
    where = chance.choice(len(districts), count, p=[0.2, 0.15, 0.15, 0.3, 0.2])
    area = np.round(chance.gamma(7.0, 10.0, count) + 18.0)
    floor = chance.randint(0, 7, count)
    age = chance.randint(0, 100, count)
    balcony = chance.randint(0, 2, count)
    rent = 90.0 + area * (price[where] - 0.03 * age) + 12.0 * floor + 45.0 * balcony
    rent = np.round(rent * (1 + 0.05 * chance.randn(count)))
    ages = ["" if missing else str(one) for one, missing in zip(age, chance.rand(count) < 1 / 12, strict=True)]
    names = "id,area,district,floor,age,balcony"
    rows = list(zip(range(count), area.astype(int), districts[where], floor, ages, balcony, rent.astype(int), strict=True))
    return {"flats.csv": _csv(f"{names},rent", rows[:800]), "new.csv": _csv(names, (row[:-1] for row in rows[800:]))}


#: topic -> what people write about it
_SAID: Mapping[str, tuple[str, ...]] = {
    "delivery": (
        "my parcel has not arrived",
        "the courier left the box at the wrong door",
        "tracking has shown the same place since {day}",
        "the package was wet and torn when it came",
        "when will my order be shipped",
        "the driver did not ring, and nobody left a note",
        "it was sent to my old address",
    ),
    "billing": (
        "i was charged twice",
        "the invoice shows the wrong amount",
        "please refund the payment of {day}",
        "my card was declined although it works elsewhere",
        "the discount is missing from the bill",
        "i need a receipt with our tax number",
        "why did the price go up on {day}",
    ),
    "technical": (
        "the app crashes when i open it",
        "i cannot log in, and the password reset sends no mail",
        "the screen stays black after the update",
        "it does not connect to the wifi any more",
        "the page shows an error since {day}",
        "the battery is empty after an hour",
        "the export button does nothing",
    ),
}
_BEFORE = ("hello", "hi there", "good morning", "sorry to bother you again", "dear team", "third message", "")
_AFTER = ("please help", "thanks", "this is urgent", "what should i do", "i am not happy", "can you call me", "")
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "the weekend")


def messages() -> Mapping[str, bytes]:
    """Return a table of 900 messages to a help desk, each with its topic, and a few messages without one.

    One message in five also mentions something of another topic, and one in fifty has the wrong topic, as people make mistakes.
    """
    chance = np.random.RandomState(7)
    topics = tuple(_SAID)

    def pick(some: Iterable[str]) -> str:
        some = tuple(some)
        return some[chance.randint(len(some))]

    def text(topic: str) -> str:
        said = [pick(_BEFORE), pick(_SAID[topic]), pick(_AFTER)]
        if chance.rand() < 0.8:
            # people repeat themselves in other words
            said.insert(2, pick(_SAID[topic]))
        if chance.rand() < 0.2:
            said.insert(3, f"and by the way, {pick(_SAID[pick(topics)])}")
        return ". ".join(one for one in said if one).format(day=pick(_DAYS))

    rows, new = [], []
    for number in range(900):
        topic = pick(topics)
        told = pick(topics) if chance.rand() < 0.03 else topic
        rows.append((number, _quoted(text(topic)), told))
    for number in range(900, 920):
        new.append((number, _quoted(text(pick(topics)))))
    return {"messages.csv": _csv("id,text,topic", rows), "new.csv": _csv("id,text", new)}


def shapes() -> Mapping[str, bytes]:
    """Return 240 images (PNG, 32 x 32, in colours) of circles, squares and triangles, in a folder for each shape, and 9 in no such folder."""
    chance = np.random.RandomState(7)
    found = {}
    for name in ("circle", "square", "triangle"):
        for number in range(80):
            found[f"shapes/{name}/{number:02}.png"] = _png(_drawn(name, chance))
    for number in range(9):
        found[f"new/{number}.png"] = _png(_drawn(("circle", "square", "triangle")[chance.randint(3)], chance))
    return found


def _drawn(name: str, chance: np.random.RandomState) -> NDArray[np.uint8]:
    """Return an image of a shape, `[height, width, 3]` of uint8: of any size, place and colour, on a noisy ground."""
    radius = chance.uniform(7.0, 12.0)
    x, y = chance.uniform(radius, SIDE - radius, 2)
    across, down = np.meshgrid(np.arange(SIDE) + 0.5 - x, np.arange(SIDE) + 0.5 - y)
    if name == "circle":
        inside = across**2 + down**2 < radius**2
    elif name == "square":
        inside = np.maximum(abs(across), abs(down)) < 0.85 * radius
    else:
        # its point is above, its sides fall to a base as wide as the circle
        inside = (down < 0.7 * radius) & (abs(across) < 0.6 * (down + radius))
    ground = chance.randint(0, 110, 3)
    colour = chance.randint(140, 256, 3)
    pixels = np.where(inside[..., None], colour, ground) + 14.0 * chance.randn(SIDE, SIDE, 1)
    whole: NDArray[np.uint8] = np.clip(pixels, 0, 255).astype(np.uint8)
    return whole


def ratings() -> Mapping[str, bytes]:
    """Return a table of 6,000 ratings, 1 to 5 stars, of 120 films by 200 users.

    A user likes films that are near to his taste, which has two numbers, as a film has; some films are liked more by all.
    """
    chance = np.random.RandomState(7)
    users, films, count = 200, 120, 6000
    # two halves of a taste that differ clearly, so that few ratings are enough to find it
    taste = chance.choice([-1.0, 1.0], (users, 2)) + 0.3 * chance.randn(users, 2)
    kind = chance.choice([-1.0, 1.0], (films, 2)) + 0.3 * chance.randn(films, 2)
    liked = 0.4 * chance.randn(films)
    pairs = chance.choice(users * films, count, replace=False)
    user, film = pairs // films, pairs % films
    stars = 3.2 + liked[film] + 0.6 * (taste[user] * kind[film]).sum(axis=1) + 0.3 * chance.randn(count)
    stars = np.clip(np.round(stars), 1, 5).astype(int)
    return {"ratings.csv": _csv("id,user,film,stars", zip(range(count), user, film, stars, strict=True))}


def readings() -> Mapping[str, bytes]:
    """Return 6,000 readings of a machine as JSON lines: load (0 to 1), outside (degrees), and the power that it takes, in kW.

    Half way its filter is clogged: from then on the same load takes more power.
    """
    chance = np.random.RandomState(7)
    count = 6000
    load, outside = chance.uniform(0, 1, count), chance.uniform(-5, 30, count)
    clogged = np.arange(count) >= count // 2
    power = 2.0 + np.where(clogged, 7.0, 5.0) * load + 0.04 * outside + 0.1 * chance.randn(count)
    rows = (
        {"id": number, "load": round(float(one), 3), "outside": round(float(warm), 1), "power": round(float(kw), 3)}
        for number, (one, warm, kw) in enumerate(zip(load, outside, power, strict=True))
    )
    return {"readings.jsonl": "".join(json.dumps(row) + "\n" for row in rows).encode()}


def _csv(head: str, rows: Iterable[Iterable[object]]) -> bytes:
    return "".join(f"{line}\n" for line in (head, *(",".join(map(str, row)) for row in rows))).encode()


def _quoted(text: str) -> str:
    """Return a text of a CSV in quotes, as it has commas. (None of these texts has quotes.)"""
    return f'"{text}"'


def _png(pixels: NDArray[np.uint8]) -> bytes:
    """Return an image as a PNG. Args: pixels: `[height, width, 3]` of uint8."""
    height, width, _ = pixels.shape
    # each line of pixels begins with the number of its filter: 0 for none
    lines = np.concatenate([np.zeros((height, 1), np.uint8), pixels.reshape(height, -1)], axis=1)
    parts = (
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)),
        (b"IDAT", zlib.compress(lines.tobytes(), 9)),
        (b"IEND", b""),
    )
    packed = (struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in parts)
    return b"\x89PNG\r\n\x1a\n" + b"".join(packed)


#: name of a template -> what makes its data: path below the project's directory -> what is in the file
MADE: Mapping[str, Callable[[], Mapping[str, bytes]]] = {
    "regression": flats,
    "text": messages,
    "images": shapes,
    "ps": ratings,
    "streaming": readings,
}
