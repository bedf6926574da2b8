"""Python's operators in all their forms: plain, reflected and in place, against NumPy."""

import operator

import numpy as np
from cases import each

import tensorlib as tl

ARITHMETIC = ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow"]
COMPARISONS = ["lt", "le", "gt", "ge", "eq", "ne"]
BITS = ["and_", "or_", "xor"]
NUMBERS = np.array([[7.0, 2.0, 5.0], [3.0, 9.0, 4.0]])
OTHERS = np.array([2.0, 3.0, 5.0])
TRUTHS = np.array([[True, False, True], [False, False, True]])


def has(name):
    return hasattr(tl.Tensor, f"__i{name.rstrip('_')}__")


CASES = [(name, NUMBERS, OTHERS) for name in ARITHMETIC + COMPARISONS] + [
    (name, TRUTHS, TRUTHS[1]) for name in BITS] + [
    (name, NUMBERS.astype(int), OTHERS.astype(int)) for name in BITS + ["lshift", "rshift"]]


@each("name, x, y", CASES)
def test_plain_and_reflected(name, x, y):
    run = getattr(operator, name)
    wanted = run(x, y)
    assert run(tl.from_numpy(x), tl.from_numpy(y)).tolist() == wanted.tolist()
    number = y.ravel()[-1].item()
    assert run(tl.from_numpy(x), number).tolist() == run(x, number).tolist()
    assert run(number, tl.from_numpy(x)).tolist() == run(number, x).tolist()


@each("name, x, y", [case for case in CASES if has(case[0])])
@each("number", [False, True])
def test_in_place(name, x, y, number):
    """The same tensor, with the values of the plain form; a view of it shows them."""
    run = getattr(operator, "i" + name.rstrip("_"))
    target = tl.from_numpy(x.copy())
    view, version = target[1], target._version
    other = y.ravel()[-1].item() if number else y
    same = run(target, other if number else tl.from_numpy(y))
    wanted = getattr(operator, name)(x, other)
    assert same is target and target._version > version
    assert target.tolist() == wanted.tolist() and view.tolist() == wanted[1].tolist()


def test_every_operator_in_place_has_a_case():
    own = {name[3:-2] for name in dir(tl.Tensor) if name.startswith("__i") and name.endswith("__")}
    assert own - {"nit", "nit_subclass", "nt", "ter", "nvert", "ndex"} <= {
        name.rstrip("_") for name, _, _ in CASES}


def test_one_operand():
    x = tl.from_numpy(NUMBERS)
    assert (-x).tolist() == (-NUMBERS).tolist() and (+x).tolist() == NUMBERS.tolist()
    assert abs(-x).tolist() == NUMBERS.tolist()
    assert (~tl.from_numpy(TRUTHS)).tolist() == (~TRUTHS).tolist()
