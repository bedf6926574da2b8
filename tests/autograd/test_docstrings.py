"""The examples in the docstrings of the package hold."""

import doctest
import importlib

from cases import each

import tensorlib as tl
from tensorlib.autograd.graph import Node

MODULES = ["anomaly", "checking", "forward_ad", "gradients", "graph", "hooks", "modes", "recompute"]
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@each("name", MODULES)
def test_examples_of_modules(name):
    module = importlib.import_module(f"tensorlib.autograd.{name}")
    result = doctest.testmod(module, extraglobs={"tensorlib": tl}, optionflags=FLAGS)
    assert result.attempted and not result.failed


def test_examples_of_nodes():
    names = {"tensorlib": tl}
    example = doctest.DocTestParser().get_doctest(
        Node.register_hook.__doc__, names, "register_hook", None, 0)
    assert not doctest.DocTestRunner().run(example).failed
