"""What examples of a batch refuse, and what they say of themselves."""

import re

import numpy as np
import pytest
from cases import each

import tensorlib as tl
from tensorlib.func import vmap
from tensorlib.nn import functional as F
from tensorlib.testing import assert_close

VECTOR, ROWS, BOX = tl.ones(3), tl.ones(2, 3), tl.ones(2, 3, 4)
INTS = tl.tensor([[0, 1], [1, 0]])
IN_BATCH = "different"


def kept_example():
    """An example of a batch whose `vmap` has ended."""
    kept = []
    vmap(lambda x: kept.append(x) or x)(ROWS)
    return kept[0]


def written(write, *tensors, dims=0):
    """A call that writes into each example, of a copy."""
    return vmap(lambda x, *rest: write(x.clone(), *rest), dims)(*tensors)


RUN, TYPE, INDEX = RuntimeError, TypeError, IndexError
CALLS = [
    (RUN, "cumsum: vmap takes no out=; use the returned tensor",
     lambda: vmap(lambda x: tl.cumsum(x, 0, out=tl.ones(3)))(ROWS)),
    (RUN, "exp: vmap: a tensor that all examples of a batch share can't be written in place or by "
     "out=", lambda: vmap(lambda x: tl.exp(x, out=tl.ones(3)))(ROWS)),
    (RUN, "lu_unpack: an example must have at least 1 dimension",
     lambda: vmap(lambda p: tl.lu_unpack(ROWS, p))(tl.tensor([1, 2], dtype=tl.int32))),
    (RUN, "clone: got a tensor of a vmap that has ended; return it from the function",
     lambda: kept_example().clone()),
    (TYPE, "len() of a 0-d tensor", lambda: vmap(len)(VECTOR)),
    (TYPE, "iteration over a 0-d tensor", lambda: vmap(list)(VECTOR)),
    (RUN, "det: an example must have at least 2 dimensions, got shape (3,)",
     lambda: vmap(tl.linalg.det)(ROWS)),
    (RUN, "t: expects a tensor with at most 2 dims, got 3",
     lambda: vmap(tl.t)(tl.ones(2, 2, 2, 2))),
    (RUN, "tril: expects a tensor with at least 2 dims, got 1", lambda: vmap(tl.tril)(ROWS)),
    (RUN, "matmul: both tensors need a dim, got 0 and 1",
     lambda: vmap(tl.matmul)(tl.ones(2), ROWS)),
    (RUN, "matmul: both tensors need a dim, got 1 and 0",
     lambda: vmap(tl.matmul)(ROWS, tl.ones(2))),
    (RUN, "shape (-1, 2) is invalid for an example of 3 elements",
     lambda: vmap(lambda x: x.reshape(-1, 2))(ROWS)),
    (RUN, "shape (-1, 0) is invalid for an example of 3 elements",
     lambda: vmap(lambda x: x.reshape(-1, 0))(ROWS)),
    (RUN, "as_strided: sizes and strides must be of one length, got (2,) and (1, 1)",
     lambda: vmap(lambda x: x.as_strided((2,), (1, 1)))(ROWS)),
    # positions
    (RUN, "gather: index must have the same number of dimensions as input, got 1 and 2",
     lambda: vmap(lambda x: x.gather(0, INTS[0]))(BOX)),
    (RUN, "gather: index must have the same number of dimensions as input, got 1 and 2",
     lambda: vmap(lambda i: tl.gather(ROWS, 0, i))(INTS)),
    (RUN, "gather: size of index [2, 1] exceeds input [1, 3] apart from dimension 1",
     lambda: vmap(lambda i: tl.gather(ROWS[:1], 1, i.reshape(2, 1)))(INTS)),
    (INDEX, "index_select: ", lambda: vmap(lambda x: x.index_select(0, tl.tensor([3])))(ROWS)),
    (RUN, "index_add: source must have the shape (2, 4) of the slices that index picks, got (2, 3)",
     lambda: vmap(lambda x, i, y: x.index_add(0, i, y))(BOX, INTS, tl.ones(2, 2, 3))),
    (RUN, "one_hot: vmap: ", lambda: vmap(F.one_hot)(INTS)),
    (RUN, "setitem: vmap: a tensor that all examples of a batch share can't be written",
     lambda: vmap(lambda x: vmap(lambda y: x.clone().__setitem__(0, y[0]))(BOX[0]))(ROWS)),
    (RUN, "a tensor of an outer batch can't be written in place with values that differ",
     lambda: vmap(lambda x: vmap(lambda y: x.clone().add_(y))(VECTOR))(ROWS)),
    (RUN, "add_: the result of shape (3, 3) does not fit into (3,)",
     lambda: written(lambda x: x.add_(tl.ones(3, 3)), ROWS)),
    (RUN, "copy_: shape (1, 3) does not expand to (3,)",
     lambda: written(lambda x: x.copy_(tl.ones(1, 3)), ROWS)),
    # draws
    (RUN, "poisson: vmap: parameters that differ between the examples of a batch take "
     "randomness='different' in each", lambda: vmap(tl.poisson, randomness="same")(ROWS)),
    (RUN, "exponential_: vmap: in place on a tensor that all examples of a batch share",
     lambda: vmap(lambda x: VECTOR.clone().exponential_() + x, randomness=IN_BATCH)(ROWS)),
]


