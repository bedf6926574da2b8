"""What compiled functions are called with and return beside tensors: told apart to the bits."""

import argparse
import collections
import enum
import functools
import types
import warnings
from dataclasses import dataclass

import numpy as np
import pytest
from cases import each
from beside_eager import agrees

import tensorlib as tl
from test_compile_agrees import same

INT = tl.int64


def agree(f, *calls):
    """Whether `f` compiled gives what `f` gives, and the types of it, in calls one after the other.
    """
    compiled = tl.compile(f)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return all(same(compiled(*args), f(*args)) for args in calls)


# ---- arguments -----------------------------------------------------------------------------------

@pytest.mark.parametrize("numbers", [
    (0.0, -0.0), (1, True, 1.0, False, 0), (float("nan"), 2.0, float("nan")),
    (np.float32(0), np.float32(-0.0), np.float64(0)), ((0.0, 1), (-0.0, 1), (0.0, True))])
def test_numbers_that_are_equal_and_not_the_same(numbers):
    x = tl.ones(2, dtype=INT)
    assert agree(lambda x, a: x * (a[0] if type(a) is tuple else a),
                 *[(x, a) for a in (*numbers, *numbers)])


def test_a_number_that_differs_from_itself_is_captured_once():
    f = tl.compile(lambda x, a: x * a)
    for _ in range(3):
        assert f(tl.ones(2), float("nan")).isnan().all()
    assert len(f._entries) == 1 and f._entries[0].replay is not None


def test_keys_and_members_that_are_equal_and_not_the_same():
    x = tl.ones(2, dtype=INT)
    assert agree(lambda d: sum(x * key for key, x in d.items()), *[({k: x},) for k in (1, 1.0)])
    assert agree(lambda x, s: x * sum(s), *[(x, frozenset([k])) for k in (1, 1.0, True)])


@each("values", [
    (set([0, 8]), set([8, 0])), (frozenset([0, 8]), frozenset([8, 0])), ({0.0}, {-0.0}),
    (frozenset([0.0]), frozenset([-0.0])), (range(0, 3, 2), range(0, 4, 2)), (range(0), range(5, 5))
])
@each("given", [True, False])
def test_sets_and_ranges_that_are_equal_and_not_the_same(values, given):
    held = {}

    def f(x, held=held):
        v = held["v"]
        for k in (v.start, v.stop) if type(v) is range else v:
            x = x * 3 + k
        return 1 / x

    first, second = values
    assert first == second
    compiled = tl.compile(f)
    for v in (first, second, second, first):
        held["v"] = v
        args = (tl.zeros(2), {"v": v}) if given else (tl.zeros(2),)
        assert same(compiled(*args), f(*args)), v


@pytest.mark.parametrize("kinds", [
    (False, True, False, True), (True, False), (False, False, True)])
@pytest.mark.filterwarnings("ignore:compile")
def test_an_argument_has_a_gradient_in_one_call_and_not_in_another(kinds):
    f = tl.compile(lambda x: x * (2 if x.grad is None else 3))
    for has_gradient in kinds:
        x = tl.ones(2, requires_grad=True)
        x.grad = tl.ones(2) if has_gradient else None
        assert f(x).tolist() == [3.0 if has_gradient else 2.0] * 2
    assert kinds[0] or any(way.replay is not None for way in f._entries)


def test_tensors_of_inference_mode_are_another_kind():
    with tl.inference_mode():
        made = tl.ones(2)
    held = [made]
    assert agree(lambda x: x * (2 if x.is_inference() else 3), *[
        (x,) for x in (tl.ones(2), made, tl.ones(2), made)])
    compiled = tl.compile(lambda x: x * (2 if held[0].is_inference() else 3))
    for x, scale in ((made, 2), (tl.ones(2), 3), (made, 2)):
        held[0] = x
        for _ in range(2):
            assert tl.equal(compiled(tl.ones(2)), tl.full((2,), float(scale)))


@pytest.mark.parametrize("made, change", [
    ({1, 2}, lambda s: s.add(5)), (bytearray(b"ab"), lambda b: b.append(7)),
    (collections.deque([1]), lambda d: d.append(2))])
def test_values_that_their_owner_changes(made, change):
    f = tl.compile(lambda x, values: x * sum(values))
    for _ in range(3):
        assert tl.equal(f(tl.ones(2), made), tl.full((2,), float(sum(made))))
        change(made)


@dataclass
class Config:
    scale: float
    x: tl.Tensor


