"""docs/pictures/notebook-*.png: the outputs of cells that a real kernel has run, in a page as JupyterLab has them, photographed by Chromium."""

from __future__ import annotations

import html
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PICTURES = ROOT / "docs" / "pictures"
WIDTH, HEIGHT = 900, 1490
_FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
          "--disable-component-update", "--disable-sync", "--hide-scrollbars")  # fmt: skip

CELLS = (
    """import akrunner

def learn(task_config):
    import time
    loss = 2.5
    for step in range(1, 41):
        time.sleep(0.05)
        loss *= 0.96
        print("step", step, "loss", round(loss, 4))
        task_config.report({"loss": loss, "accuracy": 1 - loss / 3}, step=step)
    for batch in task_config.batches(64):
        task_config.output_writer.write_batch({"id": batch["id"], "p": batch["petal_length"] / 7})

result = akrunner.run(learn, "iris.csv", output_schema="id bigint, p double")""",
    "result",
    """def wrong(task_config):
    for batch in task_config.batches(50):
        print("rows:", len(batch["id"]))
        batch["petal_lenght"].mean()

akrunner.run(wrong, "iris.csv")""",
)
#: colours of JupyterLab: page, letters, a cell's ground, the ground of an error
THEMES = {"light": ("#ffffff", "#1f1f1f", "#f5f5f5", "#fdeceb"), "dark": ("#111111", "#e0e0e0", "#212121", "#3a1f1f")}
_ANSI = re.compile(r"\x1b\[[0-9;]*m")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
        os.environ |= {"IPYTHONDIR": folder, "XDG_STATE_HOME": folder, "AKRUNNER_WARM": "0", "PYTHONPATH": path}
        (Path(folder) / "iris.csv").write_bytes((ROOT / "examples" / "iris" / "iris.csv").read_bytes())
        live, cells = outputs(folder)
        for theme, colours in THEMES.items():
            page = Path(folder) / f"{theme}.html"
            page.write_text(drawn(live, cells, *colours), encoding="utf-8")
            picture = PICTURES / f"notebook-{theme}.png"
            command = [
                "chromium",
                *_FLAGS,
                f"--user-data-dir={folder}/{theme}",
                f"--window-size={WIDTH},{HEIGHT}",
                f"--screenshot={picture}",
            ]
            subprocess.run([*command, page.as_uri()], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            print(picture.relative_to(ROOT), file=sys.stderr)


def outputs(folder: str) -> tuple[str, list[list[Any]]]:
    """Run the cells. Returns: the first cell's display in the middle of its job; the outputs of each cell."""
    from jupyter_client.manager import start_new_kernel

    manager, client = start_new_kernel(kernel_name="python3", cwd=folder)
    try:
        told: list[list[Any]] = []
        for code in CELLS:
            found: list[Any] = []
            client.execute_interactive(code, output_hook=found.append, timeout=120)
            told.append([one["content"] for one in found if one["msg_type"] not in ("status", "execute_input")])
    finally:
        client.stop_channels()
        manager.shutdown_kernel()
    # where a user has it
    told = json.loads(json.dumps(told, default=str).replace(folder, "~/.local/state"))
    first = told[0]
    return first[len(first) // 2]["data"]["text/html"], [first[-1:], told[1], told[2][-2:]]


def drawn(live: str, cells: list[list[Any]], ground: str, letters: str, cell: str, error: str) -> str:
    """Return the page: each cell with its outputs, the first with what it showed while its job ran, too."""
    parts = []
    for number, (code, found) in enumerate(zip(CELLS, cells), 1):
        parts.append(f"<pre class=code>[{number}]: {html.escape(code)}</pre>")
        if number == 1:
            parts.append(f"<div class=out>{live}</div><p class=note>and when it has ended:</p>")
        for one in found:
            shown = one.get("data", {}).get("text/html")
            if shown is not None:
                parts.append(f"<div class=out>{shown}</div>")
            else:
                text = html.escape(_ANSI.sub("", chr(10).join(one["traceback"])))
                parts.append(f"<pre class='out error'>{text}</pre>")
    style = f"""body {{ margin: 16px; background: {ground}; color: {letters}; font: 13px/1.5 system-ui, 'DejaVu Sans', sans-serif }}
    .code {{ background: {cell}; padding: 8px; border: 1px solid #8884 }} .out {{ padding: 2px 8px 8px 40px }} .note {{ padding-left: 40px; opacity: .6 }}
    pre {{ font: 12px/1.4 'DejaVu Sans Mono', monospace; white-space: pre-wrap; margin: 8px 0 }} .error {{ background: {error} }} table {{ font-size: 12px }}"""
    return f"<!doctype html><meta charset=utf-8><style>{style}</style>{''.join(parts)}"


if __name__ == "__main__":
    main()
