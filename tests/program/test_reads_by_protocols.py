"""What Python and NumPy look up by themselves, also where it is missing: a change of it is seen, or
the function runs eagerly."""

import abc
import collections
import copy
import datetime
import enum
import functools
import operator
import os
import sys
import time
import types
import typing
import weakref

import numpy as np
import pytest

import tensorlib as tl
from cases import each
from tensorlib import nn
from test_compile_agrees import kept, same

pytestmark = pytest.mark.filterwarnings("ignore:compile:RuntimeWarning")
OTHER = {}                      # by name: what a function reads, and what changes that


def case(f):
    OTHER[f.__name__] = f
    return f


class Plain:
    k = 2.0


def with_attributes(kind, *args, **attributes):
    found = kind(*args)
    vars(found).update(attributes)
    return found


@case
def name_added_for_copies():
    class P(Plain):
        pass
    p = with_attributes(P, k=3.0)
    return lambda x: x * copy.copy(p).k, lambda: setattr(P, "__copy__", lambda p: Plain())


@case
def name_added_for_deep_copies():
    class P(Plain):
        pass
    ps = [with_attributes(P, k=3.0)]
    return (lambda x: x * copy.deepcopy(ps)[0].k,
            lambda: setattr(P, "__deepcopy__", lambda p, memo: Plain()))


@case
def name_added_for_numpy():
    class P:
        def __rmul__(self, other):
            return 3.0
    p, number = P(), np.float64(2.0)
    return lambda x: x * float(number * p), lambda: setattr(
        P, "__array_ufunc__", lambda *args, **kwargs: 9.0)


@case
def name_added_for_dict():
    class P:
        def __iter__(self):
            return iter([("a", 2.0)])

        def __getitem__(self, key):
            return 7.0
    p = P()
    return lambda x: x * dict(p)["a"], lambda: setattr(P, "keys", lambda self: ["a"])


@case
def class_of_an_operand():
    class P:
        def __rmul__(self, x):
            return x * 2

    class Q:
        def __rmul__(self, x):
            return x * 3
    p = P()
    return lambda x: x * p, lambda: setattr(p, "__class__", Q)


@case
def class_of_a_class():
    class M(type):
        k = 2.0

    class N(type):
        k = 3.0

    class P(metaclass=M):
        pass
    return lambda x: x * P.k, lambda: setattr(P, "__class__", N)


@case
def class_of_a_class_asked_for():
    class M(type):
        pass

    class N(type):
        pass

    class P(metaclass=M):
        pass
    return lambda x: x * (2 + isinstance(P, M)), lambda: setattr(P, "__class__", N)


@case
def abstract_class_in_a_union():
    class A(abc.ABC):  # noqa: B024
        pass
    p = Plain()
    return lambda x: x * (2 + isinstance(p, A | int)), lambda: A.register(Plain)


@case
def abstract_class_of_typing():
    class P:
        pass
    p = P()
    return lambda x: x * (2 + isinstance(p, typing.Sized)), lambda: (
        collections.abc.Sized.register(P))


@case
def attribute_of_a_method():
    class P:
        def m(self):
            return 1.0
        m.tag = 2.0
    p = P()
    return lambda x: x * p.m.tag, lambda: setattr(P.m, "tag", 3.0)


@case
def attribute_of_a_generic_class():
    class P:
        __class_getitem__ = classmethod(types.GenericAlias)
        k = 2.0
    return lambda x: x * P[int].k, lambda: setattr(P, "k", 3.0)


@case
def attribute_of_a_static_method():
    method = staticmethod(len)
    method.k = 2.0
    return lambda x: x * method.k, lambda: setattr(method, "k", 3.0)


@case
def functions_in_a_property():
    class P:
        @property
        def k(self):
            return 2.0
    p = P()
    return lambda x: x * p.k, lambda: vars(P)["k"].__init__(lambda self: 3.0)


@case
def method_of_a_deque_called_by_map():
    found = collections.deque([2.0])
    return lambda x: x * next(map(found.__getitem__, [0])), lambda: found.__setitem__(0, 3.0)


@case
def attribute_looked_up_by_map():
    p = with_attributes(Plain, k=2.0)
    return lambda x: x * next(map(p.__getattribute__, ["k"])), lambda: setattr(p, "k", 3.0)


@case
def iterator_called_by_iter():
    numbers = map(float, range(20))
    return lambda x: x * next(iter(numbers.__next__, None)), lambda: next(numbers)


@case
def state_of_a_partial_subclass():
    class P(functools.partial):
        pass
    p = P(operator.mul, 3.0)
    return lambda x: x * p(2.0), lambda: p.__setstate__((operator.mul, (5.0,), {}, {}))


@case
def weak_reference_of_a_subclass():
    class Reference(weakref.ref):
        pass
    alive = [Plain()]
    found = Reference(alive[0])
    return lambda x: x * (2 if found() is None else 3), alive.clear


@case
def function_made_of_a_text():
    around = {"k": [2.0]}
    exec("def f(_cls):\n    return _cls * k[0]", around)
    f = around["f"]
    return lambda x: x * f(1.0), lambda: around["k"].__setitem__(0, 3.0)


