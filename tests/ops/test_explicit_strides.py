"""Memory by hand: sizes and strides that are given, storages of other tensors, shared memory."""

import os

import numpy as np
import pytest
from cases import each

import tensorlib as tl

STRIDES = [((2, 3), (1, 2)), ((2, 3), (3, 1)), ((4,), (0,)), ((), ()), ((0, 3), (7, 1)),
           ((2, 1, 2), (5, 9, 2)), ((3, 3), (1, 1))]


@each("size, stride", STRIDES)
def test_strides_are_those_that_were_asked_for(size, stride):
    x = tl.empty_strided(size, stride, dtype=tl.int16)
    assert x.shape == size and x.stride() == stride and x.dtype is tl.int16 and x._base is None
    reach = 1 + sum((n - 1) * step for n, step in zip(size, stride)) if all(size) else 0
    assert x.untyped_storage().nbytes() == 2 * reach
    x.as_strided((reach,), (1,)).fill_(7)
    assert x.tolist() == np.full(size, 7).tolist()
    y = tl.ones(1, dtype=tl.float64, device="meta").new_empty_strided(size, stride)
    assert y.is_meta and y.stride() == stride and y.dtype is tl.float64
    assert tl.empty_strided(size, stride, requires_grad=True).is_leaf


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (1, 2, 0)])
def test_dims_lie_in_the_order_that_was_asked_for(order):
    x = tl.empty_permuted((2, 3, 4), order)
    assert x.shape == (2, 3, 4) and x.permute(order).is_contiguous()
    assert tl.empty_permuted((), ()).shape == ()


@each("shape", [(2, 2), (6,), (0, 4), (), (2, 3), (4, 5)])
def test_resize_keeps_the_memory_in_its_order(shape):
    whole = tl.arange(8)
    x = whole[2:].view(2, 3).t()
    view, count = whole[3:5], min(int(np.prod(shape)), 6)
    assert x.resize_(*shape) is x
    assert x.shape == shape and x.is_contiguous()
    assert x.flatten()[:count].tolist() == list(range(2, 2 + count))
    assert (x.data_ptr() == whole[2:].data_ptr()) == (x.numel() <= 6)
    assert view.tolist() == [3, 4] and whole.tolist() == list(range(8))
    x.zero_()
    assert whole[2:2 + count].any().item() == (x.numel() > 6)


@pytest.mark.parametrize("view", [lambda: tl.arange(6).view(2, 3).t(),
                                  lambda: tl.arange(12)[::2],
                                  lambda: tl.arange(1).expand(3)])
def test_tensors_of_the_size_already_stay_as_they_lie(view):
    x, held = view(), view()
    for same in (x.resize_(x.shape), x.resize_as_(tl.empty(x.shape))):
        assert same is x and x.stride() == held.stride() and tl.equal(x, held)
    x.resize_(x.shape, memory_format=tl.contiguous_format)
    assert x.is_contiguous()


@pytest.mark.parametrize("form, shape, order", [
    (tl.channels_last, (1, 2, 3, 4), (0, 2, 3, 1)),
    (tl.channels_last_3d, (2, 3, 1, 2, 2), (0, 2, 3, 4, 1))])
@pytest.mark.parametrize("held", [24, 30, 7])
def test_the_memory_of_a_resized_tensor_has_the_order_of_its_format(form, shape, order, held):
    x, template = tl.arange(held), tl.empty(shape, memory_format=form)
    assert x.resize_(shape, memory_format=form) is x
    assert x.shape == shape and x.stride() == template.stride()
    count = min(held, 24)
    assert x.permute(order).flatten()[:count].tolist() == list(range(count))
    assert tl.arange(held).resize_as_(
        template, memory_format=tl.preserve_format).stride() == template.stride()
    rows = tl.arange(held).resize_as_(template.contiguous(), memory_format=tl.preserve_format)
    assert rows.is_contiguous() and tl.arange(held).resize_as_(template).is_contiguous()


def test_resized_tensors_are_captured_or_run_eagerly():
    def f(x):
        y = x.clone()
        return y.resize_(2, 2) * 2

    compiled, x = tl.compile(f), tl.arange(6)
    for _ in range(3):
        assert compiled(x).tolist() == f(x).tolist() == [[0, 2], [4, 6]]
    assert tl.ones(6).resize_(size=(2, 3)).shape == (2, 3)
    assert tl.ones(2).resize_as_(tl.ones(1, 2)).shape == (1, 2)


def test_another_layout_of_the_same_memory():
    x = tl.arange(8)
    y = x[1:]
    assert y.as_strided_((2, 2), (4, 1)) is y and y.tolist() == [[1, 2], [5, 6]]
    assert tl.as_strided_(y, (2,), (1,), 6).tolist() == [6, 7]
    assert y.data_ptr() == x[6:].data_ptr()


