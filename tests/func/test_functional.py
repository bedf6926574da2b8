"""`autograd.functional`: the same derivatives under PyTorch's older names."""

import pytest

import tensorlib as tl
from tensorlib import func
from tensorlib.autograd import functional
from tensorlib.testing import assert_close, gradcheck


def pair(x, y):
    return x.sin() * y, (x * y).sum()


def scalar(x, y):
    return (x.exp() * y * y).sum() + x.prod()


@pytest.fixture
def y():
    return tl.tensor([2.0, -0.5, 0.25], dtype=tl.float64)


def test_products_with_the_jacobian_are_transposed(x, y):
    tangents, us = (y, x), (x, tl.tensor(0.7, dtype=tl.float64))
    out, moved = functional.jvp(pair, (x, y), tangents)
    again, pulled = functional.vjp(pair, (x, y), us)
    for a, b in zip(out, again):
        assert_close(a, b)
    forward = sum((u * t).sum().item() for u, t in zip(us, moved))
    assert forward == pytest.approx(sum((g * t).sum().item() for g, t in zip(pulled, tangents)))


@pytest.mark.parametrize("strategy", ["reverse-mode", "forward-mode"])
def test_jacobian(x, y, strategy):
    found = functional.jacobian(pair, (x, y), strategy=strategy)
    wanted = func.jacrev(pair, (0, 1))(x, y)
    for row, other in zip(found, wanted, strict=True):
        for a, b in zip(row, other, strict=True):
            assert_close(a, b)
    diagonal = tl.eye(3, dtype=tl.float64) * x.cos()
    assert_close(functional.jacobian(tl.sin, x, strategy=strategy), diagonal)


@pytest.mark.parametrize("strategy", ["reverse-mode", "forward-mode"])
def test_hessian_and_its_products(x, y, strategy):
    hessian = functional.hessian(scalar, (x, y), outer_jacobian_strategy=strategy)
    exact = func.hessian(scalar, (0, 1))(x, y)
    for row, other in zip(hessian, exact, strict=True):
        for a, b in zip(row, other, strict=True):
            assert_close(a, b)
    v = (y, x)
    for product in (functional.hvp, functional.vhp):
        value, found = product(scalar, (x, y), v)
        assert_close(value, scalar(x, y))
        for row, a in zip(exact, found, strict=True):
            assert_close(a, row[0] @ v[0] + row[1] @ v[1])


def test_one_tensor_goes_in_and_one_comes_out(x):
    single = tl.tensor(0.5, dtype=tl.float64)
    assert functional.jvp(tl.sin, single)[1].item() == pytest.approx(single.cos().item())
    assert functional.vjp(tl.sin, single)[1].item() == pytest.approx(single.cos().item())
    out, products = functional.vjp(lambda x: (x * 2,), (x,), (x,))
    assert isinstance(out, tuple) and isinstance(products, tuple)


def test_results_have_a_graph_where_it_is_wanted(x, y):
    a, b = x.clone().requires_grad_(), y.clone().requires_grad_()
    for create_graph in (False, True):
        for result in (
                functional.jvp(tl.mul, (a, b), (x, y), create_graph),
                functional.vjp(tl.mul, (a, b), x, create_graph),
                functional.hvp(scalar, (a, b), (x, y), create_graph),
                functional.vhp(scalar, (a, b), (x, y), create_graph)):
            value, products = result
            products = products if isinstance(products, tuple) else (products,)
            assert value.requires_grad is create_graph
            assert all(p.requires_grad is create_graph for p in products)
    for product in (functional.hvp, functional.vhp):
        assert gradcheck(lambda a, b: product(scalar, (a, b), (x, y), create_graph=True)[1], (a, b))
    with tl.no_grad():
        assert not functional.jvp(tl.sin, x, x)[0].requires_grad


