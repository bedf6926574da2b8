"""What a sweep writes into and what it leaves alone; sweeps that meet in one graph, in a hook or in
two threads."""

import threading

import numpy as np
import pytest
from cases import each
from tensors import leaf

import tensorlib as tl


# ---- a gradient is a tensor like any other -------------------------------------------------------

WRITES = {
    "another backward": lambda w: (w * 2).sum().backward(),
    "a backward to it": lambda w: (w * 2).sum().backward(inputs=[w]),
    "a sum in place": lambda w: w.grad.add_(1.0),
    "a fill": lambda w: w.grad.zero_(),
    "a copy": lambda w: w.grad.copy_(tl.ones(2)),
    "out": lambda w: tl.add(w.detach(), 1.0, out=w.grad),
    "an element": lambda w: w.grad.__setitem__(0, 5.0),
    "a random draw": lambda w: w.grad.uniform_(),
}


@each("name", WRITES)
def test_a_gradient_that_a_graph_saved_is_not_written_unnoticed(name):
    w, z = leaf(1.0, 2.0), leaf(3.0, 4.0)
    (w * w).sum().backward()
    y = (w.grad * z).sum()
    version = w.grad._version
    WRITES[name](w)
    assert w.grad._version > version
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()
    assert z.grad is None


@pytest.mark.parametrize("again", [False, True])
def test_a_recorded_gradient_is_not_written_by_the_next_backward(again):
    w = leaf(1.0, 2.0)
    (w * w * w).sum().backward(create_graph=True)
    first, version = w.grad, w.grad._version
    loss = (first * first).sum()
    (w * w).sum().backward(create_graph=again)
    assert w.grad is not first and first._version == version
    assert first.tolist() == [3.0, 12.0] and w.grad.tolist() == [5.0, 16.0]
    assert tl.autograd.grad(loss, w)[0].tolist() == [2 * 3 * 6, 2 * 12 * 12]


def test_a_gradient_that_may_not_be_written_is_replaced():
    """A read-only array, one that is expanded, and one of which a part is shown."""
    fixed = np.array([10.0, 20.0])
    fixed.flags.writeable = False
    for given in (tl.from_numpy(fixed), tl.tensor([7.0], dtype=tl.float64).expand(2),
                  tl.arange(4.0, dtype=tl.float64)[::2]):
        w, before = leaf(1.0, 2.0), given.tolist()
        w.grad = given
        (w * 3).sum().backward()
        assert w.grad.tolist() == [value + 3 for value in before]
    assert fixed.tolist() == [10.0, 20.0]


@pytest.mark.parametrize("passed", [lambda g: g, lambda g: g[:], lambda g: g.detach()])
def test_a_gradient_that_was_passed_in_becomes_no_leaf_s_own(passed):
    w, v, g = leaf(1.0, 2.0), leaf(1.0, 2.0), tl.ones(2, dtype=tl.float64)
    for _ in range(3):
        tl.autograd.backward([w + v, w * 1], [passed(g), passed(g)])
    assert g.tolist() == [1.0, 1.0]
    assert w.grad.tolist() == [6.0, 6.0] and v.grad.tolist() == [3.0, 3.0]
    w.grad.zero_()
    assert v.grad.tolist() == [3.0, 3.0]


# ---- roots and inputs in any relation ------------------------------------------------------------

def test_roots_and_inputs_may_be_the_same_and_lie_on_each_other_s_way():
    """Each gradient is that of the sum of all roots, weighted, where all roots depend on it."""
    x = leaf(1.0, 2.0)
    y = x * 2
    z = y * y
    tensors = {"x": x, "y": y, "z": z}
    slope = {"xx": 1, "yx": 2, "yy": 1, "zx": 8, "zy": 4, "zz": 1}      # d root / d input at 1.0
    names = [(r1, r2, i1, i2) for r1 in "xyz" for r2 in "xyz" for i1 in "xyz" for i2 in "xyz"]
    for r1, r2, i1, i2 in names:
        found = tl.autograd.grad(
            (tensors[r1], tensors[r2]), (tensors[i1], tensors[i2]),
            (tl.tensor([1.0, 0.0]).double(), tl.tensor([3.0, 0.0]).double()),
            retain_graph=True, allow_unused=True)
        for name, g in zip((i1, i2), found):
            wanted = slope.get(r1 + name, 0) + 3 * slope.get(r2 + name, 0)
            assert (g is None and wanted == 0) or g.tolist() == [wanted, 0.0], (r1, r2, name)


