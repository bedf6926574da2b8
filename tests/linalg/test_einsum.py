"""Einstein's sums: what does not follow from the registry."""

import numpy as np
import pytest
from cases import each

import tensorlib as tl
from tensorlib.ops.products import einsum as module
from tensorlib.testing import assert_close

SIZES = dict(zip("ijklabcdehqk", [2, 3, 4, 5, 2, 3, 2, 4, 3, 2, 3, 5]))


def drawn(letters, dots=(2, 3)):
    """A tensor with a dim for each letter, of the size that it has in all tests."""
    shape = [n for c in letters.replace("...", "!") for n in (dots if c == "!" else [SIZES[c]])]
    return np.random.default_rng(len(letters)).normal(size=shape)


@each("equation", [
    "ij,jk->ki", "ii", "ij->", "bij,bkj->bik", "i,i", "i,j->ji", "ij,ij->ij", "ij,ij",
    "...ij,...jk->...ik", "ij,jk,kl->li", "abc,cd,be->ade", "ij,kj,lj->ikl", "i,i,i->i",
    "iij,jk->ik", "b...i,b...j->b...ij", "ij,k->", "a,b,c,d,e->ace", "iji->j",
    "bhqd,bhkd->bhqk", "bhqk,bhkd->bhqd", "->", "ij,->ij", "i j , j k -> i k", "...->...",
    "bhqk,bhkd->dbqh", "ab,bc,cd,da->", "i,ij,j"])
