"""Tensors of a graph that are used as numbers: recorded, refused, or with a warning."""

import math
import warnings

import numpy as np
import pytest
from cases import each

import tensorlib as tl
from tensorlib.func import grad, jvp, vmap

TWO = tl.tensor(2.0)

# functions of a number, with their derivatives at 2
RECORDED = {
    "full": (lambda s: tl.full((3,), s).sum(), 3),
    "full of a dtype": (lambda s: tl.full((3,), s, dtype=tl.float64).sum(), 3),
    "full_like": (lambda s: tl.full_like(tl.ones(3), s).sum(), 3),
    "new_full": (lambda s: tl.ones(3).new_full((3,), s).sum(), 3),
    "scalar_tensor": (tl.scalar_tensor, 1),
    "tensor": (lambda s: tl.tensor([s, s * s]).sum(), 5),
    "tensor of rows": (lambda s: tl.tensor([[s, 1.0], [2, s * s]]).sum(), 5),
    "tensor of blocks": (lambda s: tl.tensor([tl.ones(2) * s, np.ones(2)]).sum(), 2),
    "tensor of a tensor": (lambda s: tl.tensor(s) * s, 4),
    "new_tensor": (lambda s: tl.ones(1).new_tensor([s, s]).sum(), 2),
    "as_tensor": (lambda s: tl.as_tensor([s, s * s]).sum(), 5),
    "asarray": (lambda s: tl.asarray((s, s * s)).sum(), 5),
    "asarray on a device": (lambda s: tl.asarray([s, s * s], device="cpu").sum(), 5),
    "asarray of a dtype": (lambda s: tl.asarray(s, dtype=tl.float64), 1),
    "half": (lambda s: tl.tensor([s, 1], dtype=tl.float16).sum(), 1),
}
REFUSED = {
    "arange": lambda s: tl.arange(0, s).sum(), "linspace": lambda s: tl.linspace(0, s, 3).sum(),
    "logspace": lambda s: tl.logspace(0, s, 3).sum(), "norm": lambda s: tl.ones(3).norm(s),
    "uniform_": lambda s: tl.zeros(3).uniform_(0, s).sum(),
    "normal_": lambda s: tl.zeros(3).normal_(0, s).sum(),
    "normal": lambda s: tl.normal(tl.zeros(3), s).sum(),
    "Tensor": lambda s: tl.Tensor([s]).sum(),
}


@each("name", RECORDED)
def test_what_is_made_of_a_tensor_has_its_gradient_in_a_transform(name):
    function, derivative = RECORDED[name]
    assert grad(function)(TWO).item() == derivative
    assert jvp(function, (TWO,), (tl.tensor(1.0),))[1].item() == derivative
    values = [function(tl.tensor(x)).item() for x in (1.0, 2.0)]
    assert vmap(function)(tl.tensor([1.0, 2.0])).tolist() == values
    assert vmap(grad(function))(tl.tensor([2.0, 2.0])).tolist() == [derivative] * 2


@each("name", REFUSED)
def test_what_cannot_have_a_gradient_is_refused_with_the_remedy(name):
    remedy = "tensorlib.tensor" if name == "Tensor" else "item|detach"
    with pytest.raises(RuntimeError, match=f"{name}: .*({remedy})"):
        grad(REFUSED[name])(TWO)
    REFUSED[name](TWO)                         # outside of a graph it is a number


@pytest.mark.parametrize("key", [0, slice(0, 2)])
def test_a_list_that_is_written_to_an_index_keeps_gradients(key):
    def function(s):
        x = tl.zeros(2, 2)
        x[key] = [s, 1.0]
        return x.sum()
    assert grad(function)(TWO).item() == (1 if key == 0 else 2)


def test_full_of_a_tensor_in_a_graph_is_recorded_in_ordinary_code():
    x = tl.tensor(2.0, requires_grad=True)
    (tl.full((2,), x).sum() + tl.full_like(tl.ones(3), x).sum()).backward()
    assert x.grad.item() == 5
    with pytest.raises(RuntimeError, match="full: .*out="):
        tl.full((2,), x, out=tl.ones(2))


@pytest.mark.parametrize("make", [tl.tensor, tl.as_tensor, tl.asarray, tl.Tensor])
def test_numbers_from_a_graph_are_taken_with_a_warning_in_ordinary_code(make):
    x = tl.tensor(2.0, requires_grad=True)
    with pytest.warns(UserWarning, match="requires_grad=True to a scalar"):
        assert not make([x]).requires_grad
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make([x.detach(), 1.0])
        with tl.no_grad():
            make([x])


def test_a_tensor_of_a_tensor_in_a_graph_is_a_copy_with_a_warning():
    x = tl.tensor(2.0, requires_grad=True)
    with pytest.warns(UserWarning, match="To copy construct from a tensor"):
        assert not tl.tensor(x).requires_grad


@pytest.mark.parametrize("number", [float, int, complex, math.sqrt])
def test_a_number_of_a_tensor_in_a_graph_warns_and_item_does_not(number):
    x = tl.tensor(4.0, requires_grad=True)
    with pytest.warns(UserWarning, match="requires_grad=True to a scalar"):
        assert number(x) in (4, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert x.item() == 4 and number(x.detach()) in (4, 2) and f"{x:.1f}" == "4.0"


def test_an_element_of_an_array_is_no_place_for_a_tensor_in_a_graph():
    """NumPy puts an error of its own before ours, which is its cause."""
    x, array = tl.tensor(2.0, requires_grad=True), np.zeros(3)

    def losing(s):
        array = np.zeros(2)
        array[0] = s
        return tl.tensor(array).sum()
    for write in (lambda: grad(losing)(TWO), lambda: losing(x)):
        with pytest.raises((RuntimeError, ValueError)) as error:
            write()
        found = error.value.__cause__ or error.value
        assert isinstance(found, RuntimeError) and "item()" in str(found)
    array[0], array[1] = x.item(), float(x.detach())
    array[2] = x.detach()
    assert array.tolist() == [2, 2, 2]


def test_examples_of_a_batch_are_joined_by_tensor():
    rows = vmap(lambda s: tl.tensor([s * tl.ones(2), tl.ones(2)]))(tl.tensor([1.0, 2.0]))
    assert rows.tolist() == [[[1, 1], [1, 1]], [[2, 2], [1, 1]]]
    rows = vmap(lambda s: tl.tensor([[s, 1], [2, 1 + s]]))(tl.tensor([1.0, 2.0]))
    assert rows.tolist() == [[[1, 1], [2, 2]], [[2, 1], [2, 3]]]


@pytest.mark.parametrize("data", [lambda s: [[s], [s, s]], lambda s: [s, [s]], lambda s: [s, "a"]])
def test_ragged_data_with_tensors_of_a_graph_is_refused(data):
    for transform in (grad, vmap):
        with pytest.raises((TypeError, ValueError), match="tensor: expected"):
            transform(lambda s: tl.tensor(data(s)).sum())(tl.ones(3) if transform is vmap else TWO)
