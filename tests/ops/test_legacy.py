"""Names that older scripts call: what does not follow from the registry."""

import numpy as np
import pytest
from cases import each

import tensorlib as tl


def test_the_gradient_of_fill_is_that_of_the_value():
    x, v = tl.ones(2, 3, requires_grad=True), tl.tensor(2.0, requires_grad=True)
    tl.fill(x, v).sum().backward()
    assert x.grad.tolist() == [[0.0] * 3] * 2 and v.grad.item() == 6.0


@each("shape", [(3, 4), (7, 3), (8, 3), (2, 2, 2), (1, 1, 1), (0, 3), (3, 0)])
@each("wrap", [False, True])
def test_fill_diagonal(shape, wrap):
    expected = np.zeros(shape)
    if expected.size:
        np.fill_diagonal(expected, 5, wrap=wrap)
    x = tl.zeros(shape)
    assert x.fill_diagonal_(5, wrap) is x
    assert x.tolist() == expected.tolist()
    y = tl.zeros(shape[::-1]).permute(*range(len(shape) - 1, -1, -1))      # not contiguous
    assert y.fill_diagonal_(5, wrap=wrap).tolist() == expected.tolist()


def test_functions_of_elements():
    x, y = tl.arange(6).reshape(2, 3), tl.ones(3, dtype=tl.int64)
    assert x.t().apply_(lambda v: 2 * v).tolist() == [[0, 6], [2, 8], [4, 10]]
    assert x.map_(y, lambda a, b: a + b).tolist() == [[1, 3, 5], [7, 9, 11]]
    assert tl.ones(0).apply_(lambda v: v).shape == (0,)


def test_types():
    assert tl.ones(2).type() == "tensorlib.FloatTensor"
    assert tl.ones(2).type("torch.DoubleTensor").dtype is tl.float64
    assert tl.ones(2).type(tl.int8).dtype is tl.int8
    x = tl.ones(2, 3, dtype=tl.float64)
    assert x.new(4, 2).shape == (4, 2) and x.new([1, 2]).dtype is tl.float64
    assert x.new(x.size()).shape == (2, 3) and x.new().shape == (0,)
    assert x.ndimension() == 2 and x.pin_memory() is x and not x.is_pinned()


@each("call, error, message", [
    (lambda: tl.zeros(3).fill_diagonal_(1), RuntimeError, "takes two dims or more, got 1"),
    (lambda: tl.zeros(2, 2, 3).fill_diagonal_(1), RuntimeError, "must have the same size"),
    (lambda: tl.ones(2, requires_grad=True).apply_(abs), RuntimeError, "requires a gradient"),
    (lambda: tl.ones(2).map_(tl.ones(2).double(), max), TypeError, "must be of dtype"),
    (lambda: tl.ones(2).map_([1, 2], max), TypeError, "tensor must be a Tensor"),
    (lambda: tl.ones(2).apply_(lambda v: [v]), TypeError, "must return a number"),
    (lambda: tl.ones(2).apply_(lambda v: "a"), TypeError, "expected numbers, got str"),
    (lambda: tl.ones(2).type("torch.StrangeTensor"), ValueError, "invalid type"),
    (lambda: tl.ones(2).type(3), TypeError, "expected a tensorlib dtype, got 3"),
])
def test_what_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


def numbers_between(library):
    """Calls with a number between the tensors, and the same with the number by its name."""
    def pair(name, keyword, n_tensors):
        x, *rest = [library.tensor([float(i + 1), 2.0]) for i in range(n_tensors)]
        yield lambda: getattr(library, name)(x, 3, *rest), \
            lambda: getattr(library, name)(x, *rest, **{keyword: 3})
        yield lambda: getattr(x, name)(-0.5, *rest), \
            lambda: getattr(x, name)(*rest, **{keyword: -0.5})
        yield lambda: getattr(x.clone(), name + "_")(-0.5, *rest), \
            lambda: getattr(x.clone(), name + "_")(*rest, **{keyword: -0.5})
    for name in ("add", "sub"):
        yield from pair(name, "alpha", 2)
    for name in ("addcmul", "addcdiv"):
        yield from pair(name, "value", 3)