@pytest.mark.parametrize("kind", [Config, types.SimpleNamespace, argparse.Namespace])
def test_objects_that_are_there_for_their_fields_are_containers(kind):
    @tl.compile
    def f(config):
        return config.x * config.scale

    config = kind(scale=2.0, x=tl.ones(2))
    for scale, x in ((2.0, tl.ones(2)), (2.0, tl.zeros(2)), (3.0, tl.ones(2)), (2.0, tl.ones(2))):
        config.scale, config.x = scale, x
        assert tl.equal(f(config), x * scale)
        assert tl.equal(f(kind(scale=scale, x=x + 1)), (x + 1) * scale)
    assert len(f._entries) == 2


def test_arrays_are_read_at_each_call():
    a = np.ones(3, dtype=np.float32)
    f = tl.compile(lambda x, a: x * tl.tensor(a))
    with pytest.warns(RuntimeWarning, match="ndarray") as caught:
        for values in (a, a + 1, np.ones(2, dtype=np.float32)):
            assert tl.equal(f(tl.ones(len(values)), values), tl.tensor(values))
    a[:] = 5
    assert len(caught) == 1 and tl.equal(f(tl.ones(3), a), tl.full((3,), 5.0))
    with pytest.raises(tl.program.CaptureError, match="ndarray"):
        tl.compile(lambda x, a: x, fullgraph=True)(tl.ones(1), a)


@pytest.mark.parametrize("size", [3, 1000, 32_768])
def test_arrays_from_outside_are_compared_before_a_replay(size):
    array = np.arange(float(size))
    f = tl.compile(lambda x: x + tl.from_numpy(array), fullgraph=True)
    x = tl.ones(size, dtype=tl.float64)
    for place in (0, size - 1, None):
        assert tl.equal(f(x), x + tl.from_numpy(array)) and tl.equal(f(x), x + array)
        if place is not None:
            array[place] += 1


def test_an_array_too_large_to_be_compared_is_named():
    array = np.zeros(32_769)
    f = tl.compile(lambda x: x + tl.from_numpy(array))
    with pytest.warns(RuntimeWarning, match="262,152 bytes of float64.* over 262,144 bytes"):
        for _ in range(4):
            array += 1
            assert tl.equal(f(tl.zeros(1)), tl.from_numpy(array.copy()))


def test_arguments_that_cannot_be_compared():
    class Odd:
        def __init__(self, scale):
            self.scale = scale

        def __eq__(self, other):
            raise ValueError("odd")

    assert agree(lambda x, odd: x * odd.scale, *[(tl.ones(2), Odd(k)) for k in (1.0, 2.0)])


def test_a_list_whose_tensors_change_places():
    def f(pair):
        pair.reverse()
        return pair[0] - 1

    for wrap in (lambda f: f, tl.compile):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            g = wrap(f)
            for _ in range(3):
                pair = [tl.ones(2), tl.zeros(2)]
                g(pair)
                assert tl.equal(pair[0], tl.zeros(2))


def test_an_argument_that_is_read_from_outside_as_well():
    def build():
        first, second = tl.ones(2), tl.arange(2.0)
        known = [first]

        def f(x):
            return x * (2 if any(x is y for y in known) else 3)

        return f, [second, second, first, first, second]

    assert agrees(build)


@pytest.mark.parametrize("f", [
    lambda x, known: x * known[x] if x in known else x * 5,
    lambda x, known: x * (2 if x is next(iter(known)).grad else 3)])
def test_an_argument_that_is_a_key_or_a_gradient_from_outside(f):
    def build():
        first, second = tl.ones(2, requires_grad=True), tl.arange(2.0, requires_grad=True)
        first.grad = tl.ones(2)
        known = {first: 2.0}
        return lambda x: f(x, known), [second, second, first, first, first.grad, first.grad, second]

    assert agrees(build)


def test_an_argument_is_a_list_from_outside():
    outside = [1.0]
    assert agree(lambda x, a: x * (2 if a is outside else 3), *[
        (tl.ones(1), a) for a in ([1.0], [1.0], outside, outside)])


def test_the_class_of_a_tensor_is_part_of_the_kind():
    class Doubled(tl.Tensor):
        @classmethod
        def __torch_function__(cls, function, kinds, args=(), kwargs=None):
            found = super().__torch_function__(function, kinds, args, kwargs or {})
            return found * 2 if function.__name__ == "exp" else found

    plain, other = tl.ones(2), tl.ones(2).as_subclass(Doubled)
    compiled = tl.compile(lambda x: x.exp())
    with pytest.warns(RuntimeWarning, match="an argument is a Doubled"):
        for x in (other, plain, other, plain, plain):
            found, wanted = compiled(x), x.exp()
            assert type(found) is type(wanted) and tl.equal(found, wanted)


# ---- results -------------------------------------------------------------------------------------

def generated(x):
    yield x * 2


