"""The rules of PyTorch's notes "Autograd mechanics", each held by a test.

| rule | test |
|---|---|
| How autograd encodes the history | |
| the graph is made anew in each iteration; what you run is what you differentiate | here |
| Saved tensors: which are kept, and that an output is not kept as the object itself | here |
| Gradients for non-differentiable functions, in six steps | here; conventions.md, "Kinks" |
| Locally disabling gradients | |
| one input that requires grad is enough; the rest is not recorded | test_graph.py, here |
| only leaves that require grad accumulate; freezing them | here |
| setting the flag is for leaves | here |
| default, no-grad and inference mode: the table of modes | here; test_recording_control.py |
| In-place operations | |
| values overwritten are noticed; no error means right gradients | test_inplace.py |
| the version counter: what counts, who shares it | here |
| the history of base and views is rewritten | test_inplace.py |
| Multithreaded autograd | |
| each thread with a graph of its own; shared leaves; shared graphs | here; test_threads.py |
| Hooks for saved tensors | |
| pack is called once, unpack as often as the sweep needs | test_recording_control.py, here |
| pack returns any object; writing into its input is an error; hooks belong to a thread | here |
| Backward hooks execution | |
| tensor hooks run where gradients are computed, node hooks where nodes run | test_hooks.py, here |
| `backward(inputs=...)` and `grad` | here |
| the order of hooks; later ones see what earlier ones made | test_hooks.py |
| `register_multi_grad_hook` | test_graph_tools.py |
| hooks stay with the value that their tensor had | test_hooks.py |

Not taken over: complex numbers, `SavedTensor.register_hooks`, hooks of modules.
"""

import math
import os
import tempfile
import threading

import numpy as np
import pytest
from cases import each
from tensors import leaf

import tensorlib as tl
from tensorlib import autograd
from tensorlib.autograd.graph import saved_tensors_hooks
from tensorlib.testing import assert_close

inf, nan = math.inf, math.nan


# ---- the history ---------------------------------------------------------------------------------

def test_what_you_run_is_what_you_differentiate():
    x = leaf(1.5)
    for turns in (1, 3, 2):
        y = x
        for _ in range(turns):
            y = y * x if y.item() < 3 else y + x
        x.grad = None
        y.sum().backward()
        assert x.grad.item() == pytest.approx({1: 3.0, 2: 6.75, 3: 7.75}[turns])


def test_saved_values_can_be_looked_at():
    x = leaf(1.0, 2.0)
    kept = (x ** 2).grad_fn.saved_values
    assert (kept["input"] == x).all() and kept["input"].data_ptr() == x.data_ptr()
    y = x.exp()
    (kept,) = y.grad_fn.saved_values.values()
    assert kept is not y and kept.data_ptr() == y.data_ptr() and (kept == y).all()
    assert (x + 1).grad_fn.saved_values == {}


# ---- where functions have no derivative ----------------------------------------------------------
# The rules in their order, with points for each, and what the gradient is there.
POINTS = {
    "1: where there is a derivative, it": [
        (lambda x: x * x.abs(), 0.0, 0.0), (lambda x: x ** 3, 0.0, 0.0),
        (lambda x: x.fmod(2), 1.0, 1.0), (lambda x: x.clamp(-1, 1), 0.5, 1.0)],
    "2: of a convex function, the subgradient of least norm": [
        (lambda x: x.abs(), 0.0, 0.0), (lambda x: x.relu(), 0.0, 0.0),
        (lambda x: x.norm(), 0.0, 0.0), (lambda x: x.norm(1), 0.0, 0.0)],
    "3: of a concave one, the supergradient of least norm": [
        (lambda x: -x.abs(), 0.0, 0.0), (lambda x: -(x * 3).relu(), 0.0, 0.0)],
    "4: where it is defined, by continuity": [
        (lambda x: x.sqrt(), 0.0, inf), (lambda x: x ** 0.5, 0.0, inf),
        (lambda x: x.sign(), 0.0, 0.0), (lambda x: x.floor(), 2.0, 0.0),
        (lambda x: x.asin(), 1.0, inf), (lambda x: x.acos(), -1.0, -inf),
        (lambda x: x.round(), 0.5, 0.0), (lambda x: tl.atan2(x, x), 0.0, 0.0),
        (lambda x: tl.maximum(x, x.detach()), 1.0, 0.5),
        (lambda x: x.clamp(0, 1), 0.0, 1.0), (lambda x: x.remainder(1), 0.0, 1.0)],
    "5: where it is not defined, anything": [
        (lambda x: x.sqrt(), -1.0, nan), (lambda x: x.log(), -1.0, -1.0),
        (lambda x: x.reciprocal(), 0.0, -inf), (lambda x: x.log(), 0.0, inf),
        (lambda x: x.sin(), nan, nan)],
}


