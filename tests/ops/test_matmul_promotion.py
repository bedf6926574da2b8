"""Matrix products promote dtypes as all other operators do."""

import numpy as np
import pytest
from cases import each

import tensorlib as tl

WIDE = tl.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=tl.float64)
NARROW = tl.tensor([1.0, 10.0])
PRODUCTS = {
    "matmul": lambda m, v: m @ v, "mv": lambda m, v: m.mv(v), "mm": lambda m, v: m.mm(v[:, None]),
    "bmm": lambda m, v: m[None].bmm(v[None, :, None]), "dot": lambda m, v: m[0].dot(v),
    "addmv": lambda m, v: tl.addmv(v, m, v), "addmm": lambda m, v: tl.addmm(v, m, m.float()),
    "baddbmm": lambda m, v: tl.baddbmm(v, m[None], m[None].float()),
    "inner": lambda m, v: tl.inner(m, v), "tensordot": lambda m, v: tl.tensordot(m, v, 1),
}


@each("name", PRODUCTS)
def test_the_wider_dtype_wins(name):
    found, wide = PRODUCTS[name](WIDE, NARROW), PRODUCTS[name](WIDE, NARROW.double())
    assert found.dtype is tl.float64 and found.tolist() == wide.tolist()


@pytest.mark.parametrize("one, other", [("float32", "int64"), ("float16", "bfloat16"),
                                        ("uint8", "int8"), ("bool", "float32"), ("int32", "int64")])
def test_the_dtype_is_that_of_the_elementwise_product(one, other):
    a, b = tl.ones(2, 2, dtype=getattr(tl, one)), tl.ones(2, dtype=getattr(tl, other))
    assert (a @ b).dtype is (a * b).dtype and (b @ a).tolist() == [2, 2]


def test_gradients_have_the_dtypes_of_their_tensors():
    m, v = WIDE.clone().requires_grad_(), NARROW.clone().requires_grad_()
    (m @ v).sum().backward()
    assert m.grad.dtype is tl.float64 and m.grad.tolist() == [[1, 10], [1, 10]]
    assert v.grad.dtype is tl.float32 and v.grad.tolist() == [4, 6]


def test_arrays_and_out_promote_too():
    assert (np.eye(2) @ NARROW).dtype is tl.float64
    out = tl.empty(0, dtype=tl.float64)
    assert tl.matmul(WIDE, NARROW, out=out).tolist() == [21, 43]
    with pytest.raises(RuntimeError, match="matmul: out has dtype"):
        tl.matmul(WIDE, NARROW, out=tl.empty(2))


def test_bools_alone_have_no_product():
    with pytest.raises(RuntimeError, match="matmul: not implemented for tensorlib.bool"):
        tl.ones(2, 2, dtype=tl.bool) @ tl.ones(2, dtype=tl.bool)


@pytest.mark.parametrize("name, x", [("addmm", (2, 2)), ("baddbmm", (1, 2, 2)), ("addmv", (2,))])
def test_a_factor_of_one_leaves_integers_what_they_are(name, x):
    shapes = {"addmm": ((2, 2), (2, 2)), "baddbmm": ((1, 2, 2),) * 2, "addmv": ((2, 2), (2,))}
    given = [tl.ones(shape, dtype=tl.int64) for shape in (x, *shapes[name])]
    found = getattr(tl, name)(*given, beta=1.0, alpha=1.0)
    assert found.dtype is tl.int64 and found.tolist() == getattr(tl, name)(*given).tolist()