def factors_first(library):
    """Calls with factors around the first tensor, and the same with the factors by name."""
    x, v = library.tensor([[1.0, 2.0], [3.0, 4.0]]), library.tensor([1.0, 2.0])
    b = library.stack([x, x + 1])
    for name, given in {"addmm": (x, x, x), "addmv": (v, x, v), "baddbmm": (b, b, b),
                        "addbmm": (x, b, b), "addr": (x, v, v)}.items():
        first, *rest = given
        call, method = getattr(library, name), getattr(first.clone(), name)
        in_place = getattr(first.clone(), name + "_")
        for beta, alpha in ((2, (3,)), (0.5, ())):
            new = call(first, *rest, **dict(zip(("beta", "alpha"), (beta, *alpha))))
            yield lambda: call(beta, first, *alpha, *rest), lambda: new
            yield lambda: method(beta, *alpha, *rest), lambda: new
            if alpha:
                yield lambda: in_place(beta, *alpha, *rest), lambda: new


def test_factors_before_and_after_the_first_tensor():
    for old, new in factors_first(tl):
        with pytest.warns(UserWarning, match="is deprecated, give it as beta="):
            result = old()
        assert result.tolist() == new().tolist()
    y = tl.ones(2, 2)
    for call in (lambda: tl.addmm(2, y, 3, y, y, beta=2), lambda: tl.addmm(2, 3, y, y, y),
                 lambda: tl.addmm(y, y, 2, y), lambda: tl.addmm(2, y, y)):
        with pytest.raises(TypeError):
            call()


def test_a_number_between_the_tensors():
    for old, new in numbers_between(tl):
        with pytest.warns(UserWarning, match="a number between the tensors is deprecated, give it"):
            result = old()
        assert result.tolist() == new().tolist()


@pytest.mark.filterwarnings("ignore:add. a number between")
def test_a_number_between_the_tensors_has_the_gradient_of_the_factor():
    x, y = tl.ones(2, requires_grad=True), tl.ones(2, requires_grad=True)
    tl.add(x, 3, y).sum().backward()
    assert x.grad.tolist() == [1.0, 1.0] and y.grad.tolist() == [3.0, 3.0]
    added = tl.vmap(lambda a, b: a.add(2, b))(tl.ones(2, 3), tl.ones(2, 3))
    assert added.tolist() == [[3.0] * 3] * 2


@pytest.mark.parametrize("call", [
    lambda x: x.add(2, x, alpha=3), lambda x: x.add(x, 2), lambda x: x.add(2, 3),
    lambda x: x.add(2, x, x), lambda x: x.mul(2, x), lambda x: x.addcmul(2, x, x, value=3),
    lambda x: x.addcmul(x, 2, x), lambda x: x.addcmul(x, x, 2), lambda x: x.addcmul(2, 3, x),
    lambda x: x.addcmul("2", x, x),
    pytest.param(lambda x: x.add("2", x), marks=pytest.mark.filterwarnings("ignore:add. a num"))])
def test_numbers_in_other_places_are_refused(call):
    with pytest.raises(TypeError):
        call(tl.ones(2))


def test_what_a_tensor_contains():
    x = tl.tensor([[1.0, 2.0], [3.0, float("nan")]], requires_grad=True)
    assert 2 in x and 2.0 in x and np.float32(3) in x and True in x and 5 not in x
    assert float("nan") not in x and x in x and tl.tensor([1.0, 7.0]) in x
    assert tl.tensor([7.0, 1.0]) not in x and 1 not in tl.ones(0) and 3 in tl.tensor(3)
    for element in ("a", None, [1.0], (1.0, 2.0)):
        with pytest.raises(RuntimeError, match="Tensor.__contains__ only supports Tensor or scal"):
            element in x
    with pytest.raises(RuntimeError, match="broadcast"):
        tl.ones(3) in x