def test_any_equation_equals_numpys(equation):
    texts = equation.replace(" ", "").split("->")[0].split(",")
    arrays = [drawn(text) for text in texts]
    for _ in range(2):                                  # planned, then by the plan
        assert_close(tl.einsum(equation, *map(tl.tensor, arrays)),
                     tl.tensor(np.einsum(equation, *arrays)), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("equation", ["ij,ij->ij", "ij,ij->i", "ij,ij->j", "ij,kj->ik",
                                      "...j,...j->..."])
def test_dims_of_size_one_broadcast(equation):
    a, b = drawn("ab")[:1], drawn("jb")
    assert_close(tl.einsum(equation, tl.tensor(a), tl.tensor(b)),
                 tl.tensor(np.einsum(equation, a, b)))


def test_sizes_of_none():
    for shapes in (((0, 3), (3, 2)), ((2, 0), (0, 2)), ((2, 3), (3, 0))):
        arrays = [np.ones(shape) for shape in shapes]
        assert tl.einsum("ij,jk", *map(tl.tensor, arrays)).tolist() == np.einsum(
            "ij,jk", *arrays).tolist()


def test_a_list_of_operands_and_lists_of_numbers():
    a, b = tl.tensor(drawn("ij")), tl.tensor(drawn("jk"))
    wanted = tl.einsum("ij,jk->ki", a, b)
    assert_close(tl.einsum("ij,jk->ki", [a, b]), wanted)
    assert_close(tl.einsum(a, [0, 40], b, [40, 2], [2, 0]), wanted)
    assert_close(tl.einsum(a, [0, 1], b, [1, 2]), wanted.mT)
    assert_close(tl.einsum(a, [..., 1], [...]), a.sum(-1))


def test_sums_of_integers_are_int64():
    assert tl.einsum("ij->", tl.ones(2, 3, dtype=tl.uint8)).dtype is tl.int64


@each("call, error, message", [
    (lambda x: tl.einsum("ij,jk", x), RuntimeError, "fewer operands"),
    (lambda x: tl.einsum("ij", x, x), RuntimeError, "more operands"),
    (lambda x: tl.einsum("ijk", x), RuntimeError, "does not match the number of dimensions"),
    (lambda x: tl.einsum("i...jk", x), RuntimeError, "does not match the number of dimensions"),
    (lambda x: tl.einsum("ij->k", x), RuntimeError, "subscript k does not appear"),
    (lambda x: tl.einsum("ij->ii", x), RuntimeError, "subscript i appears more than once"),
    (lambda x: tl.einsum("ij,ji->", x, x), RuntimeError, "subscript j has size 2 for operand 1"),
    (lambda x: tl.einsum("i1", x), RuntimeError, "found '1'"),
    (lambda x: tl.einsum("é", x), RuntimeError, "found 'é'"),
    (lambda x: tl.einsum("i.j", x), RuntimeError, "not part of any ellipsis"),
    (lambda x: tl.einsum("ij->->", x), RuntimeError, "found"),
    (lambda x: tl.einsum("ij"), ValueError, "at least one operand"),
    (lambda x: tl.einsum(x), TypeError, "expected an equation|at least one"),
    (lambda x: tl.einsum(x, [0, 52]), ValueError, "52"),
    (lambda x: tl.einsum(x, [0, "a"]), ValueError, "range"),
    (lambda x: tl.einsum(x, 3), TypeError, "list of numbers"),
    (lambda x: (tl.einsum("ij", x), tl.einsum("ij", x.numpy())), TypeError, "0, got numpy.ndarray"),
    (lambda x: tl.einsum("ij", 3), TypeError, "operand 0, got int"),
])
def test_what_is_refused(call, error, message):
    x = tl.ones(2, 3)
    for _ in range(2):
        with pytest.raises(error, match=message):
            call(x)


def test_plans_are_not_kept_for_ever():
    module.PLANS.clear()
    for n in range(module.MOST_PLANS):
        module.PLANS[n] = None
    tl.einsum("ij->ji", tl.ones(2, 3))
    assert 0 not in module.PLANS and len(module.PLANS) < module.MOST_PLANS
    module.PLANS.clear()


def test_a_chain_is_multiplied_in_the_cheap_order():
    """From the right, by a vector: from the left it would take a thousand times as long."""
    given = [(64, 64), (64, 64), (64, 64), (64,)]
    pairs = module.order_of([[0, 1], [1, 2], [2, 3], [3]], given, [0])
    assert pairs[0] == (2, 3) and pairs == [(2, 3), (1, 2), (0, 1)]


@each("equation, shapes, plain", [
    ("ij,kj->ik", ((33, 300), (40, 300)), lambda a, b: a @ b.mT),
    ("bthd,bshd->bhts", ((2, 12, 3, 40), (2, 9, 3, 40)),
     lambda a, b: a.transpose(1, 2) @ b.permute(0, 2, 3, 1)),
    ("bhts,bshd->bthd", ((2, 3, 12, 9), (2, 9, 3, 40)),
     lambda a, b: (a @ b.transpose(1, 2)).transpose(1, 2))])
def test_one_product_of_half_types_is_that_of_matmul(equation, shapes, plain):
    for dtype in (tl.bfloat16, tl.float16):
        a, b = (tl.tensor(np.random.default_rng(i).normal(size=shape), dtype=dtype)
                for i, shape in enumerate(shapes))
        assert tl.equal(tl.einsum(equation, a, b), plain(a, b))


def test_sums_of_half_types_before_a_product_do_not_overflow():
    a, b = tl.full((2, 3, 4), 3e4, dtype=tl.float16), tl.full((4, 5), 1e-3, dtype=tl.float16)
    found = tl.einsum("ijk,kl->il", a, b)
    assert_close(found.double(), tl.einsum("ijk,kl->il", a.double(), b.double()), rtol=1e-3,
                 atol=0.0)


@each("dims, sizes", [(2, ((8, 16, 32), (16, 32, 40))),
                      (([1, 2], [1, 2]), ((8, 16, 32), (40, 16, 32))),
                      (([1, 2], [0, 2]), ((4, 1, 6), (3, 5, 6)))])
def test_tensordot_of_half_types_is_rounded_once(dims, sizes):
    for dtype in (tl.bfloat16, tl.float16):
        a, b = (tl.tensor(np.random.default_rng(i).normal(size=shape), dtype=dtype)
                for i, shape in enumerate(sizes))
        exact = tl.tensordot(a.double(), b.double(), dims)
        room = tl.tensordot(a.double().abs(), b.double().abs(), dims)
        found = tl.tensordot(a, b, dims)
        assert found.dtype == dtype
        assert ((found.double() - exact).abs() <= exact.abs() * 2.0**-8 + room * 2.0**-20).all()
