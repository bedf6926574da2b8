"""The examples in the docstrings of transforms, of `Function` and of graph pictures run."""

import doctest

import pytest

import tensorlib
from tensorlib.autograd import function, functional
from tensorlib.func import forward, mapping, reverse
from tensorlib.graph import graph_summary, picture


@pytest.mark.parametrize(
    "module", [reverse, forward, mapping, functional, function, graph_summary, picture],
    ids=lambda m: m.__name__)
def test_the_examples_run(module):
    found = doctest.testmod(module, extraglobs={"tensorlib": tensorlib},
                            optionflags=doctest.NORMALIZE_WHITESPACE)
    assert found.attempted and not found.failed
