"""Names of files as texts, and what gathers them."""

import gc
import resource

import pyarrow as pa
import pytest

from akrunner.arrays import octets_of
from akrunner.folders.gathered import ROWS, Spilled, text_of


@pytest.mark.parametrize("others", [[], [b"\xff"]])
def test_names_that_are_not_one_are_not_one_text(others: list[bytes]) -> None:
    names = [rb"caf\xe9/a.jpg", rb"caf\x5cxe9/a.jpg", "caf\u00e9/a.jpg".encode(), rb"C:\x\a", *others]
    shown = text_of(octets_of([*names, b"caf\xe9/a.jpg"][: len(names) + bool(others)], pa.large_binary())).to_pylist()
    assert len(set(shown)) == len(shown) and shown[2:4] == ["caf\u00e9/a.jpg", r"C:\x\a"] and shown[0] == r"caf\x5cxe9/a.jpg"
    assert shown[1] == r"caf\x5cx5cxe9/a.jpg" and (not others or shown[-1] == r"caf\xe9/a.jpg")


def test_small_batches_are_joined_up_to_a_number_of_rows() -> None:
    spilled = Spilled()
    for at in range(0, 3 * ROWS, 1000):
        spilled.add(pa.record_batch({"x": pa.array(range(at, at + 1000))}))
    table = spilled.table(pa.schema([]))
    assert table.column("x").to_pylist() == list(range(len(table)))
    assert table.column("x").num_chunks == 3 and max(map(len, table.column("x").chunks)) < ROWS + 1000


@pytest.mark.slow
def test_an_index_that_no_longer_fits_on_the_disk_is_dropped_in_silence(capfd: pytest.CaptureFixture[str]) -> None:
    """What is left in the file's buffer is written when the file is closed, and Python printed a traceback then."""
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    spilled = Spilled()
    spilled._file.write(b"x" * 5000)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1024, limit[1]))
        spilled._file.write(b"x" * 5000)
    except OSError:
        pass
    finally:
        del spilled
        gc.collect()
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert capfd.readouterr().err == ""


def test_dictionaries_that_do_not_fit_into_one_stay_apart() -> None:
    spilled, numbers = Spilled(), pa.array(range(100), pa.int8())
    for letter in "ab":
        names = pa.array([f"{letter}{number}" for number in range(100)])
        spilled.add(pa.record_batch({"x": pa.DictionaryArray.from_arrays(numbers, names)}))
    found = spilled.table(pa.schema([])).column("x").to_pylist()
    assert found[:2] == ["a0", "a1"] and found[100:102] == ["b0", "b1"] and len(found) == 200