@each("function, at, slope", [
    case for cases in POINTS.values() for case in cases])
def test_gradients_where_there_may_be_none(function, at, slope):
    x = tl.tensor(at, dtype=tl.float64, requires_grad=True)
    function(x).backward()
    assert x.grad.item() == pytest.approx(slope, nan_ok=True)


@pytest.mark.parametrize("draw", [
    lambda x: x.bernoulli(), lambda x: x.multinomial(1), lambda x: tl.normal(x, 1.0)])
def test_what_is_drawn_is_not_differentiable(draw):
    """Rule 6: no function of its input, so the path ends there and `backward` says so."""
    drawn = draw(leaf(0.5, 0.25))
    assert not drawn.requires_grad
    with pytest.raises(RuntimeError, match="does not require grad"):
        drawn.sum().backward()


# ---- parts without gradients ---------------------------------------------------------------------

def test_frozen_leaves_are_left_out():
    frozen, weight = leaf(2.0), leaf(3.0)
    frozen.requires_grad_(False)
    hidden = (frozen * 5).exp()
    assert hidden.grad_fn is None                        # nothing of it is kept
    loss = (hidden * weight).sum()
    assert [node for node, _ in loss.grad_fn.next_functions[0][0].next_functions].count(None) == 1
    loss.backward()
    assert frozen.grad is None and weight.grad is not None
    frozen.requires_grad_()
    (frozen * weight).sum().backward()
    assert frozen.grad.item() == 3.0


def test_only_leaves_have_a_flag_to_set():
    x = leaf(1.0)
    y = x * 2
    assert y.requires_grad and y.requires_grad_() is y
    with pytest.raises(RuntimeError, match="on a tensor that an operation made"):
        y.requires_grad = False
    with pytest.raises(RuntimeError, match="float"):
        tl.tensor([1]).requires_grad_()
    y.sum().backward()
    assert x.grad.item() == 2.0
    with pytest.warns(UserWarning, match="not a leaf"):
        assert y.grad is None


def test_the_table_of_modes():
    """Which modes record, count writes, and make what can be used in the default mode later."""
    x = leaf(1.0, 2.0)
    made = {}
    for name, mode in {"default": tl.enable_grad, "no grad": tl.no_grad,
                       "inference": tl.inference_mode}.items():
        with mode():
            made[name] = x * 2
    assert [y.requires_grad for y in made.values()] == [True, False, False]
    assert [y.is_inference() for y in made.values()] == [False, False, True]
    for name in ("default", "no grad"):
        x.grad = None
        (made[name] * x).sum().backward()
        assert_close(x.grad, (4 if name == "default" else 2) * x.detach())
    with pytest.raises(RuntimeError, match="[Ii]nference tensors cannot be saved for backward"):
        made["inference"] * x
    with tl.no_grad():                                   # the step of an optimiser
        x -= 0.1 * x.grad
    assert x.is_leaf and x.requires_grad and x.grad_fn is None


# ---- the version counter -------------------------------------------------------------------------

