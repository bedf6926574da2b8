"""The examples in the docstrings of the optimisers hold, and every public class has one."""

import doctest
import importlib
import pkgutil

import pytest
from cases import each

import tensorlib as tl
from tensorlib import optim

MODULES = [each.name for each in pkgutil.walk_packages(optim.__path__, "tensorlib.optim.")]
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@each("name", MODULES)
def test_examples(name):
    module = importlib.import_module(name)
    assert not doctest.testmod(module, extraglobs={"tensorlib": tl}, optionflags=FLAGS).failed


@pytest.mark.parametrize("module", [optim, optim.lr_scheduler, optim.swa_utils])
def test_every_class_has_an_example(module):
    classes = [value for value in vars(module).values() if isinstance(value, type)
               and value.__name__ in module.__all__]
    assert len(classes) > 1
    assert not [each for each in classes if ">>>" not in each.__doc__]
