"""Every cycle that a user can make can be collected, also through what was recorded before it."""

import gc
from functools import partial

from cases import each

import tensorlib as tl


class Kept(tl.Tensor):
    """A tensor with attributes."""


class Model:
    """An object that a hook is a method of."""

    def hook(self, g):
        return None


def hook_on_what_has_later_results():
    x = tl.ones(1000, requires_grad=True)
    y = x * 2
    z = (y * 3).tanh()
    y.register_hook(lambda g: z and None)
    return z


def hook_that_holds_a_view():
    y = tl.ones(1000, requires_grad=True) * 2
    view = y[1:]
    y.register_hook(lambda g, view=view: None)
    return view


def hook_in_an_object():
    y = tl.ones(1000, requires_grad=True) * 2
    model = Model()
    model.values = {"z": [y.exp()]}
    y.register_hook(model.hook)
    return y


def hook_with_arguments():
    y = tl.ones(1000, requires_grad=True) * 2
    y.register_hook(partial(lambda z, g: None, y.exp()))
    return y


def leaf_hook():
    x = tl.ones(1000, requires_grad=True)
    loss = (x * 2).exp().sum()
    x.register_hook(lambda g: loss and None)
    return x


def accumulated_hook():
    x = tl.ones(1000, requires_grad=True)
    loss = (x * 2).exp().sum()
    x.register_post_accumulate_grad_hook(lambda leaf: loss and None)
    return x


def node_hook():
    y = tl.ones(1000, requires_grad=True) * 2
    z = y.exp()
    y.grad_fn.register_prehook(lambda grads: z and None)
    return y


def metadata():
    y = tl.ones(1000, requires_grad=True) * 2
    z = y.exp().sin()
    y.grad_fn.metadata["later"] = z
    y.grad_fn.metadata.update(more=[z * 2])
    y.grad_fn.metadata.setdefault("most", y[2:])
    return y


def attribute_view():
    p = Kept(tl.ones(1000))
    p.part = p[1:]
    return p


def attribute_result():
    p = Kept(tl.ones(1000))
    p.requires_grad_()
    p.loss = (p * 2).exp()
    return p


def attribute_in_a_list():
    p = Kept(tl.ones(1000))
    p.requires_grad_()
    p.parts = [p * 2, {"view": p[1:]}]
    return p


def gradients_of_each_other():
    a, b = tl.ones(1000), tl.ones(1000)
    a.grad, b.grad = b, a
    return a


def gradient_with_a_graph():
    a = tl.ones(1000, requires_grad=True)
    a.grad = (a * 2).exp()
    return a


MAKERS = [hook_on_what_has_later_results, hook_that_holds_a_view, hook_in_an_object,
          hook_with_arguments, leaf_hook, accumulated_hook, node_hook, metadata, attribute_view,
          attribute_result, attribute_in_a_list, gradients_of_each_other, gradient_with_a_graph]


@each("make", MAKERS, ids=lambda make: make.__name__)
def test_a_cycle_is_collected(make):
    make()
    gc.collect()
    before = tl.memory.stats()["in_use"]
    for _ in range(20):
        make()
    gc.collect()
    assert tl.memory.stats()["in_use"] == before


def test_hooks_on_plain_values_watch_no_more():
    x = tl.ones(3, requires_grad=True)
    y = x * 2
    y.register_hook(lambda g: g * 2)
    other = tl.ones(3) + 1
    assert not gc.is_tracked(other)
