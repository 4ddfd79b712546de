"""What stands beside the bytes of files that are packed."""

from __future__ import annotations

import pyarrow as pa

from akrunner.packing.files import _shown


def test_passwords_and_signatures_of_urls_are_in_no_shard() -> None:
    plain = pa.array(["a/b.jpg", "http://h/x.jpg", "a@b?c.jpg"])
    assert _shown(plain) is plain
    hidden = _shown(pa.array(["a.jpg", "http://bob:S3CRET@h/x.jpg", "https://h/x.jpg?sig=S3CRET&page=2"])).to_pylist()
    assert hidden[0] == "a.jpg" and "S3CRET" not in str(hidden)
    assert "h/x.jpg" in hidden[1] and "page=2" in hidden[2]
