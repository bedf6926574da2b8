"""Modules that are imported on first use, and further names under which scripts import modules."""

import sys
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType

from tensorlib._core.base.explained import explain, explained


def on_first_use(package, homes):
    """The functions `__getattr__` and `__dir__` of a package, some of whose names are lazy.

    homes: the lazy names, each with the module of the package that defines it, or that it is. All
    public names of the package are in its `__all__`.
    """
    namespace = vars(sys.modules[package])

    def __getattr__(name):
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = import_module(f"{package}.{homes[name]}")
        if name != homes[name]:
            value = namespace[name] = getattr(value, name)
            explain(namespace, [name])
        return value

    def __dir__():
        return sorted(namespace["__all__"])

    return __getattr__, __dir__


def deferred(module, name, parameters=()):
    """A function that imports a module at its first call, and calls its function of that name.

    parameters: those that the docstring explains, for `help` before the first call.
    """
    def call(*args, **kwargs):
        nonlocal function
        if function is None:
            function = getattr(import_module(module), name)
        return function(*args, **kwargs)

    function = None
    call.__name__ = call.__qualname__ = name
    call.__module__ = module
    call.__doc__ = explained(f"`{module}.{name}`, which has the description.", name, parameters)
    return call


class LazyModule(ModuleType):
    """A placeholder for a module, which replaces it in the package when it is imported.

    References to the placeholder go on to return the module's attributes. The package has no
    `__getattr__` for this, since that would slow down every `tl.zeros` of CPython 3.11.
    """

    def __getattribute__(self, name):
        own = ModuleType.__getattribute__(self, "__dict__")
        module = own.get("imported")
        if module is None:
            module = own["imported"] = import_module(own["__name__"])
        return getattr(module, name)

    def __setattr__(self, name, value):
        home = ModuleType.__getattribute__(self, "__name__")
        setattr(import_module(home), name, value)

    def __delattr__(self, name):
        delattr(import_module(ModuleType.__getattribute__(self, "__name__")), name)

    def __dir__(self):
        return dir(import_module(ModuleType.__getattribute__(self, "__name__")))

    def __repr__(self):
        return repr(import_module(ModuleType.__getattribute__(self, "__name__")))


def later(name):
    """The module of that name, imported when it is first used."""
    return LazyModule(name)


def parts_of(module, *names):
    """Registers a module as its own submodules too, where PyTorch has a module for each name."""
    home = sys.modules[module]
    home.__path__ = getattr(home, "__path__", [])
    vars(home).update(dict.fromkeys(names, home))


def named_as_function(name, home):
    """Adds a module with the name of a function of its package, and the names of `home`.

    It is in the table of modules from the start, since an import would replace the function by it.
    """
    def __getattr__(attribute):
        if attribute.startswith("__"):               # asked by code that lists modules
            raise AttributeError(f"module {name!r} has no attribute {attribute!r}")
        return getattr(import_module(home), attribute)

    module = sys.modules[name] = ModuleType(name)
    module.__getattr__, module.__file__ = __getattr__, __file__


class OtherNames:
    """Finds modules under other names: an import returns the module itself, not a copy."""

    homes = {}                                # the names of packages, by their other names
    own = {}                                  # the own specs of modules that are being imported

    @classmethod
    def home_of(cls, name):
        """The original name of a module with the other name `name`, or None."""
        for package, home in cls.homes.items():
            if f"{name}.".startswith(f"{package}."):
                original = home + name.removeprefix(package)
                return original if find_spec(original) else None
        return None

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        """The spec of a module with another name, for Python's import system; None for others."""
        return None if cls.home_of(name) is None else ModuleSpec(name, cls)

    @classmethod
    def create_module(cls, spec):
        """The module itself."""
        module = import_module(cls.home_of(spec.name))
        cls.own[spec.name] = module.__spec__
        return module

    @classmethod
    def exec_module(cls, module):
        """Restores the attributes of the module, which has run already."""
        module.__spec__ = cls.own.pop(module.__spec__.name)


class Attributes(OtherNames):
    """Finds modules that are attributes of packages, under the names of these.

    With `categorical = discrete` in the package `distributions`, `distributions.categorical` can be
    imported, as in PyTorch, which has a module for each class.
    """

    @classmethod
    def home_of(cls, name):
        """The name of the module that an attribute refers to."""
        package, _, attribute = name.rpartition(".")
        if not package.startswith("tensorlib"):
            return None
        shown = vars(import_module(package)).get(attribute)
        if not issubclass(type(shown), ModuleType):       # the type alone: it may be a LazyModule
            return None
        home = ModuleType.__getattribute__(shown, "__name__")
        return None if home == name else home


sys.meta_path.append(Attributes)              # asked last
