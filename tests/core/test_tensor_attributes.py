"""Attributes that are set on tensors: each keeps its own, as in PyTorch."""

import copy
import gc
import pickle
import weakref

import pytest

import tensorlib as tl


def test_a_tensor_keeps_what_is_set_on_it():
    x, y = tl.ones(2), tl.ones(2)
    x.note = "first"
    assert x.note == "first" and not hasattr(y, "note")
    y.note = x.note = 3
    del x.note
    assert y.note == 3 and not hasattr(x, "note")
    with pytest.raises(AttributeError, match="'tensorlib.Tensor' object has no attribute 'note'"):
        x.note  # noqa: B018
    assert (y.name, y + 1) and not hasattr(y + 1, "note")
    y.name = "y"
    assert (y.name, y.note) == ("y", 3)


def test_what_a_tensor_has_already_is_not_replaced():
    x = tl.ones(2)
    for name in ("shape", "dtype", "__len__"):
        with pytest.raises(AttributeError):
            setattr(x, name, 3)
    assert x.shape == (2,)


def test_subclasses_have_the_same_attributes():
    class Mine(tl.Tensor):
        pass

    x, p = tl.ones(2).as_subclass(Mine), tl.nn.Parameter(tl.ones(2))
    tl.ones(1).shared = 0
    x.shared, p.shared = 1, 2
    assert (x.shared, p.shared) == (1, 2) and not hasattr(tl.nn.Parameter(tl.ones(1)), "shared")


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy,
                                    lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_have_the_attributes(copied):
    x, p = tl.ones(2), tl.nn.Parameter(tl.ones(2))
    for each in (x, p):
        each.kept, each.name = [1, 2], "w"
        got = copied(each)
        assert (got.kept, got.name, type(got)) == ([1, 2], "w", type(each))


def test_they_are_in_the_dict_of_the_tensor():
    class Slotted(tl.Tensor):
        __slots__ = ()

    for x in (tl.ones(2), tl.nn.Parameter(tl.ones(2)), tl.ones(2).as_subclass(Slotted)):
        assert not vars(x)
        x.note, x.other = 3, 4
        assert vars(x) == x.__dict__ == {"note": 3, "other": 4}
        vars(x).pop("note")
        assert not hasattr(x, "note") and copy.copy(x).other == 4
        x.note = 5
        assert (x.note, vars(copy.deepcopy(x))) == (5, {"note": 5, "other": 4})


def test_a_compiled_function_reads_the_dict_as_the_eager_one():
    def reads(x):
        return x * x.__dict__.get("count", 1)

    compiled, x = tl.compile(reads), tl.ones(2)
    for count in (2, 2, 5):
        x.count = count
        assert compiled(x).tolist() == [count, count]
    del x.count
    assert compiled(x).tolist() == [1, 1]


def test_tensors_are_told_apart_by_a_number():
    x = tl.ones(2)
    assert x._cdata == x._cdata != x.detach()._cdata


def test_a_tensor_that_keeps_itself_is_collected():
    x = tl.ones(2)
    x.itself = x
    seen = weakref.ref(x)
    del x
    gc.collect()
    assert seen() is None


def test_a_compiled_function_sets_and_reads_attributes_as_the_eager_one():
    def sets(x):
        y = x + 1
        y.count = 3
        return y

    def reads(x):
        return x * x.count

    x, z = tl.ones(2), tl.ones(2)
    x.count, z.count = 2, 5
    compiled_sets, compiled_reads = tl.compile(sets), tl.compile(reads)
    for _ in range(3):
        assert compiled_sets(x).count == 3
        assert compiled_reads(x).tolist() == [2, 2] and compiled_reads(z).tolist() == [5, 5]


def test_all_that_the_class_lists_can_be_asked_of_it():
    tl.ones(1).a_note = 3
    for name in dir(tl.Tensor):
        getattr(tl.Tensor, name)
    assert not callable(tl.Tensor.a_note) and not hasattr(tl.ones(1), "a_note")


def test_the_gradient_under_its_inner_name():
    x = tl.ones(2, requires_grad=True)
    x._grad = tl.zeros(2)
    assert x._grad is x.grad and x.grad.tolist() == [0, 0]
