"""Runs a script, or a module, that imports PyTorch: `import torch` gives it tensorlib.

    python -m tensorlib.as_torch script.py its arguments
    python -m tensorlib.as_torch -m package.module its arguments

`import torch.nn as nn` and `from torch.utils.data import DataLoader` find the modules of those
names here, also where PyTorch is installed. `torchvision` is `tensorlib.vision`, and `functorch`
`tensorlib.functorch`.
"""

import multiprocessing.spawn
import os
import runpy
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.metadata import Distribution
from pathlib import Path
from types import ModuleType
from typing import Any

import tensorlib
from tensorlib import version
from tensorlib._core.base import library
from tensorlib._core.base.error_names import print_as
from tensorlib._core.base.importing import OtherNames
from tensorlib.torch_version import TorchVersion

__all__ = ["TorchFinder", "install", "main"]


PYTORCH = "2.13.0"


class TorchFinder(OtherNames):
    """Finds `torch`, what goes with it, and their modules: those here, and the same objects."""

    homes = {"torch": "tensorlib", "torchvision": "tensorlib.vision",
             "functorch": "tensorlib.functorch"}

    @classmethod
    def find_distributions(cls, context: Any = None) -> list[Distribution]:
        """What `importlib.metadata.version("torch")` finds, by which libraries ask for PyTorch."""
        return [Installed()] if context is None or context.name in (None, "torch") else []

    @classmethod
    def create_module(cls, spec: ModuleSpec) -> ModuleType:
        """The module itself, beside whose functions there may be modules of the same names.

        Those are entered at once, since an import would put them in the functions' place.
        """
        module = super().create_module(spec)
        for name, child in list(sys.modules.items()):
            package, _, last = name.rpartition(".")
            if package == module.__spec__.name and vars(module).get(last) is not child:
                sys.modules.setdefault(f"{spec.name}.{last}", child)
        return module


def install() -> None:
    """From now on this process imports tensorlib under the name of torch.

    Libraries ask for `torch.__version__`, and get the version of PyTorch whose names are here; some
    read names of dtypes and layouts, which are PyTorch's then, as in `torch.float32`.
    """
    if TorchFinder not in sys.meta_path:
        sys.meta_path.insert(0, TorchFinder)
        tensorlib.torch = tensorlib            # PyTorch's package has itself as an attribute
        tensorlib.__name__ = library.name = "torch"
        print_as(tensorlib.Tensor, "torch.Tensor")      # libraries look for this in `str(type(x))`
        version.__version__ = tensorlib.__version__ = TorchVersion(
            f"{PYTORCH}+tensorlib.{version.__version__}")
        described = multiprocessing.spawn.get_preparation_data

        def with_torch(name: str) -> dict[str, Any]:
            return {"torch": Installed(), **described(name)}

        multiprocessing.spawn.get_preparation_data = with_torch


class Installed(Distribution):
    """PyTorch's package, as those see it that ask which are there. Unpickled in a process that was
    started anew, it is installed there, too."""

    def read_text(self, filename: str) -> str | None:
        """What the package says of itself."""
        said = f"Name: torch\nVersion: {tensorlib.__version__}\n"
        return said if filename == "METADATA" else None

    def locate_file(self, path: Any) -> Path:
        """Where a file of the package is."""
        return Path(tensorlib.__file__).parent / path

    def __reduce__(self) -> Any:
        return import_module("tensorlib.as_torch").install, ()      # this one may be `__main__`


def main(arguments: Sequence[str]) -> None:
    """Runs the script that is named first, with the other arguments, as Python does."""
    module = list(arguments[:1]) == ["-m"]
    given = list(arguments[module:])
    if not given or not module and given[0].startswith("-"):
        sys.exit("usage: python -m tensorlib.as_torch (script.py | -m module) [argument ...]")
    install()
    sys.argv[:] = given
    sys.path[0] = os.getcwd() if module else os.path.dirname(os.path.abspath(given[0]))
    if module:
        runpy.run_module(given[0], run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(given[0], run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1:])
