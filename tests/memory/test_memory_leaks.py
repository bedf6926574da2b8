"""What is done again and again leaves nothing in the memory of C."""

import ctypes
import gc

import numpy as np
import pytest

import tensorlib as tl

FIELDS = ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks",
          "fordblks", "keepcost")
LIBC = ctypes.CDLL(None)


class Mallinfo(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in FIELDS]


def bytes_in_use():
    """What malloc has given out and not got back."""
    gc.collect()
    LIBC.mallinfo2.restype = Mallinfo
    found = LIBC.mallinfo2()
    return found.uordblks + found.hblkhd


def leaf(*shape):
    return tl.ones(*shape, requires_grad=True)


def deep(x, n=300):
    for _ in range(n):
        x = x * 1.0
    return x


def wide(x, n=100):
    return tl.stack([x * i for i in range(n)]).sum()


def sweep_in_a_hook():
    x, begun = leaf(3), []
    y = x.exp()

    def hook(g):
        if not begun:
            begun.append(g)
            tl.autograd.grad(y, x, g, retain_graph=True)
    y.register_hook(hook)
    (y * y).sum().backward(retain_graph=True)


def recorded_sweep():
    x = leaf(3)
    g, = tl.autograd.grad(deep(x).exp().sum(), x, create_graph=True)
    tl.autograd.grad(g.sum(), x)


def several_outputs():
    values, indices = leaf(3, 4).max(1)
    first, *others = leaf(9, 3).split(2)
    (values.sum() + others[0].sum()).backward()


def failing_sweep():
    x = leaf(3)
    y = deep(x)
    x.register_hook(lambda g: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        y.sum().backward()


def buffers():
    x = tl.ones(2, 1, 1, 1, 1, 1, 3)
    with memoryview(x) as view:
        return view.nbytes, np.asarray(x.permute(list(range(7))[::-1])).sum()


def refused():
    for run in (lambda: tl.tensor([[1, 2], [3]]), lambda: tl.ones(2, 3) @ tl.ones(2, 3),
                lambda: tl.ones(3)[5], lambda: tl.ones(3).expand(2, 2), lambda: tl.tensor(["a"])):
        with pytest.raises((RuntimeError, ValueError, TypeError, IndexError)):
            run()


def vectorized():
    return tl.func.vmap(tl.func.grad(lambda x: (x * x[::-1]).sum()))(tl.ones(5, 4))


KINDS = {
    "a deep graph": lambda: deep(leaf(3)).sum().backward(),
    "a deep graph that is dropped": lambda: deep(leaf(3)),
    "a wide graph": lambda: wide(leaf(3)).backward(),
    "a recorded sweep": recorded_sweep, "several outputs": several_outputs,
    "a sweep in a hook": sweep_in_a_hook, "a sweep that fails": failing_sweep,
    "buffers": buffers, "bad input": refused, "batches": vectorized,
    "tensors of many dims": lambda: tl.ones([1] * 20).permute(list(range(20))[::-1]).clone(),
    "indices": lambda: tl.ones(40, 50)[tl.arange(40), ::2][tl.ones(40) > 0],
    "writes": lambda: tl.ones(40, 50).__setitem__((tl.arange(20), slice(1, 9)), 2.0),
    "products": lambda: tl.ones(3, 40, 50) @ tl.ones(50, 60),
    "reductions": lambda: [tl.ones(30, 7, 30).sum((0, 2)), tl.ones(90, 70).var(0),
                           tl.ones(300, 70).argmax(0), tl.ones(30, 70).softmax(0)],
    "large reductions": lambda: [tl.ones(300, 300).sum(), tl.ones(300, 300).max()],
    "draws": lambda: [tl.rand(100), tl.randperm(100), tl.Generator().manual_seed(3)],
    "lists": lambda: tl.tensor([[float(i)] * 9 for i in range(9)]).tolist(),
    "text": lambda: repr(tl.ones(40, 50)),
}


@pytest.mark.skipif(not hasattr(LIBC, "mallinfo2"), reason="needs the figures of glibc")
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_done_again_leaves_nothing(kind):
    """A leak of a few bytes each time would show in some of many times; the least counts."""
    run, times, grown = KINDS[kind], 100, []
    for _ in range(6):                        # what is kept for reuse is there after the first;
        # with Python 3.14's collector blocks of its own come and go, over some four of these
        before = bytes_in_use()
        for _ in range(times):
            run()
        grown.append(bytes_in_use() - before)
        if grown[-1] < 8 * times:
            break
    assert min(grown) < 8 * times, grown
