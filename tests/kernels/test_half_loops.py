"""Loops of half types: the bits of the float32 loop between casts."""

import numpy as np
import pytest
from cases import each
from loops import any_bits, loops

NAN = {"float16": 0x7C00, "bfloat16": 0x7F80}


@pytest.fixture(scope="module")
def every(level):
    return loops(level, ("halves", "binary", "cast"))


def same(got, wanted, dtype):
    """Whether bits are equal, those of NaN apart."""
    got, wanted = got.view(np.uint16), wanted.view(np.uint16)
    unknown = [(x & 0x7FFF) > NAN[dtype] for x in (got, wanted)]
    return ((got == wanted) | unknown[0] & unknown[1]).all()


@each("dtype", NAN)
@each("name", ("add", "sub", "mul", "div", "maximum", "minimum", "copysign"))
def test_they_give_what_the_loop_of_float32_gives_between_casts(every, name, dtype):
    to, back = every["cast", dtype, "float32"], every["cast", "float32", dtype]
    wide, short = every[name, *["float32"] * 3], every[name, *[dtype] * 3]
    all_bits = np.arange(1 << 16, dtype=np.uint16)
    near = all_bits ^ np.uint16(0x8000)                # 0 and -0, and others of one magnitude
    for b in (all_bits, near, all_bits[::-1], *(any_bits("uint16", 1 << 16, seed)
                                                for seed in range(8))):
        a, b = (np.ascontiguousarray(x).view(short.inputs[0]) for x in (all_bits, b))
        with np.errstate(all="ignore"):
            wanted = back(wide(to(a), to(b)))
            assert same(short(a, b), wanted, dtype)
            assert same(short(a[5:12], b[5:12]), wanted[5:12], dtype)
            assert same(short.in_place(1, a, b), wanted, dtype)
