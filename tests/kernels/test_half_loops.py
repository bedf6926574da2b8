"""Loops of half types: the bits of the float32 loop between casts."""

import numpy as np
import pytest
from cases import each
from loops import any_bits, loops

NAN = {"float16": 0x7C00, "bfloat16": 0x7F80}


ARITY = {"sqrt": 1, "rsqrt": 1, "square": 1, "reciprocal": 1, "add": 2, "sub": 2, "mul": 2,
         "div": 2, "pow": 2, "pow_number": 2, "maximum": 2, "minimum": 2, "copysign": 2,
         "addcmul": 3, "addcdiv": 3, "lerp": 3, "clamp": 3, "clamp_number": 3,
         "addcmul_scaled": 4, "addcdiv_scaled": 4,
         "add_number": 2, "sub_number": 2, "mul_number": 2, "div_number": 2,
         "relu": 1, "relu_backward": 2, "hardtanh": 3, "hardtanh_number": 3}
SINGLES = {"mul": 1, "div": 1, "addcmul": 2}        # runs beside a number of float32


@pytest.fixture(scope="module")
def every(level):
    return loops(level, ("halves", "binary", "bounds", "unary", "cast", "activations",
                         "fused"))


def same(got, wanted, dtype):
    """Whether bits are equal, those of NaN apart."""
    got, wanted = got.view(np.uint16), wanted.view(np.uint16)
    unknown = [(x & 0x7FFF) > NAN[dtype] for x in (got, wanted)]
    return ((got == wanted) | unknown[0] & unknown[1]).all()


@each("dtype", NAN)
@each("name", ARITY)
def test_they_give_what_the_loop_of_float32_gives_between_casts(every, name, dtype):
    n = ARITY[name]
    to, back = every["cast", dtype, "float32"], every["cast", "float32", dtype]
    wide, short = every[name, *["float32"] * (n + 1)], every[name, *[dtype] * (n + 1)]
    all_bits = np.arange(1 << 16, dtype=np.uint16)
    near = all_bits ^ np.uint16(0x8000)                # 0 and -0, and others of one magnitude
    drawn = [any_bits("uint16", 1 << 16, seed) for seed in range(16)]
    several = ((all_bits, near, drawn[0]), (near, all_bits, near),
               (all_bits[::-1], near, all_bits), *zip(drawn, drawn[1:], drawn[2:]))
    for others in several if n > 1 else [()]:
        args = [np.ascontiguousarray(x).view(short.inputs[0]) for x in (all_bits, *others)][:n]
        with np.errstate(all="ignore"):
            wanted = back(wide(*(to(x) for x in args)))
            assert same(short(*args), wanted, dtype)
            assert same(short.in_place(n - 1, *args), wanted, dtype)
            args = [x[:12] if name.endswith("number") else x[5:12] for x in args]
            wanted = back(wide(*(to(x) for x in args)))
            assert same(short(*args), wanted, dtype)


@each("dtype", NAN)
@each("name", SINGLES)
def test_a_number_of_float32_is_not_rounded(every, name, dtype):
    n = SINGLES[name]
    wide, to = every[name, *["float32"] * (n + 2)], every["cast", dtype, "float32"]
    short = every[name + "_single", *[dtype] * n, "float32", dtype]
    back = every["cast", "float32", dtype]
    args = [np.arange(1 << 16, dtype=np.uint16), any_bits("uint16", 1 << 16, 0)][:n]
    args = [x.view(short.inputs[0]) for x in args]
    for number in (0.1, -3.0, 1e-30, 1e30, 0.0, -0.0, np.inf, np.nan, 1 + 2.0**-23):
        numbers = np.full(1 << 16, number, np.float32)
        with np.errstate(all="ignore"):
            wanted = back(wide(*(to(x) for x in args), numbers))
        assert same(short(*args, numbers), wanted, dtype)
        assert same(short(*(x[3:9] for x in args), numbers[:6]), wanted[3:9], dtype)


def test_every_loop_is_tested(level):
    singles = {name + "_single" for name in SINGLES}
    assert {name for name, *_ in loops(level, ("halves",))} == {*ARITY, *singles}
