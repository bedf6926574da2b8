"""Modes that are given operations (`__torch_dispatch__`), beside PyTorch where it is there."""

import importlib

import pytest

import tensorlib as tl
from tensorlib.utils._python_dispatch import TorchDispatchMode

try:
    import torch
except ImportError:
    torch = None

LIBRARIES = [tl] if torch is None else [tl, torch]


def test_a_dispatch_mode_does_what_functions_are_made_of():
    for t in LIBRARIES:
        mode = importlib.import_module(f"{t.__name__}.utils._python_dispatch").TorchDispatchMode
        aten, seen = t.ops.aten, []

        class Doubled(mode):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                seen.append((str(func), func.name(), func.namespace, func.__name__))
                out = func(*args, **(kwargs or {}))
                return out * 2 if func == aten.mm.default else out

        x = t.ones(1, 1)
        with Doubled():
            assert t.mm(x, x).detach().relu_().item() == 2
        assert t.mm(x, x).item() == 1
        assert ("aten.mm.default", "aten::mm", "aten", "mm.default") in seen
        assert "aten.relu_.default" in [row[0] for row in seen]
        with pytest.raises(NotImplementedError), mode():
            x.exp()


def test_a_dispatch_mode_knows_operations_by_any_overload():
    aten, packets = tl.ops.aten, []

    class Packets(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            packets.append(func.overloadpacket)
            return func(*args, **(kwargs or {}))

    x = tl.ones(2, 2, requires_grad=True)
    with Packets():
        tl.add(x, 1)
        y = tl.zeros(2)
        y[0] = 1
        y.uniform_()
        (x @ x).sum().backward()
    assert {aten.add, aten.setitem, aten.uniform_, aten.matmul} <= set(packets)
    assert packets.count(aten.matmul) == 3 and aten.add.Tensor.overloadpacket is aten.add
    f = tl.compile(lambda x: (x @ x).exp())
    f(x.detach()), f(x.detach())
    packets.clear()
    with Packets():
        f(x.detach())
    assert packets[-2:] == [aten.matmul, aten.exp]
