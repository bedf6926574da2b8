"""Gives a class of proxies the methods and operators of Tensor.

Compiled functions pass operations on such an instance to its class, by `__tensor_call__`
(_core/interpreters/foreign.pyx). So each method is the function of the same name.
"""

from tensorlib._core.tensor.tensor import Tensor
from tensorlib.ops.declare import FUNCTIONS

OPERATORS = {
    "add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "floordiv": "floor_divide",
    "mod": "remainder", "pow": "pow", "matmul": "matmul", "and": "bitwise_and", "or": "bitwise_or",
    "xor": "bitwise_xor", "lshift": "bitwise_left_shift", "rshift": "bitwise_right_shift"}


HOMES = ("tensorlib", "tensorlib.nn.functional")       # the latter for `relu_`, once it is imported


def attach_methods(kind, in_place):
    """Gives a class the published methods of Tensor that it lacks.

    in_place: makes the in-place method, of the function out of place; None for those that have
    none.
    """
    for name, method in vars(Tensor).items():
        if name in ("T", "H", "mT", "mH"):
            setattr(kind, name, property(method.fget))
        elif getattr(method, "__module__", None) not in HOMES or hasattr(kind, name):
            continue
        elif not name.endswith("_"):
            setattr(kind, name, method)
        elif name[:-1] in FUNCTIONS:
            setattr(kind, name, in_place(FUNCTIONS[name[:-1]]))


def attach_operators(kind, in_place):
    """Gives a class Python's operators, as the operations they stand for."""
    for operator, name in OPERATORS.items():
        function = FUNCTIONS[name]
        setattr(kind, f"__{operator}__", operator_of(function, False))
        setattr(kind, f"__r{operator}__", operator_of(function, True))
        setattr(kind, f"__i{operator}__", in_place(function))
    for name in ("lt", "le", "eq", "ne", "gt", "ge"):
        setattr(kind, f"__{name}__", operator_of(FUNCTIONS[name], False))
    for operator, name in {"neg": "neg", "abs": "abs", "invert": "bitwise_not"}.items():
        setattr(kind, f"__{operator}__", FUNCTIONS[name])
    kind.__pos__ = lambda self: self
    kind.__hash__ = object.__hash__


def operator_of(function, reflected):
    """The method of a binary operator, or of its reflected form."""
    if reflected:
        return lambda self, other: function(other, self)
    return lambda self, other: function(self, other)
