"""Gradients of x[key] that meet: the second and later ones are added where they belong."""

import numpy as np
import pytest
from cases import each

import tensorlib as tl

KEYS = {
    "parts": [(slice(None), slice(0, 2)), (slice(None), slice(2, 4)), (slice(None), slice(4, 6))],
    "overlapping": [slice(0, 3), slice(1, 4), (2, 3), (..., None, 1), slice(None, None, 2)],
    "positions": [[0, 0, 3], slice(1, 3), ([1, 2], [0, 5])],
    "masks": [np.arange(24).reshape(4, 6) % 3 == 0, (Ellipsis, 2)],
}


def summed(x, keys):
    return sum([(x[key] * (k + 1.5)).sum() for k, key in enumerate(keys)])


def wanted(keys):
    total = np.zeros((4, 6))
    for k, key in enumerate(keys):
        one = np.zeros((4, 6))
        np.add.at(one, key, k + 1.5)
        total += one
    return total


@each("keys", list(KEYS))
@each("dtype", ["float32", "float64", "float16"])
@each("leaf", [False, True])
def test_parts_of_a_tensor_have_the_sum_of_their_gradients(keys, dtype, leaf):
    x = tl.ones(4, 6, dtype=getattr(tl, dtype), requires_grad=True)
    summed(x if leaf else x * 1, KEYS[keys]).backward()
    np.testing.assert_array_equal(x.grad.numpy(), wanted(KEYS[keys]))


def test_other_uses_between_parts_are_summed_too():
    x = tl.ones(4, 6, requires_grad=True)
    y = x * 1
    (y[:2].sum() + (y * 3).sum() + y[1:].sum() + (y * 2).sum() + y[3].sum()).backward()
    np.testing.assert_array_equal(x.grad.numpy(), np.array([[6.], [7], [6], [7]]) * np.ones(6))


def test_zeros_keep_their_signs_as_in_a_sum_of_whole_gradients():
    x = tl.ones(4, requires_grad=True)
    y = x * 1
    g = tl.tensor([-0.0, -0.0])
    tl.autograd.backward([y[:2], y[2:], y * 1], [g, g, tl.full((4,), -0.0)])
    assert not np.signbit(x.grad.numpy()).any()


def test_hooks_and_retained_gradients_see_whole_ones():
    x = tl.ones(4, 6, requires_grad=True)
    y = x * 1
    seen = []
    y.retain_grad()
    y.register_hook(lambda g: seen.append(g.numpy().copy()))
    summed(y, KEYS["overlapping"]).backward()
    np.testing.assert_array_equal(seen[0], wanted(KEYS["overlapping"]))
    np.testing.assert_array_equal(y.grad.numpy(), seen[0])


@pytest.mark.parametrize("create_graph", [False, True])
def test_a_gradient_that_is_kept_is_not_added_to(create_graph):
    x = tl.ones(4, 6, requires_grad=True)
    y = x * 1
    kept = []
    parts = [y[:2], y[2:]]
    parts[1].register_hook(kept.append)
    (parts[0].sum() * 2 + parts[1].sum()).backward(retain_graph=True, create_graph=create_graph)
    first = x.grad.detach().numpy().copy()
    (parts[0].sum() * 2 + parts[1].sum()).backward()
    np.testing.assert_array_equal(x.grad.detach().numpy(), 2 * first)
    np.testing.assert_array_equal(kept[0].detach().numpy(), np.ones((2, 6)))


# ---- parts that are written in place -------------------------------------------------------------

WRITES = {"copy_": lambda part, a: part.copy_(a), "zero_": lambda part, a: part.zero_(),
          "mul_": lambda part, a: part.mul_(a)}


@each("write", list(WRITES))
@each("cut", [lambda y: y[1], lambda y: y.select(1, 0), lambda y: y.diagonal()])
@each("create_graph", [False, True])
def test_a_part_written_in_place_has_its_own_gradient(cut, write, create_graph):
    x, a = tl.ones(3, 3, requires_grad=True), tl.tensor([2.0, 3.0, 4.0])
    given = tl.arange(1.0, 10.0).reshape(3, 3)
    y = x * 1
    before = y.sum() * 2                       # another use of what is written over
    WRITES[write](cut(y), a)
    (g,) = tl.autograd.grad([y, before], [x], [given, None], create_graph=create_graph)
    wanted = given.clone()
    cut(wanted).mul_(a if write == "mul_" else 0)
    np.testing.assert_array_equal(g.detach().numpy(), wanted.numpy() + 2)
    np.testing.assert_array_equal(given.numpy().ravel(), np.arange(1, 10))


@each("write", list(WRITES))
def test_zeros_beside_a_part_written_in_place_have_a_sum_s_sign(write):
    """As captured gradients have, which are sums of whole tensors."""
    x, a = tl.ones(3, 3, requires_grad=True), tl.ones(3)
    y = x.clone()
    WRITES[write](y[1], a)
    (g,) = tl.autograd.grad(y, [x], tl.full((3, 3), -0.0))
    assert not g.signbit()[::2].any()
