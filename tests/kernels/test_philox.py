"""Random numbers: the counters of Philox4x32-10, and uniform, normal and whole numbers of them."""

import ctypes

import numpy as np
import pytest
from cases import each
from hypothesis import given
from hypothesis import strategies as st

from tensorlib import _kernels

ADDRESSES = {(kind, dtype): address
             for kind, _, dtype, address in _kernels.load("philox").table()}
U64, SIZE, POINTER = ctypes.c_uint64, ctypes.c_ssize_t, ctypes.c_void_p


def fill(kind, dtype, n, seed=1, offset=0, begin=0, end=None):
    y = np.zeros(n, dtype)
    run = ctypes.CFUNCTYPE(None, U64, U64, POINTER, SIZE, SIZE)(ADDRESSES[kind, dtype])
    run(seed, offset, y.ctypes.data, begin, n if end is None else end)
    return y


def integers(n, low, span, seed=1, offset=0):
    y = np.zeros(n, "int64")
    run = ctypes.CFUNCTYPE(None, U64, U64, ctypes.c_int64, U64, POINTER, SIZE, SIZE)(
        ADDRESSES["integers", "int64"])
    run(seed, offset, low, span, y.ctypes.data, 0, n)
    return y


def philox(counter, key):
    """Philox4x32-10 as published, one counter at a time."""
    counter, key, mask = list(counter), list(key), 0xFFFFFFFF
    for _ in range(10):
        p, q = counter[0] * 0xD2511F53, counter[2] * 0xCD9E8D57
        counter = [q >> 32 ^ counter[1] ^ key[0], q & mask, p >> 32 ^ counter[3] ^ key[1], p & mask]
        key = [key[0] + 0x9E3779B9 & mask, key[1] + 0xBB67AE85 & mask]
    return counter


# Random123, examples/kat_vectors.
@pytest.mark.parametrize("counter, key, wanted", [
    ([0] * 4, [0] * 2, "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ([0xFFFFFFFF] * 4, [0xFFFFFFFF] * 2, "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    ([0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344], [0xA4093822, 0x299F31D0],
     "d16cfe09 94fdcceb 5001e420 24126ea1"),
])
def test_the_reference_gives_the_known_answers(counter, key, wanted):
    assert " ".join(f"{word:08x}" for word in philox(counter, key)) == wanted


@pytest.mark.parametrize("seed, offset", [(0, 0), (2**64 - 1, 2**64 - 1),
                                          (0x299F31D0A4093822, 0x0370734413198A2E)])
def test_bits_equal_the_reference(seed, offset):
    got = fill("bits", "uint64", 100, seed, offset)
    for i, value in enumerate(got):
        words = philox([16 * (i // 32) + i % 16, 0, offset & 0xFFFFFFFF, offset >> 32],
                       [seed & 0xFFFFFFFF, seed >> 32])
        first = i % 32 // 16
        assert int(value) == words[first] << 32 | words[first + 2]


@each("kind, dtype", [key for key in ADDRESSES if key[0] != "integers"])
def test_an_element_does_not_depend_on_the_part_that_is_filled(kind, dtype):
    whole = fill(kind, dtype, 1000, seed=5, offset=9)
    for begin, end in [(0, 1), (63, 65), (100, 100), (31, 700), (128, 1000)]:
        part = fill(kind, dtype, 1000, 5, 9, begin, end)
        assert part[begin:end].tobytes() == whole[begin:end].tobytes()
        assert not part[:begin].any() and not part[end:].any()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_uniform_and_normal_have_their_moments(dtype):
    n = 400_000
    u, z = fill("uniform", dtype, n), fill("normal", dtype, n).astype("float64")
    assert u.min() >= 0 and u.max() < 1
    assert np.abs(np.histogram(u, 20, (0, 1))[0] - n / 20).max() < 5 * np.sqrt(n / 20)
    assert np.isfinite(z).all()
    for power, moment, variance in [(1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96)]:
        assert abs((z**power).mean() - moment) < 5 * np.sqrt(variance / n)
    assert abs(np.corrcoef(z[:-1], z[1:])[0, 1]) < 5 / np.sqrt(n)


def test_seeds_and_offsets_give_other_numbers():
    draws = [fill("bits", "uint64", 50, seed, offset)
             for seed in (0, 1, 1 << 40) for offset in (0, 1, 1 << 40)]
    assert len(set(np.concatenate(draws).tolist())) == 450


@each("low, span", [(0, 10), (-5, 11), (7, 1), (-(2**63), 2**63), (-3, 2**63)])
def test_integers_lie_in_their_range(low, span):
    y = integers(20_000, low, span)
    assert y.min() >= low and all(int(v) - low < span for v in (y.min(), y.max()))
    bits = fill("bits", "uint64", 20_000)
    assert y.tolist() == [low + (int(b) * span >> 64) for b in bits]


@given(st.integers(-2**63, 2**63 - 1), st.integers(1, 2**64 - 1), st.integers(0, 2**64 - 1))
def test_integers_of_any_span_are_as_python_counts_them(low, span, seed):
    """low + the upper half of a product of two numbers of 64 bits."""
    span = min(span, 2**63 - low)
    bits = fill("bits", "uint64", 50, seed)
    assert integers(50, low, span, seed).tolist() == [low + (int(b) * span >> 64) for b in bits]


def test_span_0_is_the_whole_range():
    assert integers(100, 0, 0).tolist() == fill("bits", "uint64", 100).view("int64").tolist()
