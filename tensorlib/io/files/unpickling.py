"""The readers of the pickle in a file of `torch.save`: as data only, or with all that it names."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

from tensorlib.io.files.errors import LoadError
from tensorlib.io.files.pickles import Interpreter
from tensorlib.io.files.torch_names import find, known

__all__ = ["as_data", "as_objects"]


def as_data(storage: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Reads a pickle by a table of harmless names, which runs no code of the file."""
    return Interpreter(find, storage).run


def as_objects(storage: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Reads a pickle of objects of any class, as Python does: it may run anything."""
    def read(file: Any) -> Any:
        try:
            return Unpickler(file, storage).load()
        except LoadError:
            raise
        except Exception as error:
            raise LoadError(
                f"the pickle can't be made into objects: {type(error).__name__}: {error}; the "
                "classes that it names must be there under the same names"[:1000]) from error
    return read


class Unpickler(pickle.Unpickler):
    """Python's own, for which PyTorch's names are those of tensors here."""

    def __init__(self, file: Any, storage: Callable[[Any], Any]) -> None:
        super().__init__(file)
        self.storage = storage

    def persistent_load(self, pid: Any) -> Any:
        return self.storage(pid)

    def find_class(self, module: str, name: str) -> Any:
        if module.partition(".")[0] != "torch":
            return super().find_class(module, name)
        found = known(module, name)
        if found is None:
            raise LoadError(f"the file names {module}.{name}, a class or function of PyTorch's; "
                            "save the model's state_dict() there, and load that here")
        return found.value if found.call is None else found.call