@case
def members_of_an_enum():
    class E(enum.Enum):
        A = 2.0
        B = 3.0
    return lambda x: x * E["A"].value, lambda: E._member_map_.update(A=E.B)


@case
def annotations():
    class P:
        a: int
    return lambda x: x * len(typing.get_type_hints(P)), lambda: P.__annotations__.update(b=int)


@case
def masked_array():
    found = np.ma.array([1.0, 1e20], mask=[0, 0])
    return lambda x: x * float(found.sum()), lambda: setattr(found, "mask", [0, 1])


@case
def style_of_polynomials():
    found = np.polynomial.Polynomial([1.0, 2.0, 3.0])
    return (lambda x: x * len(str(found)),
            lambda: np.polynomial.set_default_printstyle("ascii"))


@case
def digits_of_integers():
    number = 10 ** 2000
    return lambda x: x * len(f"{number}"), lambda: sys.set_int_max_str_digits(700)


@case
def digits_of_integers_in_a_list():
    numbers = [10 ** 2000]
    return lambda x: x * len(repr(numbers)), lambda: sys.set_int_max_str_digits(700)


@case
def time_zone():
    def change():
        os.environ["TZ"] = "XXX-9"
        time.tzset()
    date = datetime.datetime(2024, 1, 1)
    return lambda x: x * (int(f"{date:%s}") % 1009), change


@case
def time_zone_asked_by_map():
    def change():
        os.environ["TZ"] = "XXX-9"
        time.tzset()
    date = datetime.datetime(2024, 1, 1)
    return lambda x: x * (next(iter(date.timestamp, None)) % 1009), change


@case
def attribute_of_a_copied_module():
    net = with_attributes(nn.ReLU, k=2.0)
    return lambda x: x * copy.copy(net).k, lambda: setattr(net, "k", 3.0)


@case
def list_in_a_copied_module():
    net = nn.Sequential(with_attributes(nn.ReLU, k=[2.0]))
    return lambda x: x * copy.deepcopy([net])[0][0].k[0], lambda: net[0].k.__setitem__(0, 3.0)


@case
def module_as_a_text():
    net = nn.Linear(2, 2)
    return lambda x: x * len(f"{net}"), lambda: setattr(net, "in_features", 2000)


@case
def optimizer_as_a_text():
    optimizer = tl.optim.SGD([tl.ones(2, requires_grad=True)], lr=0.1)
    return (lambda x: x * len(f"{optimizer}") * len(str(optimizer)),
            lambda: optimizer.param_groups[0].update(lr=0.123456))


@case
def learning_rate_in_a_state():
    optimizer = tl.optim.SGD([tl.ones(2, requires_grad=True)], lr=0.1)
    return (lambda x: x * optimizer.state_dict()["param_groups"][0]["lr"],
            lambda: optimizer.param_groups[0].update(lr=0.2))


@case
def modules_added():
    first, second = nn.Sequential(nn.ReLU()), nn.Sequential(nn.ReLU())
    return lambda x: (first + second * 2)(x), lambda: first.append(nn.Sigmoid())


@case
def list_of_modules_as_a_condition():
    nets = nn.ModuleList()
    return lambda x: x * (2 if nets else 3), lambda: nets.append(nn.ReLU())


@case
def context_from_outside():
    context = tl.autocast("cpu", dtype=tl.bfloat16, enabled=False)

    def f(x):
        with context:
            return x.outer(x) @ x
    return f, lambda: vars(context).update({name: True for name in vars(context)
                                            if "enabled" in name})


def restore(limit, zone):
    """Has the settings that some of these cases change be as they were."""
    sys.set_int_max_str_digits(limit)
    np.polynomial.set_default_printstyle("unicode")
    os.environ.pop("TZ", None)
    if zone is not None:
        os.environ["TZ"] = zone
    time.tzset()


def outcome(f, x):
    try:
        return kept(f(x))
    except ValueError as error:
        return str(error)


def agree(wanted, found):
    return wanted == found if isinstance(wanted, str) else same(wanted, found)


@each("name", OTHER)
def test_a_change_of_what_is_looked_up_by_others_is_seen(name):
    before = sys.get_int_max_str_digits(), os.environ.get("TZ")
    (f, change), (g, change_of_g) = OTHER[name](), OTHER[name]()
    compiled, x = tl.compile(g), tl.arange(1.0, 3.0)
    try:
        for i in range(5):
            if i == 3:
                change()
                change_of_g()
            assert agree(outcome(f, x), outcome(compiled, x)), (name, i)
    finally:
        restore(*before)


# ---- which object something is -------------------------------------------------------------------

