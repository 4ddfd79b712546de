"""What a script imports whenever it is run."""

from __future__ import annotations

from akrunner.launch import imported


def test_what_is_imported_at_once() -> None:
    source = b"import a.b, c as d\nfrom e.f import g\nfrom . import h\nif x:\n    import i\ntry:\n    import j\nexcept ImportError:\n    import k\ndef f():\n    import l\n"
    assert imported.imports_of(source) == {"a": 1, "c": 1, "e": 2}
