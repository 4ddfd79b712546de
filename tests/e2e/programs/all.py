"""Several programs, one after the other, with one Java. argv: their names, and then what each takes. Says whose words come."""

from __future__ import annotations

import json
import runpy
import sys
import traceback
from pathlib import Path

names, given = sys.argv[1].split(","), sys.argv[2:]
for name in names:
    print("TOLD " + json.dumps(["program", name]), flush=True)
    sys.argv[1:] = given
    try:
        runpy.run_path(str(Path(__file__).parent / name))
    except Exception:
        print("TOLD " + json.dumps(["raised", traceback.format_exc()]), flush=True)
