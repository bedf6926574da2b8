"""What `help` prints explains each parameter of the public functions and classes."""

import importlib
import inspect
import re
from enum import Enum
from inspect import Parameter

import pytest

import tensorlib as tl
from process import run_forked
from tensorlib._core.base.explained import explained
from tensorlib._core.base.parameter_words import TEXT, WORDS
from tensorlib.ops.declare import FUNCTIONS
from tensorlib.ops.lazy import declare_all

MODULES = [
    "autograd", "autograd.functional", "autograd.graph", "distributions", "func", "graph", "linalg",
    "nn", "nn.functional", "nn.init", "optim", "optim.lr_scheduler", "optim.scipy",
    "optim.swa_utils", "program", "nn.zoo", "serialization", "special", "utils.data",
    "utils.data.datasets", "utils.data.transforms", "utils.data.transforms.functional",
    "utils.tensorboard"]
MANY = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)


def unexplained(function, owner=None):
    """The parameters that the docstring neither names as code nor begins an explanation with."""
    doc = inspect.getdoc(function) or ""
    if doc.startswith("In-place form of"):              # it has those of the function
        return
    for parameter in inspect.signature(function).parameters.values():
        name = parameter.name
        explained = rf"`{name}[`=]|(?:^ *|[.;] )(?:\w+, )*{name}(?:, \w+)*: "
        if name != "self" and parameter.kind not in MANY and not re.search(
                explained, doc, re.MULTILINE):
            yield name


def public(module):
    """The public functions and classes of a module, by name."""
    declare_all()
    if module == "":
        names = [*FUNCTIONS, "case", "compile", "cond", "load", "save", "scan", "switch_case",
                 "while_loop"]
        owner = tl
    else:
        owner = importlib.import_module(f"tensorlib.{module}")
        names = owner.__all__
    for name in names:
        value = FUNCTIONS.get(name) if not module and name in FUNCTIONS else getattr(owner, name)
        if not (inspect.isroutine(value) or inspect.isclass(value)) or (
                inspect.isclass(value) and issubclass(value, (tuple, Enum))):
            continue
        if value.__module__.startswith("tensorlib"):
            yield name, value


@pytest.mark.parametrize("module", ["", *MODULES])
def test_each_parameter_of_public_functions_and_classes_is_explained(module):
    found = {}
    for name, value in public(module):
        try:
            missing = list(unexplained(value))
        except ValueError:                              # a class that is never called
            continue
        if missing:
            found[name] = missing
    assert not found


@pytest.mark.parametrize("name", ["nn.Conv2d", "scan", "while_loop", "cond"])
def test_help_of_a_fresh_process_explains_each_parameter(name):
    """Also of what is imported when it is first used."""
    shown = run_forked(f"import tensorlib as tl\nhelp(tl.{name})")
    known = {"nn.Conv2d": ["in_channels", "kernel_size", "padding_mode"],
             "scan": ["f", "init", "xs"], "while_loop": ["cond_fn", "body_fn", "loop_vars"],
             "cond": ["true_fn", "false_fn"]}[name]
    for parameter in known:
        assert re.search(rf"`{parameter}[`=]|\b{parameter}(?:, \w+)*: ", shown), parameter


def test_words_come_before_the_example_and_leave_what_is_explained():
    doc = "What it is, along `dim`.\n\n    >>> f(1)\n    2\n    "
    assert explained(doc, "f", ["input", "dim", "unheard_of"]) == (
        "What it is, along `dim`.\n\n    Args:\n"
        "        input: the input tensor.\n\n    >>> f(1)\n    2\n    ")
    assert explained(doc, "f", ["dim"]) is doc
    assert "the slope below 0" in explained("One.", "kaiming_normal_", ["a"])
    assert "dtype: the dtype of parameters" in tl.nn.Linear.__doc__
    assert "dtype: the dtype of the result" in tl.zeros.__doc__


def test_a_class_that_is_derived_has_its_own_docstring_or_none():
    class Wider(tl.nn.Conv2d):
        pass

    class Told(tl.nn.Conv2d):
        """Mine."""

    assert "Args:" in tl.nn.Conv2d.__doc__ and "Args:" in tl.nn.Conv2d(1, 1, 1).__doc__
    assert Wider.__doc__ is None and Told.__doc__ == "Mine."


def test_no_word_is_said_twice():
    names = [name for line in TEXT.strip().splitlines() for name in line.split("|")[0].split()]
    assert len(names) == len(set(names)) == len(WORDS)