def test_the_memory_of_another_tensor():
    x, y = tl.arange(6), tl.tensor([9])
    assert not y.is_set_to(x)
    assert y.set_(x) is y and y.is_set_to(x)
    y[0] = 7
    assert x[0] == 7
    assert y.set_(x, 2, (2, 2), (1, 1)).tolist() == [[2, 3], [3, 4]] and not y.is_set_to(x)
    assert y.set_(x, 2, (2, 2)).tolist() == [[2, 3], [4, 5]]
    assert y.set_().shape == (0,) and x.tolist() == [7, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("memory", [lambda x: x.untyped_storage(), lambda x: x.storage()])
def test_the_memory_of_a_storage(memory):
    x, y = tl.arange(6), tl.tensor([9])
    assert y.set_(memory(x[2:])).tolist() == [0, 1, 2, 3, 4, 5]
    assert y.set_(memory(x), 1, (2, 2), (3, 1)).tolist() == [[1, 2], [4, 5]]
    y[0, 0] = 7
    assert x[1] == 7 and x._version == y._version
    with pytest.raises(RuntimeError, match="set_: sizes"):
        y.set_(memory(x), 4, (3,))


@pytest.mark.parametrize("view", [lambda x: x, lambda x: x.t(), lambda x: x[:0]])
def test_forked_processes_write_to_shared_memory(view):
    x = view(tl.arange(6.0).reshape(2, 3)).clone()
    before = x.tolist()
    assert not x.is_shared() and x.share_memory_() is x
    assert x.tolist() == before and x.is_shared() == bool(before)
    address = x.data_ptr()
    assert x.share_memory_().data_ptr() == address
    child = os.fork()
    if not child:
        x.mul_(2)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert x.tolist() == [[2 * each for each in row] for row in before]


def test_parameters_stay_leaves_in_shared_memory():
    w = tl.ones(3, requires_grad=True)
    w.share_memory_()
    (w * 2).sum().backward()
    assert w.is_leaf and w.is_shared() and w.grad.tolist() == [2.0] * 3
    model = tl.nn.Linear(2, 1).share_memory()
    assert all(p.is_shared() and p.requires_grad for p in model.parameters())


@each("call, error, message", [
    (lambda: tl.empty_strided((2,), (1, 1)), RuntimeError, "empty_strided: .* of one length"),
    (lambda: tl.empty_strided((2,), (-1,)), RuntimeError, "must not be negative"),
    (lambda: tl.empty_strided((2**40, 2), (2**40, 1)), RuntimeError, "empty"),
    (lambda: tl.empty_strided((2.5,), (1,)), TypeError, "each size must be an int, got 2.5"),
    (lambda: tl.empty_strided(2, 1), TypeError, "size must be a sequence of ints"),
    (lambda: tl.empty_permuted((2, 3), (0, 0)), RuntimeError, "each of the 2 dims once"),
    (lambda: tl.arange(3).as_strided_((4,), (1,)), RuntimeError, "as_strided"),
    (lambda: tl.arange(3).set_([1, 2]), TypeError, "must be a Tensor or a storage, not list"),
    (lambda: tl.arange(3).set_(tl.ones(2)), RuntimeError, "expected a source of dtype"),
    (lambda: tl.arange(3).set_(tl.ones(2).storage()), RuntimeError, "expected a source of dtype"),
    (lambda: tl.arange(3).set_(tl.arange(4), 2, (3,)), RuntimeError, "set_: sizes"),
    (lambda: tl.arange(3).set_(tl.arange(4), 2), TypeError, "with size alone"),
    (lambda: tl.ones(3, requires_grad=True).set_(), RuntimeError, "requires a gradient"),
    (lambda: tl.ones(3, requires_grad=True).as_strided_((1,), (1,)), RuntimeError, "a gradient"),
    (lambda: tl.ones(2).resize_(-1), RuntimeError, "resize_: sizes must not be negative"),
    (lambda: tl.ones(2).resize_(2**62, 4), RuntimeError, "resize_: .* or too large"),
    (lambda: tl.ones(2).resize_(1, size=(1,)), TypeError, "one by one or as size="),
    (lambda: tl.ones(2).resize_(2, memory_format=tl.preserve_format), RuntimeError, "unsupported"),
    (lambda: tl.ones(2).resize_(1.5), TypeError, "resize_: each size must be an int, got 1.5"),
    (lambda: tl.ones(2, requires_grad=True).resize_(3), RuntimeError, "requires a gradient"),
    (lambda: tl.ones(2).resize_(2, memory_format=tl.channels_last), RuntimeError, "memory_format"),
])
def test_what_is_refused_of_memory(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("kind", [tuple, list, tl.Size, np.array])
def test_views_at_any_strides_take_any_sequences_of_ints(kind):
    x = tl.arange(12)[2:8].reshape(2, 3)
    size, stride = kind([2, 2]), kind([3, 1])
    for view in (x.as_strided(size, stride), tl.as_strided(x, size, stride, storage_offset=2)):
        assert view.tolist() == [[2, 3], [5, 6]] and view._base is x._base
    assert x.as_strided(size, stride, np.int64(0)).tolist() == [[0, 1], [3, 4]]
    for offset in (-1, 9):
        with pytest.raises(RuntimeError, match="as_strided: sizes"):
            x.as_strided(size, stride, offset)
    with pytest.raises(TypeError, match="each size must be an int, got True"):
        x.as_strided((True, 2), (3, 1))
