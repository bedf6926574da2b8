"""The examples in the docstrings of data and serialization hold."""

import doctest
import importlib
import pkgutil

import numpy
from cases import each

import tensorlib as tl
from tensorlib.io import files

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
MODULES = [f"{package.__name__}.{module.name}" for package in (tl.utils.data, files)
           for module in pkgutil.iter_modules(package.__path__)]


@each("name", MODULES)
def test_examples(name):
    tl.manual_seed(0)
    result = doctest.testmod(importlib.import_module(name), optionflags=FLAGS,
                             extraglobs={"tensorlib": tl, "numpy": numpy})
    assert not result.failed


def test_public_classes_and_functions_have_examples():
    """All that is more than a name or a setting."""
    plain = {"Sampler", "WorkerInfo", "LoadEndianness", "LoadError", "add_safe_globals",
             "clear_safe_globals", "get_default_load_endianness", "get_safe_globals",
             "set_default_load_endianness"}
    missing = [name for module in (tl.data, tl.serialization) for name in module.__all__
               if ">>>" not in getattr(module, name).__doc__]
    assert set(missing) <= plain
