"""The profile by which `scripts/fuzz` runs what is here."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# tests/conftest.py's own profile, derandomised and short, is what the suite uses
settings.register_profile(
    "fuzz", deadline=None, derandomize=False, max_examples=5000, print_blob=True, suppress_health_check=list(HealthCheck)
)