RETURNED = {
    "generator": (generated, lambda r: next(r)),
    "map": (lambda x: map(lambda k: x * k, range(3)), lambda r: sum(r)),
    "iterator": (lambda x: (x * 2, iter([1, 2])), lambda r: r[0] * sum(r[1])),
    "closure": (lambda x: lambda y: x * y, lambda r: r(tl.ones(2))),
    "partial": (lambda x: functools.partial(tl.mul, x), lambda r: r(2)),
    "set": (lambda x: (x * 2, {1}), lambda r: r[0] * r[1].pop()),
    "array": (lambda x: (x * 2, np.ones(1)), lambda r: r[0] * float(r[1].__iadd__(1)[0])),
}


@pytest.mark.parametrize("name", RETURNED)
def test_what_is_returned_is_new_in_each_call(name):
    f, take = RETURNED[name]
    with pytest.warns(RuntimeWarning, match="returns a|kept outside"):
        compiled = tl.compile(f)
        for k in (1.0, 2.0, 3.0):
            assert same(take(compiled(tl.full((2,), k))), take(f(tl.full((2,), k))))


def of_a_class(kind):
    return type("Of" + kind.__name__, (kind,), {})


OfInt, OfStr = of_a_class(int), of_a_class(str)


@pytest.mark.parametrize("f", [
    lambda x: lambda: 2, lambda x: type("Made", (), {}), lambda x: enum.Enum("Made", "a").a,
    lambda x: OfInt(3), lambda x: (x, OfStr("a")), lambda x: [].append, lambda x: tl.Tensor])
@pytest.mark.filterwarnings("ignore:compile")
def test_what_may_be_given_attributes_is_another_one_in_each_call(f):
    def kept(f):
        results = [f(tl.ones(1)) for _ in range(3)]
        found = [x[1] if type(x) is tuple else x for x in results]
        return [x is y for x in found for y in found]

    assert kept(tl.compile(f)) == kept(f)


def test_an_argument_that_is_returned_is_that_argument():
    f = tl.compile(lambda x, box: (x * 2, box))
    with pytest.warns(RuntimeWarning, match="an argument"):
        for _ in range(3):
            box = [1]
            assert f(tl.ones(2), box)[1] is box
    g = tl.compile(lambda x, kind: (x * 2, kind, tl.float32, "text", None, [1, (2.5,)]))
    kind = object()
    for _ in range(3):
        assert g(tl.ones(2), kind)[1:] == (kind, tl.float32, "text", None, [1, (2.5,)])


def test_an_object_that_is_an_argument_may_be_returned():
    class Config:
        scale = 2.0

    config = Config()
    f = tl.compile(lambda x, c: (x * c.scale, c), fullgraph=True)
    for k in range(3):
        found, same = f(tl.full((2,), float(k)), config)
        assert same is config and found.tolist() == [2.0 * k] * 2


NONE_SO_FAR = ()


def test_a_call_by_names_may_read_an_empty_tuple():
    """Python has one such tuple, which the arguments without a name are then."""
    f = tl.compile(lambda x: x * (2 + len(NONE_SO_FAR)), fullgraph=True)
    for k in range(3):
        assert f(x=tl.full((2,), float(k))).tolist() == [2.0 * k] * 2


@dataclass
class Counted:
    n: int = 0


@each("make", [
    lambda: types.SimpleNamespace(n=0), Counted, lambda: argparse.Namespace(n=0), lambda: {1, 2},
    lambda: bytearray(b"a"), lambda: collections.deque([1]), lambda: [1], lambda: {"n": 0}],
    ids=["SimpleNamespace", "dataclass", "Namespace", "set", "bytearray", "deque", "list", "dict"])
@each("place", ["result", "container", "variable"])
@pytest.mark.filterwarnings("ignore:compile")
def test_an_argument_that_is_returned_is_that_of_the_call(make, place):
    """Not one with the same contents, of the call that was captured."""
    def f(x, given):
        kept = given
        y = x * 1
        if hasattr(kept, "n"):
            kept.n = kept.n + 1
            y = y * kept.n
        return y, {"result": given, "container": [given], "variable": kept}[place]

    compiled = tl.compile(f)
    for _ in range(6):
        given = make()
        y, found = compiled(tl.ones(2), given)
        assert (found[0] if place == "container" else found) is given
        assert y.tolist() == [1.0, 1.0] and getattr(given, "n", 1) == 1


def test_a_tensor_from_outside_in_the_memory_of_an_argument():
    for write in (False, True):
        w = tl.ones(2)

        def f(x):
            if write:
                w[0] = x[1]
            w.grad = None            # which is none of its operations
            return w * x

        found = []
        for g in (f, tl.compile(f)):
            w.fill_(2)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found.append([(g(x).tolist(), w.tolist()) for x in (
                    w.detach(), tl.tensor([3.0, 4.0]), w.view(2), tl.ones(2), w.data)])
        assert found[0] == found[1]


