"""Layers of networks under vmap, where an example has a part of its own, or there are none."""

import pytest

import tensorlib as tl
from tensorlib.func import grad, vmap
from tensorlib.nn import functional as F
from tensorlib.testing import assert_close

SHARED = {"both": (0, 0), "images": (0, None), "weights": (None, 0)}


@pytest.mark.parametrize("dims", SHARED.values(), ids=SHARED)
@pytest.mark.parametrize("function, shape", [(F.conv1d, (1, 3, 2)),
                                             (F.conv_transpose1d, (3, 1, 2))])
def test_convolutions_of_no_examples_have_the_shape_of_those_of_some(function, shape, dims):
    def shapes(size):
        x, w = (tl.ones(*(size,) * (d == 0), *one) for d, one in zip(dims, ((2, 3, 5), shape)))
        gradient = vmap(grad(lambda w, x: function(x, w).sum()), dims[::-1])
        return vmap(function, dims)(x, w).shape, gradient(w, x).shape

    for none, some in zip(shapes(0), shapes(4), strict=True):
        assert none == (0, *some[1:])


@pytest.mark.parametrize("n", [1, 2, 3])
def test_gradients_of_maxima_go_to_their_places_in_each_example(n):
    pool = {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}[n]
    tl.manual_seed(n)
    x, g = tl.randn(3, 2, *(4,) * n), tl.randn(2, *(2,) * n)

    def loss(x):
        return (pool(x, 2) * g).sum()

    found = vmap(grad(loss))(x)
    for i in range(3):
        own = x[i].clone().requires_grad_()
        loss(own).backward()
        assert_close(found[i], own.grad)
        assert (own.grad != 0).sum() == 2 * 2**n


def test_second_gradients_of_maxima_in_each_example():
    tl.manual_seed(5)
    x = tl.randn(3, 1, 6)

    def loss(x):
        return F.max_pool1d(x, 3, 2, 1).pow(3).sum()

    found = vmap(grad(lambda x: grad(loss)(x).square().sum()))(x)
    for i in range(3):
        assert_close(found[i], grad(lambda x: grad(loss)(x).square().sum())(x[i]))


def test_each_example_is_put_back_to_its_own_places():
    tl.manual_seed(6)
    x = tl.randn(3, 2, 6)

    def back(x):
        return F.max_unpool1d(*F.max_pool1d(x, 2, return_indices=True), 2)

    found = vmap(back)(x)
    for i in range(3):
        assert_close(found[i], back(x[i]))
        assert ((found[i] == x[i]) | (found[i] == 0)).all() and (found[i] != 0).sum() == 6
