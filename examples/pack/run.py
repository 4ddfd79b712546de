"""Pictures in a folder for each class -> shards -> a classifier that reads them.

python examples/pack/run.py        (needs Pillow, to draw the pictures: pip install "akrunner[pack]")
"""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

from PIL import Image, ImageDraw

import akrunner

HERE = Path(__file__).parent


def draw(folder: Path, per_class: int = 60) -> None:
    """Circles and squares, of any colour and size."""
    chance = random.Random(0)
    for name in ("circle", "square"):
        (folder / name).mkdir(parents=True)
        for number in range(per_class):
            image = Image.new("RGB", (48, 48), "black")
            size = chance.randint(14, 40)
            x, y = chance.randint(2, 45 - size), chance.randint(2, 45 - size)
            colour = tuple(chance.randint(100, 255) for _ in range(3))
            shape = ImageDraw.Draw(image).ellipse if name == "circle" else ImageDraw.Draw(image).rectangle
            shape((x, y, x + size, y + size), fill=colour)
            image.save(folder / name / f"{number}.png")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        draw(Path(folder, "pictures"))
        packed = akrunner.pack(Path(folder, "pictures"), Path(folder, "packed"), split="0.8,0.2")
        print(f"packed {packed.splits}, classes {packed.labels}")
        result = akrunner.run(HERE / "train.py", Path(folder, "packed", "train"), output_schema="rows bigint, accuracy double")
        print(result.table.to_pylist())


if __name__ == "__main__":
    main()
