"""Subclasses of Tensor that hand data to `Tensor.__new__`, and tensors that are swapped."""

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


def test_hooks_of_a_module_show_what_their_functions_have():
    layer = tl.nn.Linear(3, 2)
    prune.l1_unstructured(layer, "weight", amount=2)
    assert [hook._tensor_name for hook in layer._forward_pre_hooks.values()] == ["weight"]
    assert not hasattr(next(iter(layer._forward_pre_hooks.values())), "nothing")
