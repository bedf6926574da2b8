"""Saving and loading: tensors, state dicts and containers of them, in files that hold no code.

`save` writes the safetensors format, or NumPy's for a path that ends with `.npz` or `.npy`. `load`
reads those and the files that `torch.save` writes. What a file holds is taken for data only, so
nothing in it can run.
"""

from typing import TYPE_CHECKING

from tensorlib._core.base.importing import on_first_use
from tensorlib.io.files.front import load, save

if TYPE_CHECKING:
    from tensorlib.io.files.errors import LoadError
    from tensorlib.io.files.options import (
        LoadEndianness,
        add_safe_globals,
        clear_safe_globals,
        get_default_load_endianness,
        get_safe_globals,
        safe_globals,
        set_default_load_endianness,
    )

__all__ = [
    "LoadEndianness", "LoadError", "add_safe_globals", "clear_safe_globals",
    "get_default_load_endianness", "get_safe_globals", "load", "safe_globals", "save",
    "set_default_load_endianness"]

__getattr__, __dir__ = on_first_use(__name__, {
    "LoadError": "errors",
    **dict.fromkeys(set(__all__) - {"LoadError", "load", "save"}, "options")})
