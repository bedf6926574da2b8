"""`Tensor(x)` and its kin show the memory of a tensor or an array, with its place in the graph."""

import numpy as np
import pytest

import tensorlib as tl


class Kind(tl.Tensor):
    pass


class Made(tl.Tensor):
    def __new__(cls, x):
        return super().__new__(cls, x)


VIEWS = {"Tensor": tl.Tensor, "FloatTensor": tl.FloatTensor, "new": lambda x: x.new(x),
         "subclass": Kind, "__new__": Made, "as_subclass": lambda x: x.as_subclass(Kind)}


@pytest.fixture(params=VIEWS.values(), ids=VIEWS)
def view(request):
    return request.param


def test_memory_is_shared(view):
    x = tl.arange(6.0).reshape(2, 3).t()
    y = view(x)
    version = x._version
    y[0, 0] = 9
    assert (x[0, 0], y.stride(), y._is_view(), x._version) == (9, (1, 3), True, version + 1)


def test_gradients_flow_through(view):
    w = tl.ones(3, requires_grad=True)
    y = view(w)
    assert y.requires_grad and not y.is_leaf
    (y * 2).sum().backward()
    assert w.grad.tolist() == [2, 2, 2]


def test_transforms_go_through(view):
    x = tl.tensor([1.0, 2.0])
    assert tl.func.grad(lambda x: (view(x) ** 3).sum())(x).tolist() == [3, 12]
    assert tl.func.hessian(lambda x: (view(x) ** 3).sum())(x).tolist() == [[6, 0], [0, 12]]
    assert tl.func.jvp(lambda x: view(x) ** 3, (x,), (tl.ones(2),))[1].tolist() == [3, 12]


def test_writes_are_part_of_the_history_of_both(view):
    w = tl.ones(3, requires_grad=True)
    x = w * 2
    view(x).mul_(3)
    x.sum().backward()
    assert w.grad.tolist() == [6, 6, 6]
    x = tl.zeros(3)
    view(x).add_(w)
    assert x.requires_grad


def test_views_of_subclasses_are_views():
    w = tl.ones(3, requires_grad=True)
    x = (w * 2).as_subclass(Kind)
    row = x[0]
    row.mul_(3)
    x.sum().backward()
    assert (type(row), row._is_view(), w.grad.tolist()) == (Kind, True, [6, 2, 2])


def test_every_dtype_is_taken_as_it_is_and_kinds_take_theirs():
    x = tl.arange(3)
    assert tl.Tensor(x).dtype == tl.int64 and tl.Tensor(x).data_ptr() == x.data_ptr()
    with pytest.raises(TypeError, match="FloatTensor: expected a tensor of .*float32"):
        tl.FloatTensor(x)


def test_arrays_of_the_default_dtype_are_shared():
    single, double, constant = np.ones(3, "f4"), np.ones(3), np.ones(3, "f4")
    constant.flags.writeable = False
    for array in (single, double, constant):
        tl.Tensor(array)[0] = 5
    assert (single[0], double[0], constant[0]) == (5, 1, 1)


def test_what_is_asked_for_in_addition_is_of_a_copy():
    x = tl.zeros(2)
    for y in (tl.Tensor(x, dtype=tl.float32), tl.Tensor(x, requires_grad=True)):
        with tl.no_grad():
            y.add_(1)
    assert x.tolist() == [0, 0] and y.is_leaf and y.requires_grad


def test_leaves_of_a_subclass_are_outside_the_graph():
    x = tl.ones(2, requires_grad=True) * 1
    leaf = tl.Tensor._make_subclass(Kind, x, True)
    assert leaf.is_leaf and leaf.requires_grad and not leaf._is_view()
    assert leaf.data_ptr() == x.data_ptr()


def test_captured_functions_run_eagerly():
    for name in ("Tensor", "as_subclass"):
        f = tl.compile(lambda x, view=VIEWS[name]: view(x * 2) + 1)
        with pytest.warns(RuntimeWarning, match=name):
            assert f(tl.ones(2)).tolist() == [3, 3]
