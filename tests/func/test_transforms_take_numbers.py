"""`.grad` of what is not a leaf, and transforms of functions of numbers and arrays."""

import importlib
import warnings
from importlib.util import find_spec

import numpy as np
import pytest

import tensorlib as tl
from tensorlib.func import (
    grad, hvp, jacfwd, jacrev, jvp, value_and_grad, vhp, vjp, vmap,
)



def test_grad_of_a_tensor_that_is_no_leaf_warns_once_per_place():
    x = tl.ones(2, requires_grad=True)
    y = x * 2
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("default")
        for _ in range(3):
            assert y.grad is None
    assert len(seen) == 1 and seen[0].category is UserWarning
    assert seen[0].filename == __file__ and "not a leaf" in str(seen[0].message)


def test_grad_of_leaves_and_of_what_retains_it_does_not_warn():
    x = tl.ones(2, requires_grad=True)
    y, z = x * 2, x.detach()
    y.retain_grad()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert x.grad is None and y.grad is None and z.grad is None
        y.sum().backward()
        assert y.grad.tolist() == [1, 1]


# ---- numbers and arrays --------------------------------------------------------------------------

def test_transforms_take_python_numbers():
    assert grad(tl.tanh)(0.0).item() == grad(tl.tanh)(0).item() == 1
    assert value_and_grad(lambda x, y: x * y, (0, 1))(2.0, 3.0)[1] == (3, 2)
    assert jvp(lambda x: x * x, (3.0,), (1.0,)) == (9, 6)
    assert vjp(lambda x: x * x, 3.0)[1](1.0)[0].item() == 6
    assert grad(lambda x: x * x)(np.float64(3)).dtype is tl.float64


def test_transforms_take_arrays_and_share_nothing_with_them():
    array = np.array([1.0, 2.0])
    out, pull = vjp(lambda x: x * x, array)
    array[:] = 9
    assert pull(np.ones(2))[0].tolist() == [2, 4] and out.dtype is tl.float64
    array = np.array([1.0, 2.0])
    assert jacrev(tl.square)(array).tolist() == jacfwd(tl.square)(array).tolist() == [
        [2, 0], [0, 4]]
    assert vmap(lambda x: x.sum())(np.ones((3, 2))).tolist() == [2, 2, 2]
    assert grad(lambda p: p["w"].sum())({"w": array})["w"].tolist() == [1, 1]


def test_transforms_take_functions_that_return_numbers_and_arrays():
    assert grad(lambda x: 3.0)(1.0).item() == 0
    assert jacrev(lambda x: np.ones(2))(tl.ones(3)).tolist() == [[0, 0, 0]] * 2


@pytest.mark.parametrize("wrong, error", [("1", "got str"), (True, "floating")])
def test_what_is_no_real_number_is_still_refused(wrong, error):
    with pytest.raises((TypeError, RuntimeError), match=error):
        grad(tl.tanh)(wrong)


def test_products_with_hessians_take_single_tensors():
    x, v = tl.tensor([1.0, 2.0]), tl.ones(2)
    for product in (hvp, vhp):
        single, tuples = (product(lambda x: (x ** 3).sum(), *given)
                          for given in ((x, v), ((x,), (v,))))
        assert single[1].tolist() == tuples[1].tolist() == [6, 12]


def rosenbrock(x):
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


if find_spec("scipy"):
    @pytest.mark.parametrize("method", ["BFGS", "L-BFGS-B", "CG", "SLSQP"])
    def test_scipy_minimizes_a_function_that_returns_tensors(method):
        minimize = importlib.import_module("scipy.optimize").minimize
        found = minimize(value_and_grad(rosenbrock), np.zeros(4), jac=True, method=method)
        assert np.abs(found.x - 1).max() < 1e-2 and isinstance(found.x, np.ndarray)
