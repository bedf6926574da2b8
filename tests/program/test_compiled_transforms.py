"""Compiled functions that differentiate or map over batches: each call gives what an eager one does.
"""

import warnings

import pytest

import tensorlib as tl
from tensorlib import program

func = tl.func
VALUES = (1.0, 2.0, -3.0)


def agrees(function, *calls, fullgraph=True, traced=True):
    """The reasons for which a function is not replayed, each call of which, compiled and traced,
    gives what an eager one does."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        compiled = tl.compile(function, fullgraph=fullgraph)
        made = [compiled] + [program.trace(function, *calls[0])] * traced
        for args in calls:
            expected = function(*args)
            for found in (f(*args) for f in made):
                assert tl.equal(found, expected)
    return [str(w.message) for w in caught if str(w.message).startswith("compile: ")]


# ---- gradients for batches -----------------------------------------------------------------------

PRODUCTS = {
    "mm": lambda x, y: x @ y,
    "einsum": lambda x, y: tl.einsum("ij,kj->ik", x, y),
    "tensordot": lambda x, y: tl.tensordot(x, y, 1),
    "addmm": lambda x, y: tl.addmm(y, x, y),
    "baddbmm": lambda x, y: tl.baddbmm(*[z.expand(2, 2, 2) for z in (y, x, y)]),
    "bmm": lambda x, y: tl.bmm(x.expand(2, 2, 2), y.expand(2, 2, 2)),
    "dot": lambda x, y: tl.dot(x.flatten(), y.flatten()),
    "matrix_power": lambda x, y: tl.linalg.matrix_power(x, 3) @ y,
    "of_batches": lambda x, y: x.expand(3, 2, 2) @ y,
}


def pulled_back_for_a_batch(product):
    def function(x, y):
        out, pull = func.vjp(lambda z: product(z, y), x)
        return func.vmap(pull)(tl.stack([out, out * 2]))[0]
    return function


BATCHES = {
    "vmap_of_a_pullback": pulled_back_for_a_batch,
    "jacrev": lambda product: lambda x, y: func.jacrev(lambda z: product(z, y * z))(x),
    "jacobian": lambda product: lambda x, y: tl.autograd.functional.jacobian(
        lambda z: product(z, y * z), x),
}


@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize("transform", BATCHES)
def test_gradients_of_products_for_a_batch_are_of_the_matrices_of_each_call(transform, name):
    agrees(BATCHES[transform](PRODUCTS[name]),
           *[(tl.eye(2) + value, tl.ones(2, 2) * value) for value in VALUES],
           traced=transform != "jacobian")