@each("error, words, call", CALLS, ids=lambda x: x if type(x) is str else "")
def test_it_is_refused(error, words, call):
    with pytest.raises(error, match=re.escape(words)):
        call()


@pytest.mark.filterwarnings("ignore:vmap. .* has no batching rule")
def test_a_loop_over_no_examples_is_refused():
    class Plain(tl.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

    with pytest.raises(RuntimeError, match="Plain: vmap: has no batching rule, so that a batch of"):
        vmap(Plain.apply)(tl.ones(0, 3))


def test_an_example_describes_itself():
    said = []

    def describe(x):
        said.append((x.dim(), x.nelement(), len(x), x.stride(), x.stride(1), x.is_contiguous(),
                     x.transpose(0, 1).is_contiguous(), len(list(x))))
        said.append(repr(x))
        return x

    vmap(describe)(BOX)
    assert said[0] == (2, 12, 3, (4, 1), 1, True, False, 3)
    assert said[1] == f"Batched({BOX!r}, level=0)"


def test_an_example_by_a_number_or_an_empty_list_of_numpy():
    assert_close(vmap(lambda x: x * np.float64(2.0))(ROWS), ROWS * 2)
    found = vmap(lambda x: x * np.float64(2.0))(ROWS)
    assert found.dtype == (ROWS * np.float64(2.0)).dtype
    assert vmap(lambda x: x[[]])(BOX).shape == (2, 0, 4)


@pytest.mark.parametrize("out_dims, shape", [((0,), (2, 3)), ((1,), (3, 2)), ((-1,), (3, 2))])
def test_out_dims_may_be_a_tuple_of_one(out_dims, shape):
    assert vmap(lambda x: x * 2, out_dims=out_dims)(ROWS).shape == shape


def test_chances_of_each_element_are_drawn_in_place():
    chances = tl.tensor([[0.0, 1.0, 0.0], [1.0, 0.0, 1.0]])
    for randomness in ("same", IN_BATCH):
        found = vmap(lambda x, p: tl.zeros_like(x).bernoulli_(p), randomness=randomness)(
            ROWS, chances)
        assert found.tolist() == chances.tolist()
    shared = vmap(lambda x: x.clone().bernoulli_(chances[0]), randomness=IN_BATCH)(ROWS)
    assert shared.tolist() == [[0.0, 1.0, 0.0]] * 2


def test_counts_by_shared_rates_differ_where_that_is_asked_for():
    tl.manual_seed(0)
    rates = tl.full((40,), 50.0)
    found = vmap(lambda x: tl.poisson(rates) + x, randomness=IN_BATCH)(tl.zeros(2))
    assert found.shape == (2, 40) and (found[0] != found[1]).any()
    own = vmap(tl.poisson, randomness=IN_BATCH)(tl.full((2, 40), 50.0))
    assert (own[0] != own[1]).any() and 40 < own.mean() < 60


def test_an_entry_outside_of_an_examples_matrix_is_refused():
    """And not taken for one of the next example's."""
    product = tl.ops.registry["sparse_product"].function
    places, dense = tl.tensor([0, 1]), tl.ones(3, 2, 2)
    for outside in (2, -1):
        with pytest.raises(IndexError, match="sparse_product"):
            vmap(lambda values, x, row=outside: product(values, x, tl.tensor([0, row]), places, 2))(
                tl.ones(3, 2), dense)
