"""Pack and unpack hooks on saved values: `autograd.graph.saved_tensors_hooks`."""

from tensorlib._core.base.settings import Held
from tensorlib._core.graph.modes import _set_grad_enabled
from tensorlib._core.tensor.tensor import Tensor


def _same(x):
    """`x`"""
    return x


AS_IS = _same, _same         # the hooks for numbers, which are not the user's tensors


class Packed:
    """A saved value of the operation `name` in packed form."""

    __slots__ = "name", "content", "unpack", "shape", "dtype", "unpacked"

    def __init__(self, name, x, hooks):
        pack, self.unpack = hooks
        self.name, self.shape, self.dtype, self.unpacked = name, x.shape, x.dtype, None
        version = x._version
        with Held((_set_grad_enabled,), (False,)):
            self.content = pack(x)
        if x._version != version:
            raise RuntimeError(
                f"{name}: a saved tensor pack hook is modifying its input in place; tensors "
                "provided as input to pack hook can not be modified by in-place operations")

    def value(self):
        """The saved value, unpacked by the hook; kept until the node has run."""
        if self.unpacked is None:
            self.unpacked = self.given_back()
        return self.unpacked

    def given_back(self):
        """Calls the unpack hook on the content."""
        x = self.unpack(self.content)
        if not isinstance(x, Tensor):
            raise TypeError(
                f"backward: output of saved tensor unpack_hook expected to be a Tensor but got "
                f"result of type {type(x).__name__} (a value of {self.name})")
        if x.dtype is not self.dtype or x.shape != self.shape:
            raise RuntimeError(
                f"backward: unpack_hook returned a tensor of shape {tuple(x.shape)} and "
                f"{x.dtype} for a value of {self.name} of shape {tuple(self.shape)}")
        return Tensor.detach(x)
