"""Subclasses of Tensor that hand data to `Tensor.__new__`, and tensors that are swapped."""

import copy
import pickle
import warnings

import pytest

import tensorlib as tl
from tensorlib import Tensor
from tensorlib.nn.utils import prune


class Named(Tensor):
    """As PyTorch's own page on subclasses has it."""

    @staticmethod
    def __new__(cls, x, name=None):
        return super().__new__(cls, x)

    def __init__(self, x, name=None):
        self.name = name


class Plain(Tensor):
    """Without an `__init__`: the elements come from `__new__` alone."""

    def __new__(cls, *args, unit=None):
        made = super().__new__(cls, *args)
        made.unit = unit
        return made


def test_new_takes_the_data():
    x = Named([[1.0, 2.0]], name="a")
    assert type(x) is Named and x.name == "a" and x.tolist() == [[1, 2]]
    assert (x + 1).tolist() == [[2, 3]] and Named(tl.ones(2)).tolist() == [1, 1]
    y = Plain([1.0, 2.0], unit="m")
    assert type(y) is Plain and y.unit == "m" and y.tolist() == [1, 2]
    assert Plain(2, 3).shape == (2, 3) and Plain().shape == (0,)
    with pytest.raises(TypeError):
        Plain("text")


def test_what_is_swapped_is_what_the_other_was():
    x, y = tl.ones(2, requires_grad=True), tl.arange(3)
    (x * 3).sum().backward()
    grad, kept = x.grad, [x, y]
    tl.utils.swap_tensors(x, y)
    assert kept[0] is x and x.tolist() == [0, 1, 2] and not x.requires_grad and x.grad is None
    assert y.tolist() == [1, 1] and y.requires_grad and y.is_leaf and y.grad is grad
    a, b = Named([1.0], name="a"), Named([2.0], name="b")
    tl.utils.swap_tensors(a, b)
    assert a.name == "b" and a.item() == 2 and b.name == "a"
    with pytest.raises(RuntimeError, match="expects leaves"):
        tl.utils.swap_tensors(y, y * 2)
    with pytest.raises(TypeError, match="both must be of one class, got Tensor and Named"):
        tl.utils.swap_tensors(x, a)


def test_saved_values_under_the_names_of_pytorch():
    x, y = tl.tensor([1.0, 2.0], requires_grad=True), tl.tensor([3.0, 4.0])
    assert tl.equal(x.exp().grad_fn._saved_result, x.exp())
    assert tl.equal(x.sin().grad_fn._saved_self, x) and tl.equal((x * y).grad_fn._saved_other, y)
    for node, name in ((x.exp().grad_fn, "_saved_self"), (x.sin().grad_fn, "_saved_no"),
                       (x.exp().grad_fn.next_functions[0][0], "_saved_self")):
        with pytest.raises(AttributeError, match=name):
            getattr(node, name)


def test_saved_values_under_the_names_of_pytorch_are_what_hooks_give_back():
    files = {0: tl.tensor([1.0, 2.0])}
    x = files[0].clone().requires_grad_()
    with tl.autograd.graph.saved_tensors_hooks(lambda x: 0, files.pop):
        node = x.sin().grad_fn
    assert tl.equal(node._saved_self, x)
    with pytest.raises(KeyError):                        # the hook is called each time
        node._saved_self


def test_saved_values_under_the_names_of_pytorch_say_when_they_are_released():
    y = tl.tensor([1.0], requires_grad=True).sin()
    y.backward()
    with pytest.raises(RuntimeError, match="released by the first backward"):
        y.grad_fn._saved_self


def test_hooks_of_a_module_show_what_their_functions_have():
    layer = tl.nn.Linear(3, 2)
    prune.l1_unstructured(layer, "weight", amount=2)
    assert [hook._tensor_name for hook in layer._forward_pre_hooks.values()] == ["weight"]
    assert not hasattr(next(iter(layer._forward_pre_hooks.values())), "nothing")


class Kept(tl.nn.Parameter):
    """A parameter with more arguments, as libraries for PyTorch make them."""

    def __new__(cls, data, bits, requires_grad=True):
        made = Tensor._make_subclass(cls, data, requires_grad)
        made.bits = bits
        return made


def test_a_parameter_that_takes_more():
    x = tl.ones(2)
    p = Kept(x, 4)
    assert type(p) is Kept and p.bits == 4 and p.requires_grad and p.is_leaf
    assert p.data_ptr() == x.data_ptr() and not Kept(x, bits=4, requires_grad=False).requires_grad
    module = tl.nn.Module()
    module.p = p
    assert dict(module.named_parameters())["p"] is p and type(p * 2) is Tensor
    for same in (copy.deepcopy(p), pickle.loads(pickle.dumps(p))):
        assert type(same) is Kept and same.bits == 4 and same.tolist() == [1, 1]


def test_make_subclass():
    y = tl.ones(2, requires_grad=True) * 2
    x = Tensor._make_subclass(Plain, y)
    assert type(x) is Plain and x.grad_fn is None and not x.requires_grad
    x.add_(1)
    assert y.tolist() == [3, 3] and y._version == 1
    for cls, data in ((int, y), (Plain, [1.0])):
        with pytest.raises(TypeError, match="Tensor"):
            Tensor._make_subclass(cls, data)
    with pytest.raises(RuntimeError, match="only floating-point"):
        Tensor._make_subclass(Plain, tl.tensor([1]), True)


class Measured(Tensor):
    """One of no elements, too, is as its `__new__` made it."""

    def __new__(cls, *args, unit, **options):
        made = Tensor._make_subclass(cls, Tensor(*args, **options))
        made.unit = unit
        return made


def test_a_class_with_arguments_of_its_own_by_name():
    assert Measured(unit="m").shape == (0,) and Measured(2, unit="m").unit == "m"
    x = Measured([1.0], unit="m", dtype=tl.float64)
    assert x.dtype is tl.float64 and copy.copy(x).unit == "m"


class Quiet(Tensor):
    """Nothing of its own."""


def test_operations_keep_the_class():
    x = tl.ones(2).as_subclass(Quiet)
    for out in (x + 1, 1 + x, tl.ones(2) + x, x.sum(), tl.exp(x), x[0], x.reshape(2, 1), x == 1,
                x.detach(), x.clone(), tl.cat([x, tl.ones(1)]), x.unbind()[0], x.max(0).values,
                tl.nn.functional.relu(x), x.to(tl.float64), x.mT if x.ndim > 1 else x.t(),
                x.add_(1), tl.add(x, 1, alpha=2)):
        assert type(out) is Quiet
    assert type(tl.nn.Parameter(tl.ones(2)) * 2) is Tensor and type(x.numpy()).__name__ == "ndarray"


def test_gradients_of_a_subclass():
    x = tl.ones(2).as_subclass(Quiet).requires_grad_()
    y = (x * x).sum()
    y.backward()
    assert type(y) is Quiet and type(x.grad) is Tensor and x.grad.tolist() == [2, 2]


def test_a_captured_function_of_a_subclass():
    f = tl.compile(lambda x: x * 2 + 1)
    x = tl.ones(2).as_subclass(Quiet)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(3):
            assert type(f(x)) is Quiet and f(x).tolist() == [3, 3]
            assert type(f(tl.ones(2))) is Tensor
