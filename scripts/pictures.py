"""docs/pictures: jobs run in a terminal (tmux), and what it shows at a moment becomes a picture (SVG, by Rich)."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.terminal_theme import DEFAULT_TERMINAL_THEME, TerminalTheme
from rich.text import Text

ROOT = Path(__file__).resolve().parents[1]
PICTURES = ROOT / "docs" / "pictures"
LINES = 12
#: seconds that a job may take to show what is waited for
SECONDS = 120.0
ROWS = 6_000_000

TRAIN = """\
import time


def main(task_config):
    loss = 2.5
    for step in range(1, 151):
        time.sleep(0.08)
        loss *= 0.98
        task_config.report({"loss": loss, "accuracy": 1 - loss / 3, "learning_rate": 0.01}, step=step * 10)
"""
TASKS = """\
import json
import os
import time

task = json.loads(os.environ["TF_CONFIG"])["task"]
if task["index"] == 3:
    # a machine that is slow to import
    time.sleep(6)


def main(task_config):
    for step in range(1, 121):
        time.sleep(0.4 if task_config.task_index == 1 and task_config.task_type == "worker" else 0.1)
        task_config.report({"loss": 1 / step}, step=step)
"""
DARK = TerminalTheme(
    (22, 24, 29),
    (208, 211, 217),
    [
        (60, 63, 70),
        (224, 108, 117),
        (126, 191, 105),
        (222, 184, 98),
        (97, 157, 230),
        (198, 120, 221),
        (86, 182, 194),
        (208, 211, 217),
    ],
    [
        (120, 124, 134),
        (240, 128, 137),
        (152, 217, 131),
        (240, 206, 128),
        (125, 182, 250),
        (220, 150, 240),
        (112, 208, 220),
        (255, 255, 255),
    ],
)
#: Rich's own without its fonts, which would be fetched from the network
FORMAT = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; font-size: {char_height}px; line-height: {line_height}px; }}
{styles}
</style>
<defs><clipPath id="{unique_id}-clip-terminal"><rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" /></clipPath>{lines}</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


class Scene(NamedTuple):
    """A job, and the moment at which it is looked at.

    Attributes: name: of the pictures; script: its text; words: what is typed behind `akrunner`; until: a pattern of what the terminal shows then.
    """

    name: str
    script: str
    words: str
    until: str


SCENES = (
    Scene("reading", TRAIN, "run train.py --input table.parquet", r"[2-7]\d %.* left"),
    Scene("training", TRAIN, "run train.py --input table.parquet", r"step/s  step 5\d0"),
    Scene("behind", TASKS, "run train.py --input few.parquet --num-workers 6", r"1 importing[^$]*for 4\.\d s"),
    Scene("slow", TASKS, "run train.py --input few.parquet --num-workers 6", r"slow: "),
    Scene("end", TRAIN, "run train.py --input few.parquet", r"run: r\d+"),
)


def main() -> None:
    PICTURES.mkdir(exist_ok=True)
    for scene in SCENES:
        for columns in (80, 200):
            told = shown(scene, columns)
            for name, theme in (("dark", DARK), ("light", DEFAULT_TERMINAL_THEME)):
                path = PICTURES / f"{scene.name}-{columns}-{name}.svg"
                path.write_text(picture(told, columns, theme), encoding="utf-8")
                print(path.relative_to(ROOT), path.stat().st_size)


def shown(scene: Scene, columns: int) -> str:
    """Return what a terminal shows of a job, with the codes of its colours."""
    with tempfile.TemporaryDirectory(prefix="akrunner-pictures-") as folder, terminal(folder, columns) as tmux:
        Path(folder, "train.py").write_text(scene.script)
        table = pa.table({"id": np.arange(ROWS), "x": np.zeros(ROWS, np.float32), "y": np.ones(ROWS, np.float32)})
        pq.write_table(table, Path(folder, "table.parquet"))
        pq.write_table(table.slice(0, 6000), Path(folder, "few.parquet"))
        # what a shell reads when it begins may set another PATH
        command = f"export PATH={shlex.quote(path())}; clear; printf '$ akrunner %s\\n' {shlex.quote(scene.words)}; akrunner {scene.words}; sleep 1000"
        subprocess.run([*tmux, "respawn-pane", "-k", "-c", folder, f"sh -c {shlex.quote(command)}"], check=True)
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            # -J: a line that the terminal has wrapped is one
            told = subprocess.run([*tmux, "capture-pane", "-e", "-p"], check=True, capture_output=True, text=True).stdout
            if re.search(scene.until, Text.from_ansi(told).plain):
                return told.rstrip()
            time.sleep(0.05)
        raise SystemExit(f"{scene.name}: nothing like {scene.until!r} was shown within {SECONDS:.0f} s:\n{told}")


@contextlib.contextmanager
def terminal(folder: str, columns: int) -> Iterator[list[str]]:
    """Have a terminal in a block. Yields: the beginning of commands to it."""
    tmux = ["tmux", "-f", "/dev/null", "-S", os.path.join(folder, "tmux")]
    variables = {
        "PATH": path(),
        "HOME": folder,
        "XDG_STATE_HOME": os.path.join(folder, "state"),
        "PYTHONPATH": str(ROOT),
        "LC_ALL": "C.UTF-8",
    }
    size = ["-x", str(columns), "-y", str(LINES)]
    subprocess.run([*tmux, "new-session", "-d", *size, "sleep 1000"], check=True, env=variables)
    try:
        yield tmux
    finally:
        # the server is this block's own. What runs in it gets SIGHUP, by which a job ends, and cleans up
        server = subprocess.run([*tmux, "display-message", "-p", "#{pid}"], check=True, capture_output=True, text=True).stdout
        running = psutil.Process(int(server)).children(recursive=True)
        subprocess.run([*tmux, "kill-server"], check=True)
        psutil.wait_procs(running, timeout=30)


def path() -> str:
    """Return a PATH by which `akrunner` is found."""
    return f"{Path(sys.executable).parent}:{os.environ['PATH']}"


def picture(told: str, columns: int, theme: TerminalTheme) -> str:
    console = Console(
        width=columns, record=True, file=io.StringIO(), force_terminal=True, color_system="truecolor", legacy_windows=False
    )
    # as a whole: a colour may go on from one line to the next
    console.print(Text.from_ansi(told), no_wrap=True, highlight=False)
    return console.export_svg(title="", theme=theme, code_format=FORMAT, unique_id="t")


if __name__ == "__main__":
    main()