# ---- sweeps inside of sweeps ---------------------------------------------------------------------

INNER = {
    "below": lambda x, y, z, g: tl.autograd.grad(y, x, g, retain_graph=True),
    "to both": lambda x, y, z, g: tl.autograd.grad(z, (x, y), g, retain_graph=True),
    "to a result": lambda x, y, z, g: tl.autograd.grad(z, y, g, retain_graph=True),
    "of both": lambda x, y, z, g: tl.autograd.grad((y, z), (y, x), (g, g), retain_graph=True),
    "recorded": lambda x, y, z, g: tl.autograd.grad(z, x, g, create_graph=True),
}


@each("inner", INNER)
@each("place", ["x", "y", "z"])
@each("outer", ["to both", "to a result", "to leaves"])
def test_a_hook_may_sweep_through_targets_of_the_sweep_that_called_it(inner, place, outer):
    """Both find what each finds alone."""
    def run(hooked):
        x = leaf(1.0, 2.0)
        y = x.exp()
        z = y * x + y
        g, begun, seen = tl.tensor([1.0, 3.0], dtype=tl.float64), [], []

        def hook(arrived):
            if not begun:
                begun.append(1)
                seen.extend(part.tolist() for part in INNER[inner](x, y, z, g))
        if hooked:
            {"x": x, "y": y, "z": z}[place].register_hook(hook)
        else:
            hook(None)
        if outer == "to leaves":
            z.backward(g, retain_graph=True)
            return seen, [x.grad.tolist()]
        return seen, [part.tolist() for part in INNER[outer](x, y, z, g)]

    seen, found = run(True)
    wanted_seen, wanted = run(False)
    assert found == wanted
    assert seen == wanted_seen or place == "x" and outer == "to a result" and not seen


# ---- two threads ---------------------------------------------------------------------------------

def test_threads_that_meet_in_a_graph_are_told_and_each_alone_is_right():
    """The second comes while the first waits in a hook; the first goes on undisturbed."""
    x = leaf(1.0, 2.0)
    y = x.exp()
    z = (y * y).sum()
    inside, leave, raised = threading.Event(), threading.Event(), []

    def wait(g):
        inside.set()
        assert leave.wait(30)

    handle = y.register_hook(wait)

    def other():
        assert inside.wait(30)
        for sweep in (z.backward, lambda: tl.autograd.grad(y.sum(), x),
                      lambda: tl.autograd.grad(z, y)):
            try:
                sweep()
            except RuntimeError as error:
                raised.append(str(error))
        leave.set()

    thread = threading.Thread(target=other)
    thread.start()
    z.backward(retain_graph=True)
    thread.join()
    assert len(raised) == 3 and all("another thread" in text for text in raised)
    wanted = (2 * (2 * x.detach()).exp()).tolist()
    np.testing.assert_allclose(x.grad.tolist(), wanted)
    handle.remove()
    x.grad = None
    z.backward()
    np.testing.assert_allclose(x.grad.tolist(), wanted)


def test_threads_that_share_a_leaf_wait_for_each_other():
    """The second comes while the first is in a hook; both gradients are added."""
    x = leaf(1.0, 2.0)
    y, z = x.exp(), x * 3
    inside, came = threading.Event(), threading.Event()

    def wait(g):
        inside.set()
        assert came.wait(30)

    y.register_hook(wait)

    def other():
        assert inside.wait(30)
        came.set()
        z.sum().backward()

    thread = threading.Thread(target=other)
    thread.start()
    y.sum().backward()
    thread.join()
    np.testing.assert_allclose(x.grad.tolist(), (x.detach().exp() + 3).tolist(), rtol=1e-6)
