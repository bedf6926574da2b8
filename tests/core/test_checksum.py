"""The checksum of zip files, which is computed by blocks."""

import zlib

import numpy as np

from tensorlib._core.base.checksum import crc32


def test_it_is_that_of_zlib_for_bytes_of_any_length_and_place():
    data = np.random.default_rng(0).integers(0, 256, 70_000, "u1").tobytes()
    for n in (*range(300), 4095, 4096, 65_537, 70_000):
        assert crc32(data[:n]) == zlib.crc32(data[:n])
        assert crc32(memoryview(data)[-n:]) == zlib.crc32(data[-n:])
    for same in (bytes(1000), b"\xff" * 1000, bytearray(data), np.frombuffer(data, "u1")):
        assert crc32(same) == zlib.crc32(same)
