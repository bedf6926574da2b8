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
        made = [compiled, program.trace(function, *calls[0])] if traced else [compiled]
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


# ---- control flow --------------------------------------------------------------------------------

def dual_tangent(function):
    def tangent(x):
        with tl.autograd.forward_ad.dual_level():
            dual = tl.autograd.forward_ad.make_dual(x, tl.ones(2))
            found = tl.autograd.forward_ad.unpack_dual(function(dual)).tangent
            return tl.zeros(2) if found is None else found
    return tangent


def pulled_back_in_rows(function):
    def rows(x):
        out, pull = func.vjp(function, x)
        return func.vmap(pull)(tl.stack([tl.ones(2), out]))[0]
    return rows


FLOWS = {
    "cond": lambda x: tl.cond(x.sum() > 0, lambda: x * 2, lambda: x * 3),
    "constant_in_a_branch": lambda x: tl.cond(x.sum() > 0, lambda: tl.ones(2), lambda: x * 3),
    "while_loop": lambda x: tl.while_loop(
        lambda n, y: n < 5, lambda n, y: (n + 1, y * 2), ((x.sum() > 0).long() * 3, x))[1],
    "switch_case": lambda x: tl.switch_case(
        (x.sum() > 0).long(), [lambda: x * 5, lambda: x * 7]),
}
TANGENTS = {
    "jvp": lambda f: lambda x: func.jvp(f, (x,), (tl.ones(2),))[1],
    "linearize": lambda f: lambda x: func.linearize(f, x)[1](tl.ones(2)),
    "jacfwd": func.jacfwd,
    "jacrev": func.jacrev,
    "functional_jvp": lambda f: lambda x: tl.autograd.functional.jvp(f, x, tl.ones(2))[1],
    "functional_jacobian": lambda f: lambda x: tl.autograd.functional.jacobian(f, x),
    "dual_numbers": dual_tangent,
    "vmap_of_a_pullback": pulled_back_in_rows,
}


@pytest.mark.parametrize("name", FLOWS)
@pytest.mark.parametrize("transform", TANGENTS)
def test_derivatives_along_control_flow_are_those_of_the_branch_of_each_call(transform, name):
    function = TANGENTS[transform](FLOWS[name])
    for values in ((1.0, -1.0, 2.0), (-1.0, 1.0, -2.0)):
        (why,) = agrees(function, *[(tl.full((2,), value),) for value in values], fullgraph=False,
                        traced=False)
        assert "a derivative of control flow" in why
    with pytest.raises(program.CaptureError, match="a derivative of control flow"):
        program.trace(function, tl.ones(2))


def test_control_flow_beside_a_derivative_is_captured():
    agrees(lambda x: func.jvp(lambda y: y * FLOWS["cond"](x), (x,), (tl.ones(2),))[1],
           *[(tl.full((2,), value),) for value in VALUES])
