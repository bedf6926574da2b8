"""`_foreach_*` and `_check*`, which libraries around PyTorch call: beside it where it is there."""

import pytest
from cases import each

import tensorlib as tl
from tensorlib._foreach import BINARY, FUNCTIONS, TERNARY, UNARY

try:
    import torch
except ImportError:
    torch = None


def tensors(t=tl, shift=0.0):
    return [t.tensor([0.25, 0.5]) + shift, t.tensor([[0.75], [0.3]]) + shift]


@each("name", UNARY)
def test_a_function_of_each(name):
    wanted = [getattr(x, name)() for x in tensors()]
    found = FUNCTIONS["_foreach_" + name](tensors())
    assert isinstance(found, tuple) and all(map(tl.equal, found, wanted))
    if name != "clone":
        given = tensors()
        assert getattr(tl, f"_foreach_{name}_")(given) is given
        assert all(map(tl.equal, given, wanted))


@each("others", [
    lambda t: 0.5, lambda t: [0.5, 2.0], lambda t: tensors(t, 0.125), lambda t: t.tensor(2.0)],
    ids=["number", "numbers", "tensors", "tensor"])
@each("name", BINARY)
def test_what_stands_beside_each(name, others):
    found = []
    one = isinstance(others(tl), tl.Tensor) and name not in ("add", "mul", "div")
    for t in [tl] if torch is None or one else [tl, torch]:       # PyTorch takes one in these alone
        given = tensors(t)
        results = getattr(t, "_foreach_" + name)(given, others(t))
        getattr(t, f"_foreach_{name}_")(given, others(t))
        found.append([x.reshape(-1).tolist() for x in (*results, *given)])
    assert found[0][:2] == found[0][2:]
    for ours, theirs in zip(found[0], found[-1], strict=True):
        assert ours == pytest.approx(theirs)


@each("name", TERNARY)
@each("last", [0.5, [0.5, 2.0]], ids=["number", "numbers"])
def test_what_stands_between_two(name, last):
    a, b, c = tensors(), tensors(tl, 0.5), tensors(tl, 1.0)
    weights = last if isinstance(last, list) else [last] * 2
    if name == "lerp":
        found, wanted = tl._foreach_lerp(a, b, last), list(map(tl.lerp, a, b, weights))
    else:
        function = getattr(tl, name)
        found = getattr(tl, "_foreach_" + name)(a, b, c, last)
        wanted = [function(*row, value=w) for *row, w in zip(a, b, c, weights)]
        again = getattr(tl, f"_foreach_{name}_")(tensors(), b, c, tl.tensor(weights))
        assert all(map(tl.equal, again, wanted))
    assert all(map(tl.equal, found, wanted))


def test_others_of_lists():
    a = tensors()
    assert [x.item() for x in tl._foreach_norm(a)] == [x.norm().item() for x in a]
    assert [x.item() for x in tl._foreach_norm(a, 1)] == [x.abs().sum().item() for x in a]
    assert [x.item() for x in tl._foreach_max(a)] == [0.5, 0.75]
    assert tl._foreach_pow(2.0, a)[0].tolist() == (2.0 ** a[0]).tolist()
    assert tl.equal(tl._foreach_sub(a, a, alpha=2)[0], -a[0])
    assert tl.equal(tl._foreach_copy_(tensors(tl, 1.0), a)[0], a[0])
    assert not any(x.any() for x in tl._foreach_zero_(a))


@each("call, error", [
    (lambda a: tl._foreach_addcmul(a, a[:1], a, [1, 2]), RuntimeError),
    (lambda a: tl._foreach_add(a, [1]), RuntimeError),
    (lambda a: tl._foreach_add([], 1), RuntimeError),
    (lambda a: tl._foreach_exp(a[0]), TypeError),
    (lambda a: tl._foreach_mul_([1.0], 2), TypeError)])
def test_lists_that_do_not_fit_are_refused(call, error):
    with pytest.raises(error, match="_foreach_"):
        call(tensors())


@each("name, error", [
    ("_check", RuntimeError), ("_check_value", ValueError), ("_check_type", TypeError),
    ("_check_index", IndexError), ("_check_not_implemented", NotImplementedError)])
def test_conditions(name, error):
    check = getattr(tl, name)
    check(True)
    check(1 < 2, lambda: 1 / 0)
    with pytest.raises(error, match="Expected cond to be True"):
        check(False)
    with pytest.raises(error, match="of mine"):
        check(False, lambda: "of mine")
    with pytest.raises(TypeError, match="_check_tensor_all"):
        check(tl.tensor(True))


def test_conditions_of_sizes_and_tensors():
    tl._check_is_size(3, max=3)
    tl._check_tensor_all(tl.ones(2) > 0)
    tl._assert_async(tl.tensor([1]))
    tl._assert(True, "")
    for call, error in ((lambda: tl._check_is_size(-1), RuntimeError),
                        (lambda: tl._check_is_size(4, max=3), RuntimeError),
                        (lambda: tl._check_tensor_all(tl.zeros(2) > 0), RuntimeError),
                        (lambda: tl._check_tensor_all(tl.ones(2)), TypeError),
                        (lambda: tl._assert_async(tl.tensor(0.0)), RuntimeError),
                        (lambda: tl._assert_async(tl.ones(2)), RuntimeError),
                        (lambda: tl._assert(False, "why"), AssertionError)):
        with pytest.raises(error):
            call()
