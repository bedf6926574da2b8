"""Modules that are there from the start and imported when something is asked of them."""

from importlib import import_module
from types import ModuleType


class _Later(ModuleType):
    """Stands for a module until it is imported, which replaces it in the package.

    A reference that was kept goes on to give the module's own attributes. The package has no
    `__getattr__` for this, since that slows down every `tl.zeros` of CPython 3.11.
    """

    def __getattribute__(self, name):
        home = ModuleType.__getattribute__(self, "__name__")
        return getattr(import_module(home), name)

    def __setattr__(self, name, value):
        home = ModuleType.__getattribute__(self, "__name__")
        setattr(import_module(home), name, value)

    def __dir__(self):
        return dir(import_module(ModuleType.__getattribute__(self, "__name__")))

    def __repr__(self):
        return repr(import_module(ModuleType.__getattribute__(self, "__name__")))


def later(name):
    """The module of that name, imported when it is first used."""
    return _Later(name)
