"""`finfo` and `iinfo`, beside NumPy's."""

import copy
import pickle

import numpy as np
import pytest
from cases import each

import tensorlib as tl

FACTS = ("bits", "dtype", "eps", "max", "min", "resolution", "smallest_normal", "tiny")


@pytest.mark.parametrize("name", ["float16", "float32", "float64"])
def test_floating_dtypes(name):
    ours, numpys = tl.finfo(getattr(tl, name)), np.finfo(name)
    for fact in FACTS:
        assert getattr(ours, fact) == getattr(numpys, fact), fact
        assert type(getattr(ours, fact)) in (int, str, float)


def test_bfloat16_has_its_own():
    limits = tl.finfo(tl.bfloat16)
    assert [getattr(limits, fact) for fact in FACTS] == [
        16, "bfloat16", 2.0**-7, 3.3895313892515355e38, -3.3895313892515355e38, 0.01, 2.0**-126,
        2.0**-126]
    one = tl.tensor(1.0, dtype=tl.bfloat16)
    assert (one + limits.eps > one) and (one + limits.eps / 2 == one)
    assert tl.tensor(limits.max, dtype=tl.bfloat16).item() == limits.max


@each("name", ["uint8", "int8", "int16", "int32", "int64"])
def test_integers(name):
    ours, numpys = tl.iinfo(getattr(tl, name)), np.iinfo(name)
    assert (ours.bits, ours.min, ours.max) == (numpys.bits, numpys.min, numpys.max)
    assert repr(ours) == f"iinfo(min={numpys.min}, max={numpys.max}, dtype={name})"


def test_the_default_dtype_is_that_of_new_tensors():
    assert tl.finfo() == tl.finfo(tl.float32) != tl.finfo(tl.float64)
    assert len({tl.finfo(), tl.finfo(tl.float32), tl.iinfo(tl.int8)}) == 2
    tl.set_default_dtype(tl.float64)
    try:
        assert tl.finfo().dtype == "float64"
    finally:
        tl.set_default_dtype(tl.float32)


def test_types_of_pythons_numbers_have_the_limits_of_their_dtypes():
    assert tl.finfo(float) == tl.finfo(complex) == tl.finfo(tl.float64)
    assert tl.iinfo(int) == tl.iinfo(tl.int64)


def test_copies_are_equal():
    for limits in (tl.finfo(tl.float16), tl.iinfo(tl.int8)):
        assert pickle.loads(pickle.dumps(limits)) == copy.copy(limits) == limits


@pytest.mark.parametrize("call, message", [
    (lambda: tl.finfo(tl.int8), "finfo: takes a floating dtype, got tensorlib.int8"),
    (lambda: tl.iinfo(tl.float32), "iinfo: takes a dtype of integers, got tensorlib.float32"),
    (lambda: tl.iinfo(tl.bool), "iinfo: takes a dtype of integers, got tensorlib.bool"),
    (lambda: tl.finfo("float32"), "finfo: argument 'type' must be a dtype, got 'float32'"),
    (lambda: tl.finfo(int), "finfo: takes a floating dtype, got tensorlib.int64"),
    (lambda: tl.iinfo(bool), "iinfo: argument 'type' must be a dtype, got <class 'bool'>"),
    (lambda: tl.iinfo(), "iinfo"),
])
def test_other_types_are_refused(call, message):
    with pytest.raises(TypeError, match=message):
        call()


def test_what_a_tensor_says_of_where_it_is():
    x = tl.ones(2, 3)
    assert x.is_cpu and not x.is_meta and not x.is_sparse and x.layout is tl.strided
    assert x.real is x and x.H.shape == (3, 2) and tl.tensor(1.0).H.shape == ()
    with pytest.raises(RuntimeError, match="H: expects a matrix, got a tensor of 3 dims"):
        tl.ones(1, 2, 3).H
    seen = []
    tl.vmap(lambda y: (seen.append((y.layout, y.is_cpu, y.is_cuda, y.real is y, y.H.shape)), y)[1])(
        tl.ones(4, 2, 3))
    assert seen == [(tl.strided, True, False, True, (3, 2))]