def test_a_gradient_that_an_argument_has_is_returned():
    f = tl.compile(lambda x: [x.grad])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for i in range(4):
            x = tl.ones(2, requires_grad=True)
            (x * i).sum().backward()
            assert f(x)[0] is x.grad


class OwnList(list):
    pass


class OwnTuple(tuple):
    pass


@dataclass(eq=False)
class OwnDict(dict):
    scale: float = 1.0


class Slotted(list):
    __slots__ = ("scale",)


@dataclass
class HalfSlotted:
    __slots__ = ("scale",)
    scale: float


class WithDict(HalfSlotted):
    pass


@pytest.mark.parametrize("make", [
    lambda: OwnList([2.0]), lambda: OwnTuple([2.0]), lambda: OwnDict(), lambda: Slotted([2.0]),
    lambda: WithDict(1.0)], ids=["list", "tuple", "dict", "slot", "slot beside a dict"])
@pytest.mark.filterwarnings("ignore:compile")
def test_attributes_of_containers_that_are_arguments(make):
    def f(x, given):
        return x * getattr(given, "scale", 5.0) * getattr(given, "more", 1.0)

    def parts(x, given):
        return x * sum(given.values() if isinstance(given, dict) else given) if given else x

    for function in (f, parts) if isinstance(make(), (list, tuple, dict)) else (f,):
        compiled = tl.compile(function)
        for k, (scale, more) in enumerate([(None, None)] * 2 + [(2.0, None)] * 2 + [(3.0, None)] * 2
                                          + [(2.0, 4.0)] * 2 + [(3.0, 4.0)] * 2
                                          + [(2.0, tl.tensor(4.0))] * 2):
            given = make()
            if scale is not None:
                given.scale = scale
            if more is not None and hasattr(given, "__dict__"):
                given.more = more
            if isinstance(given, dict) and k % 2:
                given["k"] = float(k)
            assert tl.equal(compiled(tl.ones(2), given), function(tl.ones(2), given))


@pytest.mark.parametrize("pair", [
    lambda: ("".join(["a", "b"]), "".join(["a", "b"])), lambda: (int("1000"), int("1000")),
    lambda: (float("0.1"), float("0.1")), lambda: (np.float32(1), np.float32(1))])
@pytest.mark.filterwarnings("ignore:compile")
def test_values_that_are_equal_and_not_one_object(pair):
    compiled = tl.compile(lambda x, a, b: x * (2 if a is b else 3))
    for _ in range(3):
        a, b = pair()
        assert compiled(tl.ones(1), a, a).item() == 2 and compiled(tl.ones(1), a, b).item() == 3


def test_small_values_are_told_apart_by_identity():
    f = tl.compile(lambda x, a, b: x * (2 if a is b else 3), fullgraph=True)
    for a, b in [(None, None), (True, False), (3, 3), (3, 4), ("a", "b"), (1.5, 2.5)]:
        for _ in range(2):
            assert f(tl.ones(1), a, b).item() == (2 if a is b else 3)


@pytest.mark.filterwarnings("ignore:compile")
def test_attributes_that_an_argument_does_not_have():
    f = tl.compile(lambda x: x * (2 if hasattr(x, "unheard_of") else 3))
    for k in range(5):
        x = tl.ones(1)
        if k % 2:
            x.unheard_of = k
        assert f(x).item() == (2 if k % 2 else 3)


class Telling(dict):
    """Its methods say something else than what is in it."""

    def __iter__(self):
        return iter(["no", "such", "keys"])

    def values(self):
        return [1.0]

    def __len__(self):
        return 9


class Attributes(dict):
    def __init__(self, **values):
        super().__init__(**values)
        self.__dict__ = self


@pytest.mark.parametrize("make, read", [
    (lambda k: Telling(scale=k), lambda d: d["scale"]),
    (lambda k: Attributes(scale=k), lambda d: d.scale),
    (lambda k: types.SimpleNamespace(scale=k), lambda d: d.scale),
    (lambda k: (lambda x: [x.append(x), x][1])([k]), lambda d: d[0])],
    ids=["of its own", "its own attributes", "namespace", "in itself"])
@pytest.mark.filterwarnings("ignore:compile")
def test_containers_whose_class_has_ways_of_its_own(make, read):
    compiled = tl.compile(lambda x, given: x * read(given))
    for k in (1.0, 1.0, 2.0, 2.0, 1.0):
        assert compiled(tl.ones(1), make(k)).item() == k