REFUSED = {
    "jvp without v": (lambda f, x: f.jvp(tl.sin, x), RuntimeError, "jvp: the vector v can only"),
    "vjp without v": (lambda f, x: f.vjp(tl.sin, x), RuntimeError, "vjp: the vector v can only"),
    "size of v": (lambda f, x: f.vjp(tl.sin, x, tl.ones(2)), RuntimeError,
                  r"v has invalid size: should be \(3,\) but got \(2,\)"),
    "several v": (lambda f, x: f.vjp(tl.sin, x, (x, x)), RuntimeError, "1 Tensors, got 2"),
    "no tensor": (lambda f, x: f.vjp(tl.sin, 3.0), TypeError, "inputs must be .*float"),
    "a list": (lambda f, x: f.vjp(tl.sin, [x]), TypeError, "inputs must be .*list"),
    "output a number": (lambda f, x: f.jvp(lambda x: 2.0, x, x), TypeError, "outputs .*float"),
    "a vector's hessian": (lambda f, x: f.hessian(tl.sin, x), RuntimeError, "single element"),
    "a vector's hvp": (lambda f, x: f.hvp(tl.sin, x, x), RuntimeError, "hvp: .*single element"),
    "two outputs": (lambda f, x: f.hvp(lambda x: (x, x), x, x), RuntimeError, "single Tensor"),
    "strategy": (lambda f, x: f.jacobian(tl.sin, x, strategy="sideways"), ValueError, "sideways"),
    "strict, constant": (lambda f, x: f.vjp(lambda x: tl.ones(3), x, x, strict=True),
                         RuntimeError, "Output 0 .* does not require gradients"),
    "strict, vjp": (lambda f, x: f.vjp(lambda x, y: 2 * x, (x, x), x, strict=True),
                    RuntimeError, "independent of input 1"),
    "strict, jvp": (lambda f, x: f.jvp(lambda x, y: 2 * x, (x, x), (x, x), strict=True),
                    RuntimeError, "independent of input 1"),
    "strict, jacobian": (lambda f, x: f.jacobian(lambda x, y: (x, x + y), (x, x), strict=True),
                         RuntimeError, "Output 0 .* independent of input 1"),
    "strict, hvp": (lambda f, x: f.hvp(lambda x: (2 * x).sum(), x, x, strict=True),
                    RuntimeError, "jacobian .* input 0 is independent"),
    "strict, vhp": (lambda f, x: f.vhp(lambda x: (2 * x).sum(), x, x, strict=True),
                    RuntimeError, "jacobian .* input 0 is independent"),
    "strict, graph": (lambda f, x: f.jvp(lambda x: 2 * x, x, x, create_graph=True, strict=True),
                      RuntimeError, "independent of input 0.*create_graph"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_bad_input_is_refused(name, x):
    call, error, message = REFUSED[name]
    with pytest.raises(error, match=message):
        call(functional, x)


def test_without_strict_independent_outputs_have_zero_derivatives(x):
    assert (functional.vjp(lambda x: tl.ones(3), x, x)[1] == 0).all()
    assert (functional.jvp(lambda x: tl.ones(3), x, x)[1] == 0).all()
    assert (functional.hvp(lambda x: x.sum(), x, x)[1] == 0).all()
    assert (functional.vhp(lambda x: x.sum(), x, x)[1] == 0).all()
    assert (functional.hessian(lambda x: x.sum(), x) == 0).all()


def test_it_takes_examples_of_a_batch(x, y):
    xs = tl.stack([x, y, x * y])

    def products(x):
        return (functional.vjp(tl.sin, x, x)[1], functional.jvp(tl.sin, x, x)[1],
                functional.jacobian(tl.sin, x), functional.hessian(lambda x: (x ** 3).sum(), x),
                functional.hvp(lambda x: (x ** 3).sum(), x, x, strict=True)[1])

    for found, *one_by_one in zip(func.vmap(products)(xs), *map(products, xs), strict=True):
        assert_close(found, tl.stack(one_by_one))


# ---- by parts of PyTorch's functions -------------------------------------------------------------

def test_bases_of_several_tensors():
    basis = functional._construct_standard_basis_for((tl.ones(2), tl.ones(1).double()), (2, 1))
    assert [x.tolist() for x in basis] == [[[1, 0], [0, 1], [0, 0]], [[0], [0], [1]]]
    assert [x.dtype for x in basis] == [tl.float32, tl.float64]


def test_tuples_and_what_was_none(x):
    assert functional._as_tuple(x, "inputs", "f") == (False, (x,))
    assert functional._as_tuple((x,), "inputs", "f") == (True, (x,))
    assert functional._as_tuple([x]) == (x,) and functional._as_tuple(x) == (x,)
    with pytest.raises(TypeError, match="f: the inputs must be either a Tensor or a tuple"):
        functional._as_tuple((x, 1), "inputs", "f")
    nested = ((1, 2), (3, 4))
    for to_unpack, wanted in ((True, nested), (False, (1, 2)), ((True, True), nested), (
            (True, False), (1, 3)), ((False, True), (1, 2)), ((False, False), 1)):
        assert functional._tuple_postprocess(nested, to_unpack) == wanted


def test_gradients_lose_their_graphs_unless_these_are_wanted(x):
    y = x.clone().requires_grad_() * 2
    assert functional._grad_postprocess(((y,),), True)[0][0] is y
    assert not functional._grad_postprocess(((y,),), False)[0][0].requires_grad
