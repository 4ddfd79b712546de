"""Beside the entry file, in another folder of the archive: imported from its root."""

COLUMNS = "f1,f2,f3,f4,f5"
DEFAULTS = [0.0, 0.0, 0.0, 0.0, ""]
