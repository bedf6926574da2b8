"""Runs a script, or a module, that imports PyTorch: `import torch` gives it tensorlib.

    python -m tensorlib.as_torch script.py its arguments
    python -m tensorlib.as_torch -m package.module its arguments

`import torch.nn as nn` and `from torch.utils.data import DataLoader` find the modules of those
names here, also where PyTorch is installed. `torchvision` is `tensorlib.vision`.
"""

import os
import runpy
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import tensorlib
from tensorlib import version

__all__ = ["TorchFinder", "install", "main"]


class TorchFinder:
    """Finds `torch`, `torchvision` and their modules: those of tensorlib, and the same objects."""

    own: dict[str, Any] = {}                  # what modules say of themselves, by name

    @classmethod
    def find_spec(cls, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Where `torch` or one of its modules is; None for others, and where there is none."""
        if name.partition(".")[0] not in HOMES:
            return None
        return ModuleSpec(name, cls) if find_spec(home_of(name)) else None  # type: ignore[arg-type]

    @classmethod
    def create_module(cls, spec: ModuleSpec) -> ModuleType:
        """The module of tensorlib."""
        module = import_module(home_of(spec.name))
        cls.own[spec.name] = module.__spec__
        return module

    @classmethod
    def exec_module(cls, module: ModuleType) -> None:
        """Has the module, which ran already, say of itself what it did before."""
        assert module.__spec__ is not None
        module.__spec__ = cls.own.pop(module.__spec__.name)


PYTORCH = "2.13.0"
HOMES = {"torch": "tensorlib", "torchvision": "tensorlib.vision"}


def home_of(name: str) -> str:
    """The name here of a module of PyTorch's."""
    package, dot, rest = name.partition(".")
    return HOMES[package] + dot + rest


def install() -> None:
    """From now on this process imports tensorlib under the name of torch.

    Libraries ask for `torch.__version__`, and get the version of PyTorch whose names are here.
    """
    if TorchFinder not in sys.meta_path:
        sys.meta_path.insert(0, TorchFinder)  # type: ignore[arg-type]
        tensorlib.torch = tensorlib            # PyTorch's package has itself as an attribute
        version.__version__ = tensorlib.__version__ = f"{PYTORCH}+tensorlib.{version.__version__}"


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
