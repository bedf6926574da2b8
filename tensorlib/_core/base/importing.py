"""Modules that are imported on first use, and further names under which scripts import modules."""

import sys
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType

from tensorlib._core.base.explained import explain, explained


def on_first_use(package, homes):
    """The functions `__getattr__` and `__dir__` of a package, some of whose names are lazy.

    homes: the lazy names, each with the module of the package that has it, or that it is. All that
    the package shows stands in its `__all__`.
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
    """A function that stands for one of a module, which is imported by its first call.

    parameters: those that its own docstring explains, for what `help` prints before that.
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


class LateModule(ModuleType):
    """Stands for a module until it is imported, which replaces it in the package.

    A reference that was kept goes on to give the module's own attributes. The package has no
    `__getattr__` for this, since that slows down every `tl.zeros` of CPython 3.11.
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
    return LateModule(name)


def parts_of(module, *names):
    """Has a module be found within itself, too, where PyTorch has modules for some of its names."""
    home = sys.modules[module]
    home.__path__ = getattr(home, "__path__", [])
    vars(home).update(dict.fromkeys(names, home))


def named_as_function(name, home):
    """Has there be a module that is called as a function of its package, with what `home` has.

    It is in the table of modules from the start, as an import would put it in the function's place.
    """
    def __getattr__(attribute):
        if attribute.startswith("__"):               # who goes through the table asks for these
            raise AttributeError(f"module {name!r} has no attribute {attribute!r}")
        return getattr(import_module(home), attribute)

    module = sys.modules[name] = ModuleType(name)
    module.__getattr__, module.__file__ = __getattr__, __file__


class OtherNames:
    """Finds modules under other names: an import gives the module itself, and no second one."""

    own = {}                                  # what modules say of themselves, by the other name

    @classmethod
    def home_of(cls, name):
        """The name of the module that has the other name `name`, or None."""
        raise NotImplementedError

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        """Where the module of that name is, as Python's import system asks; None for others."""
        return None if cls.home_of(name) is None else ModuleSpec(name, cls)

    @classmethod
    def create_module(cls, spec):
        """The module itself."""
        module = import_module(cls.home_of(spec.name))
        cls.own[spec.name] = module.__spec__
        return module

    @classmethod
    def exec_module(cls, module):
        """Has the module, which ran already, say of itself what it did before."""
        module.__spec__ = cls.own.pop(module.__spec__.name)


class Attributes(OtherNames):
    """Finds modules that packages show as attributes, under these names.

    After `categorical = discrete` in the package `distributions` there is an import of
    `distributions.categorical`, as in PyTorch, which has a module for each class.
    """

    @classmethod
    def home_of(cls, name):
        """The name of the module that an attribute is."""
        package, _, attribute = name.rpartition(".")
        if not package.startswith("tensorlib"):
            return None
        shown = vars(import_module(package)).get(attribute)
        if not issubclass(type(shown), ModuleType):       # the type alone: it may be a LateModule
            return None
        home = ModuleType.__getattribute__(shown, "__name__")
        return None if home == name else home


sys.meta_path.append(Attributes)              # the last that is asked
