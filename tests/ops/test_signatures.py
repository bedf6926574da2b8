"""Functions say what they take: by their signatures, and by errors that name them."""

import inspect
import pydoc

import pytest
from cases import each
from catalogue import for_each

import tensorlib as tl
from tensorlib.ops import registry
from tensorlib.ops.declare import FUNCTIONS

PUBLIC = sorted(name for name in FUNCTIONS if FUNCTIONS[name].__name__ == name)


def required(function):
    """How many arguments must be given."""
    return sum(p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD
               for p in inspect.signature(function).parameters.values())


def some_arguments(function):
    return [tl.ones(2, 2)] * required(function)


@each("name", PUBLIC)
def test_an_unknown_keyword(name):
    with pytest.raises(TypeError, match=rf"^{name.rstrip('_')}_?(\(\)|:) .*'no_such_thing'"):
        FUNCTIONS[name](*some_arguments(FUNCTIONS[name]), no_such_thing=1)


@each("name", [name for name in PUBLIC if required(FUNCTIONS[name])])
def test_too_few_arguments(name):
    with pytest.raises(TypeError, match=rf"^{name.rstrip('_')}_?(\(\)|:) "):
        FUNCTIONS[name]()


@each("name", [
    name for name in PUBLIC
    if inspect.Parameter.VAR_POSITIONAL not in {
        p.kind for p in inspect.signature(FUNCTIONS[name]).parameters.values()}])
def test_too_many_arguments(name):
    with pytest.raises(TypeError, match=rf"^{name.rstrip('_')}_?(\(\)|:) "):
        FUNCTIONS[name](*[tl.ones(2, 2)] * 12)


@for_each([op for op in registry.values() if op.elementwise])
def test_methods_in_place(op):
    for wrong in ([tl.ones(2)] * 12, []):
        with pytest.raises(TypeError, match=rf"^{op.name}_: takes"):
            op.function.inplace(*wrong)


@each("name", [name for name in PUBLIC if getattr(FUNCTIONS[name], "op", None) is not None
               and FUNCTIONS[name].op is registry.get(name)])
def test_a_signature_has_the_names_of_the_tensors(name):
    parameters = list(inspect.signature(FUNCTIONS[name]).parameters)
    taken = registry[name].arguments
    assert [parameters[place] for place in registry[name].places] == list(taken)


@pytest.mark.parametrize("name, text", [
    ("tanh", "tanh(input, *, out=None)"), ("mul", "mul(input, other, *, out=None)"),
    ("pow", "pow(input, exponent, *, out=None)"), ("matmul", "matmul(input, other, *, out=None)"),
    ("add", "add(input, other, *, alpha=1, out=None)"), ("reshape", "reshape(input, *shape)"),
    ("cumsum",
     "cumsum(input: tensorlib.Tensor, dim, dtype=None, *, out=None)")])
def test_help(name, text):
    shown = pydoc.plain(pydoc.render_doc(FUNCTIONS[name]))
    assert "".join(text.split()) in "".join(shown.split())      # in one line or, from 3.13, several


def test_the_exponent_goes_by_its_name():
    x = tl.tensor([2.0, 3.0])
    assert tl.pow(x, exponent=2).tolist() == [4, 9] and x.pow(exponent=2).tolist() == [4, 9]
    assert x.pow_(exponent=2).tolist() == [4, 9]
    with pytest.raises(TypeError, match=r"^pow\(\) .*'other'"):
        tl.pow(x, other=2)


def test_errors_from_inside_stay_as_they_are():
    """Only Cython's own errors about arguments are changed."""
    class Odd:
        @classmethod
        def __tensor_call__(cls, op, args, kwargs):
            raise TypeError("functional() is not this")
    with pytest.raises(TypeError, match=r"^functional\(\) is not this"):
        tl.tanh(Odd())