def test_what_the_version_counts_and_who_shares_it():
    x = tl.ones(4)
    view, detached, copy = x[1:], x.detach(), x.clone()
    writes = [lambda: x.add_(1), lambda: view.zero_(), lambda: detached.__setitem__(0, 2.0),
              lambda: x.copy_(tl.zeros(4)), lambda: tl.exp(x, out=x), lambda: x.t().mul_(2)]
    for count, write in enumerate(writes):
        assert [y._version for y in (x, view, detached)] == [count] * 3
        write()
    assert copy._version == 0
    x + view.sum()                                       # reading does not count
    assert x._version == len(writes)


def test_a_value_is_checked_when_it_is_used():
    """Overwriting is no error before the sweep comes by, nor where another path is taken."""
    x, w = leaf(2.0), leaf(3.0)
    y = x * 1
    z = y * w
    y.mul_(2)
    (g,) = autograd.grad(z.sum(), x, retain_graph=True)  # needs w alone
    assert g.item() == 3.0
    with pytest.raises(RuntimeError, match="of mul, .*version 1 but was saved at version 0"):
        autograd.grad(z.sum(), w)


# ---- threads -------------------------------------------------------------------------------------

def in_threads(work, n=4):
    failures = []

    def run():
        try:
            work()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run) for _ in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return failures


def test_each_thread_trains_by_itself():
    def train():
        x = tl.ones(5, 5, requires_grad=True)
        for _ in range(20):
            x.grad = None
            ((x + 3) * (x + 4) * 0.5).sum().backward()
            assert (x.grad == 4.5).all()

    assert not in_threads(train)


def test_a_graph_that_threads_share_must_be_retained():
    x = leaf(0.5)
    shared = x.exp()
    assert not in_threads(lambda: autograd.grad(shared.sin().sum(), x, retain_graph=True))
    with_more = [shared * k for k in range(1, 4)]
    failures = in_threads(lambda: autograd.grad(with_more.pop().sum(), x), n=3)
    assert len(failures) == 2
    assert all("retain_graph=True" in str(error) for error in failures)


# ---- hooks for saved values ----------------------------------------------------------------------

def test_values_saved_in_files_that_delete_themselves():
    """`unpack` may be called many times; the file lives as long as what `pack` returned."""
    class TempFile:
        def __init__(self, folder):
            self.name = os.path.join(folder, f"{id(self)}.npy")

        def __del__(self):
            os.remove(self.name)

    with tempfile.TemporaryDirectory() as folder:
        def pack(x):
            if x.numel() < 3:                            # only large ones
                return x
            file = TempFile(folder)
            np.save(file.name, x.numpy())
            return file

        def unpack(kept):
            return kept if isinstance(kept, tl.Tensor) else tl.from_numpy(np.load(kept.name))

        large, small = leaf(1.0, 2.0, 3.0), leaf(4.0)
        with saved_tensors_hooks(pack, unpack):
            y = large.exp().sum() + small.exp().sum()
        assert len(os.listdir(folder)) == 1
        for _ in range(2):
            y.backward(retain_graph=True)
        assert_close(large.grad, 2 * large.detach().exp())
        y.backward()
        assert not os.listdir(folder)


def test_hooks_on_saved_values_belong_to_a_thread():
    packed = []
    with saved_tensors_hooks(lambda x: packed.append(x) or x, lambda x: x):
        thread = threading.Thread(target=lambda: leaf(1.0).exp())
        thread.start()
        thread.join()
        assert not packed
        leaf(1.0).exp()
    assert len(packed) == 1


def test_with_hooks_a_value_saved_twice_is_two_tensors():
    x = leaf(1.0, 2.0)
    packed = []
    with saved_tensors_hooks(lambda y: packed.append(y) or y, lambda y: y):
        (x * x).sum().backward()
    assert len(packed) == 2 and packed[0] is not x and packed[0] is not packed[1]
    assert all(y.data_ptr() == x.data_ptr() for y in packed)


# ---- which hooks run -----------------------------------------------------------------------------

