"""The examples in the docstrings of the transforms run."""

import doctest

import pytest

import tensorlib
from tensorlib.autograd import functional
from tensorlib.func import forward, mapping, reverse


@pytest.mark.parametrize("module", [reverse, forward, mapping, functional],
                         ids=lambda m: m.__name__)
def test_the_examples_run(module):
    found = doctest.testmod(module, extraglobs={"tensorlib": tensorlib},
                            optionflags=doctest.NORMALIZE_WHITESPACE)
    assert found.attempted and not found.failed
