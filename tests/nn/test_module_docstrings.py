"""The examples in the docstrings of `tensorlib.nn` hold."""

import doctest
import pkgutil
from importlib import import_module

from cases import each

import tensorlib as tl
from tensorlib import nn

MODULES = [found.name for package in (nn, nn.modules, nn.utils)
           for found in pkgutil.iter_modules(package.__path__, f"{package.__name__}.")
           if not found.ispkg]
NAMES = {"tensorlib": tl, **{name: getattr(nn, name) for name in nn.__all__}}


@each("name", [nn.__name__, "tensorlib.func.modules", *MODULES])
def test_examples(name):
    module = import_module(name)
    tl.manual_seed(0)
    result = doctest.testmod(module, extraglobs={**NAMES, **vars(module)},
                             optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    assert not result.failed


def test_there_are_examples():
    finder = doctest.DocTestFinder()
    examples = [example for name in MODULES for test in finder.find(import_module(name))
                for example in test.examples]
    assert len(MODULES) > 30 and len(examples) > 60
