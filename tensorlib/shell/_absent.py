"""Types of PyTorch's that are not supported: `isinstance` returns False, and a call raises.

And a function for loading code compiled for PyTorch, whose error libraries catch.
"""

from typing import NoReturn

from tensorlib._core.base.absent import absent

__all__ = ["Event", "Future", "PyTorchFileReader", "ScriptModule", "Stream", "SymBool", "SymFloat",
           "SymInt", "load_library"]


class Future:
    """The base of `futures.Future`, which PyTorch's compiled part has."""


def _absent(name: str, why: str) -> type:
    return absent(name, why, "tensorlib")


Stream = _absent("Stream", "operations run one after the other")
Event = _absent("Event", "operations run one after the other")
SymInt = _absent("SymInt", "sizes are ints, and no symbols")
SymFloat = _absent("SymFloat", "numbers are floats, and no symbols")
SymBool = _absent("SymBool", "conditions are bools, and no symbols")
PyTorchFileReader = _absent("PyTorchFileReader", "tensorlib.load reads the files of torch.save")
ScriptModule = _absent("ScriptModule", "modules are not compiled; jit.ScriptModule is their base")


def load_library(path: str) -> NoReturn:
    """Raises OSError: what a shared library registers for PyTorch can't run here."""
    raise OSError(f"ops.load_library: {path} has operations compiled for PyTorch, which can't be "
                  "called here; define them by library.custom_op")