NAN, OTHER_NAN = float("nan"), float("nan")
TEXT, SAME_TEXT = "".join(["some ", "text"]), "".join(["some ", "text"])
OBJECTS = {
    "is in a chain": (lambda x, a: x * (2 if a is TEXT is TEXT else 3), TEXT, SAME_TEXT),
    "operator.is_": (lambda x, a: x * (2 if operator.is_(a, TEXT) else 3), TEXT, SAME_TEXT),
    "NaN in a list": (lambda x, a: x * (2 if a in [NAN] else 3), NAN, OTHER_NAN),
    "NaN as a key": (lambda x, a: x * {NAN: 2}.get(a, 3), NAN, OTHER_NAN),
    "NaN in a tuple": (lambda x, a: x * (2 if (a, 1) == (NAN, 1) else 3), NAN, OTHER_NAN),
    "NaN counted": (lambda x, a: x * (2 + [NAN].count(a)), NAN, OTHER_NAN),
    "NaN in a set": (lambda x, a: x * len({NAN, a}), NAN, OTHER_NAN),
    "sign of NaN": (lambda x, a: x + a, complex(NAN, 0), complex(-NAN, 0)),
}


class Numbers(tuple):
    k = 2.0


class Number(np.float64):
    k = 2.0


OBJECTS["attribute of a tuple"] = (
    lambda x, a: x * a.k, Numbers((1, 2)), with_attributes(Numbers, (1, 2), k=3.0))
OBJECTS["attribute of a number"] = (
    lambda x, a: x * a.k, Number(2), with_attributes(Number, 2, k=3.0))


@each("name", OBJECTS)
def test_equal_arguments_of_which_python_tells_one_from_another(name):
    f, *values = OBJECTS[name]
    for first, second in (values, values[::-1]):
        compiled = tl.compile(f)
        for value in (first, first, first, second, first, second):
            assert same(f(tl.ones(2), value), compiled(tl.ones(2), value))


@each("ask", [hash, lambda x: x.__hash__(), object.__repr__, lambda x: [*map(hash, [x])][0]])
def test_where_a_tensor_is_is_not_captured(ask):
    x, y = tl.ones(2), tl.ones(2)
    known = {ask(y)}
    compiled = tl.compile(lambda x: x * (2 if ask(x) in known else 3))
    for z in (x, x, x, y, x):
        assert same(compiled(z), z * (2 if z is y else 3))


def test_a_constant_of_the_code_is_the_same_object_during_a_capture():
    def f(x, a):
        return x * (2 if operator.is_(a, (0.1, "a b")) else 3)
    constant = next(x for x in f.__code__.co_consts if isinstance(x, tuple))
    compiled = tl.compile(f)
    for value in (constant, constant, (0.1, "".join("a b")), constant):
        assert same(compiled(tl.ones(2), value), f(tl.ones(2), value))


# ---- what a call writes --------------------------------------------------------------------------

def test_an_attribute_that_map_sets_is_set_by_each_call():
    p = with_attributes(Plain, k=2.0)

    def f(x):
        list(map(p.__setattr__, ["k"], [2.0]))
        return x * 2
    compiled = tl.compile(f)
    for _ in range(4):
        compiled(tl.ones(2))
        assert p.k == 2.0
        p.k = 5.0


def test_a_file_that_map_writes_is_written_by_each_call(tmp_path):
    path, array = tmp_path / "array", np.ones(2)

    def f(x):
        list(map(array.tofile, [str(path)]))
        return x * 2
    compiled = tl.compile(f)
    for _ in range(3):
        compiled(tl.ones(2))
        path.unlink()


@each("read", [lambda path: np.fromregex(path, r"(\d)", [("a", np.int64)])["a"][0],
               lambda path: np.rec.fromfile(path, dtype=[("a", "u1")]).a[0]])
def test_a_file_is_read_by_each_call(read, tmp_path):
    path = str(tmp_path / "digits")
    compiled = tl.compile(lambda x: x * int(read(path)))
    for k in (2, 2, 2, 3):
        with open(path, "w") as file:
            file.write(f"{k}")
        assert same(compiled(tl.ones(2)), tl.ones(2) * int(read(path)))


# ---- results -------------------------------------------------------------------------------------

class Slots(float):
    __slots__ = ("made",)


class Doubled(collections.namedtuple("Doubled", "a b")):
    __slots__ = ()

    def __new__(cls, a, b):
        return super().__new__(cls, a * 2, b)


def with_slot(x):
    found = Slots(1.5)
    found.made = x * 2
    return found


@each("make, part", [
    (lambda x: slice(x * 2, None), lambda y: y.start), (with_slot, lambda y: y.made),
    (lambda x: Doubled(x, 3), lambda y: y.a)])
def test_what_is_in_a_result_is_made_by_each_call(make, part):
    compiled = tl.compile(lambda x: (make(x), x + 1))
    for k in range(4):
        x = tl.full((2,), float(k))
        assert same(part(compiled(x)[0]), part(make(x)))


@each("make", [tl.from_numpy, tl.as_tensor, lambda array: tl.from_numpy(array)[1:]])
def test_a_result_lies_in_the_memory_of_an_array_as_the_eager_one(make):
    array = np.ones(3, dtype=np.float32)
    compiled = tl.compile(lambda x: (x * 2, make(array)))
    for _ in range(3):
        found = compiled(tl.ones(2))[1]
    found.fill_(5.0)
    assert array[-1] == 5.0
