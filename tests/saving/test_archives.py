"""The zip files of `save`, read by Python's `zipfile`: also those of many or large members."""

import io
import zipfile

import pytest

import tensorlib as tl
from tensorlib.io.files import archive


@pytest.mark.parametrize("limit", [archive.LARGE, 600])       # bytes from which on sizes take more
@pytest.mark.parametrize("many", [archive.MANY, 3])
def test_members_are_found_checked_and_aligned(limit, many, monkeypatch):
    monkeypatch.setattr(archive, "LIMIT", limit)
    monkeypatch.setattr(archive, "MANY", many)
    given = {"large": tl.arange(500), "small": tl.arange(3), "none": tl.empty(0)}
    file = io.BytesIO()
    tl.save(given, file)
    with zipfile.ZipFile(file) as read:
        assert read.testzip() is None
        assert [read.getinfo(f"archive/data/{i}").file_size for i in range(3)] == [4000, 24, 0]
        for member in read.infolist():
            with read.open(member) as opened:
                assert opened._orig_compress_start % 64 == 0
    file.seek(0)
    assert all(tl.equal(given[name], x) for name, x in tl.load(file).items())
