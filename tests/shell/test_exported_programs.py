"""`export.export`: the program of a module, which runs without the module's code."""

import pytest

import tensorlib as tl
from tensorlib import nn
from tensorlib.export import export
from tensorlib.program import CaptureError


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.norm = nn.Linear(4, 3), nn.BatchNorm1d(3)

    def forward(self, x, *, shift=None):
        out = self.norm(self.layer(x).relu())
        return {"out": out, "sum": out.sum() + (0 if shift is None else shift.sum())}


def test_what_was_exported_gives_what_the_module_gives():
    net, x, shift = Net().eval(), tl.randn(2, 4), tl.ones(2)
    exported = export(net, (x,), {"shift": shift})
    for run in exported, exported.module(), tl.compile(exported.module()):
        for _ in range(2):
            y = tl.randn(2, 4)
            found, wanted = run(y, shift=shift * 3), net(y, shift=shift * 3)
            assert all(tl.equal(found[key], wanted[key]) for key in wanted)
    assert list(exported.state_dict) == list(net.state_dict())
    assert "linear_with_bias" in str(exported) and exported.example_inputs[0][0] is x


def test_parameters_are_those_of_the_module():
    net = nn.Linear(2, 1)
    exported = tl.export.export(net, (tl.ones(1, 2),))
    with tl.no_grad():
        net.weight.fill_(3.0)
        net.bias.zero_()
    assert exported.module()(tl.ones(1, 2)).item() == 6


def test_what_is_not_exported():
    net = nn.Linear(2, 1)
    with pytest.raises(NotImplementedError, match="shapes of the example"):
        export(net, (tl.ones(1, 2),), dynamic_shapes={"input": {0: "batch"}})
    with pytest.raises(TypeError, match="takes a module"):
        export(tl.relu, (tl.ones(1),))

    class Chooses(nn.Module):
        def forward(self, x):
            return x if x.sum() > 0 else -x

    with pytest.raises(CaptureError):
        export(Chooses(), (tl.ones(2),))
