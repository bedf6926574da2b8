"""The table of what the core calls above itself, before it is filled and after."""

from pathlib import Path

from process import run_each

import tensorlib as tl
from tensorlib._core.base.upcalls import OPERATIONS
from tensorlib._core.graph.op import Op

# The core alone: a stand-in for the package, whose own `__init__` would import all floors.
CORE_ALONE = f"""
import sys, types
package = types.ModuleType("tensorlib")
package.__path__ = [{str(Path(tl.__file__).parent)!r}]
sys.modules["tensorlib"] = package
from tensorlib._core.graph.op import Op
from tensorlib._core.tensor.tensor import Tensor
x = Tensor.__new__(Tensor)
op = Op("identity", "", ("input",))
"""
CALLS = {
    "x + x": "add", "x += x": "add_", "-x": "neg", "x < x": "lt", "x[0]": "getitem",
    "x[0] = x": "setitem", "Tensor([1.0])": "tensor", "memoryview(x)": "memoryview",
    "op.needs": "identity", "op.gradient": "identity", "op.tangent": "identity",
}


def test_a_call_through_a_place_that_is_not_filled_says_so():
    said = run_each(CORE_ALONE, [
        f"try:\n    {call}\nexcept RuntimeError as error:\n    print(error)" for call in CALLS],
        imported=False)
    for line, (call, named) in zip(said, CALLS.items(), strict=True):
        assert line.startswith(
            f"{named}: called before tensorlib.ops and tensorlib.autograd"), call


def test_its_operations_are_registered():
    assert all(isinstance(tl.ops.registry[name], Op) for name in OPERATIONS)
