"""Saving and loading: tensors, state dicts and containers of them, and whole objects.

`save` writes files that `torch.load` opens, the safetensors format for a path that ends with
`.safetensors`, or NumPy's for `.npz` and `.npy`. `load` reads all of these. What a file holds is
taken for data only, so nothing in it can run, unless it is loaded with `weights_only=False`.
"""

from typing import TYPE_CHECKING

from tensorlib._core.base.importing import on_first_use
from tensorlib.io.files.serialization import load, save

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
