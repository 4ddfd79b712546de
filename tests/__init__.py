"""The suite. Every process it starts imports numpy, whose OpenBLAS then lets a thread for each further core spin for work that never comes: that is more
than all else the import costs. Here its threads sleep at once."""

import os

os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")