def hooked():
    """A graph with a hook of each kind everywhere, their log, and what is in it."""
    log = []
    a, b = leaf(1.0, 2.0), leaf(3.0, 4.0)
    y = a * b
    z = y.exp()
    nodes = {"a": (a * 1).grad_fn.next_functions[0][0], "y": y.grad_fn, "z": z.grad_fn}
    for name, x in (("a", a), ("y", y), ("z", z)):
        x.register_hook(lambda g, name=name: log.append(f"tensor {name}"))
        nodes[name].register_prehook(lambda g, name=name: log.append(f"before {name}"))
        nodes[name].register_hook(lambda to, of, name=name: log.append(f"after {name}"))
    a.register_post_accumulate_grad_hook(lambda a: log.append("accumulated"))
    return log, a, b, y, z, z.sum()


ABOVE_Y = ["tensor z", "before z", "after z", "tensor y"]
WHOLE = [*ABOVE_Y, "before y", "after y", "tensor a", "before a", "accumulated", "after a"]


@each("sweep, wanted", [
    (lambda a, b, y, z, s: s.backward(), WHOLE),
    (lambda a, b, y, z, s: s.backward(inputs=[a]), WHOLE),
    (lambda a, b, y, z, s: s.backward(inputs=[a, a, y]), WHOLE),
    (lambda a, b, y, z, s: autograd.grad(s, a), WHOLE[:7]),
    (lambda a, b, y, z, s: autograd.grad(s, y), ABOVE_Y),
    (lambda a, b, y, z, s: autograd.grad(s, [y, a]), WHOLE[:7]),
    (lambda a, b, y, z, s: autograd.grad(s, [z, b]), WHOLE[:6]),
    # PyTorch runs the node of y too, and says that nobody should depend on it
    (lambda a, b, y, z, s: s.backward(inputs=[y]), ABOVE_Y),
], ids=["backward", "inputs a", "inputs a, y", "grad a", "grad y", "grad y, a", "grad z, b",
        "inputs y"])
def test_which_hooks_run(sweep, wanted):
    log, *values = hooked()
    sweep(*values)
    assert log == wanted


def test_backward_with_inputs_accumulates_once_into_each():
    _, a, b, y, z, s = hooked()
    y.retain_grad()
    s.backward(inputs=[a, y, a, y], retain_graph=True)
    assert_close(y.grad, z.detach())
    assert_close(a.grad, (z * b).detach())
    with pytest.warns(UserWarning, match="not a leaf"):
        assert z.grad is None
    assert b.grad is None and y.retains_grad
    s.backward(inputs=[z])
    assert_close(z.grad, tl.ones(2, dtype=tl.float64))


# ---- writes at the same place --------------------------------------------------------------------

def test_of_values_written_to_one_place_the_last_has_the_gradient():
    """The others are not in the result. PyTorch gives all of them the gradient of the last."""
    values, weights = leaf(1.0, 2.0, 3.0, 4.0), tl.tensor([5.0, 7.0], dtype=tl.float64)
    for key in ([0, 0, 1, 0], [-2, 0, 1, -2], ([0, 0, 1, 0],)):
        x = tl.zeros(2, dtype=tl.float64)
        x[key] = values
        assert x.tolist() == [4.0, 3.0]
        (g,) = autograd.grad((x * weights).sum(), values)
        assert g.tolist() == [0.0, 0.0, 7.0, 5.0]
    x = tl.zeros(2, 3, dtype=tl.float64)
    x[[0, 0, 1], [1, 1, 1]] = values[:3]
    assert autograd.grad(x.sum(), values)[0].tolist() == [0.0, 1.0, 1.0, 0.0]
    x = tl.zeros(2, 2, dtype=tl.float64)
    x[[1, 1]] = values.reshape(2, 2)
    assert autograd.grad(x.sum(), values)[0].tolist() == [0.0, 0.0, 1.0, 1.0]
    x = tl.zeros(2, dtype=tl.float64)
    x[[0, 0]] = values[0]
    assert autograd.grad(x.sum(), values)[0].tolist() == [1.0, 0.0, 0.0, 0.0]
